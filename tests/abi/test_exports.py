"""libhalay.so exports the C ABI and nothing else, needs only the C library, and keeps no state of its own."""

from __future__ import annotations

import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import library

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("HALAY_BUILD", ROOT / "build/release")) / "lib/libhalay.so"
# libpthread, libdl and librt are parts of the C library where it is older than 2.34.
C_LIBRARY = re.compile(r"lib(c|m|pthread|dl|rt)\.so\.\d+|ld-linux.*\.so\.\d+")
# Weak, and answered by nobody: the start-up code of the C library and its compiler look whether they are there.
START_UP = {"_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__gmon_start__"}
CHANGEABLE = {".data", ".bss", ".tdata", ".tbss"}
# What may change in namespace halay, with the reason.
MADE_ONCE = "made at first use, then constant"
LOG = "standard error is the process's, and so is what may be written there"
ALLOWED_TO_CHANGE = {
    "halay::(anonymous namespace)::g_log_hide_time": LOG,
    "halay::(anonymous namespace)::g_log_least": LOG,
    "halay::(anonymous namespace)::g_log_rank": LOG,
    "halay::Status::text[abi:cxx11]() const::kNoText": MADE_ONCE,
    "halay::collective::algorithms()::kTable": MADE_ONCE,
    "halay::math::chosen_table()::kChosen": MADE_ONCE,
    "halay::system_clock()::clock": MADE_ONCE,
    "halay::capi::(anonymous namespace)::t_last_error": "the text of halay_last_error(), a thread's own",
    "halay::capi::(anonymous namespace)::g_forked": "set in a forked child, which has nothing else to ask",
}


def declared_functions() -> set[str]:
    text = (ROOT / "include/halay/halay.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return set(re.findall(r"HALAY_API\s[^;(]*?\b(halay_\w+)\s*\(", text))


def test_the_header_declares_functions_that_this_test_can_read():
    assert {"halay_submit", "halay_last_error", "halay_memory_free"} <= declared_functions()
    assert len(declared_functions()) == (ROOT / "include/halay/halay.h").read_text().count("\nHALAY_API ")


def test_exports_are_exactly_the_functions_of_the_header():
    exported = {s.name for s in library.symbols(LIBRARY, "dynamic") if s.section != "UND" and s.name}
    assert exported == declared_functions()


def test_needs_the_c_library_only():
    others = [name for name in library.needed(LIBRARY) if not C_LIBRARY.fullmatch(name)]
    assert others == []


def test_every_undefined_symbol_is_the_c_librarys():
    undefined = [s for s in library.symbols(LIBRARY, "dynamic") if s.section == "UND" and s.name]
    strangers = [s.name for s in undefined if "@GLIBC_" not in s.name and s.name not in START_UP]
    assert undefined
    assert strangers == []


def test_no_state_in_namespace_halay():
    names = [s.name for s in library.symbols(LIBRARY, "all") if s.section in CHANGEABLE and s.kind in ("OBJECT", "TLS")]
    plain = (name.removeprefix("guard variable for ") for name in library.demangle(names))
    halay = {name for name in plain if re.search(r"\bhalay::", name)}
    assert halay - set(ALLOWED_TO_CHANGE) == set(), "globals that can change: pass them in from the engine instead"
    assert set(ALLOWED_TO_CHANGE) <= halay, "an allowance nobody uses any more"


def test_the_state_check_can_see_symbols_at_all():
    assert any(s.section == ".text" and s.name.startswith("_ZN5halay") for s in library.symbols(LIBRARY, "all"))
