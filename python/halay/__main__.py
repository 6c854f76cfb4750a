"""`python -m halay` is the program `halay` of this installation."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys


def program() -> str | None:
    """The file that was installed with this package, else what PATH has."""
    try:
        files = importlib.metadata.distribution("halay").files or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "halay" and file.suffix == "" and os.access(file.locate(), os.X_OK):
            return os.path.realpath(file.locate())
    return shutil.which("halay")


def main() -> None:
    found = program()
    if found is None:
        sys.exit("halay: the program is not installed beside the package; install the wheel again")
    os.execv(found, [found, *sys.argv[1:]])


if __name__ == "__main__":
    main()
