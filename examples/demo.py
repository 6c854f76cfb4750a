"""`make demo`: trains on handwritten digits with 1 and with 2 processes, and checks that both learn the same.

Exits with 1 if the losses differ by more than rounding, or the test accuracy is below what is stated here.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
WANTED_ACCURACY = 0.97
LOSS_TOLERANCE = 1e-6
TIMELINE = HERE.parent / "build" / "demo-timeline.json"


def halay_program() -> str:
    beside = pathlib.Path(sys.executable).parent / "halay"
    program = os.environ.get("HALAY_BIN") or (str(beside) if beside.exists() else shutil.which("halay"))
    if not program:
        raise SystemExit("demo: the program `halay` is not installed; `make build` does it")
    return program


def train(processes: int, timeline: pathlib.Path | None) -> dict[str, float]:
    """Runs the example under `halay run`, shows what it prints, and returns its last line."""
    command = [halay_program(), "run", "-np", str(processes), sys.executable, str(HERE / "torch_digits.py")]
    environment = {name: value for name, value in os.environ.items() if name != "HALAY_BIN"}
    environment["OMP_NUM_THREADS"] = "1"  # alike for 1 and 2 processes, so that the speeds can be compared
    if timeline is not None:
        environment["HALAY_TIMELINE"] = str(timeline)
    print(f"\n$ halay run -np {processes} python examples/torch_digits.py", flush=True)
    result = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as job:
        assert job.stdout is not None
        for line in job.stdout:
            text = line[line.find("{") :].strip()
            if text.startswith('{"loss"'):
                result = json.loads(text)
            else:
                print(line, end="", flush=True)
    if job.returncode != 0 or result is None:
        raise SystemExit(f"demo: the job with {processes} processes ended with exit code {job.returncode}")
    return result


def main() -> int:
    TIMELINE.parent.mkdir(parents=True, exist_ok=True)
    one = train(1, None)
    two = train(2, TIMELINE)
    print()
    for result in (one, two):
        plural = "" if result["processes"] == 1 else "es"
        print(
            f"{result['processes']} process{plural}: loss {result['loss']:.6f}, test accuracy {result['accuracy']:.2%}, "
            f"{result['samples_per_second']:.0f} samples/s"
        )
    difference = abs(one["loss"] - two["loss"])
    accuracy = min(one["accuracy"], two["accuracy"])
    print(f"2 processes are {two['samples_per_second'] / one['samples_per_second']:.2f} times as fast as 1")
    print(
        f"the losses differ by {difference:.1e} (allowed {LOSS_TOLERANCE:.0e}); test accuracy wanted: {WANTED_ACCURACY:.0%}"
    )
    print(f"timeline of the 2 processes: {TIMELINE} (open it in chrome://tracing or ui.perfetto.dev)")
    json.loads(TIMELINE.read_text())
    if difference > LOSS_TOLERANCE or accuracy < WANTED_ACCURACY:
        print("demo: FAILED", file=sys.stderr)
        return 1
    print("demo: OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
