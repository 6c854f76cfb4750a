"""The operations on PyTorch tensors: Horovod's names, arguments and defaults.

Tensors: every dtype of tensor.DTYPES, any strides, on any device (not in main memory: travels as a copy).
A trailing underscore means in place. *_async gives a handle for synchronize() and poll().
Forms without underscore and without async are differentiable; see functions of the same name in autograd.py.
Raises: ValueError (bad argument, unknown dtype; DuplicateName, NotAMember, NotInitialized below it) at the call;
HorovodInternalError (MismatchError, StallError, WorldLostError) and TypeError where the operation is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

import torch

from halay import errors
from halay._engine import require
from halay._handle import poll, publish, synchronize
from halay._handle import synchronize as _wait
from halay.averaging import Adasum, Average, Max, Min, Product, Sum, check_scatter_op, choose_op
from halay.ops import URGENT, Ops, run_join
from halay.process_sets import ProcessSet, global_process_set
from halay.torch.tensor import TorchDriver

__all__ = [
    "Adasum",
    "Average",
    "Max",
    "Min",
    "Product",
    "Sum",
    "allgather_async",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall_async",
    "barrier",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "grouped_allgather_async",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter_async",
    "join",
    "poll",
    "reducescatter_async",
    "sparse_allreduce_async",
    "synchronize",
]

ops = Ops(TorchDriver())
Group = Sequence[torch.Tensor]


def check_one_device(tensors: Group) -> None:
    """Tensors of a group must share a device."""
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        raise errors.HorovodInternalError(
            f"the tensors of a group must be on one device, got {sorted(map(str, devices))}"
        )


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Handle of an allreduce into a new tensor of the same shape; the input must stay unchanged until synchronize()."""
    op = choose_op(op, average)
    return publish(ops.allreduce(tensor, name, op, prescale_factor, postscale_factor, process_set, False))


def allreduce_async_(
    tensor: torch.Tensor,
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


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Allreduce in place; returns the tensor. postscale * reduce(prescale * x), Average by default."""
    op = choose_op(op, average)
    pending = ops.allreduce(tensor, name, op, prescale_factor, postscale_factor, process_set, True, URGENT)
    result: torch.Tensor = pending.wait()
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
    """One handle of an allreduce of several tensors, all or nothing, into new tensors."""
    op = choose_op(op, average)
    check_one_device(tensors)
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
    """One handle of an allreduce of several tensors, all or nothing, in place."""
    op = choose_op(op, average)
    check_one_device(tensors)
    return publish(ops.grouped_allreduce(tensors, name, op, prescale_factor, postscale_factor, process_set, True))


def grouped_allreduce_(
    tensors: Group,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Group:
    """Allreduce of several tensors, all or nothing, in place; returns them."""
    op = choose_op(op, average)
    check_one_device(tensors)
    pending = ops.grouped_allreduce(tensors, name, op, prescale_factor, postscale_factor, process_set, True, URGENT)
    results: Group = pending.wait()
    return results


def sparse_allreduce_async(
    tensor: torch.Tensor, name: str | None, op: int, process_set: ProcessSet = global_process_set
) -> Callable[[], torch.Tensor]:
    """Allreduce of a sparse COO tensor; call the result to wait for an (uncoalesced) sparse tensor of the same size.

    Indices and values of all members are gathered and concatenated; Average divides the values by the size of the set.
    """
    coalesced = tensor if tensor.is_coalesced() else tensor.coalesce()
    indices = coalesced.indices().transpose(0, 1).contiguous()
    index_handle = allgather_async(indices, None if name is None else f"{name}.indices", process_set)
    value_handle = allgather_async(coalesced.values(), None if name is None else f"{name}.values", process_set)

    def wait() -> torch.Tensor:
        values = _wait(value_handle)
        gathered = _wait(index_handle)
        if op == Average:
            values = values / require().sets[process_set.process_set_id or 0].size
        return torch.sparse_coo_tensor(gathered.transpose(0, 1), values, tensor.size(), check_invariants=False)

    return wait


def allgather_async(tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set) -> int:
    """Handle of an allgather: rows (dimension 0) of all members in order of rank; their numbers may differ."""
    return publish(ops.allgather(tensor, name, process_set))


def grouped_allgather_async(
    tensors: Group, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """One handle of an allgather of several tensors, all or nothing."""
    check_one_device(tensors)
    return publish(ops.grouped_allgather(tensors, name, process_set))


def broadcast_async(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Handle of a broadcast of root_rank's (a rank of the world) tensor into a new one."""
    return publish(ops.broadcast(tensor, root_rank, name, process_set, False))


def broadcast_async_(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Handle of a broadcast in place."""
    return publish(ops.broadcast(tensor, root_rank, name, process_set, True))


def broadcast_(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """Broadcast in place; returns the tensor."""
    result: torch.Tensor = ops.broadcast(tensor, root_rank, name, process_set, True, URGENT).wait()
    return result


Splits = Union[torch.Tensor, Sequence[int], None]


def read_splits(splits: Splits) -> tuple[list[int] | None, Callable[[list[int]], torch.Tensor]]:
    """(splits as numbers, a maker of received_splits of the same dtype on the same device)."""
    if splits is None:
        return None, lambda received: torch.tensor(received, dtype=torch.int32)
    rows = splits if isinstance(splits, torch.Tensor) else torch.tensor(list(splits))
    if rows.dim() != 1 or rows.dtype not in (torch.int32, torch.int64):
        raise errors.InvalidArgument(
            f"splits must be a 1-d int32 tensor, got {rows.dtype} of shape {tuple(rows.shape)}"
        )
    dtype, device = (rows.dtype, rows.device) if rows is splits else (torch.int32, None)
    return rows.tolist(), lambda received: torch.tensor(received, dtype=dtype, device=device)


def alltoall_async(
    tensor: torch.Tensor,
    splits: Splits = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Handle of an alltoall; synchronize() gives (rows received in order of rank, received_splits).

    splits[i] rows of dimension 0 go to member i (int32, 1-d); None: equal parts.
    """
    numbers, make_splits = read_splits(splits)
    return publish(ops.alltoall(tensor, numbers, make_splits, name, process_set))


def reducescatter_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Handle of a reducescatter: of n rows each of p members gets n // p, the first n % p one more. Sum or Average."""
    op = check_scatter_op(op)
    return publish(ops.reducescatter(tensor, name, op, prescale_factor, postscale_factor, process_set))


def grouped_reducescatter_async(
    tensors: Group,
    name: str | None = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """One handle of a reducescatter of several tensors, all or nothing."""
    op = check_scatter_op(op)
    check_one_device(tensors)
    return publish(ops.grouped_reducescatter(tensors, name, op, prescale_factor, postscale_factor, process_set))


def join(device: int = -1) -> int:
    """This rank has no more data: others' allreduces go on without it. Blocks until all ranks of the world have joined.

    Returns the rank that joined last. `device` is accepted for Horovod's sake.
    """
    return run_join()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Blocks until all members have come here."""
    ops.run_barrier(process_set)
