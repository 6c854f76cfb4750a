"""Builds the wheel: make_wheel.py developer|release [--install].

developer: with this machine's compiler, into dist/developer. release: with zig's compiler for glibc 2.28, into dist.
Either is tagged by what its binaries need, as `auditwheel show` reports.
Nothing is built where a wheel newer than every source lies there already.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time
from typing import NoReturn

import places
from places import DEPS, LOGS, PYTHON, ROOT

LOG = LOGS / "wheel.log"
SOURCES = ["src", "include", "cmake", "python", "CMakeLists.txt", "pyproject.toml", "README.md", "tools/make_wheel.py"]
GLIBC = "2.28"


def fail(text: str) -> NoReturn:
    sys.exit(f"wheel: {text}")


def run(command: list[str], env: dict[str, str]) -> None:
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("a") as log:
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        code = subprocess.run(
            command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        ).returncode
    if code != 0:
        print("\n".join(LOG.read_text(errors="replace").splitlines()[-30:]), file=sys.stderr)
        fail(f"exit code {code}: {' '.join(command)} (all of it: {LOG.relative_to(ROOT)})")


def newest_source() -> float:
    files = (file for name in SOURCES for file in [ROOT / name, *(ROOT / name).rglob("*")])
    return max(file.stat().st_mtime for file in files if file.exists() and "__pycache__" not in file.parts)


def release_settings(machine: str) -> list[str]:
    """CMake settings for zig's compiler, and its wrappers: one program a role, as CMake wants them."""
    headers = ROOT / "build/zig/headers"
    shutil.rmtree(headers, ignore_errors=True)
    headers.mkdir(parents=True)
    # Only the headers of header-only packages: /usr/include itself belongs to another C library.
    for name in ("CLI", "xxhash.h"):
        found = next(
            (base / name for base in (DEPS / "usr/include", pathlib.Path("/usr/include")) if (base / name).exists()),
            None,
        )
        if found is None:
            fail(f"{name} is missing: run `tools/setup wheel`")
        (headers / name).symlink_to(found)
    wrappers = ROOT / "build/zig/bin"
    wrappers.mkdir(parents=True, exist_ok=True)
    (zig,) = (ROOT / ".venv/lib").glob("python*/site-packages/ziglang/zig")
    target = f"-target {machine}-linux-gnu.{GLIBC}"
    for role, command in {"cc": f"cc {target}", "c++": f"c++ {target}", "ar": "ar", "ranlib": "ranlib"}.items():
        wrapper = wrappers / f"zig-{role}"
        text = f'#!/bin/sh\nexec "{zig}" {command} "$@"\n'
        if not wrapper.exists() or wrapper.read_text() != text:  # ccache goes by its time
            wrapper.write_text(text)
            wrapper.chmod(0o755)
    return [
        f"CMAKE_C_COMPILER={wrappers}/zig-cc",
        f"CMAKE_CXX_COMPILER={wrappers}/zig-c++",
        f"CMAKE_AR={wrappers}/zig-ar",
        f"CMAKE_RANLIB={wrappers}/zig-ranlib",
        f"CMAKE_SYSTEM_PROCESSOR={machine}",
        "CMAKE_SYSTEM_NAME=Linux",
        f"HALAY_HEADERS={headers}",
    ]


def honest_tag(wheel: pathlib.Path) -> str:
    """The platform tag that this wheel's binaries are worth."""
    shown = subprocess.run(
        [str(PYTHON), "-m", "auditwheel", "show", "--json", str(wheel)], capture_output=True, text=True
    )
    if shown.returncode != 0:
        fail(f"auditwheel show failed: {shown.stdout}{shown.stderr}")
    return str(json.loads(shown.stdout)["overall_tag"])


def retag(wheel: pathlib.Path, tag: str, env: dict[str, str]) -> pathlib.Path:
    run([str(PYTHON), "-m", "wheel", "tags", "--remove", f"--platform-tag={tag}", str(wheel)], env)
    (wheel,) = wheel.parent.glob("*.whl")
    return wheel


def build(kind: str, machine: str, folder: pathlib.Path) -> pathlib.Path:
    env = places.environment()
    settings = [f"build-dir=build/wheel-{kind}-{machine}"]
    defines = release_settings(machine) if kind == "release" else []
    if shutil.which("ccache", path=env["PATH"]):
        defines += ["CMAKE_C_COMPILER_LAUNCHER=ccache", "CMAKE_CXX_COMPILER_LAUNCHER=ccache"]
    settings += [f"cmake.define.{define}" for define in defines]
    options = [word for setting in settings for word in ("-C", setting)]
    stage = ROOT / "build/wheel-out"
    shutil.rmtree(stage, ignore_errors=True)
    run([str(PYTHON), "-m", "build", "--wheel", "--no-isolation", "--outdir", str(stage), *options, str(ROOT)], env)
    (built,) = stage.glob("*.whl")
    built = retag(built, f"linux_{machine}", env)  # a cross-built one has this machine's tag
    built = retag(built, honest_tag(built), env)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"*{machine}.whl"):
        old.unlink()
    return pathlib.Path(shutil.move(str(built), str(folder / built.name)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["developer", "release"])
    parser.add_argument("--machine", default=platform.machine(), help="release only: x86_64 or aarch64")
    parser.add_argument("--install", action="store_true", help="into .venv")
    arguments = parser.parse_args()
    folder = ROOT / "dist" / ("" if arguments.kind == "release" else "developer")
    started = time.monotonic()
    wheels = sorted(folder.glob(f"*{arguments.machine}.whl"))
    if wheels and wheels[0].stat().st_mtime > newest_source():
        wheel = wheels[0]
        print(f"wheel: {wheel.relative_to(ROOT)} is up to date")
    else:
        print(f"wheel: building ({arguments.kind}, log in {LOG.relative_to(ROOT)})", flush=True)
        wheel = build(arguments.kind, arguments.machine, folder)
        print(
            f"wheel: {wheel.relative_to(ROOT)}, {wheel.stat().st_size / 2**20:.1f} MiB, {time.monotonic() - started:.0f} s"
        )
    if arguments.install:
        marker = ROOT / ".venv/halay-setup/installed"
        if not marker.exists() or marker.read_text() != f"{wheel} {wheel.stat().st_mtime_ns}":
            run(
                [str(PYTHON), "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", str(wheel)],
                dict(os.environ),
            )
            marker.write_text(f"{wheel} {wheel.stat().st_mtime_ns}")
            print("wheel: installed into .venv")


if __name__ == "__main__":
    main()
