"""`halay run` from outside: workers, their output, their end, and what is left behind."""

import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

import pytest
from launcher import clean_environment, halay, kill_all, living, program, run_python, start, wait_until

SIX = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")


# ---- what a worker is told ----


def test_each_worker_learns_who_it_is_under_both_names():
    script = "import os\nprint({k: v for k, v in sorted(os.environ.items()) if k.startswith(('HALAY_', 'HOROVOD_'))})"
    job = run_python(3, script)
    assert job.code == 0, job.err
    for rank in range(3):
        told = eval(job.lines(rank)[0])
        for name, value in zip(SIX, (rank, 3, rank, 3, 0, 1)):
            assert told[f"HALAY_{name}"] == told[f"HOROVOD_{name}"] == str(value)
        assert told["HALAY_STORE"].startswith("unix:@halay-")
        assert re.fullmatch("[0-9a-f]{64}", told["HALAY_JOB_KEY"])
        assert told["HALAY_HOSTNAME"] == told["HOROVOD_HOSTNAME"] != ""
    assert len({eval(job.lines(r)[0])["HALAY_JOB_KEY"] for r in range(3)}) == 1


def test_a_job_inside_a_job_does_not_inherit_its_rank_or_store():
    script = "import os\nprint(os.environ['HALAY_RANK'], os.environ['HOROVOD_SIZE'], os.environ['HALAY_STORE'])"
    job = run_python(1, script, HALAY_RANK="7", HOROVOD_SIZE="9", HALAY_STORE="unix:@other", HALAY_JOB_KEY="00")
    rank, size, store = job.lines(0)[0].split()
    assert (rank, size) == ("0", "1") and store != "unix:@other"


def test_flags_become_knobs_and_win_over_the_environment():
    script = "import os\nprint(os.environ['HALAY_FUSION_THRESHOLD'], os.environ['HALAY_CYCLE_TIME'], os.environ['HALAY_LOG_LEVEL'])"
    job = run_python(
        1, script, "--fusion-threshold-mb", "2", "--cycle-time-ms=3.5", "--log-level", "DEBUG", HALAY_CYCLE_TIME="9"
    )
    assert job.lines(0) == ["2097152 3.5 DEBUG"], job.err


def test_output_is_not_buffered_and_standard_input_is_empty():
    job = run_python(2, "import os, sys\nprint(os.environ['PYTHONUNBUFFERED'], repr(sys.stdin.read()))")
    assert job.code == 0 and job.lines(0) == job.lines(1) == ["1 ''"]


def test_the_workers_arguments_are_left_alone():
    job = halay("run", "-np", "1", "/bin/sh", "-c", 'echo "$@"', "sh", "-np", "3", "--verbose", "-H", "x", "a b")
    assert job.lines(0) == ["-np 3 --verbose -H x a b"], job.err


def cores() -> int:
    return len(os.sched_getaffinity(0))


