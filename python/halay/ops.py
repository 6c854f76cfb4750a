"""Every operation once, for all adapters: names, prepared requests, groups, results.

Names are Horovod's: `<kind>.<name>`, in a group `<kind>.<name>_<i>of<n>`, without a name `<kind>.noname.<k>`, where k counts
the unnamed operations of this kind in this process set and starts again at 0 after 255 (an operation then queues behind
the earlier one of its name, in order).

Thread: any. The request of an operation that was seen before is prepared: only its pointers are written anew.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from halay import _engine, _lib, averaging, errors
from halay._engine import Engine, SetInfo, check
from halay._enums import DTYPE_BYTES, OpKind
from halay._handle import Pending, wait_one
from halay._tensor import Driver, EngineMemory

ANONYMOUS_NAMES = 256
TEMPLATE_CAPACITY = 8192
COPY_LIMIT_BYTES = 64 * 1024  # smaller results are copied: cheaper than handing memory over

URGENT = _lib.URGENT
REPEATABLE = _lib.REPEATABLE

_ALLREDUCE = int(OpKind.allreduce)
_ALLGATHER = int(OpKind.allgather)
_BROADCAST = int(OpKind.broadcast)
_ALLTOALL = int(OpKind.alltoall)
_REDUCESCATTER = int(OpKind.reducescatter)
_BARRIER = int(OpKind.barrier)
_REQUEST_BYTES = ctypes.sizeof(_lib.Request)


class Terms(NamedTuple):
    """What all ranks must agree on beside dtype and shape, and the flags."""

    flags: int = 0
    op: int = 0
    prescale: float = 1.0
    postscale: float = 1.0
    root: int = 0


def find_set(process_set: Any) -> SetInfo:
    """The set as the engine knows it. Raises NotInitialized, InvalidArgument (not registered) or NotAMember."""
    engine = _engine.current
    if engine is None:
        _engine.not_initialized()
    info = engine.sets.get(process_set.process_set_id)
    if info is None:
        raise errors.InvalidArgument(f"{process_set} is not registered; give it to init() or add_process_set() first")
    if info.member < 0:
        raise errors.NotAMember(f"rank {engine.world.rank} is not a member of {process_set}")
    return info


def scattered_rows(row_count: int, size: int, member: int) -> int:
    """Rows that reducescatter gives to a member: n // p, and one more for the first n % p."""
    return row_count // size + (1 if member < row_count % size else 0)


def check_splits(splits: Sequence[int], row_count: int, size: int) -> None:
    """Raises ValueError unless there is one split for each member, none negative, and rows enough for all."""
    if len(splits) != size:
        raise errors.InvalidArgument(f"alltoall: {len(splits)} splits for a process set of {size}")
    if any(rows < 0 for rows in splits):
        raise errors.InvalidArgument(f"alltoall: splits must not be negative, got {list(splits)}")
    if sum(splits) > row_count:
        raise errors.InvalidArgument(f"alltoall: splits sum to {sum(splits)}, but the tensor has {row_count} rows")


class Template:
    """The requests of one operation, prepared; used by one thread at a time, which takes it out of the dictionary."""

    __slots__ = ("address", "handles", "handles_address", "requests", "rows", "shapes")

    def __init__(self, count: int) -> None:
        self.requests = (_lib.Request * count)()
        self.address = ctypes.addressof(self.requests)
        self.rows = [self.requests[index] for index in range(count)]
        self.handles = (ctypes.c_uint64 * count)()
        self.handles_address = ctypes.addressof(self.handles)
        self.shapes: list[Any] = []


def _put(engine: Engine, key: tuple[Any, ...], template: Template) -> None:
    if len(engine.templates) >= TEMPLATE_CAPACITY:
        engine.templates.clear()
    engine.templates[key] = template


def _prepare(
    info: SetInfo,
    kind: int,
    names: Sequence[str],
    terms: Terms,
    tensors: Sequence[tuple[int, Sequence[int]]],
    owned: bool,
) -> Template:
    """The requests of one operation without their pointers. tensors: (dtype, shape) of each."""
    engine = info.engine
    if kind == _BROADCAST and terms.root not in info.ranks:
        raise errors.InvalidArgument(f"{names[0]}: root rank {terms.root} is not in the process set {list(info.ranks)}")
    template = Template(len(names))
    for row, name, (dtype, shape) in zip(template.rows, names, tensors):
        if kind in (_ALLREDUCE, _REDUCESCATTER):
            averaging.check_average(terms.op, dtype, engine.int_average)
        dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        template.shapes.append(dims)
        row.struct_size = _REQUEST_BYTES
        row.kind, row.dtype, row.reduce_op, row.root_rank = kind, dtype, terms.op, terms.root
        row.process_set, row.name, row.flags = info.handle, engine.name(name), terms.flags
        row.prescale, row.postscale = terms.prescale, terms.postscale
        row.shape, row.dim_count = ctypes.addressof(dims), len(shape)
        row.device = _lib.DEVICE_CPU
        if not owned:
            extent = list(shape)
            if kind == _REDUCESCATTER:
                extent[0] = scattered_rows(extent[0], info.size, info.member)
            row.output_bytes = math.prod(extent) * DTYPE_BYTES[dtype]
    return template


