"""The one Engine of this process: started by the first adapter that calls init(), ended when the last one shuts down.

Thread: any. Owns: the C engine; an old one is destroyed when nobody refers to it any more (a wait in another thread does).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from halay import _lib, errors
from halay._enums import Status


def check(status: int) -> None:
    """Raises what this thread's last call ended with, unless that is success."""
    if status != 0:
        errors.raise_status(status, _lib.last_error(), _lib.last_error_rank())


class SetInfo(NamedTuple):
    """A process set as this engine knows it."""

    engine: Engine
    set_id: int  # Horovod's number
    handle: int  # the C ABI's number; of no meaning to those outside
    ranks: tuple[int, ...]
    size: int
    member: int  # index of this rank, -1: not a member


class Engine:
    """A started C engine with what Python remembers for it."""

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer
        self.owned = True  # False: never destroyed (a forked child, or the interpreter is ending)
        self.world = _lib.World(struct_size=ctypes.sizeof(_lib.World))
        self.sets: dict[int, SetInfo] = {}
        self.templates: dict[tuple[Any, ...], Any] = {}  # prepared requests, see ops.py
        self._counters: dict[tuple[str, int], itertools.count[int]] = {}
        self.int_average = "truncate"
        self.exact_gradients = False

    def learn(self) -> None:
        """Reads what the world looks like and the knobs that Python needs."""
        check(_lib.world_info(self.pointer, self.world))
        ranks = tuple(range(self.world.size))
        self.sets[0] = SetInfo(self, 0, 0, ranks, len(ranks), self.world.rank)
        self.int_average = self.setting("HALAY_INT_AVERAGE")
        self.exact_gradients = self.setting("HALAY_GRADIENTS") == "exact"

    def setting(self, name: str) -> str:
        """The value in force of a knob, as text."""
        status, text = _lib.config_get(self.pointer, name)
        check(status)
        return text

    def name(self, text: str) -> int:
        """The number of a tensor name. Raises ValueError for one that cannot travel."""
        if "\0" in text:
            raise errors.InvalidArgument(f"{text!r}: a tensor name must not contain NUL")
        number = ctypes.c_uint32(0)
        check(_lib.name_register(self.pointer, text.encode(), number))
        return number.value

    def count(self, kind: str, set_id: int) -> int:
        """How many unnamed operations of this kind came before in this process set."""
        counter = self._counters.get((kind, set_id))
        if counter is None:
            counter = self._counters.setdefault((kind, set_id), itertools.count())
        return next(counter)

    def restart_counts(self) -> None:
        """Counts unnamed operations of the world from 0 again; all ranks do it at the same place."""
        for key in [each for each in self._counters if each[1] == 0]:
            self._counters.pop(key, None)

    def forget_set(self, set_id: int) -> None:
        """Drops what was prepared for a process set; its number may be given to another."""
        self.sets.pop(set_id, None)
        self.templates.clear()
        for key in [each for each in self._counters if each[1] == set_id]:
            self._counters.pop(key, None)

    def __del__(self) -> None:
        if self.owned:
            _lib.engine_destroy(self.pointer)


current: Engine | None = None
_lock = threading.RLock()
_adapters: set[str] = set()
_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_forked_from: int | None = None  # the rank of the parent, in a forked child of an initialised process
_hooks_installed = False
_begun = 0  # worlds; each init() reads the environment anew with an engine of its own, and all ranks count alike
_at_end: list[Callable[[], None]] = []
_after_end: list[Callable[[Engine], None]] = []


def not_initialized() -> NoReturn:
    """Raises NotInitialized, saying why."""
    if _forked_from is not None:
        raise errors.NotInitialized(
            f"this process was forked from rank {_forked_from} after init(); collectives belong to the parent alone "
            "(DataLoader workers need none). Start processes that take part by `halay run`."
        )
    raise errors.NotInitialized("halay has not been initialized; call init() first")


def require() -> Engine:
    """The running engine, or NotInitialized."""
    engine = current
    if engine is None:
        not_initialized()
    return engine


def initialize(adapter: str) -> bool:
    """Starts the engine if nobody has; True if this call did. Raises what the start failed with."""
    global current
    with _lock:
        if _forked_from is not None:
            not_initialized()
        _adapters.add(adapter)
        if current is not None:
            return False
        try:
            current = _start()
        except BaseException:
            _adapters.discard(adapter)
            raise
        _install_hooks()
        return True


def _start() -> Engine:
    global _begun
    pointer = ctypes.c_void_p()
    check(_lib.engine_create(_lib.engine_options(f"HALAY_EPOCH={_begun}"), pointer))
    _begun += 1
    assert pointer.value is not None
    engine = Engine(pointer.value)
    _engines.add(engine)
    outcome: list[tuple[int, str, int]] = []

    def start() -> None:  # in a thread of its own, so that Ctrl-C is answered meanwhile
        status = _lib.engine_start_from_environment(engine.pointer)
        outcome.append((status, _lib.last_error(), _lib.last_error_rank()) if status else (0, "", -1))

    thread = threading.Thread(target=start, name="halay-start", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    status, text, rank = outcome[0]
    if status == Status.timeout:
        raise errors.StartTimeout(text)
    if status != 0:
        errors.raise_status(status, text, rank)
    engine.learn()
    return engine


def shut_down(adapter: str) -> None:
    """Ends the engine if no other adapter needs it; all that is pending fails. Nothing happens if it is not running."""
    with _lock:
        _adapters.discard(adapter)
        if not _adapters:
            _end()


def _end() -> None:
    global current
    engine, current = current, None
    if engine is None:
        return
    for forget in _at_end:
        forget()
    engine.templates.clear()
    try:
        check(_lib.engine_shutdown(engine.pointer))
    finally:
        for settle in _after_end:
            settle(engine)


def on_end(forget: Callable[[], None]) -> None:
    """`forget()` is called whenever a world ends."""
    _at_end.append(forget)


def after_end(settle: Callable[[Engine], None]) -> None:
    """`settle(engine)` is called when a world has ended: all its operations are done or have failed."""
    _after_end.append(settle)


def abort(reason: str) -> None:
    """Ends the world on all ranks; every operation fails with this reason."""
    check(_lib.abort(require().pointer, reason.encode()))


def _install_hooks() -> None:
    global _hooks_installed
    if _hooks_installed:
        return
    _hooks_installed = True
    atexit.register(_at_exit)
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        previous(kind, error, trace)
        engine = current
        if engine is not None:
            reason = f"rank {engine.world.rank} ended with {kind.__name__}: {error}"
            _lib.abort(engine.pointer, reason[:1000].encode("utf-8", "replace"))

    sys.excepthook = excepthook


def _at_exit() -> None:
    with _lock:
        _adapters.clear()
        for engine in list(_engines):
            engine.owned = False  # the process ends; tearing down after Python has gone helps nobody
        with contextlib.suppress(errors.HorovodInternalError):
            _end()  # a world that is gone gave its reason where somebody waited


def _after_fork_in_child() -> None:
    global current, _forked_from, _lock
    _lock = threading.RLock()
    if current is not None:
        _forked_from = current.world.rank
    for engine in list(_engines):
        engine.owned = False
    current = None
    _adapters.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
