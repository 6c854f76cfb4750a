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

    def __str__(self) -> str:
        return f"exit code {self.code} after {self.seconds:.1f} s\n{self.output}"


def halay_program() -> str:
    chosen = os.environ.get("HALAY_BIN")
    beside = pathlib.Path(sys.executable).parent / "halay"
    found = chosen or (str(beside) if beside.exists() else shutil.which("halay"))
    assert found, "no `halay` program: install the wheel, or set HALAY_BIN"
    return found


def run(process_count: int, *command: str, timeout: float = 110, **settings: str) -> Job:
    """`halay run -np N python command...` with settings in the environment; its output, standard error included."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1", **settings}
    words = [halay_program(), "run", "-np", str(process_count), sys.executable, *command]
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=HERE, text=True)
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
