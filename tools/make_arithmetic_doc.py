#!/usr/bin/env python3
"""Writes docs/arithmetic.md from the tables src/types/dtype.def and reduce_op.def, which the code and its tests read too.

Usage: make_arithmetic_doc.py [--check]      (--check: exit 1 if the page is not what the tables say)
"""

from __future__ import annotations

import argparse
import pathlib
import sys

from make_enums import rows

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "arithmetic.md"

HEAD = """# Arithmetic

Written by `tools/make_arithmetic_doc.py` from `src/types/dtype.def` and `src/types/reduce_op.def`: do not edit.

    result = round( postscale · (op over ranks of prescale · x) / divisor )

Everything inside is computed in the accumulator type; `round` happens once, at the last owner of an element. The divisor of
an average is the size of the process set (or the ranks that have not joined, if the caller asks for that); of every other op
it is 1. A factor of exactly 1 changes nothing.

| dtype | number | bytes | accumulator | sum, product | average | prescale, postscale |
|---|---|---|---|---|---|---|
"""

OPS_HEAD = """
| op | number | integers | floats | bool8 |
|---|---|---|---|---|
"""

TAIL = """
- **Order.** The association is the fold tree over the ranks, lower rank on the left: of p ranks the first 2·(p - 2^k) become
  one each, pair by pair, then the 2^k that are left are combined as a perfect binary tree (2^k is the largest power of two up
  to p). Every canonical algorithm, on every transport and every instruction set, gives these bits.
- **Rounding.** To nearest, ties to even, denormals kept, whatever the calling thread has set. No fused multiply-add. Division
  by the divisor, not multiplication by its reciprocal.
- **NaN.** What an operation makes of a NaN, or makes a NaN of, is the one quiet NaN of the type (positive, no payload), so the
  order of operands never shows. min and max give NaN if any rank has one. -0 is less than +0. So min and max are the same bits
  in any order.
- **Integers.** Sums and products wrap. prescale · x and postscale · x are computed in double and cut toward zero; what does
  not fit becomes the nearest value of the type. An average is cut toward zero too, as Horovod's is; with
  `HALAY_INT_AVERAGE=error` it is refused.
- **bool8.** Any byte but 0 is true; a result is 0 or 1. An average, and a scale, have no meaning and are refused.
- A scale that is not finite is refused. Refusals come before anything is queued, with words.
"""


def meaning(op: str, kind: str) -> str:
    """What an op other than average does on integers and floats."""
    if op in ("sum", "product"):
        return f"{op}, wraps" if kind == "integer" else op
    return op if kind == "integer" else f"{op}, NaN wins"


def generate() -> str:
    text = HEAD
    averages = {"exact": "exact, rounded once", "truncate": "cut toward zero, or refused", "error": "refused"}
    for name, number, size, kind, accumulator, average in rows("src/types/dtype.def", "HALAY_DTYPE"):
        overflow = {"integer": "wrap", "floating": "round", "boolean": "or, and"}[kind]
        scale = {"integer": "in double, cut toward zero", "floating": f"in {accumulator}", "boolean": "refused"}[kind]
        text += f"| {name} | {number} | {size} | {accumulator} | {overflow} | {averages[average]} | {scale} |\n"
    text += OPS_HEAD
    for name, number, on_bool in rows("src/types/reduce_op.def", "HALAY_REDUCE_OP"):
        if name == "average":
            integers, floats = "sum / divisor, cut toward zero", "sum / divisor"
        else:
            integers, floats = meaning(name, "integer"), meaning(name, "floating")
        text += f"| {name} | {number} | {integers} | {floats} | {'refused' if on_bool == 'error' else on_bool} |\n"
    return text + TAIL


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = generate()
    if not arguments.check:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        print(
            f"{TARGET.relative_to(ROOT)} is not what the .def tables say: run {pathlib.Path(__file__).name}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
