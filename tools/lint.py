"""Everything that reads the code without running it. lint.py [--fix] [CHECK...]; --fix formats, and writes generated files.

clang-tidy is slow, so a file that passed is remembered by its preprocessed text, in the user's cache folder.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import places
from places import PYTHON, ROOT

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "halay/tidy"
DATABASE = ROOT / "build/lint/compile_commands.json"
PYTHON_FOLDERS = ["python", "tools", "tests", "examples", "bench", "compat"]


@dataclass
class Check:
    name: str
    ok: bool
    output: str
    seconds: float


def run(*command: object, env: dict[str, str] | None = None) -> tuple[bool, str]:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    )
    return done.returncode == 0, done.stdout


def tool(name: str) -> str:
    """clang's tools bear their version on Debian."""
    found = shutil.which(f"{name}-19") or shutil.which(name)
    if found is None:
        sys.exit(f"lint: {name} is missing: run `tools/setup test`")
    return found


def files(*patterns: str) -> list[str]:
    """Tracked files, and new ones that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [name for name in listed if (ROOT / name).exists()]


def cpp_files() -> list[str]:
    return files("*.cc", "*.h", "*.c", "*.inc")


def rooms(fix: bool) -> tuple[bool, str]:
    return run(PYTHON, "tools/check_rooms.py")


def clang_format(fix: bool) -> tuple[bool, str]:
    return run(tool("clang-format"), *(["-i"] if fix else ["--dry-run", "--Werror"]), *cpp_files())


def ruff_format(fix: bool) -> tuple[bool, str]:
    return run(PYTHON, "-m", "ruff", "format", *([] if fix else ["--diff", "--quiet"]), *python_folders())


def ruff(fix: bool) -> tuple[bool, str]:
    return run(
        PYTHON,
        "-m",
        "ruff",
        "check",
        "--quiet",
        "--output-format=concise",
        *(["--fix"] if fix else []),
        *python_folders(),
    )


def mypy(fix: bool) -> tuple[bool, str]:
    return run(PYTHON, "-m", "mypy")


def python_folders() -> list[str]:
    return [folder for folder in PYTHON_FOLDERS if (ROOT / folder).exists()]


def shell(fix: bool) -> tuple[bool, str]:
    scripts = [name for name in files() if is_shell(ROOT / name)]
    return run(tool("shellcheck"), *scripts)


def is_shell(path: pathlib.Path) -> bool:
    with path.open("rb") as file:
        first = file.readline()
    return path.suffix == ".sh" or (first.startswith(b"#!") and (b"bash" in first or b"/sh" in first))


def generated(fix: bool) -> tuple[bool, str]:
    """Files that tools/make_*.py write are what they would write now."""
    ok, output = True, ""
    for name in files("tools/make_enums.py", "tools/make_knobs_doc.py", "tools/make_arithmetic_doc.py"):
        one, text = run(PYTHON, name, *([] if fix else ["--check"]))
        ok, output = ok and one, output + text
    return ok, output


def clang_tidy(fix: bool) -> tuple[bool, str]:
    configured, output = run("cmake", "-S", ROOT, "-B", DATABASE.parent, "-G", "Ninja")
    if not configured:
        return False, output
    commands = {
        entry["file"]: entry["command"]
        for entry in json.loads(DATABASE.read_text())
        if entry["file"].startswith(f"{ROOT}/src/") and not entry["file"].endswith("_test.cc")
    }
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(tidy_one, commands, commands.values()))
    return all(ok for ok, _ in results), "".join(output for ok, output in results if not ok)


def tidy_one(path: str, command: str) -> tuple[bool, str]:
    words = [word for word in shlex.split(command) if word.startswith(("-I", "-D", "-std", "-isystem", "-m", "-f"))]
    words = [word for word in words if word != "-fno-gnu-unique"]
    preprocessed = subprocess.run([tool("clang++"), *words, "-E", "-P", path], capture_output=True)
    if preprocessed.returncode != 0:
        return False, preprocessed.stderr.decode(errors="replace")
    config = (ROOT / ".clang-tidy").read_bytes()
    # The text itself too: suppressions are comments.
    digest = hashlib.sha256(config + preprocessed.stdout + pathlib.Path(path).read_bytes()).hexdigest()
    stamp = CACHE / digest
    if stamp.exists():
        return True, ""
    ok, output = run(tool("clang-tidy"), "--quiet", path, "--", *words, "-Wno-everything")
    if ok:
        CACHE.mkdir(parents=True, exist_ok=True)
        stamp.touch()
    return ok, output


CHECKS: dict[str, Callable[[bool], tuple[bool, str]]] = {
    "rooms": rooms,
    "clang-format": clang_format,
    "generated": generated,
    "ruff": ruff,
    "ruff-format": ruff_format,
    "mypy": mypy,
    "shellcheck": shell,
    "clang-tidy": clang_tidy,
}
FIXABLE = ("clang-format", "generated", "ruff", "ruff-format")


def run_all(names: list[str] | None = None, fix: bool = False) -> Iterator[Check]:
    for name in names or CHECKS:
        started = time.monotonic()
        ok, output = CHECKS[name](fix)
        yield Check(name, ok, output, time.monotonic() - started)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("checks", nargs="*", help=f"of {' '.join(CHECKS)}")
    arguments = parser.parse_args()
    os.environ.update(places.environment())
    failed = 0
    for check in run_all(arguments.checks or (list(FIXABLE) if arguments.fix else None), arguments.fix):
        print(f"{check.name:14} {'ok' if check.ok else 'FAILED':8} {check.seconds:6.1f} s", flush=True)
        if not check.ok:
            failed += 1
            print(check.output)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
