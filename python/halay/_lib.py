"""The C ABI of halay as ctypes prototypes: the only file that sees libhalay.so.

Two handles on one library: `quick` keeps the GIL (calls that never block), `slow` gives it up (calls that may block).
"""

from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p

ABI_VERSION = 1

URGENT = 1
REPEATABLE = 2
DEVICE_CPU = 0


class EngineOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_uint64), ("settings", POINTER(c_char_p))]


class World(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("rank", c_int32),
        ("size", c_int32),
        ("local_rank", c_int32),
        ("local_size", c_int32),
        ("cross_rank", c_int32),
        ("cross_size", c_int32),
        ("homogeneous", c_int32),
    ]


class Request(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("kind", c_int32),
        ("dtype", c_int32),
        ("reduce_op", c_int32),
        ("root_rank", c_int32),
        ("process_set", c_uint32),
        ("name", c_uint32),
        ("flags", c_uint32),
        ("divisor", c_int32),
        ("prescale", c_double),
        ("postscale", c_double),
        ("shape", c_void_p),
        ("dim_count", c_int32),
        ("device", c_int32),
        ("device_index", c_int32),
        ("split_count", c_int32),
        ("splits", c_void_p),
        ("input", c_void_p),
        ("output", c_void_p),
        ("output_bytes", c_uint64),
        ("stream", c_void_p),
        ("ready_event", c_void_p),
    ]


class Result(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("data", c_void_p),
        ("size_bytes", c_uint64),
        ("dtype", c_int32),
        ("dim_count", c_int32),
        ("shape", c_int64 * 32),
        ("received_splits", POINTER(c_int64)),
        ("received_split_count", c_int32),
        ("last_joined", c_int32),
    ]


def library_path() -> pathlib.Path:
    """HALAY_LIBRARY (for development), else lib/libhalay.so beside this file."""
    chosen = os.environ.get("HALAY_LIBRARY")
    path = pathlib.Path(chosen) if chosen else pathlib.Path(__file__).resolve().parent / "lib" / "libhalay.so"
    if not path.exists():
        source = "HALAY_LIBRARY" if chosen else "the halay package"
        raise ImportError(
            f"no libhalay.so at {path} (from {source}); install the wheel, or set HALAY_LIBRARY to a built one"
        )
    return path


_engine = c_void_p
_handle = c_uint64
_text: list[object] = [_engine, c_void_p, c_uint64, c_void_p]

# name: (may block, result, arguments)
_PROTOTYPES: dict[str, tuple[bool, object, list[object]]] = {
    "abi_version": (False, c_uint32, []),
    "version": (False, c_char_p, []),
    "last_error": (False, c_char_p, []),
    "last_error_rank": (False, c_int32, []),
    "enum_table": (False, c_int32, [c_char_p, c_uint32, POINTER(c_char_p), POINTER(c_int64)]),
    "engine_create": (False, c_int32, [POINTER(EngineOptions), POINTER(c_void_p)]),
    "engine_start_from_environment": (True, c_int32, [_engine]),
    "engine_shutdown": (True, c_int32, [_engine]),
    "engine_destroy": (True, None, [_engine]),
    "world_info": (False, c_int32, [_engine, POINTER(World)]),
    "abort": (True, c_int32, [_engine, c_char_p]),
    "process_set_create": (True, c_int32, [_engine, c_void_p, c_int32, POINTER(c_uint32)]),
    "process_set_destroy": (True, c_int32, [_engine, c_uint32]),
    "name_register": (False, c_int32, [_engine, c_char_p, POINTER(c_uint32)]),
    "submit": (False, c_int32, [_engine, c_void_p, c_uint32, c_void_p]),
    "join": (False, c_int32, [_engine, POINTER(c_uint64)]),
    "poll": (False, c_int32, [_engine, _handle, POINTER(c_int32)]),
    "wait": (True, c_int32, [_engine, _handle, c_int64]),
    "wait_many": (True, c_int32, [_engine, c_void_p, c_uint32, c_int64]),
    "get_result": (False, c_int32, [_engine, _handle, POINTER(Result)]),
    "release": (False, None, [_engine, _handle]),
    "detach_result": (False, c_int32, [_engine, _handle, POINTER(c_void_p)]),
    "memory_free": (False, None, [c_void_p]),
    "timeline_start": (True, c_int32, [_engine, c_char_p, c_int32]),
    "timeline_stop": (True, c_int32, [_engine]),
    "stats": (False, c_int32, _text),
    "recorder_dump": (False, c_int32, _text),
    "config_get": (False, c_int32, [_engine, c_char_p, c_void_p, c_uint64, c_void_p]),
}


