"""Process sets: ranks that run collectives among themselves. Names, ids and rules are Horovod's.

An id is a small number given in order of registration; a freed one is given again, the one freed first before others.
Thread: add and remove are collective over all ranks of the world, so from one thread, in the same order everywhere.
"""

from __future__ import annotations

import collections
import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

from halay import _engine, _handle, _lib, errors
from halay._engine import Engine, SetInfo, check
from halay.objects import Objects


class ProcessSet:
    """Ranks that take part in a collective. Give it to init(process_sets=[...]) or add_process_set()."""

    process_set_id: int | None = None

    def __init__(self, ranks_or_comm: Iterable[int]) -> None:
        if hasattr(ranks_or_comm, "Get_size"):
            raise ValueError("a process set by an MPI communicator needs a build with MPI; give a list of ranks")
        try:
            ranks = list(ranks_or_comm)
        except TypeError:
            raise ValueError(f"ProcessSet needs ranks, not {ranks_or_comm!r}") from None
        if any(isinstance(rank, bool) or not hasattr(rank, "__index__") for rank in ranks):
            raise ValueError(f"ProcessSet needs integer ranks, not {ranks!r}")
        self.ranks: list[int] | None = sorted(int(rank) for rank in ranks)
        self.mpi_comm: Any = None

    def size(self) -> int | None:
        """How many ranks; None if not registered."""
        if self.process_set_id is None:
            return None
        return self._info().size

    def rank(self) -> int | None:
        """This rank's index in the set; None if not registered. Raises ValueError if this rank is not a member."""
        if self.process_set_id is None:
            return None
        info = self._info()
        if info.member < 0:
            raise errors.NotAMember(f"rank {info.engine.world.rank} is not a member of {self}")
        return info.member

    def included(self) -> bool | None:
        """Is this rank a member; None if the ranks are not known."""
        if self.ranks is None:
            return None
        return _engine.require().world.rank in self.ranks

    def _info(self) -> SetInfo:
        info = _engine.require().sets.get(self.process_set_id if self.process_set_id is not None else -1)
        if info is None:
            raise errors.InvalidArgument(f"{self} is not known to the engine")
        return info

    def _invalidate(self) -> None:
        self.process_set_id = None

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm={self.mpi_comm})"

    __repr__ = __str__


global_process_set = ProcessSet([])
global_process_set.process_set_id = 0

_registered: dict[int, ProcessSet] = {0: global_process_set}
_freed: collections.deque[int] = collections.deque()
_objects = Objects("halay.")


def _forget() -> None:
    """The world has ended: the sets have no numbers any more."""
    for process_set in _registered.values():
        if process_set is not global_process_set:
            process_set._invalidate()
    global_process_set.ranks = []
    _registered.clear()
    _registered[0] = global_process_set
    _freed.clear()


_engine.on_end(_forget)


def set_up(process_sets: Sequence[ProcessSet]) -> None:
    """After the engine has started: the global set learns its ranks, and the given sets are registered.

    Raises ValueError for sets that are given twice, or equal the world; they are left without a number, others work.
    """
    engine = _engine.require()
    global_process_set.ranks = list(engine.sets[0].ranks)
    if process_sets:
        _agree("init", [each.ranks for each in process_sets])
    clones = []
    for process_set in process_sets:
        if _registered.get(process_set.process_set_id or 0) is process_set and process_set.process_set_id is not None:
            continue
        if _twin(process_set) is not None:
            process_set._invalidate()
            clones.append(process_set)
            continue
        _register(engine, process_set)
    if clones:
        listed = ", ".join(str(clone) for clone in clones)
        raise ValueError(f"process sets given more than once, or equal to the world: {listed}")


def _twin(process_set: ProcessSet) -> ProcessSet | None:
    return next((other for other in _registered.values() if other.ranks == process_set.ranks), None)


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Registers a set; all ranks of the world call this with the same ranks, members or not.

    Raises ValueError if it is registered already, holds a rank that does not exist, or HALAY_DYNAMIC_PROCESS_SETS is 0;
    MismatchError (on all ranks) if the ranks differ between processes.
    """
    engine = _engine.require()
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if engine.setting("HALAY_DYNAMIC_PROCESS_SETS") in ("0", "false"):
        raise ValueError("process sets cannot be added after init(): HALAY_DYNAMIC_PROCESS_SETS is 0")
    _agree("add_process_set", process_set.ranks)
    twin = _twin(process_set)
    if twin is not None:
        raise ValueError(f"a process set with these ranks is registered already: {twin}")
    _register(engine, process_set)
    return process_set


def _register(engine: Engine, process_set: ProcessSet) -> None:
    ranks = process_set.ranks
    world = engine.world
    if not ranks or len(set(ranks)) != len(ranks) or ranks[0] < 0 or ranks[-1] >= world.size:
        raise ValueError(f"a process set needs distinct ranks between 0 and {world.size - 1}, got {ranks}")
    member = ranks.index(world.rank) if world.rank in ranks else -1
    handle = ctypes.c_uint32(0)
    if member >= 0:
        array = (ctypes.c_int32 * len(ranks))(*ranks)
        check(_lib.process_set_create(engine.pointer, ctypes.addressof(array), len(ranks), handle))
    number = _freed.popleft() if _freed else len(_registered)
    engine.sets[number] = SetInfo(engine, number, handle.value, tuple(ranks), len(ranks), member)
    _registered[number] = process_set
    process_set.process_set_id = number


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a set; all ranks of the world call this. False for the global set and one that is not registered.

    Raises ValueError (on all ranks) while a rank has operations of the set in flight; MismatchError if the ranks disagree.
    """
    engine = _engine.require()
    number = process_set.process_set_id
    if number is None or number == 0 or _registered.get(number) is not process_set:
        return False
    busy = _agree("remove_process_set", process_set.ranks, _handle.in_flight(number) > 0)
    if any(busy):
        ranks = [rank for rank, flag in enumerate(busy) if flag]
        raise ValueError(f"{process_set} has operations in flight on ranks {ranks}: synchronize them first")
    info = engine.sets[number]
    engine.forget_set(number)
    del _registered[number]
    _freed.append(number)
    process_set._invalidate()
    if info.member >= 0:
        check(_lib.process_set_destroy(engine.pointer, info.handle))
    return True


def _agree(what: str, ranks: Any, flag: bool = False) -> list[bool]:
    """Everybody's flag; MismatchError on all ranks unless all of them do the same thing."""
    told = _objects.allgather_object((what, ranks, flag), None, global_process_set)
    for rank, (other_what, other_ranks, _) in enumerate(told):
        if (other_what, other_ranks) != told[0][:2]:
            raise errors.MismatchError(
                f"process sets: rank {rank} calls {other_what}({other_ranks}), rank 0 {told[0][0]}({told[0][1]})"
            )
    return [each[2] for each in told]


def process_set_ids() -> list[int]:
    """The ids in use."""
    return sorted(_registered)
