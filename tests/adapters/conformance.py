"""One suite for every framework: each operation on each dtype in each mode, against values computed from all ranks' inputs.

Run by N processes: `halay run -np N python conformance.py DIRECTORY`. Every rank writes DIRECTORY/<rank>.json with the
number of cases by (framework, operation, mode) and the failures. A framework is a small driver class below.
"""

from __future__ import annotations

import collections
import json
import pathlib
import sys
import threading
import traceback
from functools import partial
from typing import Any, Callable

import numpy as np

import halay
import halay.numpy
from halay import Average, Max, Min, Product, Sum

OPS = {"Average": Average, "Sum": Sum, "Min": Min, "Max": Max, "Product": Product}
INTEGERS = ("uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
MODES = {
    "allreduce": ("sync", "in place", "async", "async in place", "grouped", "grouped in place", "grouped async"),
    "allgather": ("sync", "async", "grouped", "grouped async"),
    "broadcast": ("sync", "in place", "async", "async in place"),
    "alltoall": ("sync", "sync splits", "async", "async splits"),
    "reducescatter": ("sync", "async", "grouped", "grouped async"),
}
SHAPE = (6, 5)


class NumpyDriver:
    name = "numpy"
    api: Any = halay.numpy
    dtypes = ("bool", *INTEGERS, "float16", "float32", "float64")

    @staticmethod
    def make(values: Any, dtype: str) -> Any:
        return np.array(values).astype(dtype)

    @staticmethod
    def read(tensor: Any) -> np.ndarray:
        return np.asarray(tensor)

    @staticmethod
    def dtype_of(tensor: Any) -> str:
        return str(tensor.dtype)

    @staticmethod
    def transposed(tensor: Any) -> Any:
        return tensor.T


class TorchDriver:
    name = "torch"
    dtypes = ("bool", *INTEGERS, *FLOATS)

    def __init__(self) -> None:
        import torch

        import halay.torch

        torch.set_num_threads(1)
        self.torch = torch
        self.api: Any = halay.torch

    def make(self, values: Any, dtype: str) -> Any:
        return self.torch.from_numpy(np.array(values)).to(getattr(self.torch, dtype))

    def read(self, tensor: Any) -> np.ndarray:
        if tensor.dtype == self.torch.bfloat16:
            return np.asarray(tensor.float().numpy())
        return np.asarray(tensor.numpy())

    def dtype_of(self, tensor: Any) -> str:
        return str(tensor.dtype).removeprefix("torch.")

    @staticmethod
    def transposed(tensor: Any) -> Any:
        return tensor.t()


def values_of(rank: int, shape: tuple[int, ...], dtype: str, salt: int = 0) -> np.ndarray:
    """What a rank holds; small numbers, so that sums and products are exact in every dtype."""
    count = int(np.prod(shape))
    numbers = (np.arange(count) * 7 + rank * 3 + salt) % 3 + 1
    if dtype == "bool":
        return (((np.arange(count) >> rank) + salt) % 2 == 0).reshape(shape)
    if dtype in FLOATS or dtype.startswith("i"):
        numbers = numbers * np.where((np.arange(count) + rank) % 5 == 0, -1, 1)
    return numbers.reshape(shape)


def round_to(values: np.ndarray, dtype: str) -> np.ndarray:
    """Values in the dtype, read back as numbers; bfloat16 by hand (round to nearest, ties to even)."""
    if dtype != "bfloat16":
        return values.astype(dtype)
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) & 0xFFFF0000).astype(np.uint32)
    return rounded.view(np.float32)


