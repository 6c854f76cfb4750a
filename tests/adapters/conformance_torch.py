"""What only PyTorch has: gradients of operations, compression, the optimizer, broadcasting of state.

Part of conformance.py; every expectation holds for any number of ranks.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any, Callable

import torch

import halay
import halay.torch as hvd


class TorchCases:
    """Each method test_* is a case."""

    def __init__(self) -> None:
        self.rank, self.size = hvd.rank(), hvd.size()

    def total(self, values: Callable[[int], float]) -> float:
        return float(sum(values(rank) for rank in range(self.size)))

    # ---- gradients: loss on rank r is (r + 1) * sum(op(x)) ----

    def gradient(self, op: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        x = x.clone().requires_grad_()
        ((self.rank + 1) * op(x).sum()).backward()
        assert x.grad is not None
        return x.grad

    def test_gradient_of_allreduce(self) -> None:
        x, everybody = torch.ones(3), self.total(lambda rank: rank + 1)
        assert torch.equal(self.gradient(lambda t: hvd.allreduce(t, op=hvd.Sum), x), torch.full((3,), everybody))
        average = self.gradient(lambda t: hvd.allreduce(t, op=hvd.Average), x)
        assert torch.allclose(average, torch.full((3,), everybody / self.size))
        scaled = self.gradient(lambda t: hvd.allreduce(t, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5), x)
        assert torch.equal(scaled, torch.full((3,), everybody))
        grouped = self.gradient(lambda t: hvd.grouped_allreduce([t, 2 * t], op=hvd.Sum)[1], x)
        assert torch.equal(grouped, torch.full((3,), 2 * everybody))

    def test_gradient_of_allgather(self) -> None:
        everybody = self.total(lambda rank: rank + 1)
        x = torch.ones(self.rank + 1, 2)
        assert torch.allclose(self.gradient(hvd.allgather, x), torch.full_like(x, everybody / self.size))
        exact = self.gradient(lambda t: hvd.allgather(t, gradients="exact"), x)
        assert torch.equal(exact, torch.full_like(x, everybody))
        grouped = self.gradient(lambda t: torch.cat(list(hvd.grouped_allgather([t, t]))), x)
        assert torch.allclose(grouped, torch.full_like(x, 2 * everybody / self.size))

    def test_gradient_of_broadcast(self) -> None:
        root, everybody = self.size - 1, self.total(lambda rank: rank + 1)
        expected = everybody if self.rank == root else 0.0
        averaged = self.gradient(lambda t: hvd.broadcast(t, root), torch.ones(4))
        assert torch.allclose(averaged, torch.full((4,), expected / self.size))
        exact = self.gradient(lambda t: hvd.broadcast(t, root, gradients="exact"), torch.ones(4))
        assert torch.equal(exact, torch.full((4,), expected))

    def test_gradient_of_alltoall(self) -> None:
        """Rows go back to where they came from: rank i scaled the rows it received by i + 1."""
        splits = [to + 1 for to in range(self.size)]
        x = torch.ones(sum(splits) + 1, 2)
        found = self.gradient(lambda t: hvd.alltoall(t, splits=torch.tensor(splits, dtype=torch.int32))[0], x)
        expected = torch.cat(
            [torch.full((rows, 2), float(to + 1)) for to, rows in enumerate(splits)] + [torch.zeros(1, 2)]
        )
        assert torch.equal(found, expected)
        x = torch.ones(self.size, 1)
        assert torch.equal(self.gradient(hvd.alltoall, x).flatten(), torch.arange(1.0, self.size + 1))

    def test_gradient_of_reducescatter(self) -> None:
        """Each rank's rows carry its own factor; Horovod multiplies Sum's gradient by the size."""
        x = torch.ones(2 * self.size, 3)
        rows = torch.arange(1.0, self.size + 1).repeat_interleave(2).unsqueeze(1).expand_as(x)
        assert torch.equal(self.gradient(lambda t: hvd.reducescatter(t, op=hvd.Sum), x), rows * self.size)
        assert torch.equal(self.gradient(lambda t: hvd.reducescatter(t, op=hvd.Average), x), rows)
        exact = self.gradient(lambda t: hvd.reducescatter(t, op=hvd.Average, gradients="exact"), x)
        assert torch.allclose(exact, rows / self.size)
        assert torch.equal(self.gradient(lambda t: hvd.reducescatter(t, op=hvd.Sum, gradients="exact"), x), rows)
        grouped = self.gradient(lambda t: torch.cat(list(hvd.grouped_reducescatter([t, t], op=hvd.Average))), x)
        assert torch.equal(grouped, 2 * rows)

    def test_incoming_gradient_is_not_changed(self) -> None:
        x = torch.ones(self.size, requires_grad=True)
        y = hvd.reducescatter(x, op=hvd.Sum, postscale_factor=3.0)
        incoming = torch.ones_like(y)
        y.backward(incoming)
        assert torch.equal(incoming, torch.ones_like(y))

    def test_exact_gradients_of_extrema_and_product(self) -> None:
        everybody = self.total(lambda rank: rank + 1)
        x = torch.tensor([float(self.rank), 1.0])
        found = self.gradient(lambda t: hvd.allreduce(t, op=hvd.Max, gradients="exact"), x)
        assert torch.allclose(
            found, torch.tensor([everybody if self.rank == self.size - 1 else 0.0, everybody / self.size])
        )
        x = torch.tensor([float(self.rank), 2.0])
        found = self.gradient(lambda t: hvd.allreduce(t, op=hvd.Product, gradients="exact"), x)
        others = 1.0
        for rank in range(self.size):
            others *= 1.0 if rank == self.rank else rank
        assert torch.allclose(found, everybody * torch.tensor([others, 2.0 ** (self.size - 1)]))

    def test_no_graph_without_requires_grad(self) -> None:
        assert not hvd.allreduce(torch.ones(2)).requires_grad
        with torch.no_grad():
            assert not hvd.allgather(torch.ones(2, requires_grad=True)).requires_grad

    # ---- types of splits, compression, sparse ----

    def test_received_splits_follow_splits(self) -> None:
        splits = torch.ones(self.size, dtype=torch.int32)
        _, received = hvd.alltoall(torch.ones(self.size), splits)
        assert received.dtype == torch.int32 and received.tolist() == [1] * self.size
        output, received = hvd.synchronize(hvd.alltoall_async(torch.ones(self.size)))
        assert received.tolist() == [1] * self.size and output.numel() == self.size

    def test_compression(self) -> None:
        x = torch.full((5,), 1.0 + self.rank)
        for compression in (hvd.Compression.fp16, hvd.Compression.bf16, hvd.Compression.none):
            result = hvd.allreduce(x, op=hvd.Sum, compression=compression)
            assert result.dtype == torch.float32 and torch.equal(
                result, torch.full((5,), self.total(lambda rank: rank + 1))
            )
        integers = hvd.allreduce(torch.ones(3, dtype=torch.int32), op=hvd.Sum, compression=hvd.Compression.fp16)
        assert integers.dtype == torch.int32 and integers.tolist() == [self.size] * 3
        grouped = hvd.grouped_allreduce([x, x], op=hvd.Sum, compression=hvd.Compression.fp16)
        assert all(each.dtype == torch.float32 for each in grouped)

    def test_sparse_allreduce(self) -> None:
        indices = torch.tensor([[0, self.rank + 1, 0]])
        x = torch.sparse_coo_tensor(indices, torch.ones(3, 2), (self.size + 1, 2), check_invariants=True)
        result = hvd.sparse_allreduce_async(x, "sparse", hvd.Sum)()
        expected = hvd.allreduce(x.to_dense(), op=hvd.Sum)
        assert result.is_sparse and torch.equal(result.to_dense(), expected)
        result = hvd.sparse_allreduce_async(x, "sparse", hvd.Average)()
        assert torch.allclose(result.to_dense(), expected / self.size)
        _expect(ValueError, lambda: hvd.allreduce(x))

    # ---- the optimizer ----

    def model(self) -> torch.nn.Module:
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

    def batch(self, rank: int, step: int) -> torch.Tensor:
        return torch.randn(3, 4, generator=torch.Generator().manual_seed(100 * step + rank))

    def reference(self, make: Callable[[Any], torch.optim.Optimizer], steps: int, passes: int = 1) -> torch.nn.Module:
        """One process that sees everybody's batches."""
        model = self.model()
        optimizer = make(model.parameters())
        for step in range(steps):
            optimizer.zero_grad()
            for inner in range(passes):
                losses = [model(self.batch(rank, step * passes + inner)).square().mean() for rank in range(self.size)]
                (sum(losses) / self.size).backward()  # type: ignore[union-attr]  # a tensor, as there is a rank
            optimizer.step()
        return model

    def trained(
        self, make: Callable[[Any], torch.optim.Optimizer], steps: int, passes: int = 1, **options: Any
    ) -> torch.nn.Module:
        model = self.model()
        named = list(model.named_parameters())
        if "groups" in options and isinstance(options["groups"], str):
            options["groups"] = [[named[0][1], named[3][1]]]
        optimizer = hvd.DistributedOptimizer(
            make(model.parameters()), named, backward_passes_per_step=passes, **options
        )
        for step in range(steps):
            optimizer.zero_grad()
            for inner in range(passes):
                model(self.batch(self.rank, step * passes + inner)).square().mean().backward()
            optimizer.step()
        return model

    def compare(self, left: torch.nn.Module, right: torch.nn.Module, tolerance: float = 1e-6) -> None:
        for ours, theirs in zip(left.parameters(), right.parameters()):
            assert torch.allclose(ours, theirs, atol=tolerance), (ours - theirs).abs().max()

    def test_optimizer_equals_one_process(self) -> None:
        makers: list[Callable[[Any], torch.optim.Optimizer]] = [
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
            lambda p: torch.optim.Adam(p, lr=0.01),
            lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
        ]
        for make in makers:
            self.compare(self.trained(make, 4), self.reference(make, 4), 1e-5)

    def test_optimizer_options(self) -> None:
        def make(parameters: Any) -> torch.optim.Optimizer:
            return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

        expected = self.reference(make, 3)
        for options in (
            {"gradient_predivide_factor": 4.0},
            {"groups": 2},
            {"groups": 9},
            {"groups": "pairs"},
            {"groups": 2, "gradient_predivide_factor": 2.0},
            {"compression": hvd.Compression.none},
        ):
            self.compare(self.trained(make, 3, **options), expected)  # type: ignore[arg-type]  # options of several types
        self.compare(self.trained(make, 3, compression=hvd.Compression.fp16), expected, 1e-2)
        self.compare(self.trained(make, 3, passes=3), self.reference(make, 3, passes=3))

    def test_optimizer_is_of_the_same_class(self) -> None:
        model = self.model()
        base = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        model(self.batch(0, 0)).sum().backward()
        base.step()
        optimizer = hvd.DistributedOptimizer(base, model.named_parameters())
        assert type(optimizer).__name__ == "SGD" and isinstance(optimizer, torch.optim.SGD)
        assert len(optimizer.state) == len(list(model.parameters())), "the given optimizer's state was lost"
        assert sorted(optimizer._parameter_names.values()) == ["0.bias", "0.weight", "2.bias", "2.weight"]
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
        optimizer.zero_grad()
        model(self.batch(0, 1)).sum().backward()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer.step()
            scheduler.step()
        assert abs(optimizer.param_groups[0]["lr"] - 0.05) < 1e-12
        names = hvd.allgather_object(sorted(hvd.DistributedOptimizer(base)._parameter_names.values()))
        assert all(each == names[0] for each in names)

    def test_optimizer_rejects_wrong_arguments(self) -> None:
        model = self.model()
        base = torch.optim.SGD(model.parameters(), lr=0.1)
        named = list(model.named_parameters())
        for options in (
            {"gradient_predivide_factor": 2.0, "op": hvd.Sum},
            {"backward_passes_per_step": 0},
            {"named_parameters": [parameter for _, parameter in named]},
            {"named_parameters": named + [("0.bias", named[0][1])]},
            {"named_parameters": named[:2]},
            {"groups": 0},
            {"groups": "ab"},
            {"groups": [[named[0][1]], [named[0][1]]]},
        ):
            _expect(ValueError, lambda options=options: hvd.DistributedOptimizer(base, **options))  # type: ignore[misc,arg-type]  # bound now
        _expect(halay.UnsupportedError, lambda: hvd.DistributedOptimizer(base, op=hvd.Adasum))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            hvd.DistributedOptimizer(base, named, num_groups=2)
        assert any(each.category is DeprecationWarning for each in caught)

    def test_skip_synchronize(self) -> None:
        def make(parameters: Any) -> torch.optim.Optimizer:
            return torch.optim.SGD(parameters, lr=0.1)

        model = self.model()
        optimizer = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters())
        model(self.batch(self.rank, 0)).square().mean().backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        with optimizer.skip_synchronize():
            optimizer.step()
        self.compare(model, self.reference(make, 1))
        optimizer.zero_grad()
        model(self.batch(self.rank, 1)).square().mean().backward()
        optimizer.synchronize()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            optimizer.step()
        assert any(
            "optimizer.step() called without optimizer.skip_synchronize()" in str(each.message) for each in caught
        )
        self.compare(model, self.reference(make, 2))

    def test_too_many_backwards(self) -> None:
        if self.size == 1:
            return
        model = self.model()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
        model(self.batch(self.rank, 0)).sum().backward()
        error = _expect(AssertionError, lambda: model(self.batch(self.rank, 0)).sum().backward())
        assert "backward_passes_per_step" in str(error)
        _expect(AssertionError, optimizer.zero_grad)
        optimizer.step()
        optimizer.zero_grad()
        optimizer.zero_grad(set_to_none=False)
        optimizer.set_backward_passes_per_step(2)
        for _ in range(2):
            model(self.batch(self.rank, 0)).sum().backward()
        optimizer.step()

    def test_unfinished_accumulation(self) -> None:
        """An epoch may end in the middle of an accumulation; the next begins anew."""
        model = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), backward_passes_per_step=2)
        for factor in (1.0 + 4 * self.rank, 3.0 + 4 * self.rank):
            (model.weight.sum() * factor).backward()
        optimizer.step()
        expected = -self.total(lambda rank: 4 + 8 * rank) / self.size
        assert abs(model.weight.item() - expected) < 1e-6
        optimizer.zero_grad()
        model.weight.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        for _ in range(2):
            model.weight.sum().backward()
        optimizer.step()

    def test_different_control_flow(self) -> None:
        """A parameter that only some ranks use gets zeros from the others."""
        used, sometimes = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([used, sometimes], lr=1.0))
        loss = used.sum() + (sometimes.sum() if self.rank == 0 else 0.0)
        loss.backward()
        optimizer.step()
        assert torch.allclose(used, torch.zeros(2), atol=1e-6)
        assert torch.allclose(sometimes, torch.full((3,), 1.0 - 1.0 / self.size))

    def test_toggled_requires_grad(self) -> None:
        one, two = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
        frozen = torch.nn.Parameter(torch.ones(1), requires_grad=False)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([one, two, frozen], lr=1.0))
        for step in range(4):
            one.requires_grad_(step % 2 == 0)
            two.requires_grad_(step % 2 == 1)
            frozen.requires_grad_(step >= 2)
            optimizer.zero_grad()
            (self.rank * (one.sum() + two.sum() + frozen.sum())).backward()
            optimizer.step()
            for parameter in (one, two, frozen):
                gathered = hvd.allgather(parameter.detach())
                assert torch.equal(gathered, gathered[0].expand_as(gathered)), f"step {step}: ranks differ"
        assert frozen.item() != 1.0 or self.size == 1

    def test_two_optimizers_with_equal_names(self) -> None:
        models = [self.model(), self.model()]
        optimizers = [
            hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
            for model in models
        ]
        for model in models:
            model(self.batch(self.rank, 0)).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
        for model in models:
            self.compare(model, self.reference(lambda p: torch.optim.SGD(p, lr=0.1), 1))

    def test_closures(self) -> None:
        """SGD and LBFGS reduce the gradients that their closure computes, so ranks stay equal."""
        for make in (lambda p: torch.optim.SGD(p, lr=0.1), lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=4)):
            model = self.model()
            optimizer = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters())
            twin = self.model()
            reference = make(twin.parameters())
            for step in range(2):

                def closure(step: int = step, model: Any = model, optimizer: Any = optimizer) -> torch.Tensor:
                    optimizer.zero_grad()
                    loss = model(self.batch(self.rank, step)).square().mean()
                    loss.backward()
                    return loss

                def reference_closure(step: int = step, twin: Any = twin, reference: Any = reference) -> torch.Tensor:
                    reference.zero_grad()
                    loss = sum(twin(self.batch(rank, step)).square().mean() for rank in range(self.size)) / self.size
                    loss.backward()
                    return loss

                found = optimizer.step(closure)
                expected = reference.step(reference_closure)
                assert abs(found.item() - expected.item()) < 1e-5
            self.compare(model, twin, 1e-5)

    def test_sparse_gradients(self) -> None:
        for as_dense in (False, True):
            torch.manual_seed(2)
            table = torch.nn.Embedding(10, 3, sparse=True)
            expected = table.weight.detach().clone()
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD(table.parameters(), lr=1.0), sparse_as_dense=as_dense)
            for step in range(2):
                optimizer.zero_grad()
                if not (step == 1 and self.rank == 0 and self.size > 1):  # rank 0 has no gradient in the second step
                    table(torch.tensor([self.rank, 9, 9])).sum().backward()
                optimizer.step()
                for rank in range(self.size):
                    if not (step == 1 and rank == 0 and self.size > 1):
                        expected[rank] -= 1.0 / self.size
                        expected[9] -= 2.0 / self.size
            assert torch.allclose(table.weight, expected, atol=1e-5), (table.weight - expected).abs().max()

    def test_sparse_gradient_missing_in_the_first_step(self) -> None:
        table = torch.nn.Embedding(4, 2, sparse=True)
        torch.nn.init.zeros_(table.weight)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(table.parameters(), lr=1.0))
        if self.rank == self.size - 1:
            table(torch.tensor([1])).sum().backward()
        optimizer.step()
        assert torch.allclose(table.weight[1], torch.full((2,), -1.0 / self.size))

    def test_optimizer_on_a_process_set(self) -> None:
        if self.size < 3:
            return
        process_set = hvd.add_process_set([0, self.size - 1])
        parameter = torch.nn.Parameter(torch.zeros(1))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), process_set=process_set)
        (parameter * float(self.rank)).sum().backward()
        optimizer.step()
        expected = -(self.size - 1) / 2 if process_set.included() else -float(self.rank)
        assert parameter.item() == expected, (parameter.item(), expected)
        hvd.remove_process_set(process_set)

    def test_create_graph(self) -> None:
        parameter = torch.nn.Parameter(torch.full((2,), 3.0))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=0.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of the cycle that this makes
            (parameter**2).sum().backward(create_graph=True)
        optimizer.step()
        assert parameter.grad is not None and torch.equal(parameter.grad, torch.full((2,), 6.0))

    def test_load_state_dict_while_in_flight(self) -> None:
        model = self.model()
        optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters()), model.named_parameters())
        state = copy.deepcopy(optimizer.state_dict())
        model(self.batch(self.rank, 0)).sum().backward()
        optimizer.load_state_dict(state)
        optimizer.zero_grad()
        model(self.batch(self.rank, 0)).sum().backward()
        optimizer.step()

    def test_added_parameters(self) -> None:
        one, two = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([one], lr=1.0))
        optimizer.add_param_group({"params": [two]})
        ((one + two) * (self.rank + 1.0)).sum().backward()
        optimizer.step()
        expected = -self.total(lambda rank: rank + 1) / self.size
        assert abs(two.item() - expected) < 1e-6 and abs(one.item() - expected) < 1e-6

    def test_model_converted_after_wrapping(self) -> None:
        model = self.model()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
        model.double()
        model(self.batch(self.rank, 0).double()).square().mean().backward()
        optimizer.step()
        for parameter in model.parameters():
            gathered = hvd.allgather(parameter.detach().unsqueeze(0))
            assert torch.equal(gathered, gathered[:1].expand_as(gathered))

    # ---- state ----

    def test_broadcast_parameters(self) -> None:
        model = self.model()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += self.rank
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        self.compare(model, self.model(), 0.0)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += self.rank
        hvd.broadcast_parameters(list(model.named_parameters()), root_rank=0)
        self.compare(model, self.model(), 0.0)
        _expect(ValueError, lambda: hvd.broadcast_parameters(3, root_rank=0))
        _expect(ValueError, lambda: hvd.broadcast_parameters({"a": 3}, root_rank=0))

    def test_gradient_hooks_live_after_broadcast(self) -> None:
        parameter = torch.nn.Parameter(torch.ones(2))
        calls: list[int] = []
        parameter.register_hook(lambda gradient: calls.append(1))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), [("p", parameter)])
        hvd.broadcast_parameters({"p": parameter}, root_rank=0)
        (parameter.sum() * self.rank).backward()
        optimizer.step()
        assert calls == [1]
        assert torch.allclose(parameter, 1.0 - torch.full((2,), self.total(lambda rank: rank) / self.size))

    def test_broadcast_optimizer_state_from_a_trained_root(self) -> None:
        for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad, torch.optim.RMSprop):
            model = self.model()
            options: dict[str, Any] = {"momentum": 0.9} if kind is torch.optim.SGD else {}
            optimizer = kind(model.parameters(), lr=0.1 * (self.rank + 1), **options)
            if self.rank == 0:
                for step in range(3):
                    model(self.batch(0, step)).sum().backward()
                    optimizer.step()
            weights = [parameter.detach().clone() for parameter in model.parameters()]
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)
            assert optimizer.param_groups[0]["lr"] == 0.1 and type(optimizer.param_groups[0]["lr"]) is float
            if "betas" in optimizer.param_groups[0]:
                assert type(optimizer.param_groups[0]["betas"]) is tuple
            for parameter in model.parameters():
                assert parameter.grad is not None or kind is torch.optim.Adagrad  # which is never without state
                for value in optimizer.state[parameter].values():
                    if isinstance(value, torch.Tensor):
                        gathered = hvd.allgather(value.detach().reshape(1, -1).contiguous())
                        assert torch.equal(gathered, gathered[:1].expand_as(gathered))
                if "step" in optimizer.state[parameter]:
                    assert float(optimizer.state[parameter]["step"]) == 3.0
            for before, after in zip(weights, model.parameters()):
                assert torch.equal(before, after), "weights moved"
        _expect(ValueError, lambda: hvd.broadcast_optimizer_state(torch.optim.LBFGS(self.model().parameters()), 0))

    def test_broadcast_optimizer_state_of_a_fresh_optimizer_changes_nothing(self) -> None:
        model = self.model()
        first, *others = model.parameters()
        first.requires_grad_(False)
        makers: list[Callable[[], torch.optim.Optimizer]] = [
            lambda: torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=0.1),
            lambda: torch.optim.SGD([{"params": [first]}, {"params": others, "lr": 0.3}], lr=0.1),
        ]
        for make in makers:
            optimizer = make()
            before = copy.deepcopy(optimizer.state_dict())
            weights = [parameter.detach().clone() for parameter in model.parameters()]
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)
            assert optimizer.state_dict() == before
            assert all(torch.equal(old, new) for old, new in zip(weights, model.parameters()))

    def test_horovods_module_of_operations(self) -> None:
        from halay.torch import mpi_ops

        assert mpi_ops.is_homogeneous() and mpi_ops.allreduce_ is hvd.allreduce_
        assert mpi_ops.handle_average_backwards_compatibility(None, None) == hvd.Average
        result = hvd.allreduce_(torch.ones(2), None, "positional", hvd.Sum)
        assert result.tolist() == [self.size] * 2


def _expect(kind: type[BaseException], call: Callable[[], Any]) -> BaseException:
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def run(driver: Any) -> Any:
    import conformance

    suite = conformance.Suite(driver, halay.global_process_set, "world")
    cases = TorchCases()
    for name in sorted(dir(cases)):
        if name.startswith("test_"):
            suite.case("torch", name.removeprefix("test_"), "", getattr(cases, name))
    return suite
