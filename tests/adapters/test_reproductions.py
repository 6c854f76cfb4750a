"""Small reproductions of what users of distributed training suffer from, each named after its number in the collection.

Real processes, started by `halay run`, over shared memory and over TCP. Upper bounds of seconds have fivefold slack.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import launching
import pytest

TRANSPORTS = ("shm", "tcp")
over_each_transport = pytest.mark.parametrize("transport", TRANSPORTS)

NUMPY = """
import os, signal, sys, time
import numpy as np
import halay
import halay.numpy as hv

hv.init()
r, N = hv.rank(), hv.size()

def ones():
    return hv.allreduce(np.ones(2, dtype=np.float32), op=hv.Sum, name="ones").tolist()
"""


def test_the_readme_line_prints_sixes() -> None:
    script = "import halay.torch as h, torch; h.init(); print(h.allreduce(torch.ones(3)*h.rank(), op=h.Sum))"
    for transport in TRANSPORTS:
        job = launching.run(4, "-c", script, HALAY_TRANSPORT=transport)
        assert job.code == 0, job
        assert [job.lines(rank) for rank in range(4)] == [["tensor([6., 6., 6.])"]] * 4, job


@over_each_transport
def test_r6_a_name_that_differs_ends_in_a_sentence_that_names_both(transport: str) -> None:
    script = (
        NUMPY
        + """
try:
    hv.allreduce(np.ones(1), name=f"x{r}")
except hv.StallError as error:
    print(error)
print(ones())
"""
    )
    job = launching.run_script(2, script, HALAY_TRANSPORT=transport, HALAY_OP_DEADLINE_SECONDS="2")
    assert job.code == 0, job
    assert job.seconds < 5 * 6, job
    for rank in range(2):
        text, after = job.lines(rank)
        other = 1 - rank
        assert f"x{rank}" in text and f"missing rank {other}" in text, text
        assert after == "[2.0, 2.0]", "the engine must stay usable"


@over_each_transport
def test_r7_the_order_of_submission_may_differ(transport: str) -> None:
    script = (
        NUMPY
        + """
handles = {}
for name in (("a", "b") if r == 0 else ("b", "a")):
    handles[name] = hv.allreduce_async(np.array([r + 1.0]), name=name, op=hv.Sum)
print(hv.synchronize(handles["a"])[0], hv.synchronize(handles["b"])[0])
"""
    )
    job = launching.run_script(2, script, HALAY_TRANSPORT=transport)
    assert job.code == 0 and job.lines(0) == job.lines(1) == ["3.0 3.0"], job


@over_each_transport
def test_r9_a_killed_rank_is_named_by_the_others_and_nothing_is_left(transport: str, tmp_path: pathlib.Path) -> None:
    script = (
        NUMPY
        + f"""
