"""What an adapter must say about its framework's tensors: the only part of an operation that differs between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from halay import _lib


class EngineMemory:
    """A result that the engine allocated, taken out of its handle. Freed once: by `free`, or by its framework's tensor."""

    __slots__ = ("_memory", "address", "size_bytes")

    def __init__(self, address: int, size_bytes: int, memory: int) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self._memory: int | None = memory

    def to_dlpack(self) -> object:
        """A capsule over the bytes (uint8, one dimension); the memory then belongs to whoever consumes it."""
        memory, self._memory = self._memory, None
        if memory is None:
            raise RuntimeError("this memory was handed over already")
        return _lib.export_bytes(self.address, self.size_bytes, memory)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's view on the bytes; the array keeps this object, hence the memory, alive."""
        return {"version": 3, "shape": (self.size_bytes,), "typestr": "|u1", "data": (self.address, False)}

    def free(self) -> None:
        """Gives the memory back, unless it was handed over."""
        memory, self._memory = self._memory, None
        if memory is not None:
            _lib.memory_free(memory)

    __del__ = free


class Driver(Protocol):
    """How ops.py touches the tensors of one framework. A buffer is a contiguous tensor in main memory."""

    prefix: str  # of wire names: two frameworks in one process never meet

    def dtype(self, tensor: Any) -> int:
        """Its number in the table dtype. Raises ValueError for a type that halay does not know."""

    def shape(self, tensor: Any) -> tuple[int, ...]:
        """Its dimensions."""

    def address(self, buffer: Any) -> int:
        """Where its elements lie."""

    def stage(self, tensor: Any) -> Any:
        """A buffer with its elements: the tensor itself if it is one. Raises ValueError for what is no dense tensor."""

    def check_writable(self, tensor: Any) -> None:
        """Raises ValueError for what cannot take a result in place."""

    def room(self, shape: Sequence[int], like: Any) -> Any:
        """A new buffer of this shape and the dtype of `like`."""

    def deliver(self, buffer: Any, like: Any) -> Any:
        """The buffer, on the device of `like`."""

    def restore(self, tensor: Any, buffer: Any) -> None:
        """tensor[...] = buffer."""

    def adopt(self, memory: EngineMemory, shape: Sequence[int], like: Any) -> Any:
        """A buffer over this memory, without a copy, of the dtype of `like`."""
