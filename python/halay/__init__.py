"""halay: one model, trained by many processes. The surface of Horovod on an engine of its own.

    import halay.torch as hvd      # or halay.numpy
    hvd.init()

This module imports no framework.
"""

from __future__ import annotations

from halay import _lib
from halay.averaging import Adasum, Average, Max, Min, Product, Sum
from halay.basics import Basics
from halay.errors import (
    DuplicateName,
    HorovodInternalError,
    HorovodVersionMismatchError,
    HostsUpdatedInterrupt,
    MismatchError,
    NotAMember,
    NotInitialized,
    PeerLost,
    StallError,
    StartTimeout,
    UnsupportedError,
    WorldLostError,
)
from halay.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set

__version__: str = _lib.version().decode()

_basics = Basics("halay")
init = _basics.init
shutdown = _basics.shutdown
is_initialized = _basics.is_initialized
rank = _basics.rank
size = _basics.size
local_rank = _basics.local_rank
local_size = _basics.local_size
cross_rank = _basics.cross_rank
cross_size = _basics.cross_size
is_homogeneous = _basics.is_homogeneous
mpi_threads_supported = _basics.mpi_threads_supported
mpi_enabled = _basics.mpi_enabled
gloo_enabled = _basics.gloo_enabled
mpi_built = _basics.mpi_built
gloo_built = _basics.gloo_built
nccl_built = _basics.nccl_built
ddl_built = _basics.ddl_built
ccl_built = _basics.ccl_built
cuda_built = _basics.cuda_built
rocm_built = _basics.rocm_built
start_timeline = _basics.start_timeline
stop_timeline = _basics.stop_timeline
stats = _basics.stats
recorder = _basics.recorder
abort = _basics.abort

__all__ = [
    "Adasum",
    "Average",
    "DuplicateName",
    "HorovodInternalError",
    "HorovodVersionMismatchError",
    "HostsUpdatedInterrupt",
    "Max",
    "Min",
    "MismatchError",
    "NotAMember",
    "NotInitialized",
    "PeerLost",
    "ProcessSet",
    "Product",
    "StallError",
    "StartTimeout",
    "Sum",
    "UnsupportedError",
    "WorldLostError",
    "__version__",
    "abort",
    "add_process_set",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "gloo_built",
    "gloo_enabled",
    "global_process_set",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "recorder",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stats",
    "stop_timeline",
]