def reduced(inputs: list[np.ndarray], op: str, dtype: str) -> np.ndarray:
    """The one table of arithmetic: accumulate, divide, round once."""
    if dtype == "bool":
        return np.logical_or.reduce(inputs) if op in ("Sum", "Max") else np.logical_and.reduce(inputs)
    if op in ("Min", "Max"):
        return (np.minimum if op == "Min" else np.maximum).reduce(inputs)
    if op == "Product":
        return round_to(np.multiply.reduce([each.astype(np.float64) for each in inputs]), dtype)
    total = np.add.reduce([each.astype(np.int64) for each in inputs])
    if op == "Sum":
        return round_to(total, dtype)
    if dtype in INTEGERS:
        return (np.sign(total) * (np.abs(total) // len(inputs))).astype(dtype)
    accumulator = np.float64 if dtype == "float64" else np.float32
    return round_to(total.astype(accumulator) / accumulator(len(inputs)), dtype)


class Suite:
    """Runs cases, counts them, and goes on after a failure."""

    def __init__(self, driver: Any, process_set: Any, label: str) -> None:
        self.driver, self.api, self.process_set = driver, driver.api, process_set
        self.ranks: list[int] = list(process_set.ranks)
        self.member = self.ranks.index(halay.rank())
        self.label = label
        self.counts: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []

    def case(self, operation: str, mode: str, what: str, body: Callable[[], None]) -> None:
        self.counts[f"{self.driver.name}|{operation}|{mode}"] += 1
        try:
            body()
        except Exception:
            where = f"{self.driver.name} {self.label} {operation} {mode} {what} on rank {halay.rank()}"
            self.failures.append(f"{where}:\n{traceback.format_exc(limit=4)}")

    def inputs(self, shape: tuple[int, ...], dtype: str, salt: int = 0) -> list[np.ndarray]:
        return [values_of(rank, shape, dtype, salt) for rank in self.ranks]

    def own(self, shape: tuple[int, ...], dtype: str, salt: int = 0) -> Any:
        return self.driver.make(values_of(halay.rank(), shape, dtype, salt), dtype)

    def check(self, tensor: Any, expected: np.ndarray, dtype: str) -> None:
        assert self.driver.dtype_of(tensor) == dtype, f"dtype {self.driver.dtype_of(tensor)}, not {dtype}"
        found = self.driver.read(tensor)
        assert found.shape == expected.shape, f"shape {found.shape}, not {expected.shape}"
        assert np.array_equal(found, expected), f"got {found.tolist()}\nnot {expected.tolist()}"

    # ---- the matrix ----

    def matrix(self) -> None:
        for dtype in self.driver.dtypes:
            for op in OPS:
                for mode in MODES["allreduce"]:
                    self.case("allreduce", mode, f"{op} {dtype}", partial(self.allreduce, mode, op, dtype))
            for mode in MODES["allgather"]:
                self.case("allgather", mode, dtype, partial(self.allgather, mode, dtype))
            for mode in MODES["broadcast"]:
                self.case("broadcast", mode, dtype, partial(self.broadcast, mode, dtype))
            for mode in MODES["alltoall"]:
                self.case("alltoall", mode, dtype, partial(self.alltoall, mode, dtype))
            for op in ("Sum", "Average"):
                for mode in MODES["reducescatter"]:
                    self.case("reducescatter", mode, f"{op} {dtype}", partial(self.reducescatter, mode, op, dtype))

    def allreduce(self, mode: str, op: str, dtype: str) -> None:
        api, number = self.api, OPS[op]
        inputs = [self.own(SHAPE, dtype), self.own((3,), dtype, 1)]
        kind = {"op": number, "process_set": self.process_set}

        def call() -> list[Any]:
            if mode == "sync":
                return [api.allreduce(inputs[0], **kind)]
            if mode == "in place":
                assert api.allreduce_(inputs[0], **kind) is inputs[0]
                return inputs[:1]
            if mode == "async":
                return [api.synchronize(api.allreduce_async(inputs[0], **kind))]
            if mode == "async in place":
                api.synchronize(api.allreduce_async_(inputs[0], **kind))
                return inputs[:1]
            if mode == "grouped":
                return list(api.grouped_allreduce(inputs, **kind))
            if mode == "grouped in place":
                api.grouped_allreduce_(inputs, **kind)
                return inputs
            return list(api.synchronize(api.grouped_allreduce_async(inputs, **kind)))

        if dtype == "bool" and op == "Average":
            expect(ValueError, call)
            return
        for salt, (result, shape) in enumerate(zip(call(), (SHAPE, (3,)))):
            self.check(result, reduced(self.inputs(shape, dtype, salt), op, dtype), dtype)
        if "in place" not in mode:
            self.check(inputs[0], round_to(values_of(halay.rank(), SHAPE, dtype), dtype), dtype)

    def allgather(self, mode: str, dtype: str) -> None:
        api, kind = self.api, {"process_set": self.process_set}
        shapes = [lambda rank: (rank % 3, 2), lambda rank: (rank + 1,)]
        inputs = [self.own(shape(halay.rank()), dtype, salt) for salt, shape in enumerate(shapes)]
        if mode == "sync":
            results = [api.allgather(inputs[0], **kind)]
        elif mode == "async":
            results = [api.synchronize(api.allgather_async(inputs[0], **kind))]
        elif mode == "grouped":
            results = list(api.grouped_allgather(inputs, **kind))
        else:
            results = list(api.synchronize(api.grouped_allgather_async(inputs, **kind)))
        for salt, result in enumerate(results):
            rows = [round_to(values_of(rank, shapes[salt](rank), dtype, salt), dtype) for rank in self.ranks]
            self.check(result, np.concatenate(rows), dtype)

    def broadcast(self, mode: str, dtype: str) -> None:
        api = self.api
        for root in self.ranks:
            tensor = self.own(SHAPE, dtype)
            arguments = (root, None, self.process_set)
            if mode == "sync":
                result = api.broadcast(tensor, *arguments)
            elif mode == "in place":
                result = api.broadcast_(tensor, *arguments)
                assert result is tensor
            elif mode == "async":
                result = api.synchronize(api.broadcast_async(tensor, *arguments))
            else:
                api.synchronize(api.broadcast_async_(tensor, *arguments))
                result = tensor
            self.check(result, round_to(values_of(root, SHAPE, dtype), dtype), dtype)
            if "in place" not in mode:
                self.check(tensor, round_to(values_of(halay.rank(), SHAPE, dtype), dtype), dtype)

    def alltoall(self, mode: str, dtype: str) -> None:
        api, size = self.api, len(self.ranks)
        uneven = "splits" in mode

        def splits_of(member: int) -> list[int]:
            return [(member + to) % 3 if uneven else 2 for to in range(size)]

        def rows_of(member: int) -> int:
            return sum(splits_of(member)) + (1 if uneven else 0)  # a row too many is dropped

        tensor = self.own((rows_of(self.member), 3), dtype)
        splits = splits_of(self.member) if uneven else None
        if mode.startswith("sync"):
            result = api.alltoall(tensor, splits, process_set=self.process_set)
            output, received = result if uneven else (result, None)
        else:
            output, received = api.synchronize(api.alltoall_async(tensor, splits, process_set=self.process_set))
        parts = []
        for member, rank in enumerate(self.ranks):
            rows = round_to(values_of(rank, (rows_of(member), 3), dtype), dtype)
            start = sum(splits_of(member)[: self.member])
            parts.append(rows[start : start + splits_of(member)[self.member]])
        self.check(output, np.concatenate(parts), dtype)
        if received is not None:
            self.check(received, np.array([len(part) for part in parts], dtype=np.int32), "int32")

    def reducescatter(self, mode: str, op: str, dtype: str) -> None:
        api, size = self.api, len(self.ranks)
        shapes = ((7, 2), (size * 2,))
        inputs = [self.own(shape, dtype, salt) for salt, shape in enumerate(shapes)]
        kind = {"op": OPS[op], "process_set": self.process_set}

        def call() -> list[Any]:
            if mode == "sync":
                return [api.reducescatter(inputs[0], **kind)]
            if mode == "async":
                return [api.synchronize(api.reducescatter_async(inputs[0], **kind))]
            if mode == "grouped":
                return list(api.grouped_reducescatter(inputs, **kind))
            return list(api.synchronize(api.grouped_reducescatter_async(inputs, **kind)))

        if dtype == "bool" and op == "Average":
            expect(ValueError, call)
            return
        for salt, (result, shape) in enumerate(zip(call(), shapes)):
            total = reduced(self.inputs(shape, dtype, salt), op, dtype)
            start = sum(rows_for(shape[0], size, member) for member in range(self.member))
            self.check(result, total[start : start + rows_for(shape[0], size, self.member)], dtype)

    # ---- shapes, scales, handles ----

    def corners(self) -> None:
        for name in sorted(dir(self)):
            if name.startswith("corner_"):
                what = name.removeprefix("corner_")
                self.case("corner", what, "", getattr(self, name))

    def sum_of(self, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
        return reduced(self.inputs(shape, dtype), "Sum", dtype)

    def corner_counts(self) -> None:
        for count in (1, 2, 3, 5, 63, 64, 65, 1000, 4099, 70001, 300007):
            self.check(self.api.allreduce(self.own((count,), "float32"), op=Sum, process_set=self.process_set),
                       self.sum_of((count,)), "float32")  # fmt: skip

    def corner_large_results(self) -> None:
        """Larger than what is copied: the engine's memory is handed over, and given back."""
        from halay import _lib

        for _ in range(3):
            rows = 20000
            gathered = self.api.allgather(self.own((rows, 2), "float64"), process_set=self.process_set)
            self.check(
                gathered,
                np.concatenate([each.astype("float64") for each in self.inputs((rows, 2), "float64")]),
                "float64",
            )
            swapped = self.api.alltoall(self.own((len(self.ranks) * 9000, 2), "int64"), process_set=self.process_set)
            own = slice(self.member * 9000, (self.member + 1) * 9000)
            parts = [each[own] for each in self.inputs((len(self.ranks) * 9000, 2), "int64")]
            self.check(swapped, np.concatenate(parts), "int64")
            kept = gathered[3:5]
            del gathered, swapped
            self.check(kept, values_of(self.ranks[0], (rows, 2), "float64")[3:5].astype("float64"), "float64")
            del kept
        assert _lib.exported_count() == 0, f"{_lib.exported_count()} results leaked"

    def corner_zero_elements(self) -> None:
        api, process_set = self.api, self.process_set
        empty = self.own((0, 4), "float32")
        for result in (
            api.allreduce(empty, process_set=process_set),
            api.allgather(empty, process_set=process_set),
            api.broadcast(empty, self.ranks[0], process_set=process_set),
            api.alltoall(empty, process_set=process_set),
            api.reducescatter(empty, process_set=process_set),
        ):
            assert tuple(result.shape) == (0, 4), result.shape
        results = api.grouped_allreduce([empty, self.own((2,), "float32")], op=Sum, process_set=process_set)
        self.check(results[1], self.sum_of((2,)), "float32")

    def corner_more_ranks_than_rows(self) -> None:
        result = self.api.reducescatter(self.own((1, 2), "float32"), op=Sum, process_set=self.process_set)
        assert tuple(result.shape) == ((1 if self.member == 0 else 0), 2), result.shape

    def corner_scalar(self) -> None:
        scalar = self.own((), "float64")
        self.check(
            self.api.allreduce(scalar, op=Sum, process_set=self.process_set), self.sum_of((), "float64"), "float64"
        )
        self.api.broadcast_(scalar, self.ranks[-1], process_set=self.process_set)
        self.check(scalar, values_of(self.ranks[-1], (), "float64").astype("float64"), "float64")

    def corner_not_contiguous(self) -> None:
        transposed = self.driver.transposed(self.own((4, 3), "float32"))
        expected = self.sum_of((4, 3)).T
        self.check(self.api.allreduce(transposed, op=Sum, process_set=self.process_set), expected, "float32")
        self.api.allreduce_(transposed, op=Sum, process_set=self.process_set)
        self.check(transposed, expected, "float32")

    def corner_view_updates_base(self) -> None:
        base = self.own((6, 5), "int32")
        part = base[1:4, 2:4]
        self.api.allreduce_(part, op=Sum, process_set=self.process_set)
        expected = values_of(halay.rank(), (6, 5), "int32").astype("int32")
        expected[1:4, 2:4] = self.sum_of((6, 5), "int32")[1:4, 2:4]
        self.check(base, expected, "int32")
        row = base[0]  # contiguous: written where it lies
        self.api.allreduce_(row, op=Max, process_set=self.process_set)
        expected[0] = reduced(self.inputs((6, 5), "int32"), "Max", "int32")[0]
        self.check(base, expected, "int32")

    def corner_scales(self) -> None:
        for dtype in ("float32", "float64", "float16", "int32", "int64"):
            tensor = self.driver.make(values_of(halay.rank(), (9,), dtype) * 4, dtype)
            result = self.api.allreduce(
                tensor, op=Sum, prescale_factor=0.25, postscale_factor=3.0, process_set=self.process_set
            )
            self.check(result, self.sum_of((9,), dtype) * 3, dtype)
            result = self.api.allreduce(tensor, op=Max, prescale_factor=0.5, process_set=self.process_set)
            self.check(result, (reduced(self.inputs((9,), dtype), "Max", dtype) * 2).astype(dtype), dtype)

    def corner_integer_average_truncates(self) -> None:
        tensor = self.driver.make(np.array([-7 - self.member]), "int32")
        total = sum(-7 - member for member in range(len(self.ranks)))
        result = self.api.allreduce(tensor, op=Average, process_set=self.process_set)
        self.check(result, np.array([-(-total // len(self.ranks))], dtype="int32"), "int32")

    def corner_uint8_wraps(self) -> None:
        tensor = self.driver.make(np.array([200 if self.member == 0 else 100]), "uint8")
        result = self.api.allreduce(tensor, op=Sum, process_set=self.process_set)
        self.check(result, np.array([(200 + 100 * (len(self.ranks) - 1)) % 256], dtype="uint8"), "uint8")

    def corner_average_argument(self) -> None:
        import warnings

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = self.api.allreduce(self.own((2,), "float32"), average=False, process_set=self.process_set)
        assert any(each.category is DeprecationWarning for each in caught), "no DeprecationWarning"
        self.check(result, self.sum_of((2,)), "float32")
        expect(ValueError, lambda: self.api.allreduce(self.own((2,), "float32"), average=True, op=Sum))

    def corner_many_in_flight(self) -> None:
        tensors = [self.own((count % 50 + 1,), "float32") for count in range(300)]
        order = range(300) if self.member % 2 == 0 else range(299, -1, -1)
        handles = {
            index: self.api.allreduce_async_(tensors[index], name=f"many.{index}", op=Sum, process_set=self.process_set)
            for index in order
        }
        for index in range(300):
            self.check(self.api.synchronize(handles[index]), self.sum_of((index % 50 + 1,)), "float32")

    def corner_unnamed_in_flight(self) -> None:
        """More than there are recycled names: the later ones queue behind the earlier."""
        handles = [
            self.api.allreduce_async(self.own((3,), "float32"), op=Sum, process_set=self.process_set)
            for _ in range(600)
        ]
        for handle in handles:
            self.check(self.api.synchronize(handle), self.sum_of((3,)), "float32")

    def corner_handles(self) -> None:
        handle = self.api.allreduce_async(
            self.own((4,), "float32"), name="handles", op=Sum, process_set=self.process_set
        )
        assert isinstance(handle, int)
        while not self.api.poll(handle):
            pass
        self.check(self.api.synchronize(handle), self.sum_of((4,)), "float32")
        assert self.api.synchronize(handle) is None
        expect(ValueError, lambda: self.api.poll(handle))

    def corner_group_keeps_its_type(self) -> None:
        pair = (self.own((2,), "float32"), self.own((3,), "int64"))
        assert isinstance(self.api.grouped_allreduce(pair, op=Sum, process_set=self.process_set), tuple)
        assert isinstance(self.api.grouped_allreduce(list(pair), op=Sum, process_set=self.process_set), list)
        expect(ValueError, lambda: self.api.grouped_allreduce([], op=Sum, process_set=self.process_set))

    def corner_bad_arguments(self) -> None:
        api, process_set = self.api, self.process_set
        tensor = self.own((len(self.ranks) * 2 + 1,), "float32")
        expect(ValueError, lambda: api.allreduce(tensor, op=17, process_set=process_set))
        expect(halay.UnsupportedError, lambda: api.allreduce(tensor, op=halay.Adasum, process_set=process_set))
        expect(halay.HorovodInternalError, lambda: api.reducescatter(tensor, op=Min, process_set=process_set))
        expect(ValueError, lambda: api.reducescatter(self.own((), "float32"), process_set=process_set))
        expect(ValueError, lambda: api.broadcast(tensor, 99, process_set=process_set))
        expect(ValueError, lambda: api.alltoall(tensor, [1], process_set=process_set) if len(self.ranks) > 1
               else api.alltoall(tensor, [1, 1], process_set=process_set))  # fmt: skip
        expect(ValueError, lambda: api.alltoall(tensor, [99] * len(self.ranks), process_set=process_set))
        expect(ValueError, lambda: api.alltoall(tensor, [-1] * len(self.ranks), process_set=process_set))
        expect(ValueError, lambda: api.alltoall(tensor, [0.5] * len(self.ranks), process_set=process_set))
        expect(ValueError, lambda: api.allreduce(self.driver.make([1.0], "complex64"), process_set=process_set))
        if len(self.ranks) > 1:
            expect(ValueError, lambda: api.alltoall(tensor, process_set=process_set))

    def corner_objects(self) -> None:
        told = self.api.broadcast_object(
            {"rank": halay.rank(), "big": b"x" * 300000}, self.ranks[-1], process_set=self.process_set
        )
        assert told["rank"] == self.ranks[-1] and len(told["big"]) == 300000
        everybody = self.api.allgather_object(
            {"rank": halay.rank(), "list": [None] * halay.rank()}, process_set=self.process_set
        )
        assert [each["rank"] for each in everybody] == self.ranks

        broken = threading.Lock()  # cannot be pickled
        expect(Exception, lambda: self.api.broadcast_object(broken, self.ranks[0], process_set=self.process_set))

    def corner_barrier(self) -> None:
        for _ in range(5):
            self.api.barrier(process_set=self.process_set)


def rows_for(row_count: int, size: int, member: int) -> int:
    return row_count // size + (1 if member < row_count % size else 0)


def expect(kind: type[BaseException], call: Callable[[], Any]) -> BaseException:
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def world_cases(driver: Any) -> Suite:
    """What concerns the whole world: join, errors that all ranks get, process sets coming and going."""
    api, rank, size = driver.api, halay.rank(), halay.size()
    suite = Suite(driver, halay.global_process_set, "world")

    def join() -> None:
        """Every rank has another number of batches; those who go on sum without those who joined."""
        for step in range(rank + 1):
            active = [other for other in range(size) if other >= step]
            result = api.allreduce(driver.make([float(rank + 1)], "float32"), name=f"join.{step}", op=Sum)
            suite.check(result, np.array([sum(other + 1 for other in active)], dtype="float32"), "float32")
        assert api.join() == size - 1
        suite.check(api.allreduce(suite.own((2,), "float32"), op=Sum), suite.sum_of((2,)), "float32")

    def join_divides_by_all() -> None:
        if rank == 0 or size == 1:
            result = api.allreduce(driver.make([float(size)], "float32"), name="join.average", op=Average)
            suite.check(result, np.array([1.0], dtype="float32"), "float32")
        api.join()

    def mismatch() -> None:
        for make in (
            lambda: api.allreduce(driver.make(np.ones(2 + rank), "float32"), name="mismatch"),
            lambda: api.allreduce(driver.make(np.ones(2), "float32" if rank == 0 else "float64"), name="mismatch"),
            lambda: api.allreduce(driver.make(np.ones(2), "float32"), name="mismatch", op=Sum if rank == 0 else Max),
            lambda: api.allreduce(driver.make(np.ones(2), "float32"), name="mismatch", prescale_factor=1.0 + rank),
            lambda: api.broadcast(driver.make(np.ones(2), "float32"), min(rank, 1), name="mismatch"),
            lambda: api.allgather(driver.make(np.ones((2, 2 + rank)), "float32"), name="mismatch"),
            lambda: api.alltoall(driver.make(np.ones((size, 2 + rank)), "float32"), name="mismatch"),
            lambda: api.reducescatter(driver.make(np.ones((size + rank, 2)), "float32"), name="mismatch"),
        ):
            if size > 1:
                text = str(expect(halay.MismatchError, make))
                assert "mismatch" in text and "rank" in text, text
        suite.check(api.allreduce(suite.own((2,), "float32"), op=Sum), suite.sum_of((2,)), "float32")

    def process_sets() -> None:
        if size < 2:
            return
        members = [0, size - 1] if size > 2 else [1]
        pair = halay.add_process_set(members)
        assert pair.process_set_id == 1 and pair.size() == len(members) and pair.included() == (rank in members)
        assert str(pair) == f"ProcessSet(process_set_id=1, ranks={members}, mpi_comm=None)"
        expect(ValueError, lambda: halay.add_process_set(members))
        if rank in members:
            assert pair.rank() == members.index(rank)
            result = api.allreduce(driver.make([float(rank)], "float32"), op=Average, process_set=pair)
            suite.check(result, np.array([sum(members) / len(members)], dtype="float32"), "float32")
        else:
            expect(halay.NotAMember, lambda: api.allreduce(suite.own((1,), "float32"), process_set=pair))
            expect(ValueError, pair.rank)
        assert halay.remove_process_set(pair) is True
        assert pair.process_set_id is None and halay.remove_process_set(pair) is False
        expect(ValueError, lambda: api.allreduce(suite.own((1,), "float32"), process_set=pair))
        assert halay.remove_process_set(halay.global_process_set) is False

    def overlapping_sets() -> None:
        if size < 3:
            return
        sets = [halay.add_process_set(ranks) for ranks in ([0, 1], [1, 2], [0, 2])]
        handles = []
        order = np.random.default_rng(rank).permutation(150)
        for index in order:
            process_set = sets[index % 3]
            if process_set.included():
                name = f"overlap.{index}"
                handles.append(api.allreduce_async(driver.make([float(rank + index)], "float64"), name=name, op=Sum,
                                                   process_set=process_set))  # fmt: skip
                handles[-1] = (handles[-1], sum(other + int(index) for other in process_set.ranks))
        for handle, expected in handles:
            suite.check(api.synchronize(handle), np.array([expected], dtype="float64"), "float64")
        assert all(halay.remove_process_set(each) for each in sets)

    for body in (join, join_divides_by_all, mismatch, process_sets, overlapping_sets):
        suite.case("world", body.__name__, "", body)
    return suite


def main() -> int:
    directory = pathlib.Path(sys.argv[1])
    halay.init()
    drivers = [NumpyDriver()] + ([TorchDriver()] if "--numpy-only" not in sys.argv else [])
    suites = []
    subset = list(range(1, halay.size())) if halay.size() > 2 else []
    part = halay.add_process_set(subset) if subset else None
    for driver in drivers:
        whole = Suite(driver, halay.global_process_set, "world")
        whole.matrix()
        whole.corners()
        suites.append(whole)
        if part is not None and part.included():
            inner = Suite(driver, part, "subset")
            inner.matrix()
            inner.corners()
            suites.append(inner)
        halay.numpy.barrier()
    if part is not None:
        halay.remove_process_set(part)
    suites += [world_cases(driver) for driver in drivers]
    if "--numpy-only" not in sys.argv:
        import conformance_torch

        suites.append(conformance_torch.run(drivers[-1]))
    counts: collections.Counter[str] = collections.Counter()
    for suite in suites:
        counts.update(suite.counts)
    failures = [failure for suite in suites for failure in suite.failures]
    report = {
        "rank": halay.rank(),
        "size": halay.size(),
        "counts": counts,
        "failures": failures,
        "stats": halay.stats(),
    }
    (directory / f"{halay.rank()}.json").write_text(json.dumps(report))
    halay.shutdown()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
