"""Adds arrays of all processes, without any framework but NumPy.

halay run -np 4 python examples/numpy_allreduce.py
"""

from __future__ import annotations

import time

import numpy as np

import halay.numpy as hvd


def main() -> None:
    hvd.init()
    rank, size = hvd.rank(), hvd.size()

    total = hvd.allreduce(np.full(3, rank, dtype=np.float32), op=hvd.Sum)
    rows = hvd.allgather(np.full((rank + 1, 2), rank))  # every rank may bring another number of rows
    if rank == 0:
        print(f"{size} processes: sum of the ranks {total}, gathered rows {len(rows)}", flush=True)

    for count in (1, 1024, 1 << 20):
        data = np.ones(count, dtype=np.float32)
        repeats = 200 if count < 1 << 20 else 20
        hvd.barrier()
        began = time.perf_counter()
        for _ in range(repeats):
            hvd.allreduce_(data, name="data", op=hvd.Average)
        microseconds = (time.perf_counter() - began) / repeats * 1e6
        assert np.array_equal(data, np.ones(count, dtype=np.float32))
        if rank == 0:
            print(f"allreduce of {data.nbytes} bytes: {microseconds:.0f} µs", flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
