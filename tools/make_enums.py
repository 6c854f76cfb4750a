#!/usr/bin/env python3
"""Writes python/halay/_enums.py from the .def tables, so that a number stands in one place.

Usage: make_enums.py [--check]      (--check: exit 1 if the file is not what the tables say)
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "python" / "halay" / "_enums.py"

HEAD = '''"""Numbers of the C ABI. Written by tools/make_enums.py from src/types/*.def and src/base/status.def: do not edit."""

from __future__ import annotations

from enum import IntEnum
'''


def rows(path: str, macro: str) -> list[list[str]]:
    """The rows `MACRO(a, b, ...)` of a .def file, comments skipped."""
    found = []
    for line in (ROOT / path).read_text(encoding="utf-8").splitlines():
        match = re.match(rf"\s*{macro}\((.*)\)\s*$", line)
        if match:
            found.append([cell.strip() for cell in match.group(1).split(",")])
    if not found:
        raise SystemExit(f"{path}: no rows {macro}(...)")
    return found


def enum(name: str, doc: str, table: list[list[str]]) -> str:
    lines = [f"class {name}(IntEnum):", f'    """{doc}"""', ""]
    lines += [f"    {row[0]} = {row[1]}" for row in table]
    return "\n".join(lines) + "\n"


def column(name: str, note: str, key: str, kind: str, table: list[list[str]], index: int) -> str:
    def value(row: list[str]) -> str:
        if kind == "int":
            return row[index]
        return str(row[index] == "true") if kind == "bool" else f'"{row[index]}"'

    lines = [f"# {note}", f"{name}: dict[int, {kind}] = {{"]
    lines += [f"    {key}.{row[0]}: {value(row)}," for row in table]
    return "\n".join(lines) + "\n}\n"


def generate() -> str:
    dtypes = rows("src/types/dtype.def", "HALAY_DTYPE")
    kinds = rows("src/types/op_kind.def", "HALAY_OP")
    reduce_ops = rows("src/types/reduce_op.def", "HALAY_REDUCE_OP")
    statuses = rows("src/base/status.def", "HALAY_STATUS")
    classes = [
        enum("DType", "Element types.", dtypes),
        enum("OpKind", "What an operation is.", kinds),
        enum("ReduceOp", "How elements are combined; the numbers are Horovod's.", reduce_ops),
        enum("Status", "How a call ended.", statuses),
    ]
    columns = [
        column("DTYPE_BYTES", "Bytes of one element.", "DType", "int", dtypes, 2),
        column("DTYPE_KIND", "integer, floating or boolean.", "DType", "str", dtypes, 3),
        column("DTYPE_AVERAGE", "exact, truncate or error.", "DType", "str", dtypes, 5),
        column("OP_REDUCES", "Has a reduce op and scales.", "OpKind", "bool", kinds, 2),
        column("OP_OUTPUT", "same, concat, scattered, exchanged or none.", "OpKind", "str", kinds, 4),
        column("BOOL_MEANING", "What a reduce op does on booleans.", "ReduceOp", "str", reduce_ops, 2),
        column("STATUS_BLAST", "How much is broken: none, call, op, world or process.", "Status", "str", statuses, 2),
    ]
    return HEAD + "\n\n" + "\n\n".join(classes) + "\n\n" + "\n".join(columns)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = generate()
    if not arguments.check:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.read_text(encoding="utf-8") != text:
        print(f"{TARGET.relative_to(ROOT)} is not what the .def tables say: run tools/make_enums.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
