"""The rules about averaging and scaling, once for all adapters: op= against average=, predivide, integers, gradients."""

from __future__ import annotations

import warnings

from halay import _enums, errors

Average = 0
Sum = 1
Adasum = 2
Min = 3
Max = 4
Product = 5

_NAMES = {Average: "Average", Sum: "Sum", Adasum: "Adasum", Min: "Min", Max: "Max", Product: "Product"}


def name_of(op: int) -> str:
    return _NAMES.get(op, str(op))


def choose_op(op: int | None, average: bool | None) -> int:
    """The reduce op that a call means. Raises ValueError if both are given or the op is none; Adasum: UnsupportedError."""
    if average is not None:
        if op is not None:
            raise errors.InvalidArgument("op= and average= were both given; average= is deprecated, give op= alone")
        warnings.warn("average= is deprecated; use op=Average or op=Sum", DeprecationWarning, stacklevel=4)
        return Average if average else Sum
    if op is None:
        return Average
    if op not in _NAMES:
        raise errors.InvalidArgument(f"op={op!r} is no reduce op; it must be one of {', '.join(_NAMES.values())}")
    if op == Adasum:
        raise errors.UnsupportedError("op=Adasum is not in this version of halay yet; use Average or Sum")
    return op


def check_scatter_op(op: int) -> int:
    """reducescatter knows Sum and Average; others raise UnsupportedError as in Horovod."""
    op = choose_op(op, None)
    if op not in (Average, Sum):
        raise errors.UnsupportedError(f"reducescatter with op={name_of(op)}: only Sum and Average are supported")
    return op


def check_average(op: int, dtype: int, int_average: str) -> None:
    """HALAY_INT_AVERAGE=error makes the average of integers a TypeError."""
    if op == Average and int_average == "error" and _enums.DTYPE_AVERAGE[dtype] == "truncate":
        name = _enums.DType(dtype).name
        raise TypeError(f"Average of {name} with HALAY_INT_AVERAGE=error: use op=Sum, or convert to a floating type")


def predivide(op: int, factor: float) -> tuple[float, float]:
    """(prescale, postscale) of gradient_predivide_factor: 1/f before the sum, f after it."""
    if factor == 1.0:
        return 1.0, 1.0
    if op != Average:
        raise errors.InvalidArgument("gradient_predivide_factor not supported with op != Average")
    return 1.0 / factor, factor


def scatter_gradient_factor(op: int, size: int, prescale: float, postscale: float, exact: bool) -> float:
    """What the gathered gradient of reducescatter is multiplied by: Horovod's rule, or the transpose (see from-horovod.md)."""
    if exact:
        return prescale * postscale / (size if op == Average else 1)
    return prescale * postscale * (size if op == Sum else 1)


def gather_gradient_op(exact: bool) -> int:
    """The op over incoming gradients in the backward of allgather and broadcast: Horovod averages, the transpose sums."""
    return Sum if exact else Average
