"""The differentiable forms of the operations.

Gradients follow Horovod's table by default; gradients="exact" (or HALAY_GRADIENTS=exact) gives the mathematical transpose
for "total loss = sum of the ranks' losses". docs/from-horovod.md has both in one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from halay import averaging, errors
from halay._engine import require
from halay.averaging import Average, Max, Min, Product, Sum, check_scatter_op, choose_op
from halay.compression import Compressor
from halay.ops import URGENT, find_set
from halay.process_sets import ProcessSet, global_process_set
from halay.torch.compression import Compression
from halay.torch.ops import Group, Splits, check_one_device, ops, read_splits

__all__ = [
    "allgather",
    "allreduce",
    "alltoall",
    "broadcast",
    "grouped_allgather",
    "grouped_allreduce",
    "grouped_reducescatter",
    "reducescatter",
]


def _is_exact(gradients: str | None) -> bool:
    if gradients is None:
        return require().exact_gradients
    if gradients not in ("horovod", "exact"):
        raise errors.InvalidArgument(f'gradients={gradients!r}: must be "horovod" or "exact"')
    return gradients == "exact"


def _wants(*tensors: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _allreduce_now(
    tensor: torch.Tensor, op: int, process_set: ProcessSet, pre: float = 1.0, post: float = 1.0
) -> torch.Tensor:
    result: torch.Tensor = ops.allreduce(tensor, None, op, pre, post, process_set, False, URGENT).wait()
    return result


def _extremum_gradient(
    x: torch.Tensor, grad: torch.Tensor, op: int, pre: float, process_set: ProcessSet
) -> torch.Tensor:
    """Transpose of Min and Max: the ranks that hold the extremum share the gradient."""
    if pre < 0:
        op = Max if op == Min else Min
    holds = (x == _allreduce_now(x, op, process_set)).to(grad.dtype)
    holders = _allreduce_now(holds, Sum, process_set)
    return _allreduce_now(grad, Sum, process_set) * holds / holders.clamp(min=1)


def _product_gradient(x: torch.Tensor, grad: torch.Tensor, process_set: ProcessSet, scale: float) -> torch.Tensor:
    """Transpose of Product: the product of the others' elements, which zeros do not spoil."""
    info = find_set(process_set)
    everybody = ops.allgather(x.unsqueeze(0), None, process_set, URGENT).wait()
    others = torch.cat([everybody[: info.member], everybody[info.member + 1 :]])
    return _allreduce_now(grad, Sum, process_set) * others.prod(0) * scale


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, name: Any, op: int, pre: float, post: float, process_set: Any, exact: bool
    ) -> Any:
        ctx.op, ctx.pre, ctx.post, ctx.process_set, ctx.exact = op, pre, post, process_set, exact
        result = ops.allreduce(tensor, name, op, pre, post, process_set, False, URGENT).wait()
        if exact and op in (Min, Max, Product):
            ctx.save_for_backward(tensor)
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]  # autograd's own signature is (*args)
        if ctx.exact and ctx.op in (Min, Max, Product):
            (x,) = ctx.saved_tensors
            if ctx.op == Product:
                scale = ctx.post * ctx.pre ** find_set(ctx.process_set).size
                result = _product_gradient(x, grad, ctx.process_set, scale)
            else:
                result = _extremum_gradient(x, grad, ctx.op, ctx.pre, ctx.process_set) * (ctx.pre * ctx.post)
        else:
            result = _allreduce_now(grad, ctx.op, ctx.process_set, ctx.pre, ctx.post)
        return result, None, None, None, None, None, None


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: Any, op: int, pre: float, post: float, process_set: Any, *tensors: torch.Tensor) -> Any:
        ctx.terms = (op, pre, post, process_set)
        return ops.grouped_allreduce(tensors, name, op, pre, post, process_set, False, URGENT).wait()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        op, pre, post, process_set = ctx.terms
        return (None,) * 5 + ops.grouped_allreduce(grads, None, op, pre, post, process_set, False, URGENT).wait()


