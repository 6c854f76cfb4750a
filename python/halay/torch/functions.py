"""State that must be equal on all ranks: parameters, optimizers, objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from halay._engine import require
from halay._handle import wait_all
from halay.objects import Objects
from halay.ops import REPEATABLE
from halay.process_sets import ProcessSet, global_process_set
from halay.torch.ops import ops

_objects = Objects("torch.")


def broadcast_parameters(params: Any, root_rank: int, process_set: ProcessSet = global_process_set) -> None:
    """Gives root_rank's values to all members, in place.

    params: a dict (as state_dict(); sent in order of its keys), or a list of tensors or of (name, tensor).
    Raises ValueError for other things and for entries that are no tensors (None is skipped).
    """
    if isinstance(params, Mapping):
        named = sorted(params.items())
    elif isinstance(params, (list, tuple)) or hasattr(params, "__next__"):
        named = [each if isinstance(each, tuple) else (f"parameter.{index}", each) for index, each in enumerate(params)]
    else:
        raise ValueError(f"invalid params of type: {type(params)}")
    for name, tensor in named:
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            raise ValueError(
                f"broadcast_parameters: {name} is no tensor but {type(tensor).__name__}; use broadcast_object"
            )
    wait_all([
        ops.broadcast(tensor.detach(), root_rank, str(name), process_set, True, REPEATABLE)
        for name, tensor in named
        if tensor is not None
    ])  # fmt: skip


class _Placeholder:
    """Stands for a tensor in the description of a state."""

    def __init__(self, index: int, tensor: torch.Tensor) -> None:
        self.index, self.shape, self.dtype = index, tuple(tensor.shape), tensor.dtype

    def room(self) -> torch.Tensor:
        return torch.empty(self.shape, dtype=self.dtype)


def _describe(value: Any, tensors: list[torch.Tensor]) -> Any:
    """The value with placeholders for its tensors, which are appended to `tensors`."""
    if isinstance(value, torch.Tensor):
        dense = value.detach().to_dense() if value.layout is not torch.strided else value.detach()
        tensors.append(dense)
        return _Placeholder(len(tensors) - 1, dense)
    if isinstance(value, dict):
        return {key: _describe(each, tensors) for key, each in value.items()}
    if isinstance(value, list):
        return [_describe(each, tensors) for each in value]
    if type(value) is tuple:
        return tuple(_describe(each, tensors) for each in value)
    return value


def _fill(value: Any, tensors: dict[int, torch.Tensor]) -> Any:
    """The value with tensors for its placeholders."""
    if isinstance(value, _Placeholder):
        tensors[value.index] = value.room()
        return tensors[value.index]
    if isinstance(value, dict):
        return {key: _fill(each, tensors) for key, each in value.items()}
    if isinstance(value, list):
        return [_fill(each, tensors) for each in value]
    if type(value) is tuple:
        return tuple(_fill(each, tensors) for each in value)
    return value


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, model: torch.nn.Module | None = None,
    process_set: ProcessSet = global_process_set,
) -> None:  # fmt: skip
    """Gives root_rank's optimizer state and options to all members.

    The root describes its state, the tensors follow, the others load it: no step is run, the root is not touched, Python
    types are kept. Where this rank had no state, parameters without a gradient get one of zeros, as Horovod leaves them.
    `model` is accepted for Horovod's sake. Raises ValueError for LBFGS.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    is_root = require().world.rank == root_rank
    was_empty = len(optimizer.state) == 0
    outgoing: list[torch.Tensor] = []
    description = _describe(optimizer.state_dict(), outgoing) if is_root else None
    description = _objects.broadcast_object(description, root_rank, "optimizer_state", process_set)
    tensors = dict(enumerate(outgoing))
    state = None if is_root else _fill(description, tensors)
    wait_all([
        ops.broadcast(tensors[index], root_rank, f"optimizer_state.{index}", process_set, not is_root, REPEATABLE)
        for index in sorted(tensors)
    ])  # fmt: skip
    if state is not None:
        optimizer.load_state_dict(state)
    if was_empty:
        _give_zero_gradients(optimizer)


def _give_zero_gradients(optimizer: torch.optim.Optimizer) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.requires_grad and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)


def broadcast_object(
    obj: Any, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """root_rank's object on all members; the root gets its own back. Pickled by cloudpickle if it is there."""
    return _objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """The objects of all members, in order of rank."""
    return _objects.allgather_object(obj, name, process_set)


__all__ = ["allgather_object", "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters"]
