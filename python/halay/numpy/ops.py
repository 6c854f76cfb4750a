"""The operations on NumPy arrays, shaped as Horovod's for PyTorch.

Arrays: integers, floats, bool (and ml_dtypes' bfloat16), any strides. A trailing underscore means in place; *_async gives a
handle for synchronize() and poll(). Raises ValueError at the call (DuplicateName, NotAMember, NotInitialized below it);
HorovodInternalError (MismatchError, StallError, WorldLostError) where the operation is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np

from halay import errors
from halay._handle import poll, publish, synchronize
from halay.averaging import Average, check_scatter_op, choose_op
from halay.compression import Compressor, NoneCompressor, make_cast
from halay.numpy.tensor import Array, NumpyDriver
from halay.objects import Objects
from halay.ops import URGENT, Ops, run_join
from halay.process_sets import ProcessSet, global_process_set

ops = Ops(NumpyDriver())
_objects = Objects("numpy.")

Group = Sequence[Array]
Splits = Union[Array, Sequence[int], None]


def _to_half(array: Array) -> tuple[Array, Any]:
    return (array.astype(np.float16), array.dtype) if array.dtype.kind == "f" else (array, None)


class Compression:
    """What allreduce(compression=...) takes."""

    none = NoneCompressor
    fp16 = make_cast("FP16Compressor", _to_half, lambda array, dtype: array.astype(dtype))


def allreduce_async(
    tensor: Array,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Handle of an allreduce into a new array; the input must stay unchanged until synchronize()."""
    op = choose_op(op, average)
    return publish(ops.allreduce(tensor, name, op, prescale_factor, postscale_factor, process_set, False))