def _own_rows(gathered: torch.Tensor, rows: list[int], member: int) -> torch.Tensor:
    offset = sum(rows[:member])
    return gathered[offset : offset + rows[member]]


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, name: Any, process_set: Any, exact: bool) -> Any:
        ctx.rows, ctx.process_set, ctx.exact = tensor.shape[0] if tensor.dim() else 0, process_set, exact
        return ops.allgather(tensor, name, process_set, URGENT).wait()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]  # as above
        reduced = _allreduce_now(grad, averaging.gather_gradient_op(ctx.exact), ctx.process_set)
        own = torch.tensor([ctx.rows], dtype=torch.int64)
        rows = ops.allgather(own, None, ctx.process_set, URGENT).wait().tolist()
        return _own_rows(reduced, rows, find_set(ctx.process_set).member), None, None, None


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: Any, process_set: Any, exact: bool, *tensors: torch.Tensor) -> Any:
        ctx.process_set, ctx.exact = process_set, exact
        ctx.rows = [tensor.shape[0] for tensor in tensors]
        return ops.grouped_allgather(tensors, name, process_set, URGENT).wait()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        op = averaging.gather_gradient_op(ctx.exact)
        reduced = ops.grouped_allreduce(grads, None, op, 1.0, 1.0, ctx.process_set, False, URGENT).wait()
        own = torch.tensor([ctx.rows], dtype=torch.int64)
        table = ops.allgather(own, None, ctx.process_set, URGENT).wait().t().tolist()
        member = find_set(ctx.process_set).member
        return (None,) * 3 + tuple(_own_rows(each, rows, member) for each, rows in zip(reduced, table))


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, root_rank: int, name: Any, process_set: Any, exact: bool) -> Any:
        ctx.root_rank, ctx.process_set, ctx.exact = root_rank, process_set, exact
        return ops.broadcast(tensor, root_rank, name, process_set, False, URGENT).wait()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]  # as above
        reduced = _allreduce_now(grad, averaging.gather_gradient_op(ctx.exact), ctx.process_set)
        if require().world.rank != ctx.root_rank:
            reduced = torch.zeros_like(reduced)
        return reduced, None, None, None, None


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, splits: Any, make_splits: Any, name: Any, process_set: Any) -> Any:
        output, received = ops.alltoall(tensor, splits, make_splits, name, process_set, URGENT).wait()
        ctx.received, ctx.process_set, ctx.shape = received.tolist(), process_set, tensor.shape
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor, _: Any) -> Any:  # type: ignore[override]  # as above
        back, _received = ops.alltoall(grad, ctx.received, lambda rows: rows, None, ctx.process_set, URGENT).wait()
        if back.shape[0] < ctx.shape[0]:  # rows beyond the splits were not sent
            back = torch.cat([back, back.new_zeros((ctx.shape[0] - back.shape[0], *ctx.shape[1:]))])
        return back, None, None, None, None


def _scatter_backward(ctx: Any, grads: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    op, pre, post, process_set, exact = ctx.terms
    factor = averaging.scatter_gradient_factor(op, find_set(process_set).size, pre, post, exact)
    gathered = ops.grouped_allgather(list(grads), None, process_set, URGENT).wait()
    return [each if factor == 1.0 else each * factor for each in gathered]


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, name: Any, op: int, pre: float, post: float, process_set: Any, exact: bool, tensor: torch.Tensor
    ) -> Any:
        ctx.terms = (op, pre, post, process_set, exact)
        return ops.reducescatter(tensor, name, op, pre, post, process_set, URGENT).wait()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]  # as above
        return (None,) * 6 + tuple(_scatter_backward(ctx, [grad]))


class _GroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, name: Any, op: int, pre: float, post: float, process_set: Any, exact: bool, *tensors: torch.Tensor
    ) -> Any:
        ctx.terms = (op, pre, post, process_set, exact)
        return ops.grouped_reducescatter(tensors, name, op, pre, post, process_set, URGENT).wait()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return (None,) * 6 + tuple(_scatter_backward(ctx, grads))


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    gradients: str | None = None,
) -> torch.Tensor:
    """postscale * reduce(prescale * x) over the members, as a new tensor. Average by default. Differentiable."""
    op = choose_op(op, average)
    compressed, context = compression.compress(tensor)
    result: torch.Tensor
    if _wants(compressed):
        exact = _is_exact(gradients)
        result = _Allreduce.apply(compressed, name, op, prescale_factor, postscale_factor, process_set, exact)
    else:
        pending = ops.allreduce(compressed, name, op, prescale_factor, postscale_factor, process_set, False, URGENT)
        result = pending.wait()
    decompressed: torch.Tensor = compression.decompress(result, context)
    return decompressed


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
    """allreduce of several tensors, all or nothing, as new tensors in the same order. Differentiable."""
    op = choose_op(op, average)
    check_one_device(tensors)
    pairs = [compression.compress(tensor) for tensor in tensors]
    compressed = [pair[0] for pair in pairs]
    if _wants(*compressed):
        results = _GroupedAllreduce.apply(name, op, prescale_factor, postscale_factor, process_set, *compressed)
    else:
        pending = ops.grouped_allreduce(
            compressed, name, op, prescale_factor, postscale_factor, process_set, False, URGENT
        )
        results = pending.wait()
    return _like(tensors, [compression.decompress(result, pair[1]) for result, pair in zip(results, pairs)])