def read_result(engine: Engine, handle: int) -> Any:
    """The C ABI's description of a result; wait first."""
    result = _lib.Result(struct_size=ctypes.sizeof(_lib.Result))
    check(_lib.get_result(engine.pointer, handle, result))
    return result


def _check_group(what: str, tensors: Sequence[Any]) -> None:
    if len(tensors) == 0:
        raise errors.InvalidArgument(f"{what} needs at least one tensor")


def _like(tensors: Sequence[Any], results: list[Any]) -> Sequence[Any]:
    return tuple(results) if isinstance(tensors, tuple) else results


class Ops:
    """The operations over the tensors of one framework. Each returns a Pending; nothing here blocks but run_barrier."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    # ---- submission ----

    def _base(self, kind: str, name: str | None, info: SetInfo) -> tuple[str, int]:
        """(wire name, flags)."""
        prefix = self.driver.prefix
        if name is not None:
            return f"{prefix}{kind}.{name}", 0
        number = info.engine.count(prefix + kind, info.set_id) % ANONYMOUS_NAMES
        return f"{prefix}{kind}.noname.{number}", REPEATABLE

    def _send_one(
        self, info: SetInfo, kind: int, base: str, terms: Terms, source: Any, target: Any, splits: Any = None
    ) -> tuple[int]:
        """Submits one tensor. target None: the engine owns the result."""
        engine, driver = info.engine, self.driver
        dtype, shape = driver.dtype(source), driver.shape(source)
        key = (kind, base, info.set_id, terms, target is None, splits is None, dtype, shape)
        template = engine.templates.pop(key, None)
        if template is None:
            template = _prepare(info, kind, (base,), terms, ((dtype, shape),), target is None)
        row = template.rows[0]
        row.input = driver.address(source)
        if target is not None:
            row.output = driver.address(target)
        if splits is not None:
            row.splits, row.split_count = ctypes.addressof(splits), len(splits)
        status = _lib.submit(engine.pointer, template.address, 1, template.handles_address)
        if status != 0:
            check(status)
        handle: int = template.handles[0]
        _put(engine, key, template)
        return (handle,)

    def _send_group(
        self, info: SetInfo, kind: int, base: str, terms: Terms, sources: Sequence[Any], targets: Sequence[Any] | None
    ) -> list[int]:
        """Submits tensors all-or-nothing. targets None: the engine owns the results."""
        engine, driver, count = info.engine, self.driver, len(sources)
        tensors = tuple([(driver.dtype(source), driver.shape(source)) for source in sources])
        key = (kind, base, info.set_id, terms, targets is None, tensors)
        template = engine.templates.pop(key, None)
        if template is None:
            names = [f"{base}_{index + 1}of{count}" for index in range(count)]
            template = _prepare(info, kind, names, terms, tensors, targets is None)
        for row, source in zip(template.rows, sources):
            row.input = driver.address(source)
        if targets is not None:
            for row, target in zip(template.rows, targets):
                row.output = driver.address(target)
        status = _lib.submit(engine.pointer, template.address, count, template.handles_address)
        if status != 0:
            check(status)
        handles: list[int] = template.handles[:]
        _put(engine, key, template)
        return handles

    # ---- results ----

    def _target(self, tensor: Any, source: Any, in_place: bool) -> Any:
        """Where the engine writes the result. Raises ValueError if it is to be `tensor` and that is read-only."""
        if in_place:
            self.driver.check_writable(tensor)
            return source
        return self.driver.room(self.driver.shape(source), source)

    def _owned(self, pending: Pending, index: int, like: Any) -> Any:
        """The engine-owned result of one handle, as a tensor where `like` lives."""
        result = read_result(pending.engine, pending.handles[index])
        shape = tuple(result.shape[: result.dim_count])
        if result.size_bytes <= COPY_LIMIT_BYTES:
            buffer = self.driver.room(shape, like)
            if result.size_bytes:
                _lib.copy_bytes(self.driver.address(buffer), result.data, result.size_bytes)
        else:
            memory = ctypes.c_void_p()
            check(_lib.detach_result(pending.engine.pointer, pending.handles[index], memory))
            assert memory.value is not None
            buffer = self.driver.adopt(EngineMemory(result.data, result.size_bytes, memory.value), shape, like)
        return self.driver.deliver(buffer, like)

    def _placed(self, tensor: Any, target: Any, in_place: bool) -> Callable[[Pending], Any]:
        """How the caller gets what the engine wrote to `target`."""
        if not in_place:
            return lambda pending: self.driver.deliver(target, tensor)
        if target is tensor:
            return lambda pending: tensor

        def put_back(pending: Pending) -> Any:
            self.driver.restore(tensor, target)
            return tensor

        return put_back

    # ---- operations ----

    def allreduce(
        self,
        tensor: Any,
        name: str | None,
        op: int,
        prescale: float,
        postscale: float,
        process_set: Any,
        in_place: bool,
        flags: int = 0,
    ) -> Pending:
        """Combines the tensors of all members, element by element. Result: the tensor itself (in place) or a new one."""
        info = find_set(process_set)
        driver = self.driver
        source = driver.stage(tensor)
        target = self._target(tensor, source, in_place)
        base, name_flags = self._base("allreduce", name, info)
        terms = Terms(flags | name_flags, op, prescale, postscale)
        handles = self._send_one(info, _ALLREDUCE, base, terms, source, target)
        return Pending(info.engine, info.set_id, handles, (source, target), self._placed(tensor, target, in_place))

    def grouped_allreduce(
        self,
        tensors: Sequence[Any],
        name: str | None,
        op: int,
        prescale: float,
        postscale: float,
        process_set: Any,
        in_place: bool,
        flags: int = 0,
    ) -> Pending:
        """allreduce of several tensors, all or nothing. Result: a list (or tuple, as given) in the same order."""
        info = find_set(process_set)
        driver = self.driver
        _check_group("grouped_allreduce", tensors)
        sources = [driver.stage(tensor) for tensor in tensors]
        targets = [self._target(tensor, source, in_place) for tensor, source in zip(tensors, sources)]
        base, name_flags = self._base("grouped_allreduce", name, info)
        terms = Terms(flags | name_flags, op, prescale, postscale)
        handles = self._send_group(info, _ALLREDUCE, base, terms, sources, targets)
        placed = [self._placed(tensor, target, in_place) for tensor, target in zip(tensors, targets)]

        def finish(pending: Pending) -> Sequence[Any]:
            return _like(tensors, [put(pending) for put in placed])

        return Pending(info.engine, info.set_id, handles, (sources, targets), finish)

    def allgather(self, tensor: Any, name: str | None, process_set: Any, flags: int = 0) -> Pending:
        """Concatenates the tensors of all members on dimension 0, which may differ between ranks."""
        info = find_set(process_set)
        if not self.driver.shape(tensor):
            raise errors.InvalidArgument(
                "allgather needs a tensor of at least one dimension; give a tensor of one element"
            )
        source = self.driver.stage(tensor)
        base, name_flags = self._base("allgather", name, info)
        handles = self._send_one(info, _ALLGATHER, base, Terms(flags | name_flags), source, None)
        return Pending(info.engine, info.set_id, handles, source, lambda pending: self._owned(pending, 0, tensor))

    def grouped_allgather(self, tensors: Sequence[Any], name: str | None, process_set: Any, flags: int = 0) -> Pending:
        """allgather of several tensors, all or nothing."""
        info = find_set(process_set)
        _check_group("grouped_allgather", tensors)
        sources = [self.driver.stage(tensor) for tensor in tensors]
        base, name_flags = self._base("grouped_allgather", name, info)
        handles = self._send_group(info, _ALLGATHER, base, Terms(flags | name_flags), sources, None)

        def finish(pending: Pending) -> Sequence[Any]:
            return _like(tensors, [self._owned(pending, index, tensor) for index, tensor in enumerate(tensors)])

        return Pending(info.engine, info.set_id, handles, sources, finish)

    def broadcast(
        self, tensor: Any, root_rank: int, name: str | None, process_set: Any, in_place: bool, flags: int = 0
    ) -> Pending:
        """Gives the tensor of `root_rank` (a rank of the world) to all members."""
        info = find_set(process_set)
        driver = self.driver
        source = driver.stage(tensor)
        target = self._target(tensor, source, in_place)
        base, name_flags = self._base("broadcast", name, info)
        terms = Terms(flags | name_flags, root=int(root_rank))
        handles = self._send_one(info, _BROADCAST, base, terms, source, target)
        return Pending(info.engine, info.set_id, handles, (source, target), self._placed(tensor, target, in_place))

    def alltoall(
        self,
        tensor: Any,
        splits: Sequence[int] | None,
        make_splits: Callable[[list[int]], Any],
        name: str | None,
        process_set: Any,
        flags: int = 0,
    ) -> Pending:
        """Sends splits[i] rows to member i. Result: (rows received, in order of rank; make_splits(rows from each))."""
        info = find_set(process_set)
        shape = self.driver.shape(tensor)
        if not shape:
            raise errors.InvalidArgument("alltoall needs a tensor of at least one dimension")
        array = None
        if splits is not None:
            check_splits(splits, shape[0], info.size)
            array = (ctypes.c_int64 * len(splits))(*splits)
        elif shape[0] % info.size:
            raise errors.InvalidArgument(
                f"alltoall without splits: {shape[0]} rows are no equal parts for {info.size} ranks"
            )
        source = self.driver.stage(tensor)
        base, name_flags = self._base("alltoall", name, info)
        handles = self._send_one(info, _ALLTOALL, base, Terms(flags | name_flags), source, None, array)

        def finish(pending: Pending) -> tuple[Any, Any]:
            result = read_result(pending.engine, pending.handles[0])
            received = make_splits(result.received_splits[: result.received_split_count])
            return self._owned(pending, 0, tensor), received

        return Pending(info.engine, info.set_id, handles, source, finish)

    def _scatter_buffers(self, tensor: Any, info: SetInfo) -> tuple[Any, Any]:
        shape = self.driver.shape(tensor)
        if not shape:
            raise errors.InvalidArgument("reducescatter needs a tensor of at least one dimension")
        source = self.driver.stage(tensor)
        rows = scattered_rows(shape[0], info.size, info.member)
        return source, self.driver.room((rows, *shape[1:]), source)

    def reducescatter(
        self,
        tensor: Any,
        name: str | None,
        op: int,
        prescale: float,
        postscale: float,
        process_set: Any,
        flags: int = 0,
    ) -> Pending:
        """Combines the tensors of all members and gives each its rows (see scattered_rows)."""
        info = find_set(process_set)
        source, target = self._scatter_buffers(tensor, info)
        base, name_flags = self._base("reducescatter", name, info)
        terms = Terms(flags | name_flags, op, prescale, postscale)
        handles = self._send_one(info, _REDUCESCATTER, base, terms, source, target)
        return Pending(info.engine, info.set_id, handles, (source, target), self._placed(tensor, target, False))

    def grouped_reducescatter(
        self,
        tensors: Sequence[Any],
        name: str | None,
        op: int,
        prescale: float,
        postscale: float,
        process_set: Any,
        flags: int = 0,
    ) -> Pending:
        """reducescatter of several tensors, all or nothing."""
        info = find_set(process_set)
        _check_group("grouped_reducescatter", tensors)
        buffers = [self._scatter_buffers(tensor, info) for tensor in tensors]
        sources, targets = [pair[0] for pair in buffers], [pair[1] for pair in buffers]
        base, name_flags = self._base("grouped_reducescatter", name, info)
        terms = Terms(flags | name_flags, op, prescale, postscale)
        handles = self._send_group(info, _REDUCESCATTER, base, terms, sources, targets)

        def finish(pending: Pending) -> Sequence[Any]:
            return _like(tensors, [self.driver.deliver(target, each) for each, target in zip(tensors, targets)])

        return Pending(info.engine, info.set_id, handles, buffers, finish)

    def run_barrier(self, process_set: Any) -> None:
        """Blocks until all members have come here."""
        info = find_set(process_set)
        base, flags = self._base("barrier", None, info)
        terms = Terms(flags | URGENT)
        template = _prepare(info, _BARRIER, (base,), terms, ((0, ()),), True)
        check(_lib.submit(info.engine.pointer, template.address, 1, template.handles_address))
        Pending(info.engine, info.set_id, (template.handles[0],), None, lambda pending: None).wait()


def run_join() -> int:
    """This rank has no more data. Blocks until all ranks of the world have joined; returns the rank that joined last."""
    engine = _engine.require()
    handle = ctypes.c_uint64(0)
    check(_lib.join(engine.pointer, handle))
    try:
        check(wait_one(engine, handle.value))
        last = int(read_result(engine, handle.value).last_joined)
        engine.restart_counts()  # the ranks ran different numbers of unnamed operations
        return last
    finally:
        _lib.release(engine.pointer, handle.value)
