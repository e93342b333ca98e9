"""The judge of C: what it draws, what it shows to a candidate, and what it never does."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.call import Kernel
from kernelwright.env.compiler.runtime.toolchain import find_toolchain
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.histogram import histogram
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.program import arguments, program
from kernelwright.env.problems.row_sum import row_sum
from kernelwright.env.problems.shapes import Range, shape_of
from kernelwright.env.protocols import Discloses
from kernelwright.env.types import (
    STRESSES,
    Arm,
    CacheState,
    Candidate,
    Language,
    Reference,
    Request,
    Role,
    Stage,
    Status,
)
from kernelwright.evaluators.cpu import placement as placement_module
from kernelwright.evaluators.cpu.build import Builder
from kernelwright.evaluators.cpu.check import ProjectedAnswers
from kernelwright.evaluators.cpu.draws import Draws
from kernelwright.evaluators.cpu.floor import Floor
from kernelwright.evaluators.cpu.isolation import PARTS, Parts, is_root, missing, required
from kernelwright.evaluators.cpu.memory import Arena, anonymous_file
from kernelwright.evaluators.cpu.native import program as program_of
from kernelwright.evaluators.cpu.pair import (
    DECOYED_NS,
    DECOYS,
    MOST_BATCHED,
    MOST_SLOTS,
    ROOM_BYTES,
    Pair,
    Shape,
    shape_for,
)
from kernelwright.evaluators.cpu.placement import at_work, placement
from kernelwright.evaluators.cpu.policy import Checking, Judging, Policy, Profile
from kernelwright.evaluators.cpu.secret import Secret
from kernelwright.evaluators.cpu.stress import MIXED, OF_WHOLE_NUMBERS, kinds_of, stressed
from kernelwright.evaluators.cpu.target import Cpu, unscheduled_program
from kernelwright.evaluators.cpu.worker import (
    _TAKEN,
    Program,
    Worker,
    WorkerError,
    _somebody,
)

pytestmark = pytest.mark.cc
ROWS = row_sum(rows=8, cols=32)
BASE = unscheduled_program(ROWS)
PLAIN = BASE if BASE.language is Language.SOURCE else Candidate(Language.SOURCE, ROWS.plain_c)
BIG = {"n": 1 << 20, "rows": 1 << 14}


def ask(judge, candidate, reference=BASE, stage=Stage.SCREEN, role=Role.BASELINE, **fields):
    (verdict,) = judge.evaluate(
        [Request(candidate, stage, (Reference(role, reference),), **fields)]
    )
    return verdict


def rows(before="", after="", head=""):
    body = "for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++)"
    text = f"""#include <string.h>
