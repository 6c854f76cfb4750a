"""The conformance suite, run by N processes over each transport; the size of its matrix is counted, printed and asserted."""

from __future__ import annotations

import collections
import json
import pathlib

import conformance
import conformance_torch
import launching
import pytest

SIZES = (1, 2, 3, 4)
TRANSPORTS = ("shm", "tcp")

_totals: dict[tuple[int, str], collections.Counter[str]] = {}


def expected_counts(driver: type) -> collections.Counter[str]:
    """Cases of one pass of the matrix, from its tables alone."""
    dtypes = len(driver.dtypes)  # type: ignore[attr-defined]  # a driver class of conformance.py
    factor = {"allreduce": len(conformance.OPS), "reducescatter": 2}
    return collections.Counter(
        {
            f"{driver.name}|{operation}|{mode}": dtypes * factor.get(operation, 1)  # type: ignore[attr-defined]  # as above
            for operation, modes in conformance.MODES.items()
            for mode in modes
        }
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("size", SIZES)
def test_every_operation_gives_the_right_values(size: int, transport: str, tmp_path: pathlib.Path) -> None:
    job = launching.run(
        size, "conformance.py", str(tmp_path), HALAY_TRANSPORT=transport, HALAY_OP_DEADLINE_SECONDS="30"
    )
    reports = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*.json"))]
    failures = [failure for report in reports for failure in report["failures"]]
    assert not failures, f"{len(failures)} failures, the first:\n" + "\n".join(failures[:3])
    assert job.code == 0 and len(reports) == size, job
    once = expected_counts(conformance.NumpyDriver) + expected_counts(conformance.TorchDriver)
    for report in reports:
        passes = 2 if size > 2 and report["rank"] > 0 else 1  # the world, and a smaller process set
        for key, count in once.items():
            assert report["counts"][key] == count * passes, key
    _totals[size, transport] = collections.Counter(reports[-1]["counts"])


def test_the_matrix_is_as_large_as_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    if len(_totals) < len(SIZES) * len(TRANSPORTS):
        pytest.skip("not all launches of the matrix ran in this session")
    lines, total = [], 0
    for (size, transport), counts in sorted(_totals.items()):
        by_operation: collections.Counter[str] = collections.Counter()
        for key, count in counts.items():
            framework, operation, _ = key.split("|")
            by_operation[f"{framework} {operation}"] += count
        total += sum(counts.values())
        parts = ", ".join(f"{name} {count}" for name, count in sorted(by_operation.items()))
        lines.append(f"N={size} {transport}: {sum(counts.values())} cases on the last rank ({parts})")
    with capsys.disabled():
        print("\nconformance: sizes x transports x frameworks x operations x dtypes x modes")
        print("\n".join(lines))
        print(f"conformance: {total} cases")
    matrix = sum(expected_counts(conformance.NumpyDriver).values()) + sum(
        expected_counts(conformance.TorchDriver).values()
    )
    torch_cases = sum(1 for name in dir(conformance_torch.TorchCases) if name.startswith("test_"))
    corners = 2 * sum(1 for name in dir(conformance.Suite) if name.startswith("corner_"))
    world = 2 * 5
    per_launch = {size: (matrix + corners) * (2 if size > 2 else 1) + world + torch_cases for size in SIZES}
    assert total == sum(per_launch.values()) * len(TRANSPORTS)
    assert matrix == (12 + 13) * 55