directory = {str(tmp_path)!r}
open(directory + f"/{{r}}.pid", "w").write(str(os.getpid()))
step = 0
try:
    while True:
        hv.allreduce(np.ones(1000), name="loop")
        step += 1
        if step == 50 and r == 2:
            open(directory + "/killed", "w").write(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
except hv.PeerLost as error:
    seconds = time.time() - float(open(directory + "/killed").read())
    open(directory + f"/{{r}}.lost", "w").write(f"{{error.rank}} {{seconds:.3f}} {{error}}")
    raise
"""
    )
    job = launching.run_script(4, script, HALAY_TRANSPORT=transport)
    assert job.code not in (0, -1), job
    assert job.seconds < 5 * 5, job
    for rank in (0, 1, 3):
        culprit, seconds, text = (tmp_path / f"{rank}.lost").read_text().split(" ", 2)
        print(f"rank {rank} knew after {seconds} s: {text}")
        assert culprit == "2" and "rank 2" in text, text
        assert float(seconds) < 5 * 1.0, f"rank {rank} knew after {seconds} s"
    for file in tmp_path.glob("*.pid"):
        assert not pathlib.Path(f"/proc/{file.read_text()}").exists(), f"process of rank {file.stem} is left"


@over_each_transport
def test_r13_a_duplicate_name_is_refused_and_harms_nothing(transport: str) -> None:
    script = (
        NUMPY
        + """
if r == 0:
    first = hv.allreduce_async(np.ones(2), name="twice", op=hv.Sum)
    try:
        hv.allreduce_async(np.ones(2), name="twice", op=hv.Sum)
        print("no error")
    except hv.DuplicateName as error:
        print(isinstance(error, ValueError), "twice" in str(error))
print(ones())
if r == 1:
    first = hv.allreduce_async(np.ones(2), name="twice", op=hv.Sum)
print(hv.synchronize(first).tolist())
"""
    )
    job = launching.run_script(2, script, HALAY_TRANSPORT=transport)
    assert job.code == 0, job
    assert job.lines(0) == ["True True", "[2.0, 2.0]", "[2.0, 2.0]"], job
    assert job.lines(1) == ["[2.0, 2.0]", "[2.0, 2.0]"], job


@over_each_transport
def test_r14_a_mismatch_is_told_to_all_with_both_values(transport: str) -> None:
    script = (
        NUMPY
        + """
for array in (np.ones(2 + r, dtype=np.float32), np.ones(2, dtype=np.float32 if r == 0 else np.float64)):
    try:
        hv.allreduce(array, name="bad")
        print("no error")
    except hv.MismatchError as error:
        print(error)
print(ones())
"""
    )
    job = launching.run_script(2, script, HALAY_TRANSPORT=transport)
    assert job.code == 0, job
    for rank in range(2):
        shapes, dtypes, after = job.lines(rank)
        assert "(2,)" in shapes and "(3,)" in shapes and "rank 0" in shapes and "rank 1" in shapes, shapes
        assert "float32" in dtypes and "float64" in dtypes and "bad" in dtypes, dtypes
        assert after == "[2.0, 2.0]"


@over_each_transport
def test_r15_forked_workers_keep_working_and_may_not_take_part(transport: str) -> None:
    script = """
import os
import numpy as np
import torch
import halay.torch as hv

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, index):
        return torch.full((3,), float(index))

hv.init()
loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2, multiprocessing_context="fork")
steps = 0
for batch in loader:
    total = hv.allreduce(batch.sum(), op=hv.Sum, name="step")
    assert total.item() == hv.size() * batch.sum().item()
    steps += 1
pid = os.fork()
if pid == 0:
    code = 1
    try:
        hv.allreduce(torch.ones(1))
    except hv.NotInitialized as error:
        code = 42 if "forked" in str(error) and isinstance(error, ValueError) else 2
    try:
        hv.init()
        code = 3
    except hv.NotInitialized:
        pass
    hv.shutdown()
    os._exit(code)
_, status = os.waitpid(pid, 0)
print(steps, os.waitstatus_to_exitcode(status), hv.allreduce(torch.ones(1), op=hv.Sum).item())
"""
    job = launching.run_script(2, script, timeout=100, HALAY_TRANSPORT=transport)
    assert job.code == 0 and job.lines(0) == job.lines(1) == ["50 42 2.0"], job


@over_each_transport
def test_r18_a_missing_worker_is_named_at_the_start(transport: str) -> None:
    script = """
import os, time
import halay
if os.environ["HALAY_RANK"] == "1":
    time.sleep(5)
    raise SystemExit
try:
    halay.init()
except ValueError as error:
    print(type(error).__name__, error)
"""
    job = launching.run_script(2, script, HALAY_TRANSPORT=transport, HALAY_START_TIMEOUT="1")
    line = "".join(job.lines(0))
    assert line.startswith("StartTimeout") and "rank 0" in line and "missing rank 1" in line, job


def test_r21_bfloat16_is_rounded_once() -> None:
    script = """
