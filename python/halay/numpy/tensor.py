"""NumPy's arrays as halay sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from halay import errors
from halay._enums import DType
from halay._tensor import EngineMemory

# bfloat16 is no dtype of NumPy's own; ml_dtypes has one of this name
_DTYPES: dict[str, int] = {kind.name: int(kind) for kind in DType if kind is not DType.bool8} | {
    "bool": int(DType.bool8)
}

DTYPES = tuple(np.dtype(name) for name in _DTYPES if name != "bfloat16")

Array = np.ndarray[Any, Any]


class NumpyDriver:
    """C-ordered arrays in native byte order are used where they lie; others travel as a copy."""

    prefix = "numpy."

    def __init__(self) -> None:
        self._numbers: dict[np.dtype[Any], int] = {}

    def dtype(self, tensor: Array) -> int:
        number = self._numbers.get(tensor.dtype)
        if number is None:
            number = _DTYPES.get(tensor.dtype.name)
            if number is None:
                raise errors.InvalidArgument(f"halay cannot send arrays of type {tensor.dtype}")
            self._numbers[tensor.dtype] = number
        return number

    def shape(self, tensor: Array) -> tuple[int, ...]:
        return np.shape(tensor)

    def address(self, buffer: Array) -> int:
        address: int = buffer.__array_interface__["data"][0]
        return address

    def stage(self, tensor: Array) -> Array:
        if not isinstance(tensor, np.ndarray):
            return np.array(tensor)
        if tensor.flags.c_contiguous and tensor.dtype.isnative and tensor.flags.aligned:
            return tensor
        return np.array(tensor, dtype=tensor.dtype.newbyteorder("="), order="C")

    def check_writable(self, tensor: Array) -> None:
        if not isinstance(tensor, np.ndarray) or not tensor.flags.writeable:
            raise errors.InvalidArgument("an operation in place needs an array that can be written")

    def room(self, shape: Sequence[int], like: Array) -> Array:
        return np.empty(shape, dtype=_native(like))

    def deliver(self, buffer: Array, like: Array) -> Array:
        return buffer

    def restore(self, tensor: Array, buffer: Array) -> None:
        tensor[...] = buffer

    def adopt(self, memory: EngineMemory, shape: Sequence[int], like: Array) -> Array:
        flat: Array = np.asarray(memory)
        return flat.view(_native(like)).reshape(shape)


def _native(like: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.asarray(like).dtype
    return dtype if dtype.isnative else dtype.newbyteorder("=")
