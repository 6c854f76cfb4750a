"""halay for PyTorch: Horovod's API. `import halay.torch as hvd` and the rest of a Horovod script stays as it is."""

from __future__ import annotations

try:
    import torch as _torch  # only to say in clear words what is missing
except ImportError as _error:
    raise ImportError(
        "halay.torch needs PyTorch, but `import torch` failed "
        f"({_error}). Install it by `pip install torch`; halay itself needs no reinstall."
    ) from _error

from halay import __version__
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
from halay.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from halay.torch.autograd import (
    allgather,
    allreduce,
    alltoall,
    broadcast,
    grouped_allgather,
    grouped_allreduce,
    grouped_reducescatter,
    reducescatter,
)
from halay.torch.compression import Compression
from halay.torch.functions import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from halay.torch.ops import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    allgather_async,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall_async,
    barrier,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather_async,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter_async,
    join,
    poll,
    reducescatter_async,
    sparse_allreduce_async,
    synchronize,
)
from halay.torch.optimizer import DistributedOptimizer

_basics = Basics("torch")
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