import torch
import halay.torch as hv
hv.init()
x = torch.full((4096,), 256.0 if hv.rank() == 0 else 1.0, dtype=torch.bfloat16)
total, mean = hv.allreduce(x, op=hv.Sum), hv.allreduce(x, op=hv.Average)
# 259 lies between 258 and 260, halfway: to even
print(total.dtype, total.unique().tolist(), mean.unique().tolist())
"""
    for transport in TRANSPORTS:
        job = launching.run_script(4, script, HALAY_TRANSPORT=transport)
        assert job.code == 0, job
        assert [job.lines(rank) for rank in range(4)] == [["torch.bfloat16 [260.0] [65.0]"]] * 4, job


@over_each_transport
def test_r33_unusual_shapes(transport: str) -> None:
    script = (
        NUMPY
        + """
print(hv.allgather(np.full((r, 2), r)).tolist())
print(hv.allgather(np.zeros((1, 0, 2))).shape)
print(float(hv.allreduce(np.array(float(r)), op=hv.Sum)))
print(hv.allreduce((np.arange(6.0) + r).reshape(2, 3).T, op=hv.Sum).tolist())
base = np.zeros(6) + r
hv.allreduce_(base[2:4], op=hv.Sum)
print((base - r).tolist()[:2], base.tolist()[2:4])
output, received = hv.alltoall(np.ones((3, 2)), np.zeros(N, dtype=np.int32))
print(output.shape, received.tolist())
"""
    )
    job = launching.run_script(4, script, HALAY_TRANSPORT=transport)
    assert job.code == 0, job
    for rank in range(4):
        assert job.lines(rank) == [
            str([[1, 1], [2, 2], [2, 2], [3, 3], [3, 3], [3, 3]]),
            "(4, 0, 2)",
            "6.0",
            str([[6.0, 18.0], [10.0, 22.0], [14.0, 26.0]]),
            "[0.0, 0.0] [6.0, 6.0]",
            "(0, 2) [0, 0, 0, 0]",
        ], job


@over_each_transport
@pytest.mark.parametrize("size", [2, 3, 4])
def test_r38_parameters_are_equal_on_all_ranks_whatever_the_fusion(size: int, transport: str) -> None:
    script = """
import hashlib, os
import torch
import halay.torch as hv
torch.set_num_threads(1)
for threshold in ("134217728", "0", "2048"):
    os.environ["HALAY_FUSION_THRESHOLD"] = threshold
    hv.init()
    torch.manual_seed(hv.rank())
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 17), torch.nn.Linear(17, 3))
    optimizer = hv.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), model.named_parameters())
    if threshold == "134217728":
        hv.broadcast_parameters(model.state_dict(), root_rank=0)
        start = [parameter.detach().clone() for parameter in model.parameters()]
    else:
        for parameter, value in zip(model.parameters(), start):
            parameter.data.copy_(value)
    generator = torch.Generator().manual_seed(hv.rank())
    for step in range(100):
        optimizer.zero_grad()
        model(torch.randn(8, 20, generator=generator)).square().mean().backward()
        optimizer.step()
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    print(digest.hexdigest())
    hv.shutdown()
"""
    job = launching.run_script(size, script, timeout=110, HALAY_TRANSPORT=transport)
    assert job.code == 0, job
    digests = {line for rank in range(size) for line in job.lines(rank)}
    assert len(job.lines(0)) == 3 and len(digests) == 1, job


@over_each_transport
def test_r42_a_call_by_a_non_member_fails_at_once(transport: str) -> None:
    script = (
        NUMPY
        + """
pair = halay.add_process_set([1, 3])
if r == 0:
    began = time.monotonic()
    try:
        hv.allreduce(np.ones(1), process_set=pair)
        print("no error")
    except hv.NotAMember as error:
        print(isinstance(error, ValueError), time.monotonic() - began < 5)
if pair.included():
    print(hv.allreduce(np.array([float(r)]), process_set=pair)[0])