def _like(tensors: Group, results: Sequence[torch.Tensor]) -> Group:
    return tuple(results) if isinstance(tensors, tuple) else list(results)


def allgather(
    tensor: torch.Tensor,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    gradients: str | None = None,
) -> torch.Tensor:
    """Rows (dimension 0) of all members in order of rank; their numbers may differ, other dimensions not. Differentiable."""
    if _wants(tensor):
        differentiable: torch.Tensor = _Allgather.apply(tensor, name, process_set, _is_exact(gradients))
        return differentiable
    result: torch.Tensor = ops.allgather(tensor, name, process_set, URGENT).wait()
    return result


def grouped_allgather(
    tensors: Group,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    gradients: str | None = None,
) -> Group:
    """allgather of several tensors, all or nothing. Differentiable."""
    check_one_device(tensors)
    if _wants(*tensors):
        return _like(tensors, _GroupedAllgather.apply(name, process_set, _is_exact(gradients), *tensors))
    results: Group = ops.grouped_allgather(tensors, name, process_set, URGENT).wait()
    return results


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    gradients: str | None = None,
) -> torch.Tensor:
    """root_rank's (a rank of the world) tensor on all members, as a new tensor. Differentiable."""
    if _wants(tensor):
        differentiable: torch.Tensor = _Broadcast.apply(tensor, root_rank, name, process_set, _is_exact(gradients))
        return differentiable
    result: torch.Tensor = ops.broadcast(tensor, root_rank, name, process_set, False, URGENT).wait()
    return result


def alltoall(
    tensor: torch.Tensor,
    splits: Splits = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Sends splits[i] rows to member i. The rows received; with splits given: (rows, received_splits). Differentiable."""
    numbers, make_splits = read_splits(splits)
    if _wants(tensor):
        output, received = _Alltoall.apply(tensor, numbers, make_splits, name, process_set)
    else:
        output, received = ops.alltoall(tensor, numbers, make_splits, name, process_set, URGENT).wait()
    return output if splits is None else (output, received)


def reducescatter(
    tensor: torch.Tensor,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    gradients: str | None = None,
) -> torch.Tensor:
    """This member's rows of the reduction: of n rows n // p, the first n % p members one more. Differentiable."""
    op = check_scatter_op(op)
    compressed, context = compression.compress(tensor)
    if _wants(compressed):
        exact = _is_exact(gradients)
        result = _Reducescatter.apply(name, op, prescale_factor, postscale_factor, process_set, exact, compressed)
    else:
        pending = ops.reducescatter(compressed, name, op, prescale_factor, postscale_factor, process_set, URGENT)
        result = pending.wait()
    decompressed: torch.Tensor = compression.decompress(result, context)
    return decompressed


def grouped_reducescatter(
    tensors: Group,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    gradients: str | None = None,
) -> Group:
    """reducescatter of several tensors, all or nothing. Differentiable."""
    op = check_scatter_op(op)
    check_one_device(tensors)
    pairs = [compression.compress(tensor) for tensor in tensors]
    compressed = [pair[0] for pair in pairs]
    if _wants(*compressed):
        exact = _is_exact(gradients)
        results = _GroupedReducescatter.apply(
            name, op, prescale_factor, postscale_factor, process_set, exact, *compressed
        )
    else:
        pending = ops.grouped_reducescatter(
            compressed, name, op, prescale_factor, postscale_factor, process_set, URGENT
        )
        results = pending.wait()
    return _like(tensors, [compression.decompress(result, pair[1]) for result, pair in zip(results, pairs)])
