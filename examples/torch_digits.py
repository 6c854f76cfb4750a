"""Trains a small network on scikit-learn's handwritten digits (real images, shipped inside the package, no download).

    halay run -np 2 python examples/torch_digits.py --epochs 16
    python examples/torch_digits.py                             # the same on one process

The global batch is the same for any number of processes, so the loss is too, up to rounding. The last line of rank 0 is a
JSON object: {"loss": ..., "accuracy": ..., "samples_per_second": ..., "processes": ...}.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

import numpy as np
import torch
from sklearn.datasets import load_digits

import halay.torch as hvd


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--global-batch", type=int, default=96, help="samples of one step, over all processes")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser.parse_args()


def load_data(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """1797 images of 8 x 8, shuffled alike on all ranks; the last fifth is for the test."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images = torch.tensor(digits.images[order], dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(digits.target[order], dtype=torch.int64)
    test = len(labels) // 5
    return images[:-test], labels[:-test], images[-test:], labels[-test:]


def make_model() -> torch.nn.Module:
    """Smooth throughout: kinks (ReLU, maximum) would turn a rounding into another path of training."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3, padding=1),
        torch.nn.Tanh(),
        torch.nn.Conv2d(32, 64, 3, padding=1),
        torch.nn.Tanh(),
        torch.nn.AvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(64 * 16, 128),
        torch.nn.Tanh(),
        torch.nn.Linear(128, 10),
    )


def progress(epoch: int, epochs: int, loss: float, speed: float) -> None:
    """A bar that is redrawn on a terminal, else a line now and then."""
    done = round(30 * (epoch + 1) / epochs)
    line = f"epoch {epoch + 1:3d}/{epochs} [{'#' * done}{'.' * (30 - done)}] loss {loss:.4f}  {speed:7.0f} samples/s"
    if sys.stdout.isatty():
        print("\r" + line, end="\n" if epoch + 1 == epochs else "", flush=True)
    elif (epoch + 1) % max(1, epochs // 8) == 0:
        print(line, flush=True)


def main() -> None:
    arguments = read_arguments()
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    if arguments.global_batch % size:
        raise SystemExit(f"--global-batch {arguments.global_batch} cannot be shared evenly by {size} processes")
    torch.manual_seed(arguments.seed)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    images, labels, test_images, test_labels = load_data(arguments.seed)

    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    share = arguments.global_batch // size
    steps = len(labels) // arguments.global_batch
    loss_mean, trained_seconds = torch.zeros(1), 0.0
    for epoch in range(arguments.epochs):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(arguments.seed + epoch))
        loss_sum = torch.zeros(1)
        began = time.perf_counter()
        for step in range(steps):
            start = step * arguments.global_batch + rank * share
            batch = order[start : start + share]
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images[batch]), labels[batch])
            loss.backward()  # gradients are averaged while this goes on
            optimizer.step()
            loss_sum += loss.detach()
        trained_seconds += time.perf_counter() - began
        loss_mean = hvd.allreduce(loss_sum / steps, name="epoch.loss")
        if rank == 0 and not arguments.quiet:
            speed = (epoch + 1) * steps * arguments.global_batch / trained_seconds
            progress(epoch, arguments.epochs, loss_mean.item(), speed)

    with torch.no_grad():
        mine = slice(rank, None, size)  # each rank tests its share
        right = (model(test_images[mine]).argmax(1) == test_labels[mine]).sum().reshape(1)
    accuracy = hvd.allreduce(right, name="test.right", op=hvd.Sum).item() / len(test_labels)
    if rank == 0:
        result = {
            "loss": loss_mean.item(),
            "accuracy": accuracy,
            "samples_per_second": arguments.epochs * steps * arguments.global_batch / trained_seconds,
            "processes": size,
        }
        print(json.dumps(result), flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
