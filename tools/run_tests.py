"""Runs every stage of the tests, prints a line a stage, and closes with `N passed, N failed, N skipped`.

make test runs the short set, make test-long (--long) the long one; `run_tests.py STAGE...` runs just these.
Logs, one a stage, are in build/logs.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from typing import Callable

import lint
import places
from places import BUILD, LOGS, PYTHON, ROOT

JOBS = os.cpu_count() or 2

# What the short run takes through the sanitizers: the rooms where memory is shared or bytes come from outside.
SANITIZED = [
    "base",
    "net",
    "region",
    "wire",
    "trace",
    "negotiate",
    "transport",
    "memory",
    "rendezvous",
    "control",
    "execute",
    "engine",
    "capi",
    "cluster",
]
SECONDS_PER_FUZZER = 60


@dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, name: str, result: str) -> None:
        setattr(self, result, getattr(self, result) + 1)
        if result == "failed":
            self.failures.append(name)

    def merge(self, other: Outcome) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures


class StageError(Exception):
    """A command that the whole stage depends on failed."""


class Log:
    """One stage's log file; every command of the stage goes there."""

    def __init__(self, name: str) -> None:
        LOGS.mkdir(parents=True, exist_ok=True)
        self.path = LOGS / f"{name}.log"
        self.path.write_text("")

    def run(self, *command: object, check: bool = True, env: dict[str, str] | None = None) -> int:
        words = [str(word) for word in command]
        with self.path.open("a") as file:
            file.write(f"$ {' '.join(words)}\n")
            file.flush()
            code = subprocess.run(
                words,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
            ).returncode
        if check and code != 0:
            raise StageError(f"exit code {code}: {' '.join(words)}")
        return code

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.path.read_text(errors="replace").splitlines()[-lines:])


def junit(path: pathlib.Path, prefix: str = "") -> Outcome:
    """Counts the cases of a JUnit file, as written by GoogleTest, pytest and ctest."""
    outcome = Outcome()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = prefix + ".".join(filter(None, (case.get("classname"), case.get("name"))))
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.add(name, "failed")
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            outcome.add(name, "skipped")
        else:
            outcome.add(name, "passed")
    return outcome


def ctest(log: Log, preset: str, names: list[str] | None = None, env: dict[str, str] | None = None) -> Outcome:
    """Runs a build's tests; a GoogleTest program counts with its cases, any other as one."""
    results = BUILD / preset / "results"
    shutil.rmtree(results, ignore_errors=True)
    summary = LOGS / f"{preset}-ctest.xml"
    summary.unlink(missing_ok=True)
    pick = ["-R", f"^({'|'.join(names)})$"] if names else []
    log.run(
        "ctest",
        "--test-dir",
        BUILD / preset,
        "-j",
        JOBS,
        "--output-on-failure",
        "--output-junit",
        summary,
        *pick,
        check=False,
        env=env,
    )
    if not summary.exists():
        raise StageError("ctest wrote no results")
    outcome = Outcome()
    for case in ElementTree.parse(summary).getroot().iter("testcase"):
        name, ok = case.get("name") or "?", case.get("status") == "run"
        cases = results / f"{name}.xml"
        inner = Outcome()
        if cases.exists():
            inner = junit(cases, f"{preset}/{name}/")
        if not cases.exists() or (not ok and inner.failed == 0):  # crashed, or not a GoogleTest program
            inner.add(f"{preset}/{name}", "passed" if ok else "failed")
        outcome.merge(inner)
    return outcome


def build(log: Log, preset: str, targets: list[str] | None = None) -> None:
    log.run("cmake", "--preset", preset, *launcher())
    log.run("cmake", "--build", BUILD / preset, "-j", JOBS, *(["--target", *targets] if targets else []))


