"""halay for NumPy: Horovod's operations on arrays."""

from __future__ import annotations

try:
    import numpy as _numpy  # only to say in clear words what is missing
except ImportError as _error:
    raise ImportError(
        "halay.numpy needs NumPy, but `import numpy` failed "
        f"({_error}). Install it by `pip install numpy`; halay itself needs no reinstall."
    ) from _error

from halay import __version__
from halay.averaging import Adasum, Average, Max, Min, Product, Sum
from halay.basics import Basics
from halay.errors import (
    DuplicateName,
    HorovodInternalError,
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
from halay.numpy.ops import *  # noqa: F403
from halay.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set

_basics = Basics("numpy")
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

__all__ = [name for name in dir() if not name.startswith("_") and name != "annotations"] + ["__version__"]
