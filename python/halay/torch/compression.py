"""Compression of gradients in PyTorch."""

from __future__ import annotations

import torch

from halay.compression import Compressor, NoneCompressor, make_cast

__all__ = ["Compression", "Compressor", "FP16Compressor", "NoneCompressor"]


def _to(dtype: torch.dtype) -> type[Compressor]:
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.dtype | None]:
        if tensor.dtype.is_floating_point:
            return tensor.to(dtype), tensor.dtype
        return tensor, None

    def restore(tensor: torch.Tensor, original: torch.dtype) -> torch.Tensor:
        return tensor.to(original)

    return make_cast("FP16Compressor" if dtype == torch.float16 else "BF16Compressor", compress, restore)


FP16Compressor = _to(torch.float16)
BF16Compressor = _to(torch.bfloat16)


class Compression:
    """What allreduce(compression=...) and DistributedOptimizer(compression=...) take; own classes subclass Compressor."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
