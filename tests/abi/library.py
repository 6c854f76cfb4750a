"""What an ELF library exports, needs and can change, read with binutils."""

from __future__ import annotations

import pathlib
import re
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Symbol:
    name: str
    kind: str  # FUNC, OBJECT, TLS, NOTYPE ...
    binding: str  # GLOBAL, LOCAL, WEAK
    section: str  # "UND" where the library needs it from elsewhere
    size: int


def _readelf(library: pathlib.Path, *options: str) -> str:
    return subprocess.run(
        ["readelf", "--wide", *options, str(library)], capture_output=True, text=True, check=True
    ).stdout


def needed(library: pathlib.Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+)\]", _readelf(library, "--dynamic"))


def _sections(library: pathlib.Path) -> dict[str, str]:
    return dict(re.findall(r"^\s*\[\s*(\d+)\] (\S+)", _readelf(library, "--sections"), re.MULTILINE))


def symbols(library: pathlib.Path, table: str) -> list[Symbol]:
    """table: "dynamic", what the loader sees, or "all", which a stripped library does not have."""
    sections = _sections(library)
    options = ["--dyn-syms"] if table == "dynamic" else ["--symbols"]
    text = _readelf(library, *options)
    if table == "all":
        text = text[text.find("'.symtab'") :]
    found = []
    for line in text.splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[0].rstrip(":").isdigit():
            size, kind, binding, section = columns[2], columns[3], columns[4], columns[6]
            found.append(Symbol(columns[7], kind, binding, sections.get(section, section), int(size, 0)))
    return found


def demangle(names: list[str]) -> list[str]:
    return subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True
    ).stdout.splitlines()
