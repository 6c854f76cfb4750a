"""The command line of `halay`: horovodrun's flags, mistakes, and what is said about them."""

import re
import sys

import pytest
from launcher import halay, run_python


def refused(*arguments: str, code: int = 2, **settings: str) -> str:
    job = halay(*arguments, **settings)
    assert job.code == code, (job.code, job.out, job.err)
    assert job.out == ""
    return job.last


def test_version():
    job = halay("--version")
    assert job.code == 0 and re.fullmatch(r"halay \d+\.\d+\.\d+\n", job.out)
    assert halay("run", "--version").out == job.out == halay("run", "-v").out


def test_help_shows_every_flag_of_horovodrun():
    job = halay("run", "--help")
    assert job.code == 0
    shown = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", job.out))
    missing = {name for name, _ in ACCEPTED} - shown
    assert not missing


def test_without_arguments_the_commands_are_shown():
    job = halay()
    assert job.code == 2 and "doctor" in job.err


def test_an_unknown_command_names_the_nearest():
    assert refused("rum", "-np", "2", "x") == "halay: unknown command 'rum'; did you mean halay run?"


# ---- mistakes ----


@pytest.mark.parametrize("count", ["0", "-1", "two", "2x", "99999999999"])
def test_no_process_is_too_few(count):
    assert refused("run", "-np", count, "true").startswith(f"halay run: -np {count}: at least one process")


def test_missing_count_and_missing_program():
    assert refused("run", "true") == "halay run: -np N is needed: how many processes to start"
    assert refused("run", "-np", "2").startswith("halay run: no program given")


def test_a_missing_program_gives_127_and_names_it():
    assert (
        refused("run", "-np", "2", "no-such-program-here", code=127)
        == "halay run: no program 'no-such-program-here' on PATH"
    )
    assert "./nowhere/x" in refused("run", "-np", "2", "./nowhere/x", code=127)


