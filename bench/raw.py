#!/usr/bin/env python3
"""halay's raw allreduce beside Open MPI's: float32 sum, private buffers, one machine; and the way through halay's engine.

Runs the programs in turn, several rounds, and writes a table of medians and minima with their ratio, and all samples as
JSON. A machine that is busy otherwise gives no figures worth keeping.

    cmake --preset bench && cmake --build --preset bench --target raw_bench mpi_allreduce engine_bench
    python3 bench/raw.py build/bench --ranks 2 --json raw.json

Where a machine cannot be had alone, `--prefix "chrt -f 10"` (as root) keeps others off the cores while a program runs.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

SIZES = [8, 64, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]

Samples = dict[str, dict[int, list[float]]]  # program -> bytes -> microseconds


def words_of(size: int) -> str:
    for unit, bytes_of_unit in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_of_unit:
            return f"{size // bytes_of_unit} {unit}"
    return f"{size} B"


def find(build: pathlib.Path, name: str) -> pathlib.Path | None:
    found = sorted(path for path in build.rglob(name) if path.is_file() and os.access(path, os.X_OK))
    return found[0] if found else None


def run(command: list[str], samples: Samples, algorithms: dict[int, str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        what, _, algorithm = row["what"].partition(":")
        if algorithm:
            algorithms[row["bytes"]] = algorithm
        samples.setdefault(what, {}).setdefault(row["bytes"], []).extend(row["us"])


def mpi_command(program: pathlib.Path, ranks: int) -> list[str]:
    command = ["mpirun", "--allow-run-as-root", "-np", str(ranks), "--mca", "btl_base_warn_component_unused", "0"]
    if ranks > (os.cpu_count() or 1):
        command += ["--oversubscribe"]
    return [*command, str(program)]


def table(samples: Samples, algorithms: dict[int, str]) -> str:
    has_mpi, has_engine = "mpi" in samples, "engine" in samples
    head = ["size", "algorithm", "halay µs (median / min)", "copy µs"]
    if has_engine:
        head += ["engine µs (median / min)"]
    if has_mpi:
        head += ["Open MPI µs (median / min)", "Open MPI / halay (median, min)"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for size in sorted(samples["halay"]):
        ours = samples["halay"][size]
        row = [words_of(size), algorithms.get(size, ""), f"{statistics.median(ours):.2f} / {min(ours):.2f}"]
        row.append(f"{statistics.median(samples['copy'][size]):.2f}")
        if has_engine:
            through = samples["engine"][size]
            row.append(f"{statistics.median(through):.2f} / {min(through):.2f}")
        if has_mpi:
            theirs = samples["mpi"][size]
            row.append(f"{statistics.median(theirs):.2f} / {min(theirs):.2f}")
            row.append(f"{statistics.median(theirs) / statistics.median(ours):.2f}, {min(theirs) / min(ours):.2f}")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="folder with the built programs")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="for each size and round")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="bytes")
    parser.add_argument("--json", type=pathlib.Path, help="where to write all samples")
    parser.add_argument("--prefix", default="", help="put before both commands")
    arguments = parser.parse_args()
    ours, theirs = find(arguments.build, "raw_bench"), find(arguments.build, "mpi_allreduce")
    if ours is None:
        print(f"no raw_bench below {arguments.build}: build with -DHALAY_BENCH=ON", file=sys.stderr)
        return 2
    if theirs is None or shutil.which("mpirun") is None:
        print("Open MPI is not here (openmpi-bin, libopenmpi-dev): halay alone", file=sys.stderr)
        theirs = None
    engine = find(arguments.build, "engine_bench")
    prefix = arguments.prefix.split()
    numbers = [str(arguments.ranks), str(arguments.seconds), *map(str, arguments.sizes)]
    samples: Samples = {}
    algorithms: dict[int, str] = {}
    for _ in range(arguments.rounds):
        run([*prefix, str(ours), *numbers], samples, algorithms)
        if theirs is not None:
            run([*prefix, *mpi_command(theirs, arguments.ranks), *numbers], samples, algorithms)
        if engine is not None:
            run([*prefix, str(engine), *numbers], samples, algorithms)
    print(f"{arguments.ranks} ranks, float32 sum, {arguments.rounds} rounds in turn\n")
    print(table(samples, algorithms))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"ranks": arguments.ranks, "us": samples, "algorithms": algorithms}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