hv.barrier()
"""
    )
    job = launching.run_script(4, script, HALAY_TRANSPORT=transport)
    assert job.code == 0, job
    assert job.lines(0) == ["True True"] and job.lines(1) == job.lines(3) == ["2.0"], job


def test_r54_a_timeline_that_cannot_be_written_is_an_error_at_the_start(tmp_path: pathlib.Path) -> None:
    script = """
import halay
try:
    halay.init()
    print("no error")
except (ValueError, halay.WorldLostError) as error:
    print(type(error).__name__, error)
"""
    for path in (str(tmp_path), str(tmp_path / "missing" / "timeline.json")):
        job = launching.run_script(2, script, HALAY_TIMELINE=path)
        for rank in range(2):
            line = "".join(job.lines(rank))
            assert path in line and line.startswith("InvalidArgument" if rank == 0 else "WorldLostError"), job


def test_a_timeline_started_by_hand(tmp_path: pathlib.Path) -> None:
    script = (
        NUMPY
        + f"""
path = {str(tmp_path / "timeline.json")!r}
if r == 0:  # who writes
    try:
        hv.start_timeline({str(tmp_path)!r})
        print("no error")
    except ValueError:
        pass
hv.start_timeline(path, mark_cycles=True)
for step in range(3):
    hv.allreduce(np.ones(4), name="seen")
hv.stop_timeline()
hv.barrier()
"""
    )
    job = launching.run_script(2, script)
    assert job.code == 0 and "no error" not in job.output, job
    text = (tmp_path / "timeline.json").read_text()
    json.loads(text)
    assert "seen" in text and "NEGOTIATE_ALLREDUCE" in text


def test_an_uncaught_exception_ends_the_others_with_its_reason() -> None:
    script = (
        NUMPY
        + """
print(ones())
hv.barrier()
if r == 1:
    time.sleep(0.5)
    raise ValueError("no more coffee")
try:
    hv.allreduce(np.ones(1), name="never")
except hv.WorldLostError as error:
    print("coffee" in str(error), "rank 1" in str(error), error)
    raise SystemExit(5)
"""
    )
    job = launching.run_script(2, script, HALAY_OP_DEADLINE_SECONDS="30")
    assert job.code not in (0, -1), job
    assert job.lines(0)[1].startswith("True True"), job


def test_ctrl_c_is_answered_while_waiting(tmp_path: pathlib.Path) -> None:
    """Rank 0 waits for rank 1; SIGINT raises KeyboardInterrupt at once, and the operation lives on."""
    script = (
        NUMPY
        + """
if r == 0:
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    try:
        hv.allreduce(np.ones(3), name="late", op=hv.Sum)
        print("not interrupted")
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - began < 5)
    hv.barrier()
    print(ones())
else:
    time.sleep(2)
    hv.barrier()
    print(hv.allreduce(np.ones(3), name="late", op=hv.Sum).tolist())
    print(ones())
"""
    )
    job = launching.run_script(2, script)
    assert job.code == 0, job
    assert job.lines(0) == ["interrupted True", "[2.0, 2.0]"] and job.lines(1) == ["[2.0, 2.0, 2.0]", "[2.0, 2.0]"], job


def test_a_wait_with_a_timeout_leaves_the_operation_alive() -> None:
    script = (
        NUMPY
        + """
handle = None
if r == 0:
    handle = hv.allreduce_async(np.ones(1), name="slow", op=hv.Sum)
    try:
        hv.synchronize(handle, timeout=0.2)
        print("no timeout")
    except TimeoutError:
        print("timeout", hv.poll(handle))
hv.barrier()
if r == 1:
    handle = hv.allreduce_async(np.ones(1), name="slow", op=hv.Sum)
print(hv.synchronize(handle)[0])
"""
    )
    job = launching.run_script(2, script)
    assert job.code == 0 and job.lines(0) == ["timeout False", "2.0"] and job.lines(1) == ["2.0"], job


def test_init_and_shutdown_may_follow_each_other() -> None:
    script = """
import time
import numpy as np
import halay
import halay.numpy as hv
for call in (halay.rank, halay.size, hv.stop_timeline, lambda: hv.allreduce(np.ones(1))):
    try:
        call()
        print("no error")
    except ValueError as error:
        assert isinstance(error, halay.HorovodInternalError)
