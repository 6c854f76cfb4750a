"""PyTorch's tensors as halay sees them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from halay import errors
from halay._enums import DType
from halay._tensor import EngineMemory

_DTYPES: dict[torch.dtype, int] = {
    torch.uint8: int(DType.uint8),
    torch.int8: int(DType.int8),
    torch.int16: int(DType.int16),
    torch.int32: int(DType.int32),
    torch.int64: int(DType.int64),
    torch.float16: int(DType.float16),
    torch.bfloat16: int(DType.bfloat16),
    torch.float32: int(DType.float32),
    torch.float64: int(DType.float64),
    torch.bool: int(DType.bool8),
}
for _name in ("uint16", "uint32", "uint64"):  # since torch 2.3
    if hasattr(torch, _name):
        _DTYPES[getattr(torch, _name)] = int(DType[_name])

DTYPES = tuple(_DTYPES)


class TorchDriver:
    """Tensors in main memory are used where they lie; others (devices, strides) travel as a copy."""

    prefix = "torch."

    def dtype(self, tensor: torch.Tensor) -> int:
        number = _DTYPES.get(tensor.dtype)
        if number is None:
            raise errors.InvalidArgument(f"halay cannot send tensors of type {tensor.dtype}")
        return number

    def shape(self, tensor: torch.Tensor) -> tuple[int, ...]:
        return tensor.shape

    def address(self, buffer: torch.Tensor) -> int:
        return buffer.data_ptr()

    def stage(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_cpu and tensor.layout is torch.strided and tensor.is_contiguous() and not tensor.is_neg():
            return tensor
        if tensor.layout is not torch.strided:
            raise errors.InvalidArgument(
                f"a dense tensor is needed, not {tensor.layout}; see sparse_allreduce_async, or use to_dense()"
            )
        if tensor.is_meta:
            raise errors.InvalidArgument("a meta tensor has no elements to send")
        return tensor.detach().to("cpu").resolve_neg().contiguous()

    def check_writable(self, tensor: torch.Tensor) -> None:
        return  # PyTorch knows no read-only tensors

    def room(self, shape: Sequence[int], like: torch.Tensor) -> torch.Tensor:
        return torch.empty(shape, dtype=like.dtype)

    def deliver(self, buffer: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return buffer if like.is_cpu else buffer.to(like.device)

    def restore(self, tensor: torch.Tensor, buffer: torch.Tensor) -> None:
        with torch.no_grad():
            tensor.copy_(buffer)

    def adopt(self, memory: EngineMemory, shape: Sequence[int], like: torch.Tensor) -> torch.Tensor:
        flat: torch.Tensor = torch.from_dlpack(memory.to_dlpack())
        return flat.view(like.dtype).view(shape)