def test_r71_threads_are_shared_out_fairly():
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
    job = run_python(4, f"import os\nprint(*[os.environ[n] for n in {names}])")
    fair = str(max(cores() // 4, 1))
    for rank in range(4):
        assert job.lines(rank) == [" ".join([fair] * 3)], job.err
    said = [line for line in job.err.split("\n") if line.startswith("halay run: threads:")]
    assert len(said) == 1 and "OMP_NUM_THREADS" in said[0]


def test_r71_threads_that_the_user_chose_are_kept():
    job = run_python(
        2, "import os\nprint(os.environ['OMP_NUM_THREADS'], os.environ['TF_NUM_INTRAOP_THREADS'])", OMP_NUM_THREADS="5"
    )
    assert job.lines(0) == ["5 5"], job.err


# ---- output ----


def test_r66_lines_of_100_kb_never_mix_and_every_line_has_its_prefix():
    script = "import os\nr = os.environ['HALAY_RANK']\nfor i in range(30): print(r * 100_000, i)"
    job = run_python(4, script)
    assert job.code == 0, job.err
    lines = job.out.split("\n")
    assert lines.pop() == ""
    assert len(lines) == 120
    for rank in range(4):
        assert job.lines(rank) == [f"{str(rank) * 100_000} {i}" for i in range(30)]


def test_r66_the_exit_code_is_that_of_the_first_rank_that_fails():
    script = (
        "import os, sys, time\nr = int(os.environ['HALAY_RANK'])\n"
        "time.sleep(0 if r == 2 else 0.7)\nsys.exit([11, 12, 13, 14][r])"
    )
    job = run_python(4, script)
    assert job.code == 13, job.err
    assert re.search(r"rank 2 \(pid \d+\) failed first: exit code 13$", job.last), job.err


def test_a_carriage_return_ends_a_line_too():
    job = halay("run", "-np", "1", "/bin/sh", "-c", r"printf 'a\rb\r\nc'")
    assert job.out == "[0]<stdout>:a\r[0]<stdout>:b\r\n[0]<stdout>:c\n"


def test_progress_is_shown_before_the_program_ends(tmp_path):
    gate = tmp_path / "gate"
    job = start("run", "-np", "1", "/bin/sh", "-c", f"echo early; while [ ! -e {gate} ]; do sleep 0.05; done")
    assert job.readline() == "[0]<stdout>:early\n"
    gate.touch()
    assert job.finish().code == 0


def test_utf8_cut_in_the_middle_of_a_letter_comes_out_whole():
    script = "import os, time\nos.write(1, b'\\xc3'); time.sleep(0.2); os.write(1, b'\\xbc\\n')"
    assert run_python(1, script).lines(0) == ["ü"]


def test_timestamps_stand_before_the_prefix():
    job = run_python(1, "print('x')", "-prefix-timestamp")
    assert re.fullmatch(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\[0\]<stdout>:x\n", job.out), job.out


@pytest.mark.parametrize(
    "count, names", [(1, ["rank.0"]), (2, ["rank.0", "rank.1"]), (11, [f"rank.{r:02}" for r in range(11)])]
)
def test_output_goes_to_files_too(tmp_path, count, names):
    folder = tmp_path / "deep" / "er"
    script = "import os, sys\nprint('out', os.environ['HALAY_RANK']); print('err', file=sys.stderr)"
    job = run_python(count, script, "--output-filename", str(folder))
    assert job.code == 0, job.err
    assert sorted(p.name for p in folder.iterdir()) == names
    for rank, name in enumerate(names):
        assert (folder / name / "stdout").read_text() == f"out {rank}\n"
        assert (folder / name / "stderr").read_text() == "err\n"
        assert job.lines(rank) == [f"out {rank}"], "still echoed"


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    job = run_python(1, "print('x')", "--output-filename", str(tmp_path / "file" / "in"))
    assert job.code == 2 and str(tmp_path / "file") in job.last
    assert job.leftovers() == []


def test_a_reader_that_goes_away_does_not_end_the_job(tmp_path):
    done = tmp_path / "done"
    job = start(
        "run", "-np", "1", sys.executable, "-c", f"for i in range(20000): print(i)\nopen({str(done)!r}, 'w').close()"
    )
    job.readline()
    job.process.stdout.close()
    assert job.process.wait(60) == 0
    assert done.exists()
    job.process.stderr.close()


def test_a_reader_that_is_slow_loses_nothing():
    job = start("run", "-np", "2", sys.executable, "-c", "for i in range(3000): print('x' * 4000, i)")
    time.sleep(1)
    result = job.finish()
    assert result.code == 0 and len(result.lines(0)) == len(result.lines(1)) == 3000


# ---- the end ----


def test_r10_a_rank_that_exits_ends_the_others():
    script = "import os, sys, time\nif os.environ['HALAY_RANK'] == '0':\n    time.sleep(1); sys.exit(3)\ntime.sleep(50)"
    job = run_python(2, script)
    assert job.code == 3, job.err
    assert job.seconds < 1 + 5, job.seconds
    assert job.leftovers() == []


def test_a_rank_killed_by_a_signal_gives_128_and_the_signals_name():
    script = "import os, signal, time\nif os.environ['HALAY_RANK'] == '1': os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(50)"
    job = run_python(3, script)
    assert job.code == 137, job.err
    assert re.search(r"rank 1 \(pid \d+\) failed first: killed by SIGKILL; exit code 137$", job.last), job.err
    assert job.seconds < 5


def test_workers_that_ignore_term_are_killed_within_5_seconds():
    script = (
        "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.environ['HALAY_RANK'] == '0': sys.exit(9)\ntime.sleep(50)"
    )
    job = run_python(2, script)
    assert job.code == 9 and job.seconds < 5 + 1, (job.seconds, job.err)
    assert job.leftovers() == []


def test_a_stopped_worker_is_ended_too():
    script = "import os, signal, sys, time\nif os.environ['HALAY_RANK'] == '0':\n    time.sleep(0.5); sys.exit(4)\nos.kill(os.getpid(), signal.SIGSTOP)"
    job = run_python(2, script)
    assert job.code == 4 and job.seconds < 6, job.seconds
    assert job.leftovers() == []


def test_survivors_get_a_moment_to_say_what_they_saw():
    script = (
        "import os, sys, time\nif os.environ['HALAY_RANK'] == '0': sys.exit(5)\n"
        "time.sleep(0.8)\nprint('peer lost: rank 0', file=sys.stderr); sys.exit(1)"
    )
    job = run_python(2, script)
    assert job.code == 5 and job.lines(1, "stderr") == ["peer lost: rank 0"]


def test_all_ranks_succeed_and_nothing_is_said_but_the_threads():
    job = run_python(3, "pass")
    assert job.code == 0 and job.out == ""
    assert len(job.err.strip().split("\n")) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_passed_on(number):
    script = (
        "import signal, sys, time\n"
        "def told(n, f): print('told', n); sys.exit(0)\n"
        f"signal.signal({int(number)}, told)\nprint('ready')\ntime.sleep(50)"
    )
    job = start("run", "-np", "2", sys.executable, "-c", script)
    ready = [job.readline() for _ in range(2)]
    assert sorted(ready) == ["[0]<stdout>:ready\n", "[1]<stdout>:ready\n"]
    os.kill(job.process.pid, number)
    result = job.finish()
    assert result.code == 128 + number
    assert result.lines(0) == result.lines(1) == [f"told {int(number)}"], "once each"
    assert signal.Signals(number).name in result.last


def test_a_worker_that_ignores_the_signal_is_killed_and_a_second_signal_does_so_at_once():
    script = (
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(50)"
    )
    job = start("run", "-np", "1", sys.executable, "-c", script)
    job.readline()
    os.kill(job.process.pid, signal.SIGINT)
    time.sleep(0.3)
    os.kill(job.process.pid, signal.SIGINT)
    began = time.monotonic()
    result = job.finish()
    assert result.code == 130 and time.monotonic() - began < 3, result.err
    assert result.leftovers() == []


NEST = """
import os, subprocess, sys, time
child = [sys.executable, '-c', 'import time; time.sleep(300)']
subprocess.Popen(child)                                            # in the worker's session
subprocess.Popen(child, start_new_session=True)                    # in one of its own
if os.fork() == 0:                                                 # a daemon: its parent ends at once
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)
print('ready', flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize("victim", ["launcher", "supervisor"])
def test_no_orphan_even_if_the_launcher_is_killed(victim):
    job = start("run", "-np", "2", sys.executable, "-c", NEST)
    for _ in range(2):
        assert job.readline().endswith("ready\n")
    # launcher, supervisor, and per rank: worker, two children, one daemon
    assert wait_until(lambda: len(living(job.mark)) >= 2 + 2 * 4), living(job.mark)
    pid = job.process.pid
    if victim == "supervisor":
        pid = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    try:
        assert wait_until(lambda: living(job.mark) == [], 10), living(job.mark)
    finally:
        kill_all(job.mark)
    result = job.finish()
    assert result.code == (-signal.SIGKILL if victim == "launcher" else 137)


def test_what_a_worker_leaves_running_ends_with_the_job():
    script = NEST.rsplit("time.sleep(300)", 1)[0]
    job = run_python(2, script)
    assert job.code == 0 and job.seconds < 20, job.err
    assert job.leftovers() == []


def test_r9_after_sigkill_of_a_rank_nothing_is_left():
    script = "import os, signal, time\nif os.environ['HALAY_RANK'] == '2':\n    time.sleep(0.3); os.kill(os.getpid(), 9)\ntime.sleep(60)"
    job = run_python(4, script)
    assert job.code == 137 and job.seconds < 10
    assert job.leftovers() == []


# ---- several jobs ----


def test_r62_two_jobs_at_once_both_succeed_and_twenty_in_a_row():
    pair = [
        start("run", "-np", "2", sys.executable, "-c", "import time; time.sleep(0.5); print('ok')") for _ in range(2)
    ]
    for job in pair:
        result = job.finish()
        assert result.code == 0 and result.lines(0) == result.lines(1) == ["ok"], result.err
    for _ in range(20):
        job = halay("run", "-np", "2", "/bin/true")
        assert job.code == 0, job.err
        assert "in use" not in job.err


def test_the_launcher_sleeps_while_its_workers_work():
    job = start("run", "-np", "2", "/bin/sleep", "2")
    assert wait_until(lambda: len(living(job.mark)) >= 4)
    pids = [
        job.process.pid,
        int(pathlib.Path(f"/proc/{job.process.pid}/task/{job.process.pid}/children").read_text().split()[0]),
    ]

    def ticks() -> int:
        return sum(
            sum(map(int, pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) for p in pids
        )

    before = ticks()
    time.sleep(1)
    assert ticks() - before <= 2, "hundredths of a second of CPU in a second"
    assert job.finish().code == 0


def test_two_hundred_workers_come_and_go():
    job = halay("run", "-np", "200", "/bin/sh", "-c", "echo $HALAY_RANK")
    assert job.code == 0
    assert sorted(int(line.split(":")[1]) for line in job.out.strip().split("\n")) == list(range(200))


def test_works_without_a_file_descriptor_to_spare_being_leaked_into_workers():
    job = run_python(1, "import os\nprint(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1])")
    assert job.lines(0) == ["[0, 1, 2]"], job.out


def test_subprocess_output_after_the_workers_end_is_not_waited_for():
    job = halay("run", "-np", "1", "/bin/sh", "-c", "sleep 60 & echo done")
    assert job.code == 0 and job.lines(0) == ["done"] and job.seconds < 15


def test_a_small_limit_of_open_files_is_enough_and_workers_keep_it(tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    words = [program(), "run", "-np", "40", "--output-filename", str(tmp_path), "/bin/sh", "-c", "ulimit -n"]
    job = subprocess.run(words, preexec_fn=limit, capture_output=True, text=True, timeout=60, env=clean_environment())
    assert job.returncode == 0, job.stderr
    assert {line.split(":")[1] for line in job.stdout.strip().split("\n")} == {"64"}
