"""DistributedOptimizer: gradients are reduced while backward still runs, and the given optimizer steps with the result."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from halay import averaging, errors
from halay._engine import require
from halay._handle import Pending, wait_all
from halay.averaging import Average, choose_op
from halay.compression import Compressor
from halay.ops import REPEATABLE, URGENT
from halay.process_sets import ProcessSet, global_process_set
from halay.reducer import Reducer, split_list
from halay.torch.compression import Compression
from halay.torch.functions import allgather_object, broadcast_object
from halay.torch.ops import ops, sparse_allreduce_async

_STEP_WARNING = (
    "optimizer.step() called without optimizer.skip_synchronize() context after optimizer.synchronize(). This can cause "
    "training slowdown. You may want to consider using optimizer.skip_synchronize() context if you use "
    "optimizer.synchronize() in your code."
)


class _Wait:
    """One reduction in flight: the parameters whose gradients it carries, and how they come back."""

    def __init__(
        self,
        indices: list[int],
        pending: Pending | None,
        contexts: list[Any],
        sparse: Callable[[], torch.Tensor] | None = None,
    ) -> None:
        self.indices, self.pending, self.contexts, self.sparse = indices, pending, contexts, sparse


class _DistributedOptimizer:
    """Mixed in front of the user's optimizer class; the instance takes over the given optimizer's attributes and state."""

    param_groups: list[dict[str, Any]]
    _halay: _Reduction

    # ---- reduction ----

    def synchronize(self) -> None:
        """Waits until every gradient is reduced; parameters without one contribute (and get) zeros."""
        self._halay.synchronize()

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """In this context step() does not synchronize; call synchronize() before it.

        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with optimizer.skip_synchronize():
            optimizer.step()
        """
        self._halay.should_synchronize = False
        try:
            yield
        finally:
            self._halay.should_synchronize = True

    def set_backward_passes_per_step(self, passes: int) -> None:
        """From now on gradients are summed over this many backward passes before they are reduced."""
        if passes <= 0:
            raise ValueError("backward_passes_per_step must be > 0")
        self._halay.set_passes(passes)

    @property
    def backward_passes_per_step(self) -> int:
        return self._halay.reducer.passes

    @property
    def _parameter_names(self) -> dict[torch.Tensor, str]:
        return dict(zip(self._halay.parameters, self._halay.names))

    # ---- the optimizer's own functions ----

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Reduces the gradients, then steps. A closure's gradients are reduced each time it is called; its loss is averaged."""
        reduction = self._halay
        if reduction.should_synchronize:
            if reduction.synchronized:
                warnings.warn(_STEP_WARNING, stacklevel=2)
            if closure is None or reduction.reducer.any_sent:
                reduction.synchronize()
            if closure is not None:
                closure = reduction.wrap_closure(closure)
        reduction.synchronized = False
        result = super().step(closure)  # type: ignore[misc]  # the user's optimizer comes next in the order of classes
        reduction.synchronized = False
        return result

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients. Raises AssertionError while they are being reduced."""
        if self._halay.waits:
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
                "optimizer.synchronize(). This is prohibited as it can cause a race condition."
            )
        super().zero_grad(set_to_none)  # type: ignore[misc]  # as above

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Loads a state; what was in flight is waited for and forgotten."""
        self._halay.drain()
        return super().load_state_dict(*args, **kwargs)  # type: ignore[misc]  # as above

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters; their gradients are reduced as the others'."""
        super().add_param_group(param_group)  # type: ignore[misc]  # as above
        self._halay.adopt_new_parameters()


