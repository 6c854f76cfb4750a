"""init, shutdown, ranks, what is built in, timeline, statistics: the same functions in every adapter.

Rank-like functions raise NotInitialized (a ValueError) before init(). Thread: any.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from halay import _engine, _lib
from halay._engine import check
from halay.process_sets import ProcessSet, set_up


class Basics:
    """One adapter's door to the engine; init and shutdown are counted per adapter."""

    def __init__(self, adapter: str) -> None:
        self._adapter = adapter

    def init(self, comm: Any = None, process_sets: Sequence[ProcessSet] | str | None = None) -> None:
        """Starts the engine; collective over all ranks. A second call only registers process sets.

        comm: None, or a list of ranks (accepted and ignored, as Horovod does without MPI).
        process_sets: None, ProcessSets to register, or "dynamic". Raises ValueError for other values, for sets given
        twice (after the start), for unknown settings in the environment, and when ranks are missing (StartTimeout).
        """
        if comm is not None and not (isinstance(comm, (list, tuple)) and all(isinstance(rank, int) for rank in comm)):
            raise ValueError("comm must be None or a list of ranks; MPI communicators need a build with MPI")
        if process_sets is None:
            given: list[ProcessSet] = []
        elif isinstance(process_sets, str):
            if process_sets.lower() != "dynamic":
                raise ValueError(f'process_sets={process_sets!r}: must be a list of ProcessSet, or "dynamic"')
            given = []
        else:
            given = list(process_sets)
            if not all(isinstance(each, ProcessSet) for each in given):
                raise ValueError("process_sets must be a list of ProcessSet")
        _engine.initialize(self._adapter)
        set_up(given)

    def shutdown(self) -> None:
        """Ends the engine unless another adapter uses it; pending operations fail. init() may follow again."""
        _engine.shut_down(self._adapter)

    def is_initialized(self) -> bool:
        """Is the engine running."""
        return _engine.current is not None

    def rank(self) -> int:
        """This process's number in the world."""
        return int(_engine.require().world.rank)

    def size(self) -> int:
        """Processes in the world."""
        return int(_engine.require().world.size)

    def local_rank(self) -> int:
        """This process's number among those of its machine."""
        return int(_engine.require().world.local_rank)

    def local_size(self) -> int:
        """Processes on this machine."""
        return int(_engine.require().world.local_size)

    def cross_rank(self) -> int:
        """Index of this machine among those that have this local rank."""
        return int(_engine.require().world.cross_rank)

    def cross_size(self) -> int:
        """Machines that have this local rank."""
        return int(_engine.require().world.cross_size)

    def is_homogeneous(self) -> bool:
        """Do all machines have the same number of processes."""
        return bool(_engine.require().world.homogeneous)

    def mpi_threads_supported(self) -> bool:
        """Raises ValueError: MPI is not in use."""
        _engine.require()
        raise ValueError("MPI is not in use")

    def mpi_enabled(self) -> bool:
        """False: halay has its own control plane."""
        return False

    def gloo_enabled(self) -> bool:
        """False: halay has its own control plane."""
        return False

    def mpi_built(self) -> bool:
        """False: no MPI engine in this version."""
        return False

    def gloo_built(self) -> bool:
        """False: halay does not use Gloo."""
        return False

    def nccl_built(self) -> int:
        """0: no NCCL engine in this version."""
        return 0

    def ddl_built(self) -> bool:
        """False."""
        return False

    def ccl_built(self) -> bool:
        """False."""
        return False

    def cuda_built(self) -> bool:
        """False: device tensors travel through main memory in this version."""
        return False

    def rocm_built(self) -> bool:
        """False."""
        return False

    def start_timeline(self, file_path: str | os.PathLike[str], mark_cycles: bool = False) -> None:
        """Writes a timeline from now on. Raises ValueError before init() and for a path that cannot be written."""
        engine = _engine.require()
        check(_lib.timeline_start(engine.pointer, os.fsencode(file_path), int(bool(mark_cycles))))

    def stop_timeline(self) -> None:
        """Ends the timeline; the file is valid JSON. Raises ValueError before init()."""
        check(_lib.timeline_stop(_engine.require().pointer))

    def stats(self) -> dict[str, int | float]:
        """The engine's counters by name. Raises NotInitialized."""
        status, text = _lib.stats(_engine.require().pointer)
        check(status)
        counters: dict[str, int | float] = {}
        for line in text.splitlines():
            name, _, value = line.rpartition(" ")
            if name:
                counters[name] = float(value) if "." in value else int(value)
        return counters

    def recorder(self) -> str:
        """The last events kept in memory and what is in flight now, as text. Raises NotInitialized."""
        status, text = _lib.recorder_dump(_engine.require().pointer)
        check(status)
        return text

    def abort(self, reason: str) -> None:
        """Ends the world on all ranks: every operation fails with this reason. Raises NotInitialized."""
        _engine.abort(reason)
