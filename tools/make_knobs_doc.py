"""Writes docs/knobs.md from src/base/config.def.

Usage: make_knobs_doc.py [--check]      (--check: exit 1 if the file is not what the table says)
"""

from __future__ import annotations

import argparse
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/base/config.def"
TARGET = ROOT / "docs/knobs.md"
HEAD = """# Knobs

Written by tools/make_knobs_doc.py from src/base/config.def: do not edit.

Each is an environment variable, read once when an engine is created; settings of `halay_engine_create` win over it.
Where a twin is named, Horovod's variable is read too, and ours wins if both are set. A value that is not allowed is
answered with an error that names the variable, the value and what is allowed; a `HALAY_` name that nobody knows, with a
warning that names the nearest one.
"""
COLUMNS = "| variable | twin | kind | default | what it does |\n|---|---|---|---|---|\n"
LATER = """
## Horovod's variables without effect

They may be set, and change nothing.

| variable | why |
|---|---|
"""


def split_row(text: str) -> list[str]:
    """The arguments of a row; strings keep their commas."""
    parts = re.findall(r'"(?:\\.|[^"\\])*"|[^,\s][^,]*', text)
    return [ast.literal_eval(part) if part.startswith('"') else part.strip() for part in parts]


def number(text: str) -> str:
    return {"INT64_MAX": "2^63 - 1"}.get(text, text)


def kind(macro: str, row: list[str]) -> str:
    if macro == "CHOICE":
        return ", ".join(f"`{choice}`" for choice in row[4].split("|"))
    if macro in ("INT", "REAL"):
        name = "whole number" if macro == "INT" else "number"
        return f"{name}, {number(row[4])} to {number(row[5])}"
    return {"FLAG": "0 or 1", "TEXT": "text"}[macro]


def document() -> str:
    parts, later, section, open_table = [HEAD], [], "", False
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        comment = re.fullmatch(r"// (.*)", line)
        match = re.fullmatch(r"HALAY_([A-Z]+)\((.*)\)", line)
        if not line:
            section, open_table = "", False
        elif comment and not open_table:
            section = comment[1].rstrip(".")
        elif match and match[1] == "LATER":
            name, twin, text = split_row(match[2])
            later.append(f"| `{'HOROVOD' if twin == 'twin' else 'HALAY'}_{name}` | {text} |\n")
        elif match:
            row = split_row(match[2])
            if not open_table:
                parts.append(f"\n## {section}\n\n{COLUMNS}")
                open_table = True
            _, name, twin, default = row[:4]
            default = "on" if default == "true" else "off" if default == "false" else default
            twin = f"`HOROVOD_{name}`" if twin == "twin" else ""
            shown = f"`{default}`" if default else "empty"
            parts.append(f"| `HALAY_{name}` | {twin} | {kind(match[1], row)} | {shown} | {row[-1]} |\n")
    return "".join(parts) + LATER + "".join(later)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = document()
    if not arguments.check:
        TARGET.parent.mkdir(exist_ok=True)
        TARGET.write_text(text, encoding="utf-8")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        print(f"{TARGET.relative_to(ROOT)} is not what {TABLE.relative_to(ROOT)} says: run tools/make_knobs_doc.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
