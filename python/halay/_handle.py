"""Operations in flight, and the table of handles by which Horovod's API names them.

Thread: any; the table relies on single dict operations being atomic. Owns: the buffers of every operation until it ends.
"""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from halay import _lib, errors
from halay._engine import Engine, after_end, check
from halay._enums import Status

SLICE_MS = 100  # a wait is cut into slices, so that Ctrl-C is answered
_TIMEOUT = int(Status.timeout)


class Pending:
    """One submitted operation or group: its C handles, what keeps its buffers alive, and how its result is read."""

    __slots__ = ("engine", "finish", "handles", "kept", "set_id")

    def __init__(
        self, engine: Engine, set_id: int, handles: Sequence[int], kept: Any, finish: Callable[[Pending], Any]
    ) -> None:
        self.engine = engine
        self.set_id = set_id
        self.handles = handles
        self.kept = kept
        self.finish = finish

    def done(self) -> bool:
        """A wait would not block."""
        flag = ctypes.c_int32(0)
        for handle in self.handles:
            if _lib.poll(self.engine.pointer, handle, flag) != 0:
                return True  # the engine does not know it, so a wait says so at once
            if not flag.value:
                return False
        return True

    def wait(self, timeout: float | None = None) -> Any:
        """Waits and reads the result, or raises the operation's error. TimeoutError leaves the operation alive."""
        try:
            if len(self.handles) == 1:
                status = wait_one(self.engine, self.handles[0], timeout)
            else:
                status = _wait_many(self.engine, self.handles, timeout)
        except BaseException:  # Ctrl-C: the engine may still use the buffers
            _abandoned.append(self)
            raise
        if status == _TIMEOUT:
            raise TimeoutError(f"not done within {timeout} s; the operation lives on")
        try:
            if status != 0:
                check(status)
            return self.finish(self)
        finally:
            self.release()

    def release(self) -> None:
        """Gives the C handles back."""
        for handle in self.handles:
            _lib.release(self.engine.pointer, handle)


def wait_one(engine: Engine, handle: int, timeout: float | None = None) -> int:
    """The status with which the operation ended, or timeout."""
    if timeout is None:
        status = _lib.wait(engine.pointer, handle, SLICE_MS)
        while status == _TIMEOUT:
            status = _lib.wait(engine.pointer, handle, SLICE_MS)
        return status
    return _sliced(lambda slice_ms: _lib.wait(engine.pointer, handle, slice_ms), timeout)


def _wait_many(engine: Engine, handles: Sequence[int], timeout: float | None) -> int:
    array = (ctypes.c_uint64 * len(handles))(*handles)
    address, count = ctypes.addressof(array), len(handles)
    return _sliced(lambda slice_ms: _lib.wait_many(engine.pointer, address, count, slice_ms), timeout)


def _sliced(wait: Callable[[int], int], timeout: float | None) -> int:
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left_ms = SLICE_MS if deadline is None else max(0, min(SLICE_MS, int((deadline - time.monotonic()) * 1000)))
        status = wait(left_ms)
        if status != _TIMEOUT or (deadline is not None and time.monotonic() >= deadline):
            return status


class Ended:
    """What came of an operation whose world ended before anybody asked."""

    __slots__ = ("error", "result")
    set_id = -1  # in flight in no process set

    def __init__(self, pending: Pending) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        try:
            self.result = pending.wait()
        except Exception as error:
            self.error = error.with_traceback(None)  # its frames would keep the engine

    def done(self) -> bool:
        return True

    def wait(self, timeout: float | None = None) -> Any:
        """The result, or raises the operation's error."""
        if self.error is not None:
            raise self.error
        return self.result


_abandoned: list[Pending] = []  # waits that a signal ended
_table: dict[int, Pending | Ended] = {}
_numbers = itertools.count(1)


def _sweep() -> None:
    for pending in [each for each in _abandoned if each.done()]:
        _abandoned.remove(pending)
        pending.release()


def publish(pending: Pending) -> int:
    """A number for the operation, as Horovod's async calls return it."""
    if _abandoned:
        _sweep()
    number = next(_numbers)
    _table[number] = pending
    return number


def poll(handle: int) -> bool:
    """True if synchronize(handle) would not block. Raises ValueError for an unknown handle."""
    pending = _table.get(handle)
    if pending is None:
        raise errors.InvalidArgument(f"handle {handle} was not found; it was synchronized already, or never given out")
    return pending.done()


def synchronize(handle: int, timeout: float | None = None) -> Any:
    """Waits for the operation and returns its output(s); None if the handle is unknown or was consumed.

    Raises what the operation failed with; TimeoutError after `timeout` seconds, then the handle stays valid.
    """
    pending = _table.pop(handle, None)
    if pending is None:
        return None
    try:
        return pending.wait(timeout)
    except TimeoutError:
        _table[handle] = pending
        raise


def wait_all(pendings: Sequence[Pending]) -> list[Any]:
    """Waits for many in one call of the engine; raises the first failure after all have ended."""
    if not pendings:
        return []
    engine = pendings[0].engine
    handles = [handle for pending in pendings for handle in pending.handles]
    try:
        status = _wait_many(engine, handles, None)
    except BaseException:
        _abandoned.extend(pendings)
        raise
    try:
        if status != 0:
            check(status)
        return [pending.finish(pending) for pending in pendings]
    finally:
        for pending in pendings:
            pending.release()


def in_flight(set_id: int) -> int:
    """Handles of this process set that have not been synchronized."""
    return sum(1 for pending in list(_table.values()) if pending.set_id == set_id)


def _settle(engine: Engine) -> None:
    """The world has ended: handles that nobody has synchronized keep what came of them, not the engine."""
    for number, pending in list(_table.items()):
        if not isinstance(pending, Pending) or pending.engine is not engine or not pending.done():
            continue
        if _table.pop(number, None) is pending:  # else another thread synchronizes it
            _table[number] = Ended(pending)
    _sweep()


after_end(_settle)