def _load() -> dict[str, ctypes._CFuncPtr]:  # type: ignore[name-defined]  # the private type of foreign functions
    path = str(library_path())
    quick, slow = ctypes.PyDLL(path), ctypes.CDLL(path)
    functions = {}
    for name, (blocks, result, arguments) in _PROTOTYPES.items():
        function = getattr(slow if blocks else quick, "halay_" + name)
        function.restype = result
        function.argtypes = arguments
        functions[name] = function
    found = functions["abi_version"]()
    if found != ABI_VERSION:
        raise ImportError(f"{path} has ABI version {found}; this halay package needs {ABI_VERSION}")
    return functions


_functions = _load()

version = _functions["version"]
enum_table = _functions["enum_table"]
engine_create = _functions["engine_create"]
engine_start_from_environment = _functions["engine_start_from_environment"]
engine_shutdown = _functions["engine_shutdown"]
engine_destroy = _functions["engine_destroy"]
world_info = _functions["world_info"]
abort = _functions["abort"]
process_set_create = _functions["process_set_create"]
process_set_destroy = _functions["process_set_destroy"]
name_register = _functions["name_register"]
submit = _functions["submit"]
join = _functions["join"]
poll = _functions["poll"]
wait = _functions["wait"]
wait_many = _functions["wait_many"]
get_result = _functions["get_result"]
release = _functions["release"]
detach_result = _functions["detach_result"]
memory_free = _functions["memory_free"]
timeline_start = _functions["timeline_start"]
timeline_stop = _functions["timeline_stop"]
_stats = _functions["stats"]
_recorder_dump = _functions["recorder_dump"]
_config_get = _functions["config_get"]
_last_error = _functions["last_error"]
last_error_rank = _functions["last_error_rank"]


def last_error() -> str:
    """Text of this thread's last failure."""
    return _last_error().decode("utf-8", "replace")


def _read_text(call: object, *leading: object) -> tuple[int, str]:
    """(status, text) of a function that fills a buffer and says how large it must be."""
    capacity = 1 << 14
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        size = c_uint64(0)
        status = call(*leading, ctypes.addressof(buffer), capacity, ctypes.addressof(size))  # type: ignore[operator]
        if status != 0:
            return status, ""
        if size.value <= capacity:
            return 0, buffer.value.decode("utf-8", "replace")
        capacity = int(size.value) + 4096


def engine_options(*settings: str) -> EngineOptions:
    """Options with settings ("HALAY_NAME=value") that win over the environment."""
    texts = (c_char_p * (len(settings) + 1))(*[setting.encode() for setting in settings], None)
    options = EngineOptions(struct_size=ctypes.sizeof(EngineOptions))
    options.settings = ctypes.cast(texts, POINTER(c_char_p))  # keeps the texts
    return options


def stats(engine: int) -> tuple[int, str]:
    return _read_text(_stats, engine)


def recorder_dump(engine: int) -> tuple[int, str]:
    return _read_text(_recorder_dump, engine)


def config_get(engine: int, name: str) -> tuple[int, str]:
    return _read_text(_config_get, engine, name.encode())


def read_bytes(address: int, size: int) -> bytes:
    """A copy of foreign memory."""
    return ctypes.string_at(address, size) if size else b""


def copy_bytes(destination: int, source: int, size: int) -> None:
    ctypes.memmove(destination, source, size)


# ---- DLPack (version 0.x, the one that every consumer reads) ----


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("manager", c_void_p), ("deleter", c_void_p)]


_CAPSULE_NAME = ctypes.create_string_buffer(b"dltensor")  # a capsule borrows its name
_exported: dict[int, tuple[_DLManagedTensor, object, int]] = {}  # by address of the managed tensor


@ctypes.CFUNCTYPE(None, c_void_p)
def _delete_exported(address: int) -> None:
    entry = _exported.pop(address, None)
    if entry is not None:
        memory_free(entry[2])


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [c_void_p, c_void_p, c_void_p]


def export_bytes(data: int, size: int, memory: int) -> object:
    """A DLPack capsule over `size` bytes (uint8, one dimension); its consumer's deleter frees `memory`.

    The caller must hand the capsule to a consumer: one that is dropped keeps its memory.
    """
    shape = (c_int64 * 1)(size)
    tensor = _DLTensor(data=data, device_type=1, ndim=1, code=1, bits=8, lanes=1)
    tensor.shape = ctypes.cast(shape, POINTER(c_int64))
    managed = _DLManagedTensor(tensor=tensor, deleter=ctypes.cast(_delete_exported, c_void_p))
    address = ctypes.addressof(managed)
    _exported[address] = (managed, shape, memory)
    return _new_capsule(address, ctypes.addressof(_CAPSULE_NAME), None)


def exported_count() -> int:
    """Results whose memory a framework's tensor still holds."""
    return len(_exported)
