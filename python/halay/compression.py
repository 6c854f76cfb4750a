"""Compression of what travels: an object with static compress(tensor) and decompress(tensor, ctx)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Compressor:
    """Interface for compressing and decompressing a tensor. Subclass it, or give anything with these two functions."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """(compressed tensor, context for decompress)."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """The tensor in its original form."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Leaves the tensor as it is."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tensor


def make_cast(
    name: str, compress: Callable[[Any], tuple[Any, Any]], restore: Callable[[Any, Any], Any]
) -> type[Compressor]:
    """A compressor that casts; the adapter says how its framework casts. A ctx of None means: was left alone."""

    class Cast(Compressor):
        @staticmethod
        def compress(tensor: Any) -> tuple[Any, Any]:
            return compress(tensor)

        @staticmethod
        def decompress(tensor: Any, ctx: Any) -> Any:
            return tensor if ctx is None else restore(tensor, ctx)

    Cast.__name__ = Cast.__qualname__ = name
    Cast.__doc__ = "Casts floating-point tensors to a narrower type and back; leaves others alone."
    return Cast
