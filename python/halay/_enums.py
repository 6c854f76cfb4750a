"""Numbers of the C ABI. Written by tools/make_enums.py from src/types/*.def and src/base/status.def: do not edit."""

from __future__ import annotations

from enum import IntEnum


class DType(IntEnum):
    """Element types."""

    uint8 = 0
    int8 = 1
    uint16 = 2
    int16 = 3
    int32 = 4
    int64 = 5
    float16 = 6
    float32 = 7
    float64 = 8
    bool8 = 9
    bfloat16 = 10
    uint32 = 11
    uint64 = 12


class OpKind(IntEnum):
    """What an operation is."""

    allreduce = 0
    allgather = 1
    broadcast = 2
    alltoall = 3
    reducescatter = 4
    barrier = 5
    join = 6


class ReduceOp(IntEnum):
    """How elements are combined; the numbers are Horovod's."""

    average = 0
    sum = 1
    min = 3
    max = 4
    product = 5


class Status(IntEnum):
    """How a call ended."""

    ok = 0
    invalid_argument = 1
    not_initialized = 2
    timeout = 3
    mismatch = 4
    stalled = 5
    unsupported = 6
    no_memory = 7
    peer_lost = 8
    aborted = 9
    internal = 10
    duplicate_name = 11
    not_a_member = 12


# Bytes of one element.
DTYPE_BYTES: dict[int, int] = {
    DType.uint8: 1,
    DType.int8: 1,
    DType.uint16: 2,
    DType.int16: 2,
    DType.int32: 4,
    DType.int64: 8,
    DType.float16: 2,
    DType.float32: 4,
    DType.float64: 8,
    DType.bool8: 1,
    DType.bfloat16: 2,
    DType.uint32: 4,
    DType.uint64: 8,
}

# integer, floating or boolean.
DTYPE_KIND: dict[int, str] = {
    DType.uint8: "integer",
    DType.int8: "integer",
    DType.uint16: "integer",
    DType.int16: "integer",
    DType.int32: "integer",
    DType.int64: "integer",
    DType.float16: "floating",
    DType.float32: "floating",
    DType.float64: "floating",
    DType.bool8: "boolean",
    DType.bfloat16: "floating",
    DType.uint32: "integer",
    DType.uint64: "integer",
}

# exact, truncate or error.
DTYPE_AVERAGE: dict[int, str] = {
    DType.uint8: "truncate",
    DType.int8: "truncate",
    DType.uint16: "truncate",
    DType.int16: "truncate",
    DType.int32: "truncate",
    DType.int64: "truncate",
    DType.float16: "exact",
    DType.float32: "exact",
    DType.float64: "exact",
    DType.bool8: "error",
    DType.bfloat16: "exact",
    DType.uint32: "truncate",
    DType.uint64: "truncate",
}

# Has a reduce op and scales.
OP_REDUCES: dict[int, bool] = {
    OpKind.allreduce: True,
    OpKind.allgather: False,
    OpKind.broadcast: False,
    OpKind.alltoall: False,
    OpKind.reducescatter: True,
    OpKind.barrier: False,
    OpKind.join: False,
}

# same, concat, scattered, exchanged or none.
OP_OUTPUT: dict[int, str] = {
    OpKind.allreduce: "same",
    OpKind.allgather: "concat",
    OpKind.broadcast: "same",
    OpKind.alltoall: "exchanged",
    OpKind.reducescatter: "scattered",
    OpKind.barrier: "none",
    OpKind.join: "none",
}

# What a reduce op does on booleans.
BOOL_MEANING: dict[int, str] = {
    ReduceOp.average: "error",
    ReduceOp.sum: "or",
    ReduceOp.min: "and",
    ReduceOp.max: "or",
    ReduceOp.product: "and",
}

# How much is broken: none, call, op, world or process.
STATUS_BLAST: dict[int, str] = {
    Status.ok: "none",
    Status.invalid_argument: "call",
    Status.not_initialized: "call",
    Status.timeout: "call",
    Status.mismatch: "op",
    Status.stalled: "op",
    Status.unsupported: "op",
    Status.no_memory: "op",
    Status.peer_lost: "world",
    Status.aborted: "world",
    Status.internal: "process",
    Status.duplicate_name: "call",
    Status.not_a_member: "call",
}
