"""What needs no second process: tables, rules about arguments, the book-keeping of the optimizer, imports."""

from __future__ import annotations

import ctypes
import pathlib
import subprocess
import sys

import launching
import pytest

from halay import _enums, _lib, averaging, errors, ops, reducer
from halay.process_sets import ProcessSet

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def test_enums_are_what_the_tables_say() -> None:
    command = [sys.executable, str(ROOT / "tools" / "make_enums.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0


@pytest.mark.parametrize(
    ("table", "numbers"),
    [
        ("dtype", _enums.DType),
        ("op_kind", _enums.OpKind),
        ("reduce_op", _enums.ReduceOp),
        ("status", _enums.Status),
    ],
)
def test_the_library_has_the_same_enums(table: str, numbers: type) -> None:
    found, index = {}, 0
    name, number = ctypes.c_char_p(), ctypes.c_int64()
    while _lib.enum_table(table.encode(), index, name, number) == 0:
        assert name.value is not None
        found[name.value.decode()] = number.value
        index += 1
    assert found == {each.name: int(each) for each in numbers}  # type: ignore[attr-defined]  # an IntEnum


def test_the_structs_have_the_sizes_of_the_header() -> None:
    sizes = {each.__name__: ctypes.sizeof(each) for each in (_lib.Request, _lib.Result, _lib.World, _lib.EngineOptions)}
    assert sizes == {"Request": 128, "Result": 304, "World": 40, "EngineOptions": 16}


def test_a_missing_library_is_named(tmp_path: pathlib.Path) -> None:
    text = fails("import halay", HALAY_LIBRARY=str(tmp_path / "nothing.so"))
    assert "ImportError" in text and "nothing.so" in text and "HALAY_LIBRARY" in text


def fails(script: str, **settings: str) -> str:
    environment = {**launching.environment(), **settings}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode != 0, done.stdout
    return done.stderr


def test_r2_without_torch_the_error_names_torch_and_the_command() -> None:
    text = fails("import sys; sys.modules['torch'] = None; import halay.torch")
    assert "ImportError" in text and "torch" in text and "pip install torch" in text
    text = fails("import sys; sys.modules['numpy'] = None; import halay.numpy")
    assert "ImportError" in text and "pip install numpy" in text


def test_r3_only_the_adapters_own_framework_is_imported(tmp_path: pathlib.Path) -> None:
    for name in ("tensorflow", "mxnet", "jax", "keras", "cloudpickle_fast_path"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n")
    environment = launching.environment()
    environment["PYTHONPATH"] = f"{tmp_path}:{environment.get('PYTHONPATH', '')}"
    script = "import halay, sys; assert 'torch' not in sys.modules and 'numpy' not in sys.modules; import halay.torch"
    subprocess.run([sys.executable, "-W", "error::DeprecationWarning", "-c", script], env=environment, check=True)


def test_the_reduce_op_of_a_call() -> None:
    assert averaging.choose_op(None, None) == averaging.Average
    assert averaging.choose_op(averaging.Sum, None) == averaging.Sum
    with pytest.warns(DeprecationWarning):
        assert averaging.choose_op(None, True) == averaging.Average
    with pytest.warns(DeprecationWarning):
        assert averaging.choose_op(None, False) == averaging.Sum
    with pytest.raises(ValueError, match="both"):
        averaging.choose_op(averaging.Sum, True)
    with pytest.raises(ValueError, match="no reduce op"):
        averaging.choose_op(9, None)
    with pytest.raises(errors.UnsupportedError, match="Adasum"):
        averaging.choose_op(averaging.Adasum, None)
    with pytest.raises(errors.HorovodInternalError, match="Min"):
        averaging.check_scatter_op(averaging.Min)


def test_the_average_of_integers_can_be_an_error() -> None:
    averaging.check_average(averaging.Average, _enums.DType.int32, "truncate")
    averaging.check_average(averaging.Sum, _enums.DType.int32, "error")
    averaging.check_average(averaging.Average, _enums.DType.float32, "error")
    with pytest.raises(TypeError, match=r"int32.*Sum"):
        averaging.check_average(averaging.Average, _enums.DType.int32, "error")


def test_predivide_and_gradient_factors() -> None:
    assert averaging.predivide(averaging.Average, 4.0) == (0.25, 4.0)
    assert averaging.predivide(averaging.Sum, 1.0) == (1.0, 1.0)
    with pytest.raises(ValueError, match="gradient_predivide_factor"):
        averaging.predivide(averaging.Sum, 2.0)
    assert averaging.scatter_gradient_factor(averaging.Sum, 4, 2.0, 3.0, exact=False) == 24.0
    assert averaging.scatter_gradient_factor(averaging.Average, 4, 2.0, 3.0, exact=False) == 6.0
    assert averaging.scatter_gradient_factor(averaging.Sum, 4, 2.0, 3.0, exact=True) == 6.0
    assert averaging.scatter_gradient_factor(averaging.Average, 4, 2.0, 3.0, exact=True) == 1.5


def test_every_status_has_its_class() -> None:
    expected = {
        "invalid_argument": (ValueError,),
        "not_initialized": (ValueError, errors.HorovodInternalError),
        "timeout": (TimeoutError,),
        "mismatch": (errors.MismatchError, errors.HorovodInternalError, RuntimeError),
        "stalled": (errors.StallError, errors.HorovodInternalError),
        "unsupported": (errors.UnsupportedError, errors.HorovodInternalError),
        "no_memory": (MemoryError,),
        "peer_lost": (errors.PeerLost, errors.WorldLostError, errors.HorovodInternalError),
        "aborted": (errors.WorldLostError,),
        "internal": (RuntimeError,),
        "duplicate_name": (errors.DuplicateName, ValueError),
        "not_a_member": (errors.NotAMember, ValueError),
    }
    assert set(expected) == {each.name for each in _enums.Status} - {"ok"}
    for name, classes in expected.items():
        with pytest.raises(Exception, match="the text") as caught:
            errors.raise_status(_enums.Status[name], "the text", 3)
        assert all(isinstance(caught.value, each) for each in classes), name
    assert isinstance(caught.value, ValueError)
    with pytest.raises(errors.PeerLost) as lost:
        errors.raise_status(_enums.Status.peer_lost, "gone", 3)
    assert lost.value.rank == 3


def test_rows_of_reducescatter() -> None:
    for rows in range(20):
        for size in range(1, 7):
            shares = [ops.scattered_rows(rows, size, member) for member in range(size)]
            assert sum(shares) == rows and max(shares) - min(shares) <= 1 and shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    ("splits", "rows", "size", "text"),
    [([1], 4, 2, "1 splits"), ([1, -1], 4, 2, "negative"), ([3, 2], 4, 2, "sum to 5")],
)
def test_wrong_splits_are_refused(splits: list[int], rows: int, size: int, text: str) -> None:
    ops.check_splits([2, 1], 4, 2)
    with pytest.raises(ValueError, match=text):
        ops.check_splits(splits, rows, size)


def test_process_sets_before_they_are_registered() -> None:
    process_set = ProcessSet([3, 1, 2])
    assert process_set.ranks == [1, 2, 3] and process_set.size() is None and process_set.rank() is None
    assert str(process_set) == "ProcessSet(process_set_id=None, ranks=[1, 2, 3], mpi_comm=None)"
    for wrong in (["a"], [1.5], 7, [True]):
        with pytest.raises(ValueError):
            ProcessSet(wrong)  # type: ignore[arg-type]  # that is the point


class TestReducer:
    def test_a_gradient_is_sent_at_once(self) -> None:
        book = reducer.Reducer(passes=1)
        for index in range(3):
            book.add(index)
        assert book.passed(1) == [1] and book.any_sent
        assert book.flush() == [[0], [2]] and book.flush() == []
        book.restart()
        assert not book.any_sent and book.passed(1) == [1]

    def test_passes_are_counted(self) -> None:
        book = reducer.Reducer(passes=3)
        book.add(0)
        assert [book.passed(0) for _ in range(3)] == [[], [], [0]]
        with pytest.raises(AssertionError, match="backward_passes_per_step"):
            book.passed(0)

    def test_an_unfinished_accumulation_is_sent_by_flush(self) -> None:
        book = reducer.Reducer(passes=2)
        book.add(0)
        assert book.passed(0) == [] and book.flush() == [[0]]
        book.restart()
        assert [book.passed(0), book.passed(0)] == [[], [0]]

    def test_a_group_waits_for_its_last_member(self) -> None:
        book = reducer.Reducer(passes=1, groups=[[2, 0]])
        for index in range(3):
            book.add(index)
        assert book.passed(0) == [] and book.passed(1) == [1] and book.passed(2) == [2, 0]
        book.restart()
        assert book.passed(2) == [] and book.flush() == [[2, 0], [1]]

    def test_lists_are_split_evenly(self) -> None:
        assert reducer.split_list(range(5), 2) == [[0, 1, 2], [3, 4]]
        assert reducer.split_list([7], 3) == [[7], [], []]