#include <stdlib.h>
#include <math.h>
{head}
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{{ {before} {body} s += x[i * cols + j]; y[i] = s; }} {after} }}
"""
    return Candidate(Language.SOURCE, text)


# Secrets


def test_streams_are_functions_of_key_and_purpose():
    secret = Secret()
    again = Secret(bytes.fromhex(secret.disclosed()))
    draw = secret.stream("values", 1, 2).integers(1 << 62, size=4)
    assert (draw == again.stream("values", 1, 2).integers(1 << 62, size=4)).all()
    others = [("values", 1, 3), ("values", 12), ("order", 1, 2), ("values", "1", 2)]
    for purpose in others:
        assert (draw != secret.stream(*purpose).integers(1 << 62, size=4)).any()
    assert (draw != Secret().stream("values", 1, 2).integers(1 << 62, size=4)).any()
    assert secret.disclosed() not in repr(secret)


def test_a_campaign_s_seed_has_no_part_in_it():
    first, second = (Cpu(ROWS, seed=7) for _ in range(2))
    assert first.disclose() is None
    for judge in (first, second):
        assert ask(judge, PLAIN).status is Status.OK
    assert isinstance(first, Discloses)
    keys = [first.disclose(), second.disclose()]
    assert len(set(keys)) == 2
    assert all(len(bytes.fromhex(key)) == 32 for key in keys)
    assert first.disclose() is None
    assert ask(first, PLAIN).status is Status.OK
    assert first.disclose() not in (None, *keys)


# Values


def recorded(problem):
    """The problem with a list of what it drew."""
    drawn = []

    def inputs(workload, rng):
        arrays = problem.inputs(workload, rng)
        drawn.append(b"".join(array.tobytes() for array in arrays.values()))
        return arrays

    return replace(problem, inputs=inputs), drawn


def test_no_values_are_drawn_twice():
    problem, drawn = recorded(ROWS)
    judge = Cpu(problem)
    for _ in range(2):
        assert ask(judge, PLAIN, pairs=5).status is Status.OK
    assert ask(judge, PLAIN, stage=Stage.CONFIRM, process_pairs=2, pairs=3).status.is_claim
    assert len(drawn) > 16
    assert len(set(drawn)) == len(drawn)


def test_both_arms_get_the_same_values_at_the_same_addresses(monkeypatch):
    seen = []
    call = Worker.call

    def watched(self, slot, batch, limit_s, canaries):
        arena = self._arena
        given = [
            arena._given[s][f.name].tobytes() for s in range(arena.slots) for f in arena.inputs
        ]
        seen.append((self._pid, slot, arena.base, tuple(map(tuple, arena.addresses)), given))
        return call(self, slot, batch, limit_s, canaries)

    monkeypatch.setattr(Worker, "call", watched)
    judge = Cpu(ROWS)
    assert ask(judge, PLAIN, stage=Stage.CONFIRM, process_pairs=3, pairs=4).status.is_claim
    arenas = {base: [] for _, _, base, _, _ in seen}
    for entry in seen:
        arenas[entry[2]].append(entry)
    # The harness's floor and the probe have arenas of their own.
    pairs = [calls for calls in arenas.values() if len({pid for pid, *_ in calls}) == 2]
    # A pair that turns out short is measured again, among decoys.
    assert len(pairs) in (3, 4)
    for calls in pairs:
        assert len({entry[3] for entry in calls}) == 1
        by_values = {}
        for pid, slot, _, _, given in calls:
            by_values.setdefault(tuple(given), []).append((pid, slot))
        shared = [found for found in by_values.values() if len(found) == 2]
        assert len(shared) == 1 + 4
        for found in shared:
            assert len({pid for pid, _ in found}) == 2
            assert len({slot for _, slot in found}) == 1


def test_the_live_slot_and_the_number_of_calls_vary(monkeypatch):
    slots, counts = [], []
    run = Pair._run

    def watched(self, load, worker, arm, state, limit_s):
        if arm is Arm.CANDIDATE:
            slots.append(load.slot)
            counts.append(self._number)
        return run(self, load, worker, arm, state, limit_s)

    monkeypatch.setattr(Pair, "_run", watched)
    judge = Cpu(ROWS)
    for _ in range(12):
        assert ask(judge, PLAIN, pairs=3).status is Status.OK
    assert len(set(slots)) >= 1 + DECOYS
    lengths = {counts.count(number) for number in set(counts)}
    assert len(lengths) > 1


def test_the_first_call_is_never_timed_and_every_call_is_checked(monkeypatch):
    calls, checks = [], []
    run, damaged = Pair._run, Arena.damaged

    def watched(self, load, worker, arm, state, limit_s):
        calls.append(arm)
        return run(self, load, worker, arm, state, limit_s)

    monkeypatch.setattr(Pair, "_run", watched)
    monkeypatch.setattr(
        Arena, "damaged", lambda self, written: checks.append(1) or damaged(self, written)
    )
    judge = Cpu(ROWS)
    ask(judge, PLAIN, pairs=1)  # the floor and the probe
    calls.clear()
    checks.clear()
    verdict = ask(judge, PLAIN, pairs=5)
    (pair,) = verdict.measurements[0].samples
    assert len(pair.samples_ns) == 5
    of_candidate = calls.count(Arm.CANDIDATE)
    assert of_candidate > 5 + 1
    # Every call of the candidate, and the reference's first (and others in a second look).
    assert of_candidate + 1 <= len(checks) <= len(calls)


def test_values_are_not_there_while_pages_are_visited(monkeypatch):
    visit, looks = Worker.visit, []

    def watched(self, limit_s):
        arena = self._arena
        looks.extend(values.any() for slot in arena._given for values in slot.values())
        return visit(self, limit_s)

    monkeypatch.setattr(Worker, "visit", watched)
    assert ask(Cpu(ROWS), PLAIN, pairs=3).status is Status.OK
    assert len(looks) > 2 * 3
    assert not any(looks)


def test_memory_that_a_kernel_makes_is_there_from_the_second_call_on(monkeypatch):
    size = 1 << 18
    text = rows(
        f"volatile char *own = aligned_alloc(64, {size}); if (!own) return;",
        f"for (int64_t i = 0; i < {size}; i += 512) own[i] = 1; free((void *)own);",
    )
    call, faults = Worker.call, {}

    def minor_faults(worker):
        return int(Path(f"/proc/{worker._pid}/stat").read_text().rsplit(")", 1)[1].split()[7])

    def watched(self, *rest):
        before = minor_faults(self)
        called = call(self, *rest)
        faults.setdefault(self._pid, []).append(minor_faults(self) - before)
        return called

    monkeypatch.setattr(Worker, "call", watched)
    assert ask(Cpu(ROWS), text, pairs=4).status is Status.OK
    assert all(sum(later) < size // 4096 for _, *later in faults.values())


@pytest.mark.parametrize("remember", ["memcmp(old, x, sizeof old) == 0", "old[3] == x[3]"])
def test_an_answer_that_is_remembered_by_value_is_of_no_use(remember):
    text = rows(
        f"static float old[8 * 32], known[8]; if ({remember}) {{ memcpy(y, known, 32); return; }}",
        "memcpy(old, x, sizeof old); memcpy(known, y, 32);",
    )
    judge = Cpu(ROWS)
    verdict = ask(judge, text, pairs=20)
    # An element may be equal by chance where whole numbers or zeros are drawn; then it is wrong.
    assert verdict.status in (Status.OK, Status.WRONG)
    if verdict.status is Status.OK:
        (pair,) = verdict.measurements[0].samples
        ratios = sorted(c / r for c, r in pair.samples_ns)
        assert ratios[len(ratios) // 2] > 0.5


# Stressed values


@pytest.mark.parametrize("kind", [MIXED, *STRESSES])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (6, 6), (3, 8, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stressed_values_are_finite_and_fit(kind, shape, dtype):
    rng = np.random.default_rng(0)
    x = np.asarray(rng.standard_normal(shape), dtype)
    whole = np.arange(4, dtype=np.int32)
    problem = replace(ROWS, stress=STRESSES)
    for seed in range(8):
        out = stressed(problem, {"x": x, "i": whole}, kind, np.random.default_rng(seed))
        assert out["i"] is whole
        assert out["x"].dtype == x.dtype
        assert out["x"].shape == x.shape
        assert np.isfinite(out["x"]).all()
    assert (x == x.copy()).all()


def test_kinds_are_what_they_are_called():
    x = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    problem = replace(ROWS, stress=STRESSES)

    def made(kind):
        return stressed(problem, {"x": x}, kind, np.random.default_rng(1))["x"]

    np.testing.assert_allclose(made("small"), x * 1e-3, rtol=1e-6)
    np.testing.assert_array_equal(made("large"), x * 64)
    assert (np.count_nonzero(made("one_hot"), axis=1) == 1).all()
    assert len(np.unique(made("ramp"))) == x.size
    assert sorted(made("permutation").ravel()) == sorted(x.ravel())
    assert (np.abs(made("subnormal")) < np.finfo(np.float32).tiny).any()
    sums = [abs(made("cancellation").sum(axis=axis)).max() for axis in (0, 1)]
    assert min(sums) < 0.01 * abs(x).sum()
    assert (made("equal") == made("equal")[:, :1]).all()
    ordered = made("sorted").ravel()
    assert (np.diff(ordered) >= 0).all() or (np.diff(ordered) <= 0).all()
    assert sorted(ordered) == sorted(x.ravel())
    assert kinds_of(replace(problem, stress=())) == ()


def test_whole_numbers_are_changed_only_where_there_are_no_others():
    problem = histogram(n=64, bins=8)
    assert set(kinds_of(problem)) == {MIXED, *OF_WHOLE_NUMBERS}
    data = {"data": np.arange(64, dtype=np.int32) % 8}
    rng = np.random.default_rng(0)
    assert len(set(stressed(problem, data, "equal", rng)["data"])) == 1
    assert sorted(stressed(problem, data, "sorted", rng)["data"]) == sorted(data["data"])


SMALL = {
    "batched_matmul": {"batch": 3, "m": 9, "n": 10, "k": 77},
    "blur": {"h": 20, "w": 24},
    "box4": {"h": 20, "w": 24},
    "column_sum": {"rows": 333, "cols": 9},
    "conv2d_nchw": {"images": 2, "channels": 3, "filters": 4, "h": 9, "w": 10},
    "conv2d_nhwc": {"images": 2, "channels": 3, "filters": 4, "h": 9, "w": 10},
    "depthwise": {"channels": 3, "h": 20, "w": 24},
    "gauss_seidel": {"h": 20, "w": 24, "t": 3},
    "jacobi2d": {"h": 20, "w": 24, "t": 7},
    "pyramid": {"h": 20, "w": 24},
    "unsharp": {"h": 20, "w": 24},
    "conv3x3": {"h": 20, "w": 24},
    "gelu": {"n": 999},
    "jacobi1d": {"n": 999, "t": 7},
    "layer_norm": {"rows": 40, "cols": 100},
    "matmul": {"m": 9, "n": 10, "k": 77},
    "prefix_sum": {"n": 999},
    "row_sum": {"rows": 9, "cols": 333},
    "softmax": {"rows": 40, "cols": 100},
    "spmv": {"rows": 60, "cols": 70, "nnz": 500},
    "transpose": {},
    "histogram": {},
}


@pytest.mark.parametrize("name", SMALL)
def test_plain_kernels_are_within_their_bounds_on_every_kind(name):
    module, _, function = PROBLEMS[name].partition(":")
    problem = getattr(import_module(module), function)(**SMALL[name])
    workload = problem.workloads[0]
    draws = Draws(problem, workload)
    made = program(problem, Candidate(Language.SOURCE, problem.plain_c), workload)
    text = f"#include <stdint.h>\n{made.text}"
    build = BuildCache(cache_folder()).build(text, find_toolchain(), ("-O2", "-march=native"))
    roles = [t for role in ("input", "output") for t in problem.tensors if t.role == role]
    given = tuple(
        replace(a, shape=shape_of(t, workload.fixed))
        for a, t in zip(arguments(problem), roles, strict=True)
    )
    kernel = Kernel(build.library, made.entry, given, tuple(workload.fixed))
    assert kinds_of(problem)[:1] == (MIXED,)
    for kind in ("plain", *draws.stresses):
        for seed in range(6):
            drawn = draws.draw(np.random.default_rng(seed), kind)
            error = drawn.answers.compare(kernel(drawn.inputs, workload.fixed))
            assert error <= problem.error_model.bound, (kind, seed)


# Projections


def projected(change=lambda c: c, seed=0):
    problem = matmul(m=40, n=30, k=50)
    rng = np.random.default_rng(seed)
    inputs = problem.inputs(problem.workloads[0], rng)
    answers = ProjectedAnswers(problem, inputs, {"C": (40, 30)}, rng, problem.workloads[0])
    out = change((inputs["A"] @ inputs["B"]).astype(np.float32))
    return answers.check({"C": out}, lambda name: np.zeros(out.shape, bool))


def test_a_projection_passes_honest_products():
    for seed in range(50):
        assert projected(seed=seed)[0] is None


@pytest.mark.parametrize("place", [(0, 0), (39, 29), (17, 3)])
def test_a_projection_sees_a_single_wrong_element(place):
    def change(c):
        c[place] += 0.01
        return c

    for seed in range(20):
        fault, _ = projected(change, seed)
        assert fault is not None
        assert fault.code == "wrong_value"
        assert f"C[{place[0]}]" in fault.evidence


def test_a_projection_sees_what_is_no_number():
    def change(c):
        c[2, 2] = np.nan
        return c

    assert projected(change)[0].code == "not_finite"


def test_a_judge_may_check_by_projection():
    problem = matmul(m=40, n=30, k=50)
    judge = Cpu(problem, judging=Judging(check=Checking.PROJECTION))
    base = unscheduled_program(problem)
    assert ask(judge, base, base, pairs=6).status is Status.OK
    wrong = problem.plain_c.replace("p < k", "p < k - 1")
    assert wrong != problem.plain_c
    verdict = ask(judge, Candidate(Language.SOURCE, wrong), base)
    assert (verdict.status, verdict.code) == (Status.WRONG, "wrong_value")


# Where and how


def floor_of(call_ns=100.0, blocking=False):
    return Floor(call_ns, 2 * call_ns, 1e4, 1e6, blocking, Parts(0))


def test_short_kernels_have_decoys_and_the_shortest_are_batched():
    floor = floor_of()
    assert shape_for(5e6, floor, 1 << 20) == shape_for(1e7, floor, 1 << 30)
    assert (shape_for(5e6, floor, 1 << 20).batch, shape_for(5e6, floor, 1 << 20).groups) == (1, 1)
    assert shape_for(5e5, floor, 1 << 20).groups == 1 + DECOYS
    assert shape_for(1000, floor, 1 << 12).batch == 10
    assert shape_for(1, floor, 1 << 12).batch == MOST_BATCHED
    assert shape_for(1, floor, 1 << 40).batch == 1
    for least_ns in (1, 50, 300, 2e3, 2e4, 2e5, 2e6):
        for slot_bytes in (64, 1 << 16, 1 << 24, 1 << 40):
            shape = shape_for(least_ns, floor, slot_bytes)
            assert 1 <= shape.batch * shape.groups <= MOST_SLOTS
            assert shape.batch * shape.groups * slot_bytes <= max(ROOM_BYTES, slot_bytes)
    assert shape_for(1000, floor, 64).groups * 10 * 1000 >= DECOYED_NS


def test_a_kernel_that_is_shorter_than_any_before_is_measured_among_decoys(monkeypatch):
    shapes, measure = [], Pair.measure

    def watched(self, asked, order, roles):
        shapes.append(self.shape)
        return measure(self, asked, order, roles)

    monkeypatch.setattr(Pair, "measure", watched)
    judge = Cpu(ROWS)
    # As if nothing faster than 5 ms were known of it.
    monkeypatch.setattr(Pair, "probe", lambda self, state: 5e6)
    verdict = ask(judge, PLAIN, stage=Stage.CONFIRM, process_pairs=2, pairs=2)
    assert verdict.status.is_claim
    assert (shapes[0].batch, shapes[0].groups) == (1, 1)
    assert all(shape.groups > DECOYS for shape in shapes[1:])
    # What had none was measured again; what it is found to take may repeat others.
    assert len(shapes) > len(verdict.measurements[0].samples) == 2
    assert dict(verdict.facts)["judge.decoys"] >= DECOYS


def test_what_is_repeated_is_what_had_no_decoys_or_too_small_a_batch():
    alone, short, tiny = Shape(1, 1), Shape(1, 4), Shape(10, 10)
    assert short.is_safer_than(alone)
    assert tiny.is_safer_than(short)
    assert not Shape(10, 11).is_safer_than(tiny)
    assert not alone.is_safer_than(short)
    assert not Shape(12, 8).is_safer_than(tiny)


def test_with_one_core_the_judge_sleeps(monkeypatch):
    monkeypatch.setattr(placement_module.os, "sched_getaffinity", lambda _: {3})
    found = placement(1)
    assert (found.judge, found.workers, found.blocking) == (3, (3,), True)
    monkeypatch.setattr(placement_module.os, "sched_getaffinity", lambda _: {1, 2, 5})
    assert not placement(2).blocking
    assert placement(2).judge not in placement(2).workers
    assert placement(3).blocking
    assert len(placement(3).workers) == 3


def test_where_the_judge_sleeps_a_short_kernel_gets_no_claim(monkeypatch):
    cores = sorted(os.sched_getaffinity(0))[:1]
    with monkeypatch.context() as patch:
        # Only while it is made: what is there to be given back afterwards is asked for later.
        patch.setattr(placement_module.os, "sched_getaffinity", lambda _: set(cores))
        judge = Cpu(ROWS)
    assert judge._where.blocking
    assert ask(judge, PLAIN, pairs=2).status is Status.OK
    verdict = ask(judge, PLAIN, stage=Stage.CONFIRM, process_pairs=2, pairs=2)
    assert (verdict.status, verdict.code) == (Status.UNSTABLE, "short_for_the_clock")


def test_affinity_is_given_back():
    before = os.sched_getaffinity(0)
    with at_work(placement(1)):
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


# Isolation


@pytest.fixture
def worker(tmp_path):
    """A loaded worker, with all that its pair has."""
    workload = ROWS.workloads[0]
    cache = BuildCache(tmp_path)
    builder = Builder(ROWS, find_toolchain(), ("-O1",), cache, Policy(), 1)
    contents = builder.build(PLAIN, workload).contents()
    library = anonymous_file("kernel", contents)
    with Arena(ROWS, workload, 1, np.random.default_rng(0)) as arena:
        runs = Program(str(program_of("worker.c")), (), library)
        where = placement(1)
        with Worker(runs, arena, {"LANG": "C"}, threads=1, where=where, limit_s=10.0) as found:
            yield found
    os.close(library)


def test_required_parts_are_in_force(worker):
    lacking, _ = missing(worker.parts)
    assert lacking == ()
    assert {part.bit for part in required()} <= set(worker.parts)
    assert is_root() or Parts.OTHER_USER not in {part.bit for part in required()}
    assert len({part.name for part in PARTS}) == len(PARTS)


def test_a_worker_has_nothing_but_its_memory(worker):
    proc = Path(f"/proc/{worker._pid}")
    status = dict(
        line.split(":\t", 1) for line in (proc / "status").read_text().splitlines() if ":\t" in line
    )
    assert status["Seccomp"] == "2"
    assert status["NoNewPrivs"] == "1"
    assert int(status.get("Seccomp_filters", 2)) == 2
    if is_root():
        assert "0" not in status["Uid"].split()
        assert list((proc / "fd").iterdir()) == []
        assert (proc / "environ").read_bytes() == b"LANG=C\0"
        assert status["CapEff"] == "0000000000000000"
    assert os.getsid(worker._pid) == worker._pid


def test_a_missing_required_part_refuses(monkeypatch):
    from kernelwright.evaluators.cpu import worker as module

    monkeypatch.setattr(module, "_EVERY_PART", module._EVERY_PART & ~Parts.SECCOMP)
    verdict = ask(Cpu(ROWS), PLAIN)
    assert verdict.status is Status.BROKEN or verdict.code == "isolation"
    assert "seccomp" in verdict.evidence
    trusted = Cpu(ROWS, judging=Judging(profile=Profile.TRUSTED_CODEGEN))
    assert ask(trusted, BASE).status is Status.OK


def test_optional_parts_are_in_the_verdict():
    facts = dict(ask(Cpu(ROWS), PLAIN).facts)
    for part in PARTS:
        assert (f"isolation.{part.name}" in facts) == (not part.required)


def test_nothing_about_a_worker_s_user_says_which_arm_it_is():
    taken = [_somebody() for _ in range(64)]
    try:
        assert len(set(taken)) == len(taken)
        # The first of a pair is as often odd as even, and as often the lower as the higher.
        firsts, seconds = taken[::2], taken[1::2]
        assert len({user % 2 for user in firsts}) == 2
        assert len({a < b for a, b in zip(firsts, seconds, strict=True)}) == 2
    finally:
        _TAKEN.difference_update(taken)


def test_a_judge_that_holds_the_machine_for_too_long_is_told(monkeypatch):
    where = placement(1)
    with at_work(where):
        monkeypatch.setattr(placement_module, "LOCK_WAIT_S", 0.05)
        with pytest.raises(TimeoutError, match="is it stopped"), at_work(where):
            raise AssertionError("two judges at work")


def test_a_generator_may_use_its_array_again():
    room = np.empty((8, 32), np.float32)

    def inputs(workload, rng):
        room[...] = rng.standard_normal(room.shape, np.float32)
        return {"x": room}

    assert ask(Cpu(replace(ROWS, inputs=inputs)), PLAIN, pairs=4).status is Status.OK


STRAYS = {
    "who it is": (
        "#include <unistd.h>\n#include <sys/syscall.h>\n",
        "y[0] = syscall(SYS_getuid);",
    ),
    "a thread": (
        "#include <pthread.h>\nstatic void *stay(void *p) { for (;;) pthread_yield(); return p; }",
        "pthread_t t; pthread_create(&t, 0, stay, 0);",
    ),
    "a process": ("#include <unistd.h>\n", "if (!fork()) for (;;) pause();"),
    "a socket": ("#include <sys/socket.h>\n", "socket(AF_INET, SOCK_STREAM, 0);"),
    "a file": ("#include <fcntl.h>\n", 'open("/etc/hostname", O_RDONLY);'),
    "a timer": (
        "#include <sys/time.h>\n",
        "struct itimerval v = {{1, 0}, {1, 0}}; setitimer(0, &v, 0);",
    ),
    "a handler": ("#include <signal.h>\n", "signal(SIGUSR1, SIG_IGN);"),
    "a sleep": ("#include <time.h>\n", "struct timespec t = {0, 1}; nanosleep(&t, 0);"),
    "a wait with a limit": (
        "#include <unistd.h>\n#include <sys/syscall.h>\n#include <time.h>\n",
        "struct timespec t = {0, 1}; int w = 0; syscall(SYS_futex, &w, 0, 0, &t, 0, 0);",
    ),
    "code of its own": (
        "#include <sys/mman.h>\n",
        "mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);",
    ),
    "a hole in a file": ("#include <sys/mman.h>\n", "madvise((void *)y, 4096, MADV_REMOVE);"),
}


@pytest.mark.parametrize("what", STRAYS)
def test_what_no_kernel_needs_is_refused_when_it_is_asked_for(what):
    head, body = STRAYS[what]
    judge = Cpu(ROWS, judging=Judging(profile=Profile.STANDARD))
    verdict = ask(judge, rows(body, head="#define _GNU_SOURCE\n" + head))
    assert (verdict.status, verdict.code) == (Status.REJECTED, "forbidden_syscall"), verdict
    assert ask(judge, PLAIN).status is Status.OK


@pytest.mark.parametrize("word", ["0x9fc0", "0x7f80", "0x1e80"])
def test_a_changed_floating_point_mode_is_seen(word):
    if os.uname().machine != "x86_64":
        pytest.skip("the control register of x86")
    verdict = ask(Cpu(ROWS), rows(after=f"__builtin_ia32_ldmxcsr({word});"))
    assert verdict.status in (Status.REJECTED, Status.CRASHED)
    if verdict.status is Status.REJECTED:
        assert verdict.code == "fp_environment"
    put_back = rows("unsigned w = __builtin_ia32_stmxcsr();", "__builtin_ia32_ldmxcsr(w);")
    assert ask(Cpu(ROWS), put_back).status is Status.OK


def test_openmp_has_its_threads_and_no_more():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    problem = row_sum(rows=64, cols=4096)
    base = unscheduled_program(problem)
    text = problem.plain_c.replace(
        "    for (int64_t i", '    _Pragma("omp parallel for")\n for (int64_t i', 1
    )
    parallel = Candidate(Language.SOURCE, text)
    judge = Cpu(problem, threads=2, toolchain="gcc") if _has("gcc") else None
    if judge is None:
        pytest.skip("gcc's OpenMP")
    assert ask(judge, parallel, base, pairs=2).status is Status.OK
    spare = (
        "#include <pthread.h>\nstatic void *stay(void *p) { for (;;); return p; }\n"
        + text.rstrip()[:-1]
        + "pthread_t t[4]; for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, stay, 0); }\n"
    )
    standard = Judging(profile=Profile.STANDARD)
    judge = Cpu(problem, threads=2, toolchain="gcc", judging=standard)
    verdict = ask(judge, Candidate(Language.SOURCE, spare), base, pairs=2)
    if is_root():  # the limit on processes leaves no room for them
        assert verdict.status is Status.OK, verdict
    else:
        assert verdict.status is Status.REJECTED, verdict
        assert verdict.code in ("late_work", "threads_left")


def _has(name):
    import shutil

    return shutil.which(name) is not None


def test_a_worker_that_cannot_be_started_is_ours(monkeypatch):
    from kernelwright.evaluators.cpu import target

    real = target.program
    monkeypatch.setattr(
        target, "program", lambda name: Path("/nonexistent") if name == "worker.c" else real(name)
    )
    verdict = ask(Cpu(ROWS), PLAIN)
    assert verdict.status is Status.BROKEN


@pytest.mark.audit
def test_a_library_that_was_exchanged_is_built_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    judge = Cpu(ROWS, flags=("-O1",))
    assert ask(judge, PLAIN).status is Status.OK
    wrong = rows(after="y[0] += 1;")
    assert ask(judge, wrong).status is Status.WRONG
    (known,) = {judge._builder.build(wrong, w).library for w in ROWS.workloads}
    honest = judge._builder.build(PLAIN, ROWS.workloads[0])
    honest.library.write_bytes(known.read_bytes())
    assert honest.contents() is None
    assert ask(judge, PLAIN).status is Status.OK


# Physics and teeth


def test_what_is_faster_than_this_machine_can_be_is_not_believed(monkeypatch):
    judge = Cpu(ROWS)
    assert ask(judge, PLAIN).status is Status.OK
    monkeypatch.setattr(Cpu, "_floor_ns", lambda self, workload, state: 1e9)
    verdict = ask(judge, PLAIN)
    assert (verdict.status, verdict.code) == (Status.TOO_FAST, "below_floor")
    assert "at least 1e+06 us" in verdict.evidence


def test_floors_cap_what_is_credited():
    verdict = ask(Cpu(ROWS), PLAIN)
    assert [name for name, _ in verdict.floors_ns] == [ROWS.workloads[0].label]
    ranged = row_sum(rows=Range(low=2, high=9), cols=8)
    base = unscheduled_program(ranged)
    assert Cpu(ranged).floor_ns(ranged.workloads[0]) == 0
    assert ask(Cpu(ranged), base, base).floors_ns == ()


def test_a_problem_without_teeth_is_refused():
    from kernelwright.env.options import ProblemError
    from kernelwright.env.types import ErrorModel

    loose = replace(ROWS, error_model=ErrorModel(0.99, "made up"), magnitude=None)
    with pytest.raises(ProblemError, match=r"(zeros|mean)"):
        ask(Cpu(replace(loose, inputs=_around_a_hundred)), PLAIN)


def _around_a_hundred(workload, rng):
    e = workload.fixed
    return {"x": (100 + rng.random((e["rows"], e["cols"]))).astype(np.float32)}


def test_refusals_say_nothing_of_hidden_values(monkeypatch):
    values = []
    draw = Draws.draw

    def watched(self, rng, kind="plain"):
        drawn = draw(self, rng, kind)
        values.append(drawn)
        return drawn

    monkeypatch.setattr(Draws, "draw", watched)
    verdict = ask(Cpu(ROWS), rows(after="y[3] *= 2;"))
    assert verdict.status is Status.WRONG
    last = values[-1]
    hidden = [*last.inputs["x"].ravel(), *last.answers.reference["y"]]
    said = verdict.evidence
    for value in hidden:
        if abs(value) >= 10 and float(value) != int(value):
            assert f"{value:.6g}" not in said


def test_states_are_prepared_by_the_judge():
    for state in CacheState:
        verdict = ask(Cpu(ROWS), PLAIN, state=state, pairs=3)
        assert verdict.status is Status.OK
        assert verdict.measurements[0].clock == "judge-monotonic"


def test_a_worker_error_reads_as_a_sentence():
    assert str(WorkerError(Status.CRASHED, "exit", "it ended")) == "crashed (exit): it ended"