def test_a_program_that_cannot_be_run_gives_126(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print(1)\n")
    line = refused("run", "-np", "2", str(script), code=126)
    assert "Permission denied" in line and f"did you mean: python3 {script}?" in line
    assert "Is a directory" in refused("run", "-np", "2", str(tmp_path), code=126)
    script.write_text("no interpreter line\n")
    script.chmod(0o755)
    assert "'#!'" in refused_last(halay("run", "-np", "2", str(script)), 126)


def refused_last(job, code: int) -> str:
    assert job.code == code, job.err
    assert job.leftovers() == []
    return job.last


def test_a_program_that_dies_at_once():
    job = halay("run", "-np", "3", "/bin/false")
    assert job.code == 1 and re.search(r"rank \d \(pid \d+\) failed first: exit code 1$", job.last)
    assert job.seconds < 5


@pytest.mark.parametrize(
    "given, nearest",
    [
        ("--cycle-time", "--cycle-time-ms"),
        ("--num-procs", "--num-proc"),
        ("--fusion-treshold-mb", "--fusion-threshold-mb"),
        ("--host", "--hosts"),
        ("-hostfiel", "-hostfile"),
        ("--time-line-filename", "--timeline-filename"),
    ],
)
def test_an_unknown_flag_names_the_nearest(given, nearest):
    line = refused("run", "-np", "2", given, "3", "true")
    assert line == f"halay run: unknown option {given}; did you mean {nearest}?"


def test_a_flag_like_no_other_is_just_unknown():
    assert (
        refused("run", "-np", "2", "--xyzzy-quux-flub", "true")
        == "halay run: unknown option --xyzzy-quux-flub; see halay run --help"
    )


@pytest.mark.parametrize(
    "flag, value, allowed",
    [
        ("--cycle-time-ms", "-1", "a number from 0"),
        ("--cache-capacity", "many", "a whole number from 0"),
        ("--log-level", "LOUD", "one of trace, debug"),
        ("--fusion-threshold-mb", "-3", "0 or more"),
        ("--stall-check-warning-time-seconds", "x", "a number from"),
        ("--start-timeout", "soon", "a number from"),
        ("--num-nccl-streams", "-1", "must not be negative"),
    ],
)
def test_a_bad_value_is_shown_with_flag_and_what_is_allowed(flag, value, allowed):
    line = refused("run", "-np", "2", f"{flag}={value}", "true")
    assert flag in line and value in line and allowed in line


def test_a_bad_setting_in_the_environment_is_answered_before_anything_starts():
    line = refused("run", "-np", "2", "true", HOROVOD_CYCLE_TIME="soon")
    assert "HOROVOD_CYCLE_TIME='soon'" in line and "a number from 0" in line


@pytest.mark.parametrize(
    "pair", [("--gloo", "--mpi"), ("--autotune", "--no-autotune"), ("--hosts=a:1", "--hostfile=f")]
)
def test_flags_that_contradict_each_other(pair):
    line = refused("run", "-np", "1", *pair, "true")
    assert pair[0].split("=")[0] in line or pair[1].split("=")[0] in line


# ---- hosts ----


@pytest.mark.parametrize("hosts", ["host:2:7", "a:0", "a", "a:-1", "[::1]", "::1:2", "", "a:1,", "a b:1"])
def test_r63_hosts_that_cannot_be_understood(hosts):
    line = refused("run", "-np", "1", f"--hosts={hosts}", "true") if hosts else "want name:slots"
    assert "want name:slots" in line


def test_r63_hosts_on_this_machine():
    for hosts in ("localhost:2", "[::1]:2", "127.0.0.1:1,localhost:1"):
        job = run_python(2, "import os; print(os.environ['HALAY_LOCAL_SIZE'])", "-H", hosts)
        assert job.code == 0 and job.lines(1) == ["2"], job.err


def test_too_few_slots():
    assert (
        refused("run", "-np", "3", "-H", "localhost:2", "true") == "halay run: 3 processes asked for, 2 slots on 1 host"
    )


def test_other_machines_come_later():
    line = refused("run", "-np", "2", "-H", "w-0.svc.ns.svc.cluster.local:1,localhost:1", "true")
    assert "w-0.svc.ns.svc.cluster.local" in line and "comes later" in line
    job = halay("run", "-np", "1", "-H", "far:4,localhost:1", "true")
    assert job.code == 0 and "far" in job.err


def test_a_hostfile(tmp_path):
    file = tmp_path / "hosts"
    file.write_text("# ours\n\nlocalhost slots=2\n")
    for flag in ("-hostfile", "--hostfile"):
        assert halay("run", "-np", "2", flag, str(file), "true").code == 0
    file.write_text("localhost slots=2\nlocalhost 2\n")
    assert "line 2" in refused("run", "-np", "1", "-hostfile", str(file), "true")
    assert "/no/such" in refused("run", "-np", "1", "-hostfile", "/no/such", "true")


# ---- every flag of horovodrun ----

ACCEPTED = [
    ("--num-proc", None), ("--disable-cache", ""), ("--start-timeout", "20"), ("--network-interfaces", "lo,eth0"), ("--network-interface", "lo"),
    ("--verbose", ""), ("--ssh-port", "22"), ("-p", "22"), ("--ssh-identity-file", "f"), ("-i", "f"),
    ("--fusion-threshold-mb", "64"), ("--cycle-time-ms", "3.5"), ("--cache-capacity", "2048"),
    ("--hierarchical-allreduce", ""), ("--no-hierarchical-allreduce", ""), ("--hierarchical-allgather", ""), ("--no-hierarchical-allgather", ""),
    ("--torus-allreduce", ""), ("--no-torus-allreduce", ""), ("--autotune", ""), ("--no-autotune", ""), ("--autotune-log-file", "f"),
    ("--autotune-warmup-samples", "3"), ("--autotune-steps-per-sample", "10"), ("--autotune-bayes-opt-max-samples", "20"),
    ("--autotune-gaussian-process-noise", "0.8"), ("--min-np", "1"), ("--min-num-proc", "1"), ("--max-np", "4"), ("--max-num-proc", "4"),
    ("--slots-per-host", "2"), ("--elastic-timeout", "600"), ("--reset-limit", "3"), ("--blacklist-cooldown-range", "1 10"),
    ("--timeline-filename", "t.json"), ("--timeline-mark-cycles", ""), ("--no-timeline-mark-cycles", ""), ("--no-stall-check", ""),
    ("--stall-check", ""), ("--stall-check-warning-time-seconds", "60"), ("--stall-check-shutdown-time-seconds", "0"),
    ("--mpi-threads-disable", ""), ("--no-mpi-threads-disable", ""), ("--mpi-args", "x"), ("--tcp", ""), ("--binding-args", "x"),
    ("--num-nccl-streams", "1"), ("--thread-affinity", "1"), ("--gloo-timeout-seconds", "30"), ("--log-level", "INFO"),
    ("--log-with-timestamp", ""), ("--log-without-timestamp", ""), ("--log-hide-timestamp", ""), ("--no-log-hide-timestamp", ""),
    ("--prefix-output-with-timestamp", ""), ("--hosts", "localhost:1"), ("-H", "localhost:1"), ("--host-discovery-script", "s"),
    ("--gloo", ""), ("--mpi", ""), ("--jsrun", ""), ("--hostfile", None), ("--config-file", None), ("--output-filename", None), ("--check-build", None),
]  # fmt: skip


@pytest.mark.parametrize("flag, value", [(f, v) for f, v in ACCEPTED if v is not None])
def test_every_flag_of_horovodrun_is_taken_and_the_job_still_runs(flag, value):
    job = halay("run", flag, *value.split(), "-np", "1", "/bin/sh", "-c", "echo ran")
    assert job.code == 0 and "ran\n" in job.out, job.err


def test_a_flag_that_comes_later_says_so_in_one_line():
    job = halay("run", "-np", "1", "--mpi", "--autotune", "--min-np", "1", "true")
    said = [line for line in job.err.strip().split("\n") if "threads:" not in line]
    assert len(said) == 3
    for flag in ("--mpi", "--autotune", "--min-np"):
        assert sum(line.startswith(f"halay run: {flag}:") for line in said) == 1, said


def test_the_count_in_all_spellings():
    for spelling in (["-np", "2"], ["-np=2"], ["--num-proc", "2"], ["--num-proc=2"]):
        assert len(halay("run", *spelling, "/bin/sh", "-c", "echo x").out.split()) == 2


def test_a_config_file_is_read_and_the_command_line_wins_wherever_it_stands(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "params:\n  cycle_time_ms: 7   # ours\n  cache_capacity: 64\nstall_check:\n  enabled: false\n"
        "timeline:\n  filename: 'a b.json'\nunknown:\n  key: 1\nlogging:\n  level: INFO\n  with_timestamp: false\n"
    )
    names = ["CYCLE_TIME", "CACHE_CAPACITY", "STALL_CHECK_DISABLE", "TIMELINE", "LOG_LEVEL", "LOG_HIDE_TIME"]
    script = f"import os\nprint([os.environ.get('HALAY_' + n) for n in {names}])"
    job = run_python(1, script, "--cache-capacity", "5", "--config-file", str(file))
    assert job.lines(0) == [str(["7", "5", "1", "a b.json", "INFO", "1"])], job.err
    file.write_text("params:\n  cycle_time_ms: slow\n")
    assert "slow" in refused("run", "-np", "1", "--config-file", str(file), "true")
    file.write_text("controller: smoke\n")
    assert "must be gloo or mpi" in refused("run", "-np", "1", "--config-file", str(file), "true")


# ---- reports ----


def test_check_build_says_what_is_there():
    for flag in ("-cb", "--check-build"):
        job = halay("run", flag)
        assert job.code == 0, job.err
        assert re.match(
            r"halay v\d+\.\d+\.\d+:\n\nAvailable Frameworks:\n    \[ \] TensorFlow\n    \[[X ]\] PyTorch\n", job.out
        )
        assert (
            "Available Controllers:\n    [ ] MPI\n" in job.out
            and "Available Tensor Operations:\n    [ ] NCCL\n" in job.out
        )


def test_doctor_looks_and_ends_well():
    job = halay("doctor")
    assert job.code == 0, job.out
    for topic in (
        "cpu",
        "memory",
        "shared memory",
        "open files",
        "locked memory",
        "huge pages",
        "threads",
        "network",
        "python",
        "engines",
    ):
        assert re.search(rf"^(ok|note)\s+{topic}: ", job.out, re.M), topic
    assert "127.0.0.1" in job.out
    assert job.out.endswith("All is well.\n")


def test_doctor_shows_settings_and_ends_with_1_on_a_real_problem():
    job = halay("doctor", HALAY_TRANSPORT="pigeon", HALAY_JOB_KEY="secret", HALAY_CYCLE_TIM="1")
    assert job.code == 1
    assert "HALAY_TRANSPORT=pigeon" in job.out and "one of auto, shm, tcp" in job.out
    assert "secret" not in job.out
    assert "HALAY_CYCLE_TIME?" in job.out
    assert job.out.endswith("1 thing has to be mended.\n")


def test_doctor_imports_no_framework(tmp_path):
    for name in ("torch", "tensorflow", "mxnet"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n")
    assert halay("doctor", PYTHONPATH=str(tmp_path)).code == 0
    assert halay("run", "-cb", PYTHONPATH=str(tmp_path)).code == 0


def test_doctor_finds_packages_of_the_python_on_path(tmp_path):
    place = tmp_path / "site" / "torch-9.8.7.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.8.7\n")
    job = halay("doctor", PYTHONPATH=str(tmp_path / "site"))
    assert "torch 9.8.7" in job.out
    assert "[X] PyTorch" in halay("run", "-cb", PYTHONPATH=str(tmp_path / "site")).out


def test_run_works_from_a_python_as_well():
    assert halay("run", "-np", "1", sys.executable, "--version").code == 0
