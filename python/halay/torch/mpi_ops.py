"""Horovod's name for the module of operations; scripts import from it."""

from __future__ import annotations

from halay.averaging import Adasum, Average, Max, Min, Product, Sum, choose_op
from halay.torch import (
    _basics,
    is_homogeneous,
)
from halay.torch.autograd import *  # noqa: F403
from halay.torch.ops import *  # noqa: F403


def handle_average_backwards_compatibility(op: int | None, average: bool | None) -> int:
    """The reduce op that op= and the deprecated average= mean together."""
    return choose_op(op, average)


__all__ = [
    "Adasum", "Average", "Max", "Min", "Product", "Sum", "_basics", "handle_average_backwards_compatibility", "is_homogeneous",
]  # fmt: skip