for round in range(4):
    assert not hv.is_initialized()
    hv.init()
    hv.init()
    halay.init()
    assert hv.is_initialized() and hv.allreduce(np.ones(1), op=hv.Sum)[0] == 2
    time.sleep(0.3)  # the other has its result, too: a world that ends with work left takes what is on its way with it
    try:  # whoever is late finds the world ended by the other
        pending = hv.allreduce_async(np.ones(1), name=f"never.{hv.rank()}")
    except halay.WorldLostError:
        pending = None
    hv.shutdown()
    assert halay.is_initialized(), "another adapter still uses the engine"
    halay.shutdown()
    if pending is None:
        continue
    try:
        hv.synchronize(pending)
        print("no error")
    except halay.HorovodInternalError:
        pass
print("good")
"""
    job = launching.run_script(2, script)
    assert job.code == 0 and job.lines(0) == job.lines(1) == ["good"], job


def test_handles_that_nobody_synchronized_outlive_their_world_without_its_memory() -> None:
    script = (
        NUMPY
        + """
import gc, weakref
from halay import _engine
group = hv.add_process_set([0])
done = hv.allreduce_async(np.full(20000, 1.0 + r), op=hv.Sum, name="done")
ones()
alone = [hv.allreduce_async(np.ones(1), name="alone", process_set=group)] if r == 0 else []
mine = hv.allgather_async(np.ones(1), name=f"only {r}")
hv.barrier()
engine = weakref.ref(_engine.current)
hv.shutdown()
gc.collect()
print(engine() is None, hv.poll(mine), hv.synchronize(done)[:2].tolist(), hv.synchronize(done))
try:
    hv.synchronize(mine)
except halay.HorovodInternalError as error:
    print(type(error).__name__)
hv.init()
group = hv.add_process_set([0])
print(hv.remove_process_set(group), ones())
"""
    )
    job = launching.run_script(2, script)
    assert job.code == 0, job
    for rank in range(2):
        first, second, third = job.lines(rank)
        assert first == "True True [3.0, 3.0] None", job
        assert second in ("WorldLostError", "PeerLost"), job
        assert third == "True [2.0, 2.0]", job


def test_a_repeated_step_sends_no_names(tmp_path: pathlib.Path) -> None:
    """After the first step only numbers travel, and the tensors fuse as before."""
    script = (
        NUMPY
        + """
def step():
    handles = [hv.allreduce_async_(np.ones(64), name=f"g.{index}", op=hv.Sum) for index in range(20)]
    for handle in handles:
        hv.synchronize(handle)

for _ in range(5):
    step()
hv.barrier()
before = hv.stats()
for _ in range(50):
    step()
after = hv.stats()
print(after["requests_sent"] - before["requests_sent"], after["cache_misses"] - before["cache_misses"],
      (after["batches"] - before["batches"]) <= 50 * 20, after["operations_submitted"] - before["operations_submitted"])
"""
    )
    job = launching.run_script(2, script)
    assert job.code == 0, job
    for rank in range(2):
        assert job.lines(rank) == ["0 0 True 1000"], job


def test_nothing_is_leaked_by_many_operations() -> None:
    """R73 in short: results of varying length come and go without growth, and no handle stays open."""
    script = (
        NUMPY
        + """
import resource
def some(count):
    for step in range(count):
        hv.allreduce(np.ones(100), name="a")
        hv.allgather(np.ones((step % 40 * 700, 2)), name="b")
        hv.broadcast(np.ones(10), 0, name="c")
some(300)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
some(1500)
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(grown < 5, hv.stats()["handles_open"], round(grown, 1))
"""
    )
    job = launching.run_script(2, script, timeout=100)
    assert job.code == 0, job
    for rank in range(2):
        assert job.lines(rank)[0].startswith("True 0"), job


def test_ranks_that_would_choose_other_algorithms_do_not_begin() -> None:
    """Each rank plans for itself; plans of different algorithms would wait for each other."""
    script = """
