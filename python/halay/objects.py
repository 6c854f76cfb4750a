"""Any Python object, between ranks: as pickled bytes, first their number, then they themselves.

Pickled by cloudpickle if it is there, else by pickle. Only objects of one's own job are ever unpickled.
"""

from __future__ import annotations

import ctypes
import pickle
import struct
from collections.abc import Sequence
from typing import Any

from halay import errors
from halay._engine import SetInfo
from halay._enums import DType
from halay._tensor import EngineMemory
from halay.ops import REPEATABLE, URGENT, Ops, find_set

try:
    from cloudpickle import dumps as _dumps
except ImportError:
    from pickle import dumps as _dumps

_UINT8 = int(DType.uint8)
_FLAGS = URGENT | REPEATABLE
_FAILED = 2**64 - 1  # instead of a size: the sender could not pickle


class BytesDriver:
    """Byte strings as tensors: bytearrays of one dimension, so that objects travel without any framework."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def dtype(self, tensor: bytearray) -> int:
        return _UINT8

    def shape(self, tensor: bytearray) -> tuple[int, ...]:
        return (len(tensor),)

    def address(self, buffer: bytearray) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(buffer)) if buffer else 0

    def stage(self, tensor: bytearray) -> bytearray:
        return tensor

    def check_writable(self, tensor: bytearray) -> None:
        return

    def room(self, shape: Sequence[int], like: bytearray) -> bytearray:
        return bytearray(shape[0])

    def deliver(self, buffer: bytearray, like: bytearray) -> bytearray:
        return buffer

    def restore(self, tensor: bytearray, buffer: bytearray) -> None:
        tensor[:] = buffer

    def adopt(self, memory: EngineMemory, shape: Sequence[int], like: bytearray) -> bytearray:
        data = bytearray(shape[0])
        ctypes.memmove(self.address(data), memory.address, shape[0])
        memory.free()
        return data


class Objects:
    """Objects under the names of one adapter."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._ops = Ops(BytesDriver(prefix))

    def _name(self, kind: str, name: str | None, info: SetInfo) -> str:
        return (
            name if name is not None else f"{kind}.noname.{info.engine.count(self._prefix + kind, info.set_id) % 256}"
        )

    def broadcast_object(self, obj: Any, root_rank: int, name: str | None, process_set: Any) -> Any:
        """The object of `root_rank` (a rank of the world) on all members; the root gets its own back.

        Raises HorovodInternalError on the others if the root cannot pickle it (the root raises why).
        """
        info = find_set(process_set)
        base = self._name("broadcast_object", name, info)
        is_root = info.engine.world.rank == root_rank
        data, failure = _pickle(obj) if is_root else (bytearray(), None)
        size = bytearray(struct.pack("<Q", _FAILED if failure else len(data)))
        self._ops.broadcast(size, root_rank, base + ".sz", process_set, True, _FLAGS).wait()
        if failure:
            raise failure
        size_bytes = struct.unpack("<Q", size)[0]
        if size_bytes == _FAILED:
            raise errors.HorovodInternalError(f"broadcast_object: rank {root_rank} could not pickle its object")
        if not is_root:
            data = bytearray(size_bytes)
        self._ops.broadcast(data, root_rank, base + ".t", process_set, True, _FLAGS).wait()
        return obj if is_root else pickle.loads(data)

    def allgather_object(self, obj: Any, name: str | None, process_set: Any) -> list[Any]:
        """The objects of all members, in order of rank. Raises HorovodInternalError on all if one cannot be pickled."""
        info = find_set(process_set)
        base = self._name("allgather_object", name, info)
        data, failure = _pickle(obj)
        own = bytearray(struct.pack("<Q", _FAILED if failure else len(data)))
        sizes = struct.unpack(f"<{info.size}Q", self._ops.allgather(own, base + ".sz", process_set, _FLAGS).wait())
        if failure:
            raise failure
        if _FAILED in sizes:
            culprit = info.ranks[sizes.index(_FAILED)]
            raise errors.HorovodInternalError(f"allgather_object: rank {culprit} could not pickle its object")
        gathered = memoryview(self._ops.allgather(data, base + ".t", process_set, _FLAGS).wait())
        objects, offset = [], 0
        for size in sizes:
            objects.append(pickle.loads(gathered[offset : offset + size]))
            offset += size
        return objects


def _pickle(obj: Any) -> tuple[bytearray, Exception | None]:
    try:
        return bytearray(_dumps(obj)), None
    except Exception as error:  # pickling runs the user's code: whatever it raises is told to all ranks
        return bytearray(), error
