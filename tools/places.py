"""Where things are, and the environment that finds what tools/setup brought."""

from __future__ import annotations

import os
import pathlib
import platform

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "logs"
DEPS = BUILD / "deps"  # Debian packages, unpacked for who is not root
PYTHON = ROOT / ".venv/bin/python"


def environment() -> dict[str, str]:
    env = dict(os.environ)
    folders = [PYTHON.parent]
    if DEPS.exists():
        folders += [DEPS / "usr/bin", DEPS / "usr/lib/llvm-19/bin"]
        libraries = DEPS / f"usr/lib/{platform.machine()}-linux-gnu"
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(libraries), env.get("LD_LIBRARY_PATH")]))
    env["PATH"] = os.pathsep.join([*map(str, folders), env["PATH"]])
    # So that ccache finds an object again: the same compiler's name in every build (Python has one of its own), and any clone.
    env.setdefault("CC", "cc")
    env.setdefault("CXX", "c++")
    env.setdefault("CCACHE_BASEDIR", str(ROOT))
    env.setdefault("CCACHE_NOHASHDIR", "1")
    return env
