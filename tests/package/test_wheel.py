"""The wheels as their users meet them: R1, R2, R3, R4 and R5 of shared/spec/users.md."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
import venv
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The developer's wheel, or the one that HALAY_TEST_WHEELS=dist says.
FOLDER = ROOT / os.environ.get("HALAY_TEST_WHEELS", "dist/developer")
NATIVE = [wheel for wheel in sorted(FOLDER.glob("*.whl")) if os.uname().machine in wheel.name]
each_wheel = pytest.mark.parametrize("wheel", NATIVE, ids=lambda wheel: wheel.name)
# Users wait for pip; five times the limit of R1 leaves room for a machine that does other things too.
INSTALL_SECONDS = 30 * 5


def run(*command: object, env: dict[str, str], timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], env=env, cwd="/", capture_output=True, text=True, timeout=timeout, check=False
    )


class Place:
    """An empty environment with this wheel, and a PATH with nothing else on it."""

    def __init__(self, folder: pathlib.Path, wheel: pathlib.Path) -> None:
        venv.create(folder, with_pip=True, symlinks=True)
        self.bin = folder / "bin"
        self.env = {"PATH": str(self.bin), "HOME": str(folder)}
        began = time.monotonic()
        self.installed = run(self.bin / "pip", "install", "--no-index", "--no-deps", wheel, env=self.env, timeout=300)
        self.install_seconds = time.monotonic() - began

    def python(self, code: str, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
        return run(self.bin / "python", *options, "-c", code, env={**self.env, **env})


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[pathlib.Path, Place]:
    return {wheel: Place(tmp_path_factory.mktemp("place") / "venv", wheel) for wheel in NATIVE}


def test_there_is_a_wheel_to_test():
    assert NATIVE, "run tools/make_wheel.py developer"


@each_wheel
def test_r1_installs_in_seconds_without_a_compiler_and_is_a_world_of_one(wheel, places):
    place = places[wheel]
    assert place.installed.returncode == 0, place.installed.stderr
    print(f"pip install took {place.install_seconds:.1f} s")
    assert place.install_seconds < INSTALL_SECONDS
    result = place.python("import halay; halay.init(); print(halay.size())")
    assert (result.returncode, result.stdout) == (0, "1\n"), result.stderr


@each_wheel
def test_the_command_is_on_the_path_of_its_environment(wheel, places):
    result = run("halay", "--help", env=places[wheel].env)
    assert result.returncode == 0
    assert "run" in result.stdout
    module = run(places[wheel].bin / "python", "-m", "halay", "--help", env=places[wheel].env)
    assert (module.returncode, module.stdout) == (0, result.stdout)


@each_wheel
@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_r2_without_the_framework_the_error_names_it_and_the_command(wheel, places, framework):
    result = places[wheel].python(f"import halay.{framework}")
    last = result.stderr.strip().splitlines()[-1]
    assert result.returncode == 1
    assert "ImportError" in last or "ModuleNotFoundError" in last
    assert f"pip install {framework}" in last
    assert "extension" not in last


@each_wheel
def test_r3_no_framework_is_imported_before_its_adapter(wheel, places, tmp_path):
    for name in ("torch", "tensorflow", "jax", "mxnet", "keras", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n")
    result = places[wheel].python("import halay; halay.init(); halay.shutdown()", PYTHONPATH=str(tmp_path))
    assert result.returncode == 0, result.stderr


@each_wheel
def test_r4_no_deprecated_feature_of_python_is_used(wheel, places):
    result = places[wheel].python("import halay", "-W", "error::DeprecationWarning")
    assert result.returncode == 0, result.stderr


@each_wheel
def test_the_tag_is_true(wheel):
    shown = run(sys.executable, "-m", "auditwheel", "show", "--json", wheel, env=dict(os.environ))
    assert shown.returncode == 0, shown.stderr
    report = json.loads(shown.stdout)
    name, _, python, abi, platform = wheel.stem.split("-")
    assert (name, python, abi) == ("halay", "py3", "none")
    assert platform == report["overall_tag"]


@each_wheel
def test_r5_holds_the_library_the_program_and_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert sum(name == "halay/lib/libhalay.so" for name in names) == 1
    assert sum(name.endswith(".data/scripts/halay") for name in names) == 1
    others = [n for n in names if not n.startswith("halay/") and ".dist-info/" not in n and ".data/scripts/" not in n]
    assert others == []
    assert not [name for name in names if "test" in name or name.endswith((".h", ".a", ".o", ".pyc"))]
    assert [name for name in names if ".so" in name] == ["halay/lib/libhalay.so"]


@pytest.mark.timeout(900)
def test_builds_from_the_source_distribution(tmp_path):
    env = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    made = run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", tmp_path, ROOT, env=env)
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-1000:]
    (source,) = tmp_path.glob("*.tar.gz")
    run("tar", "-xzf", source, "-C", tmp_path, env=env)
    (tree,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert not (tree / "tests").exists()
    env.update(CCACHE_BASEDIR=str(tree), CCACHE_NOHASHDIR="1")
    launcher = [f"-Ccmake.define.CMAKE_{lang}_COMPILER_LAUNCHER=ccache" for lang in ("C", "CXX") if _has_ccache(env)]
    words = ["build", "--wheel", "--no-isolation", "-Cbuild-dir=build/release", *launcher]
    made = run(sys.executable, "-m", *words, "--outdir", tmp_path, tree, env=env, timeout=800)
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-1000:]
    (wheel,) = tmp_path.glob("*.whl")
    assert {"halay/lib/libhalay.so", "halay/__init__.py"} <= set(zipfile.ZipFile(wheel).namelist())


def _has_ccache(env: dict[str, str]) -> bool:
    return any((pathlib.Path(folder) / "ccache").exists() for folder in env["PATH"].split(":"))