class _Reduction:
    """All that DistributedOptimizer adds to an optimizer."""

    def __init__(
        self,
        optimizer: Any,
        named_parameters: list[tuple[str, torch.Tensor]],
        compression: type[Compressor],
        passes: int,
        op: int,
        predivide: float,
        groups: int | Sequence[Sequence[torch.Tensor]] | None,
        sparse_as_dense: bool,
        process_set: ProcessSet,
    ) -> None:
        self.optimizer = optimizer
        self.compression, self.op, self.process_set = compression, op, process_set
        self.prescale, self.postscale = averaging.predivide(op, predivide)
        self.sparse_as_dense = sparse_as_dense
        self.should_synchronize, self.synchronized = True, False
        self.parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self.names = self._name_parameters(named_parameters)
        self._index = {parameter: index for index, parameter in enumerate(self.parameters)}
        self._hooks: dict[int, Any] = {}
        self.waits: list[_Wait] = []
        self._sparse: set[int] = set()  # parameters that had a sparse gradient
        self._sparse_agreed = False
        elastic = os.environ.get("HALAY_ELASTIC", os.environ.get("HOROVOD_ELASTIC", "0")) == "1"
        self.active = bool(process_set.included()) and ((process_set.size() or 1) > 1 or elastic)
        self.reducer = Reducer(passes, self._make_groups(groups) if self.active else [])
        if self.active:
            self._install_hooks()

    def _name_parameters(self, named: list[tuple[str, torch.Tensor]]) -> list[str]:
        if any(not isinstance(each, tuple) for each in named):
            raise ValueError(
                "named_parameters should be a sequence of tuples (name, parameter), usually produced by "
                "model.named_parameters()."
            )
        names = [name for name, _ in named]
        duplicates = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) != len(names) else []
        if duplicates:
            raise ValueError(
                "Parameter names in named_parameters must be unique. Found duplicates: " + ", ".join(duplicates)
            )
        if not named:
            return [
                f"allreduce.noname.{i}.{j}"
                for i, group in enumerate(self.optimizer.param_groups)
                for j, _ in enumerate(group["params"])
            ]
        by_parameter = {parameter: name for name, parameter in named}
        unnamed = sum(1 for parameter in self.parameters if parameter not in by_parameter)
        if unnamed:
            raise ValueError(
                "named_parameters was specified, but one or more model parameters were not named. Python object ids of "
                f"{unnamed} parameter(s) are not in it."
            )
        return [by_parameter[parameter] for parameter in self.parameters]

    def _make_groups(self, groups: int | Sequence[Sequence[torch.Tensor]] | None) -> list[list[int]]:
        if groups is None:
            return []
        trained = [index for index, parameter in enumerate(self.parameters) if parameter.requires_grad]
        # named_parameters may come in another order on another rank: rank 0's counts
        order = broadcast_object([self.names[index] for index in trained], self._root(), process_set=self.process_set)
        place = {name: index for index, name in enumerate(self.names)}
        ordered = [place[name] for name in order if name in place]
        if isinstance(groups, int):
            return split_list(ordered, groups)
        rank_in_order = {index: number for number, index in enumerate(ordered)}
        return [
            sorted((self._index[tensor] for tensor in group if tensor.requires_grad), key=rank_in_order.__getitem__)
            for group in groups
        ]

    def _root(self) -> int:
        return require().sets[self.process_set.process_set_id or 0].ranks[0]

    # ---- hooks ----

    def _install_hooks(self) -> list[int]:
        """Hooks every parameter that wants a gradient and has no hook yet."""
        fresh = [
            index
            for index, parameter in enumerate(self.parameters)
            if index not in self._hooks and parameter.requires_grad and parameter.is_leaf
        ]
        for index in fresh:
            self.reducer.add(index)
            self._hooks[index] = self.parameters[index].register_post_accumulate_grad_hook(self._make_hook(index))
        return fresh

    def _make_hook(self, index: int) -> Callable[[torch.Tensor], None]:
        def hook(parameter: torch.Tensor) -> None:
            for part in self._split(self.reducer.passed(index)):
                self._send(part)

        return hook

    def adopt_new_parameters(self) -> None:
        for number, group in enumerate(self.optimizer.param_groups):
            for position, parameter in enumerate(group["params"]):
                if parameter not in self._index:
                    self._index[parameter] = len(self.parameters)
                    self.parameters.append(parameter)
                    self.names.append(f"allreduce.noname.{number}.{position}")
        if self.active:
            self._install_hooks()

    def set_passes(self, passes: int) -> None:
        self.reducer.passes = passes
        self.reducer.restart()

    # ---- sending ----

    def _split(self, indices: list[int]) -> list[list[int]]:
        """Sparse gradients cannot travel in a group of dense ones."""
        if len(indices) <= 1:
            return [indices] if indices else []
        sparse = [] if self.sparse_as_dense else [index for index in indices if self._is_sparse(index)]
        dense = [index for index in indices if index not in sparse]
        return ([dense] if dense else []) + [[index] for index in sparse]

    def _is_sparse(self, index: int) -> bool:
        gradient = self.parameters[index].grad
        return index in self._sparse if gradient is None else gradient.is_sparse

    def _gradient(self, index: int) -> torch.Tensor:
        """The gradient to be sent: zeros where there is none, and never one that autograd still needs."""
        parameter = self.parameters[index]
        if parameter.grad is None:
            if self._is_sparse(index):
                empty = torch.zeros((parameter.dim() and 1, 0), dtype=torch.int64, device=parameter.device)
                values = parameter.detach().new_zeros((0, *parameter.shape[1:]))
                parameter.grad = torch.sparse_coo_tensor(empty, values, parameter.shape, check_invariants=False)
            else:
                parameter.grad = torch.zeros_like(parameter)
        elif parameter.grad.requires_grad:  # backward(create_graph=True)
            parameter.grad = parameter.grad.detach().clone()
        gradient: torch.Tensor = parameter.grad
        if gradient.is_sparse:
            self._sparse.add(index)
        return gradient

    def _send(self, indices: list[int]) -> None:
        gradients = [self._gradient(index) for index in indices]
        name = self.names[indices[0]]
        if len(indices) == 1 and gradients[0].is_sparse and not self.sparse_as_dense:
            wait = sparse_allreduce_async(gradients[0], name, self.op, self.process_set)
            self.waits.append(_Wait(indices, None, [None], wait))
            return
        dense = [gradient.to_dense() if gradient.is_sparse else gradient for gradient in gradients]
        pairs = [self.compression.compress(gradient) for gradient in dense]
        tensors, contexts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        terms = (self.op, self.prescale, self.postscale, self.process_set, True, REPEATABLE)
        if len(indices) == 1:
            pending = ops.allreduce(tensors[0], name, *terms)
        else:
            pending = ops.grouped_allreduce(tensors, name, *terms)
        self.waits.append(_Wait(indices, pending, contexts))

    def synchronize(self) -> None:
        if not self.active:
            self.synchronized = True
            return
        self._install_hooks()  # parameters that were frozen when the optimizer was wrapped
        self._agree_on_sparse()
        for part in self.reducer.flush():
            for piece in self._split(part):
                self._send(piece)
        waits, self.waits = self.waits, []
        try:
            results = wait_all([wait.pending for wait in waits if wait.pending is not None])
            with torch.no_grad():
                self._write(waits, iter(results))
        finally:
            self.reducer.restart()
        self.synchronized = True

    def _agree_on_sparse(self) -> None:
        """Once: a rank that has no gradient for an embedding must learn that others have a sparse one."""
        if self._sparse_agreed:
            return
        self._sparse_agreed = True
        own = [index for index in self.reducer.known if self._is_sparse(index)]
        for indices in allgather_object(own, process_set=self.process_set):
            self._sparse.update(indices)

    def _write(self, waits: list[_Wait], results: Iterator[Any]) -> None:
        for wait in waits:
            if wait.sparse is not None:
                self.parameters[wait.indices[0]].grad = wait.sparse()
                continue
            result = next(results)
            reduced = [result] if isinstance(result, torch.Tensor) else result
            for index, tensor, context in zip(wait.indices, reduced, wait.contexts):
                gradient = self.parameters[index].grad
                assert gradient is not None
                output = self.compression.decompress(tensor, context)
                if gradient.is_sparse:
                    self.parameters[index].grad = output.to_sparse(gradient.sparse_dim())
                elif output is not gradient:
                    gradient.copy_(output)

    def wrap_closure(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        """The closure, followed by the reduction of its gradients and the averaging of its loss."""

        def reduced() -> Any:
            self.synchronized = False
            with torch.enable_grad():
                loss = closure()
            if not self.synchronized:
                self.synchronize()
            if not self.active or loss is None:
                return loss
            value = (
                loss.detach().clone()
                if isinstance(loss, torch.Tensor)
                else torch.tensor(float(loss), dtype=torch.float64)
            )
            average = ops.allreduce(
                value, "closure.loss", Average, 1.0, 1.0, self.process_set, True, REPEATABLE | URGENT
            ).wait()
            return average if isinstance(loss, torch.Tensor) else float(average)

        return reduced

    def drain(self) -> None:
        """Waits for what is in flight and forgets it, also if it failed."""
        waits, self.waits = self.waits, []
        for wait in waits:
            with contextlib.suppress(errors.HorovodInternalError):
                if wait.sparse is not None:
                    wait.sparse()
                elif wait.pending is not None:
                    wait.pending.wait()
        self.reducer.restart()
        self.synchronized = False


def _check_groups(groups: Any, num_groups: int) -> Any:
    if num_groups != 0:
        warnings.warn(
            "Parameter `num_groups` has been replaced by `groups` and will be removed.",
            DeprecationWarning,
            stacklevel=3,
        )
        if groups is None:
            groups = num_groups
    if groups is None:
        return None
    if isinstance(groups, int):
        if isinstance(groups, bool) or groups <= 0:
            raise ValueError("groups should be a positive integer or a list of list of torch.Tensor.")
        return groups
    if not isinstance(groups, list) or not all(
        isinstance(group, list) and all(isinstance(tensor, torch.Tensor) for tensor in group) for group in groups
    ):
        raise ValueError("groups should be a positive integer or a list of list of torch.Tensor.")
    seen: set[torch.Tensor] = set()
    for tensor in (tensor for group in groups for tensor in group):
        if tensor in seen:
            raise ValueError("A parameter can only appear once in groups.")
        seen.add(tensor)
    return groups


def DistributedOptimizer(  # Horovod's name
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | list[list[torch.Tensor]] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """An optimizer of the same class (and class name) that reduces gradients over the members before it steps.

    It takes over the given optimizer's groups, state and options; use the returned one from then on. Each gradient is sent
    as soon as it is accumulated, while backward goes on; step() waits for all.

    named_parameters: as model.named_parameters(); names in messages and timeline. backward_passes_per_step: gradients are
    summed over so many passes first. op: Average or Sum. gradient_predivide_factor f: averages as 1/f before the sum and
    f / size after it. groups: number of groups, or lists of parameters that are sent together. sparse_as_dense: sparse
    gradients travel as dense ones.

    Raises ValueError for wrong arguments, UnsupportedError for Adasum; backward() raises AssertionError if it runs more
    often than backward_passes_per_step between two steps.
    """
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    choose_op(op, None)
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    groups = _check_groups(groups, num_groups)
    named = list(named_parameters) if named_parameters is not None else []
    require()
    kind = type(optimizer)
    distributed: Any = object.__new__(type(kind.__name__, (_DistributedOptimizer, kind), {}))
    distributed.__dict__.update(optimizer.__dict__)
    if distributed.__dict__.pop("step", None) is not None:  # a scheduler counts the steps of the given optimizer
        optimizer._opt_called = True  # type: ignore[attr-defined]  # else that scheduler warns that nobody steps
    distributed._halay = _Reduction(
        distributed,
        named,
        compression,
        backward_passes_per_step,
        op,
        gradient_predivide_factor,
        groups,
        sparse_as_dense,
        process_set,
    )
    return distributed