import os
if os.environ["HALAY_RANK"] == "1":
    os.environ["HALAY_ALGORITHMS"] = "allreduce=ring"
import halay
try:
    halay.init()
except halay.MismatchError as error:
    print("algorithms is '' on rank 0 and 'allreduce=ring' on rank 1" in str(error))
"""
    job = launching.run_script(2, script)
    assert job.code == 0, job
    assert job.lines(0) == job.lines(1) == ["True"], job


def test_splits_of_torch_are_not_cut_to_32_bits() -> None:
    script = """
import torch, halay.torch as hv
hv.init()
try:
    print(hv.alltoall(torch.ones(2), [2**32 + 1, 2**32 + 1]))
except ValueError as error:
    print(str(2**33 + 2) in str(error))
print(hv.alltoall(torch.ones(2), [1, 1])[1].dtype)
"""
    job = launching.run_script(2, script)
    assert job.code == 0, job
    assert job.lines(0) == job.lines(1) == ["True", "torch.int32"], job


def test_a_torch_view_that_negates_travels_with_its_sign() -> None:
    script = """
import torch, halay.torch as hv
hv.init()
view = torch.tensor([1 + 2j]).conj().imag  # one element, so it counts as contiguous
assert view.is_neg() and view.is_contiguous()
print(hv.allreduce(view, op=hv.Sum).tolist(), hv.allreduce_(view, op=hv.Sum).tolist(), view.tolist())
"""
    job = launching.run_script(2, script)
    assert job.code == 0, job
    assert job.lines(0) == job.lines(1) == ["[-4.0] [-4.0] [-4.0]"], job


def test_what_cannot_be_written_is_refused_in_place_and_stays_as_it_is() -> None:
    script = (
        NUMPY
        + """
fixed = np.full(3, 1.0 + r)
fixed.setflags(write=False)
spread = np.broadcast_to(np.float32(r), (4,))
for call in (lambda: hv.allreduce_(fixed), lambda: hv.allreduce_async_(spread), lambda: hv.broadcast_(fixed, 0),
             lambda: hv.grouped_allreduce_([np.ones(2), fixed]), lambda: hv.allreduce_([1.0, 2.0])):
    try:
        call()
        print("accepted")
    except ValueError as error:
        assert "can be written" in str(error), error
print(fixed.tolist() == [1.0 + r] * 3, hv.allreduce(fixed, op=hv.Sum).tolist(), ones())
"""
    )
    job = launching.run_script(2, script)
    assert job.code == 0, job
    for rank in range(2):
        assert job.lines(rank) == ["True [3.0, 3.0, 3.0] [2.0, 2.0]"], job


def test_a_name_with_nul_is_refused_and_not_cut_short() -> None:
    script = (
        NUMPY
        + """
first = hv.allreduce_async(np.ones(1), name="a")
try:
    hv.allreduce(np.ones(1), name="a" + chr(0) + "b")
except ValueError as error:
    print(type(error).__name__, "NUL" in str(error))
hv.synchronize(first)
"""
    )
    job = launching.run_script(2, script)
    assert job.code == 0, job
    assert job.lines(0) == job.lines(1) == ["InvalidArgument True"], job


def test_ctrl_c_ends_a_job_that_waits_at_the_start() -> None:
    """init() itself answers Ctrl-C while it waits for ranks that never come."""
    script = "import os, time, halay\nif os.environ['HALAY_RANK'] == '1': time.sleep(60)\nprint('waiting', flush=True)\nhalay.init()\n"
    process = launching.start(2, "-c", script, output=subprocess.PIPE, HALAY_START_TIMEOUT="50")
    assert process.stdout is not None
    for line in process.stdout:
        if "waiting" in line:
            break
    time.sleep(1)
    began = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    process.stdout.read()
    assert process.wait(30) != 0
    assert time.monotonic() - began < 5 * 5


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