def launcher() -> list[str]:
    return (
        [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")] if shutil.which("ccache") else []
    )


def test_programs(log: Log, preset: str, names: list[str]) -> list[str]:
    """Those of `names` that this tree has."""
    listing = subprocess.run(
        ["cmake", "--build", str(BUILD / preset), "--target", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [name for name in names if re.search(rf"\b{name}_test:", listing)]


def stage_build(log: Log) -> Outcome:
    build(log, "release")
    return Outcome()


def stage_unit(log: Log) -> Outcome:
    return ctest(log, "release")


def stage_install(log: Log) -> Outcome:
    log.run(PYTHON, "tools/make_wheel.py", "developer", "--install")
    return Outcome()


def stage_python(log: Log) -> Outcome:
    return pytest(log, "python", "tests")


def pytest(log: Log, name: str, *arguments: str, env: dict[str, str] | None = None) -> Outcome:
    summary = LOGS / f"{name}.xml"
    summary.unlink(missing_ok=True)
    code = log.run(PYTHON, "-m", "pytest", "-q", f"--junitxml={summary}", *arguments, check=False, env=env)
    if not summary.exists():
        raise StageError(f"pytest ended with {code} and wrote no results")
    outcome = junit(summary)
    if code not in (0, 1):
        outcome.add(f"pytest ended with {code}", "failed")
    return outcome


def sanitizer(preset: str, whole: bool) -> Callable[[Log], Outcome]:
    def stage(log: Log) -> Outcome:
        log.run("cmake", "--preset", preset, *launcher())
        if whole:
            build(log, preset)
            return ctest(log, preset, env=sanitizer_options())
        names = test_programs(log, preset, SANITIZED)
        build(log, preset, [f"{name}_test" for name in names])
        return ctest(log, preset, names, env={**sanitizer_options(), "HALAY_TEST_SUBSET": "1"})

    return stage


def sanitizer_options() -> dict[str, str]:
    return {
        "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
    }


def stage_lint(log: Log) -> Outcome:
    outcome = Outcome()
    for check in lint.run_all():
        with log.path.open("a") as file:
            file.write(f"== {check.name} ({check.seconds:.1f} s)\n{check.output}\n")
        outcome.add(f"lint/{check.name}", "passed" if check.ok else "failed")
    return outcome


def stage_simulation(log: Log) -> Outcome:
    return ctest(log, "release", ["sim"], env={"HALAY_SIM_SEEDS": "10000"})


def stage_fuzz(log: Log) -> Outcome:
    build(log, "fuzz")
    outcome = Outcome()
    for program in sorted((BUILD / "fuzz").rglob("fuzz_*")):
        if program.is_file() and os.access(program, os.X_OK):
            corpus = BUILD / "fuzz-corpus" / program.name
            corpus.mkdir(parents=True, exist_ok=True)
            kept = ROOT / "tests/fuzz/corpus" / program.name[len("fuzz_") :]
            code = log.run(
                program, f"-max_total_time={SECONDS_PER_FUZZER}", f"-artifact_prefix={LOGS}/", corpus, kept, check=False
            )
            outcome.add(f"fuzz/{program.name}", "failed" if code else "passed")
    return outcome


def stage_release_wheel(log: Log) -> Outcome:
    """The Python tests once more, on the wheel that others install."""
    log.run(PYTHON, "tools/make_wheel.py", "release", "--install")
    outcome = pytest(log, "release-wheel", "tests", env={"HALAY_TEST_WHEELS": "dist"})
    log.run(PYTHON, "tools/make_wheel.py", "developer", "--install")
    return outcome


SHORT: dict[str, Callable[[Log], Outcome]] = {
    "build": stage_build,
    "unit": stage_unit,
    "install": stage_install,
    "python": stage_python,
    "asan": sanitizer("asan", whole=False),
    "tsan": sanitizer("tsan", whole=False),
    "lint": stage_lint,
}
LONG: dict[str, Callable[[Log], Outcome]] = {
    **SHORT,
    "asan": sanitizer("asan", whole=True),
    "tsan": sanitizer("tsan", whole=True),
    "simulation": stage_simulation,
    "fuzz": stage_fuzz,
    "release-wheel": stage_release_wheel,
}


def run_stage(name: str, stage: Callable[[Log], Outcome]) -> Outcome:
    print(f"{name} ...", flush=True)
    started = time.monotonic()
    log = Log(name)
    try:
        outcome = stage(log)
    except StageError as error:
        outcome = Outcome()
        outcome.add(f"{name}: {error}", "failed")
    seconds = time.monotonic() - started
    print(
        f"  {seconds:6.1f} s  {outcome.passed:5} passed  {outcome.failed:3} failed  {outcome.skipped:3} skipped",
        flush=True,
    )
    for failure in outcome.failures:
        print(f"  FAILED {failure}")
    if outcome.failed:
        print(f"  ---- the end of {log.path.relative_to(ROOT)}")
        print(log.tail(), flush=True)
    return outcome


def environment() -> None:
    """What every command of every stage sees."""
    os.environ.update(places.environment())
    for name in list(os.environ):
        if name.startswith(("HALAY_", "HOROVOD_")):
            del os.environ[name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="the long set")
    parser.add_argument("stages", nargs="*", help=f"of {' '.join(LONG)}; default: all of the set")
    arguments = parser.parse_args()
    stages = LONG if arguments.long else SHORT
    environment()
    total = Outcome()
    started = time.monotonic()
    for name in arguments.stages or stages:
        outcome = run_stage(name, stages.get(name) or LONG[name])
        total.merge(outcome)
        if outcome.failed and name == "build":
            break  # nothing after these means anything
    print(f"all of it took {time.monotonic() - started:.0f} s")
    print(f"{total.passed} passed, {total.failed} failed" + (f", {total.skipped} skipped" if total.skipped else ""))
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
