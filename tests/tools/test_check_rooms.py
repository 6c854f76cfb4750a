"""The room check finds what it is there to find, and the counting of tests counts."""

from __future__ import annotations

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_rooms
import make_knobs_doc
import run_tests


@pytest.fixture
def rules() -> check_rooms.Rules:
    return check_rooms.load(ROOT / "tools/rooms.toml")


@pytest.fixture
def tree(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setattr(check_rooms, "ROOT", tmp_path)
    return tmp_path


def findings_for(rules: check_rooms.Rules, tree: pathlib.Path, name: str, text: str) -> list[str]:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return list(check_rooms.check_cpp(rules, path))


@pytest.mark.parametrize(
    ("name", "text", "finding"),
    [
        ("src/net/a.cc", '#include "engine/engine.h"\n', "room 'net' does not see 'engine'"),
        ("src/execute/a.cc", '#include "math/internal/x.h"\n', "'math/internal/x.h' is private to 'math'"),
        ("src/fusion/a.h", "#include <mutex>\n", "'<mutex>' in the pure room 'fusion'"),
        ("src/net/a.cc", "#include <CLI/CLI.hpp>\n", "'CLI/CLI.hpp' belongs to ['program']"),
        ("src/net/a.cc", 'auto x = getenv("A");\n', "'getenv(' has its place in"),
        ("src/net/a.cc", "  throw 1;\n", "'throw' has its place in no file"),
        ("src/net/a.cc", "int x;\n" * 601, "601 lines, at most 600"),
        ("src/net/a.cc", "void f() {\n" + "  g();\n" * 70 + "}\n", "a function of 72 lines, at most 70"),
    ],
)
def test_finds(rules, tree, name, text, finding):
    (found,) = findings_for(rules, tree, name, text)
    assert finding in found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/execute/a.cc", '#include "math/kernels.h"\n'),
        ("src/net/a_test.cc", '#include "engine/engine.h"\n#include <thread>\n'),
        ("src/net/a.cc", "// getenv( is base's, and so we throw nothing\n"),
        ("src/net/a.cc", "void f() {\n  // long: one table\n" + "  g();\n" * 70 + "}\n"),
        ("src/net/a.cc", "namespace halay {\n" + "void g();\n" * 100 + "}\n"),
        ("src/net/a.cc", "struct A {\n" + "  int x;\n" * 100 + "};\n"),
    ],
)
def test_finds_nothing_in(rules, tree, name, text):
    assert findings_for(rules, tree, name, text) == []


def test_links_and_sight_are_compared(rules):
    cmake = (ROOT / "src/CMakeLists.txt").read_text()
    assert list(check_rooms.check_cmake(rules, cmake)) == []
    looser = cmake.replace("halay_room(net DEPENDS base", "halay_room(net DEPENDS base engine")
    assert any("'net' links ['engine']" in finding for finding in check_rooms.check_cmake(rules, looser))
    tighter = cmake.replace("halay_room(net DEPENDS base", "halay_room(net")
    assert any("'net' sees ['base'] without linking" in finding for finding in check_rooms.check_cmake(rules, tighter))


def test_a_room_that_sees_upwards_is_found(rules):
    rules.rooms["base"].sees.append("engine")
    assert any("'base' sees 'engine'" in finding for finding in check_rooms.check_plan(rules))


def test_counts_what_junit_files_say(tmp_path):
    path = tmp_path / "results.xml"
    path.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="A" name="holds" status="run"/>'
        '<testcase classname="A" name="breaks" status="run"><failure message="no"/></testcase>'
        '<testcase classname="A" name="errs"><error/></testcase>'
        '<testcase classname="A" name="waits"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    outcome = run_tests.junit(path)
    assert (outcome.passed, outcome.failed, outcome.skipped) == (1, 2, 1)
    assert outcome.failures == ["A.breaks", "A.errs"]


def test_every_knob_is_in_the_document():
    rows = [line for line in make_knobs_doc.TABLE.read_text().splitlines() if line.startswith("HALAY_")]
    text = make_knobs_doc.document()
    assert len(rows) > 20
    assert text.count("\n| `H") == len(rows)
