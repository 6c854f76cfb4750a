"""Runs the built `halay` program, and sees what it left behind. No framework and no libhalay.so is needed."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field


def program() -> str:
    """HALAY_COMMAND or HALAY_BIN, else the one beside this Python, else the one on PATH."""
    beside = pathlib.Path(sys.executable).parent / "halay"
    chosen = os.environ.get("HALAY_COMMAND") or os.environ.get("HALAY_BIN")
    found = chosen or (str(beside) if beside.exists() else shutil.which("halay"))
    assert found, "no `halay` program: install the wheel, or set HALAY_COMMAND"
    return found


@dataclass
class Outcome:
    code: int
    out: str
    err: str
    seconds: float
    mark: str = ""

    def lines(self, rank: int, stream: str = "stdout") -> list[str]:
        text = self.out if stream == "stdout" else self.err
        prefix = f"[{rank}]<{stream}>:"
        return [line[len(prefix) :] for line in text.split("\n") if line.startswith(prefix)]

    @property
    def last(self) -> str:
        return self.err.rstrip("\n").rsplit("\n", 1)[-1]

    def leftovers(self) -> list[int]:
        return living(self.mark)


@dataclass
class Launched:
    """A job that runs; its processes carry a mark in their environment."""

    process: subprocess.Popen
    mark: str
    began: float = field(default_factory=time.monotonic)

    def finish(self, timeout: float = 60) -> Outcome:
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"still running after {timeout} s\n{out!r}\n{err!r}") from None
        seconds = time.monotonic() - self.began
        return Outcome(self.process.returncode, out.decode(), err.decode(), seconds, self.mark)

    def readline(self) -> str:
        return self.process.stdout.readline().decode()


def clean_environment(**settings: str) -> dict[str, str]:
    own = ("HALAY_", "HOROVOD_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(own) and not k.endswith("_NUM_THREADS")}
    return {**kept, **settings}


def start(*arguments: str, stdout=subprocess.PIPE, cwd=None, **settings: str) -> Launched:
    mark = uuid.uuid4().hex
    environment = clean_environment(LAUNCHER_TEST_MARK=mark, **settings)
    words = [program(), *arguments]
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, env=environment, cwd=cwd
    )
    return Launched(process, mark)


def halay(*arguments: str, timeout: float = 60, cwd=None, **settings: str) -> Outcome:
    return start(*arguments, cwd=cwd, **settings).finish(timeout)


def run_python(count: int, script: str, *flags: str, timeout: float = 60, **settings: str) -> Outcome:
    return halay("run", "-np", str(count), *flags, sys.executable, "-c", script, timeout=timeout, **settings)


def living(mark: str) -> list[int]:
    """Processes that carry the mark, however they left their parents; zombies do not count."""
    needle = f"LAUNCHER_TEST_MARK={mark}".encode()
    found = []
    for place in pathlib.Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            marked = needle in (place / "environ").read_bytes().split(b"\0")
            if marked and (place / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found.append(int(place.name))
        except (OSError, IndexError):
            continue
    return found


def wait_until(condition, seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def kill_all(mark: str) -> None:
    for pid in living(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