def allreduce_async_(
    tensor: Array,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Handle of an allreduce in place."""
    op = choose_op(op, average)
    return publish(ops.allreduce(tensor, name, op, prescale_factor, postscale_factor, process_set, True))


def allreduce(
    tensor: Array,
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Array:
    """postscale * reduce(prescale * x) over the members, as a new array. Average by default."""
    op = choose_op(op, average)
    compressed, context = compression.compress(tensor)
    pending = ops.allreduce(compressed, name, op, prescale_factor, postscale_factor, process_set, False, URGENT)
    result: Array = compression.decompress(pending.wait(), context)
    return result


def allreduce_(
    tensor: Array,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Array:
    """Allreduce in place; returns the array."""
    op = choose_op(op, average)
    pending = ops.allreduce(tensor, name, op, prescale_factor, postscale_factor, process_set, True, URGENT)
    result: Array = pending.wait()
    return result


def grouped_allreduce_async(
    tensors: Group,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """One handle of an allreduce of several arrays, all or nothing, into new ones."""
    op = choose_op(op, average)
    return publish(ops.grouped_allreduce(tensors, name, op, prescale_factor, postscale_factor, process_set, False))


def grouped_allreduce_async_(
    tensors: Group,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """One handle of an allreduce of several arrays, all or nothing, in place."""
    op = choose_op(op, average)
    return publish(ops.grouped_allreduce(tensors, name, op, prescale_factor, postscale_factor, process_set, True))


def grouped_allreduce(
    tensors: Group,
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Group:
    """allreduce of several arrays, all or nothing, as new ones in the same order."""
    op = choose_op(op, average)
    pairs = [compression.compress(tensor) for tensor in tensors]
    compressed = [pair[0] for pair in pairs]
    pending = ops.grouped_allreduce(compressed, name, op, prescale_factor, postscale_factor, process_set, False, URGENT)
    results = [compression.decompress(result, pair[1]) for result, pair in zip(pending.wait(), pairs)]
    return tuple(results) if isinstance(tensors, tuple) else results


def grouped_allreduce_(
    tensors: Group,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Group:
    """Allreduce of several arrays, all or nothing, in place; returns them."""
    op = choose_op(op, average)
    pending = ops.grouped_allreduce(tensors, name, op, prescale_factor, postscale_factor, process_set, True, URGENT)
    results: Group = pending.wait()
    return results


def allgather_async(tensor: Array, name: str | None = None, process_set: ProcessSet = global_process_set) -> int:
    """Handle of an allgather: rows (dimension 0) of all members in order of rank; their numbers may differ."""
    return publish(ops.allgather(tensor, name, process_set))


def allgather(tensor: Array, name: str | None = None, process_set: ProcessSet = global_process_set) -> Array:
    """Rows (dimension 0) of all members in order of rank; their numbers may differ, other dimensions not."""
    result: Array = ops.allgather(tensor, name, process_set, URGENT).wait()
    return result


def grouped_allgather_async(
    tensors: Group, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """One handle of an allgather of several arrays, all or nothing."""
    return publish(ops.grouped_allgather(tensors, name, process_set))


def grouped_allgather(tensors: Group, name: str | None = None, process_set: ProcessSet = global_process_set) -> Group:
    """allgather of several arrays, all or nothing."""
    results: Group = ops.grouped_allgather(tensors, name, process_set, URGENT).wait()
    return results


def broadcast_async(
    tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Handle of a broadcast of root_rank's (a rank of the world) array into a new one."""
    return publish(ops.broadcast(tensor, root_rank, name, process_set, False))


def broadcast_async_(
    tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Handle of a broadcast in place."""
    return publish(ops.broadcast(tensor, root_rank, name, process_set, True))


def broadcast(
    tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Array:
    """root_rank's (a rank of the world) array on all members, as a new array."""
    result: Array = ops.broadcast(tensor, root_rank, name, process_set, False, URGENT).wait()
    return result


def broadcast_(
    tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Array:
    """Broadcast in place; returns the array."""
    result: Array = ops.broadcast(tensor, root_rank, name, process_set, True, URGENT).wait()
    return result


def _read_splits(splits: Splits) -> tuple[list[int] | None, Callable[[list[int]], Array]]:
    if splits is None:
        return None, lambda received: np.array(received, dtype=np.int32)
    array = np.asarray(splits)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise errors.InvalidArgument(
            f"splits must be one-dimensional integers, got {array.dtype} of shape {array.shape}"
        )
    dtype = array.dtype if isinstance(splits, np.ndarray) else np.dtype(np.int32)
    return [int(rows) for rows in array], lambda received: np.array(received, dtype=dtype)


def alltoall_async(
    tensor: Array, splits: Splits = None, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Handle of an alltoall; synchronize() gives (rows received in order of rank, received_splits)."""
    numbers, make_splits = _read_splits(splits)
    return publish(ops.alltoall(tensor, numbers, make_splits, name, process_set))


def alltoall(
    tensor: Array, splits: Splits = None, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Array | tuple[Array, Array]:
    """Sends splits[i] rows of dimension 0 to member i (None: equal parts).

    The rows received, in order of rank; with splits given: (rows, received_splits).
    """
    numbers, make_splits = _read_splits(splits)
    output, received = ops.alltoall(tensor, numbers, make_splits, name, process_set, URGENT).wait()
    return output if splits is None else (output, received)


def reducescatter_async(
    tensor: Array,
    name: str | None = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Handle of a reducescatter: of n rows each of p members gets n // p, the first n % p one more. Sum or Average."""
    op = check_scatter_op(op)
    return publish(ops.reducescatter(tensor, name, op, prescale_factor, postscale_factor, process_set))


def reducescatter(
    tensor: Array,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Array:
    """This member's rows of the reduction: of n rows n // p, the first n % p members one more."""
    op = check_scatter_op(op)
    compressed, context = compression.compress(tensor)
    pending = ops.reducescatter(compressed, name, op, prescale_factor, postscale_factor, process_set, URGENT)
    result: Array = compression.decompress(pending.wait(), context)
    return result


def grouped_reducescatter_async(
    tensors: Group,
    name: str | None = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """One handle of a reducescatter of several arrays, all or nothing."""
    op = check_scatter_op(op)
    return publish(ops.grouped_reducescatter(tensors, name, op, prescale_factor, postscale_factor, process_set))


def grouped_reducescatter(
    tensors: Group,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Group:
    """reducescatter of several arrays, all or nothing."""
    op = check_scatter_op(op)
    pairs = [compression.compress(tensor) for tensor in tensors]
    compressed = [pair[0] for pair in pairs]
    pending = ops.grouped_reducescatter(compressed, name, op, prescale_factor, postscale_factor, process_set, URGENT)
    results = [compression.decompress(result, pair[1]) for result, pair in zip(pending.wait(), pairs)]
    return tuple(results) if isinstance(tensors, tuple) else results


def join(device: int = -1) -> int:
    """This rank has no more data: others' allreduces go on without it. Returns the rank that joined last, when all have."""
    return run_join()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Blocks until all members have come here."""
    ops.run_barrier(process_set)


def broadcast_object(
    obj: Any, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """root_rank's object on all members; the root gets its own back."""
    return _objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """The objects of all members, in order of rank."""
    return _objects.allgather_object(obj, name, process_set)


__all__ = [
    "Compression",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "broadcast_object",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "join",
    "poll",
    "reducescatter",
    "reducescatter_async",
    "synchronize",
]
