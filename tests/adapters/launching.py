"""Starts jobs by `halay run`, as a user does. HALAY_BIN names another program than the installed one."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent


@dataclass
class Job:
    code: int
    output: str
    seconds: float

    def lines(self, rank: int) -> list[str]:
        """What a rank printed to its standard output."""
        prefix = f"[{rank}]<stdout>:"
        return [line.removeprefix(prefix) for line in self.output.splitlines() if line.startswith(prefix)]

    def __str__(self) -> str:
        return f"exit code {self.code} after {self.seconds:.1f} s\n{self.output}"


def halay_program() -> str:
    chosen = os.environ.get("HALAY_BIN")
    beside = pathlib.Path(sys.executable).parent / "halay"
    found = chosen or (str(beside) if beside.exists() else shutil.which("halay"))
    assert found, "no `halay` program: install the wheel, or set HALAY_BIN"
    return found


def environment() -> dict[str, str]:
    """This process's, without what is no knob of the engine's."""
    return {name: value for name, value in os.environ.items() if name != "HALAY_BIN"}


def start(process_count: int, *command: str, output: object, **settings: str) -> subprocess.Popen[str]:
    """`halay run -np N python command...` with settings in the environment."""
    words = [halay_program(), "run", "-np", str(process_count), sys.executable, *command]
    full = {**environment(), "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1", **settings}
    return subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=full, cwd=HERE, text=True)  # type: ignore[call-overload,no-any-return]  # output is a file


def run(process_count: int, *command: str, timeout: float = 110, **settings: str) -> Job:
    """Runs a job to its end, or ends it after `timeout` seconds."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = start(process_count, *command, output=output, **settings)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            code = -1
        output.seek(0)
        text = output.read()
    if code == -1:
        text += f"\n(ended by the test after {timeout} s)"
    return Job(code, text, time.monotonic() - began)


def run_script(process_count: int, script: str, timeout: float = 60, **settings: str) -> Job:
    """The same for a program given as text."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(script)
        file.flush()
        return run(process_count, file.name, timeout=timeout, **settings)
