"""The table of the judge: what fools it, what it wrongly refuses, what it costs.

    python benchmarks/judge.py [--only GROUP]…

Groups: zoo, correctness, channels, contamination, limits, floor, wall, secrets. The first three
take many minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import gc
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from table import Row, print_groups
from threadpoolctl import threadpool_limits

from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.call import Kernel
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.program import arguments, program
from kernelwright.env.problems.row_sum import row_sum
from kernelwright.env.types import (
    Candidate,
    Language,
    Problem,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    Verdict,
    knob_candidate,
)
from kernelwright.evaluators.corpus.audit import audit_correctness
from kernelwright.evaluators.corpus.honest import HONEST
from kernelwright.evaluators.cpu.build import Builder
from kernelwright.evaluators.cpu.draws import Draws
from kernelwright.evaluators.cpu.floor import measured_floor
from kernelwright.evaluators.cpu.memory import Arena, anonymous_file
from kernelwright.evaluators.cpu.native import program as program_of
from kernelwright.evaluators.cpu.placement import at_work, placement
from kernelwright.evaluators.cpu.policy import Checking, Judging, Profile
from kernelwright.evaluators.cpu.secret import Secret
from kernelwright.evaluators.cpu.target import Cpu, unscheduled_program
from kernelwright.evaluators.cpu.worker import Program, Worker
from kernelwright.evaluators.zoo import audit
from kernelwright.evaluators.zoo.audit import audit_cheats, audited
from kernelwright.evaluators.zoo.f_limits import EXPLOITS

# A register tile that runs near the peak: the shorter the calls, the more the judge weighs.
TUNED = {"mr": 6, "nv": 2, "lanes": 16, "kc": 256, "outer": "columns"}
ROUNDS, PAIRS = 5, 8


def one(judge: Cpu, candidate: Candidate, against: Candidate, pairs: int = PAIRS) -> Verdict:
    request = Request(candidate, Stage.SCREEN, (Reference(Role.BASELINE, against),), pairs=pairs)
    (verdict,) = judge.evaluate([request])
    return verdict


def zoo() -> Iterator[Row]:
    """Every class of the catalogue that has a C form, and every honest kernel. What
    ``docs/trust.md`` is generated from is left in ``build/cheats.json``.
    """
    found = audit_cheats(False, Cpu, honest=HONEST)
    kept = Path(__file__).parents[1] / "build" / "cheats.json"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps(found.as_json()))
    for kind, rows, least in (
        ("P0 classes", [r for r in found.classes if r.priority == "P0"], 1.0),
        ("all classes", list(found.classes), 0.98),
    ):
        caught, live = sum(r.detected for r in rows), sum(r.naive_passed for r in rows)
        classes = len({r.id for r in rows})
        shown = f"{caught} of {len(rows)} variants of {classes} classes caught, {live} proven live"
        missed = ", ".join(f"{r.id} {r.variant}" for r in rows if not r.detected)
        good = caught >= least * len(rows) and live == len(rows)
        yield f"zoo: {kind}", f"at least {least:.0%}, each live", f"{shown} {missed}".strip(), good
    refused = [r.name for r in found.honest if r.rejected]
    shown = f"{len(refused)} of {len(found.honest)} {refused or ''}".strip()
    yield "honest corpus rejected", "at most 1%", shown, len(refused) <= 0.01 * len(found.honest)


def correctness() -> Iterator[Row]:
    """Every mutant and every honest kernel, by problem."""
    found = audit_correctness(False, Cpu)
    survivors = ", ".join(one.name for one in found.survivors)
    shown = f"{found.killed} {survivors}".strip()
    good = found.killed.share >= 0.99 and not found.unjudged
    yield "mutants killed", "at least 99%", shown, good
    whole = found.reassociated.count == found.reassociated.total > 0
    yield "honest reassociated variants passed", "100%", f"{found.reassociated}", whole
    passing = ", ".join(found.impostors)
    yield "impostors that pass", "none", passing or "none", not found.impostors


def channels() -> Iterator[Row]:
    """What a worker could write to, wake, forge or change, under the profile that lets it load."""
    standard = partial(Cpu, judging=Judging(profile=Profile.STANDARD))
    audit.believed = lambda *_: True  # the naive judge has no part in this
    tried, moved, broken = 0, [], []
    for exploit in EXPLOITS:
        for variant in exploit.variants:
            problem, tried = variant.made(), tried + 1
            judge = standard(problem, threads=variant.threads)
            candidate = Candidate(Language.SOURCE, variant.source)
            verdict = one(judge, candidate, unscheduled_program(problem))
            if verdict.status is Status.BROKEN:
                broken.append(f"{exploit.id} {variant.name}")
            if verdict.status.passed:
                # It may have gained nothing: then it is no better than an honest kernel.
                twin = variant.twin or problem.plain_c
                beside = replace(variant, neutralised=True, twin=twin)
                row = audited(exploit, beside, standard)
                if not row.detected:
                    moved.append(f"{exploit.id} {variant.name}")
    named = ", ".join((*moved, *broken))
    shown = f"{len(moved)} of {tried} moved it, {len(broken)} broke the judge {named}".strip()
    what = "forged channels that move a verdict (profile standard)"
    yield what, "0", shown, not moved and not broken


class Naive:
    """A judge in one process: fresh inputs for every pair, both kernels called here and timed by
    this process, the first output compared with the library's by ``allclose``.
    """

    def __init__(self, problem: Problem, candidate: Candidate) -> None:
        self.problem, workload = problem, problem.workloads[0]
        made = program(problem, candidate, workload)
        text = f"#include <stdint.h>\n{made.text}"
        build = BuildCache(cache_folder()).build(text, find_toolchain(), DEFAULT_FLAGS)
        given = arguments(problem)
        self._extents = workload.fixed
        self.kernel = Kernel(build.library, made.entry, given, tuple(self._extents))
        ffi = self.kernel._ffi
        self._pointer = lambda array: ffi.cast("float *", array.ctypes.data)

    def judge(self, pairs: int) -> None:
        rng = np.random.default_rng()
        m, n, k = self._extents.values()
        for number in range(pairs):
            inputs = self.problem.inputs(self.problem.workloads[0], rng)
            a, b = inputs["A"], inputs["B"]
            out = np.empty((m, n), np.float32)
            for _ in range(2):
                began = time.perf_counter_ns()
                self.kernel._function(*map(self._pointer, (a, b, out)), m, n, k)
                time.perf_counter_ns() - began
            if number == 0 and not np.allclose(out, a @ b, 1e-2, 1e-2):
                raise AssertionError("the naive judge's own kernel is wrong")


def wall() -> Iterator[Row]:
    for size, most, rounds in ((512, 3.0, ROUNDS), (2048, 2.0, 3)):
        problem = matmul(m=size, n=size, k=size)
        tuned = knob_candidate(TUNED)
        naive = Naive(problem, tuned)
        for check in Checking:
            judge = Cpu(problem, judging=Judging(check=check))
            one(judge, tuned, tuned)
            ratios = []
            for _ in range(rounds):
                began = time.perf_counter()
                verdict = one(judge, tuned, tuned)
                ours = time.perf_counter() - began
                assert verdict.status.passed, verdict
                with threadpool_limits(1):
                    began = time.perf_counter()
                    naive.judge(PAIRS)
                    ratios.append(ours / (time.perf_counter() - began))
                gc.collect()
            found = statistics.median(ratios)
            low, high = min(ratios), max(ratios)
            what = f"wall time over a naive judge, {size}³, check {check}, {PAIRS} pairs"
            shown = f"{found:.2f}x ({low:.2f} to {high:.2f}, {rounds} rounds)"
            yield what, f"at most {most:g}x", shown, found <= most


def floor() -> Iterator[Row]:
    where = placement(1)
    with at_work(where):
        found = [measured_floor(where, 1) for _ in range(20)]
    bracket = statistics.median(f.call_ns for f in found)
    start = statistics.median(f.start_ns for f in found[1:]) / 1e6
    slowest = max(f.start_ns for f in found[1:]) / 1e6
    shown = f"{bracket / 1e3:.2f} us"
    yield "bracket floor, spin to spin, p50", "at most 0.3 us", shown, bracket <= 300
    shown = f"{start:.1f} ms (slowest {slowest:.1f})"
    yield "worker start, isolated and loaded", "at most 50 ms", shown, start <= 50


# What a candidate may do to whoever comes next, or to the machine. Each is called as row_sum.
HEAD = """#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
%s
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    %s
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
    %s
}
"""
HOSTILE = {
    "flushes subnormal numbers": ("", "__builtin_ia32_ldmxcsr(0x9fc0);", ""),
    "rounds towards zero": ("", "__builtin_ia32_ldmxcsr(0x7f80);", ""),
    "leaves a thread": (
        "static void *spin(void *p) { for (;;); return p; }",
        "",
        "pthread_t t; pthread_create(&t, 0, spin, 0);",
    ),
    "writes a file": ("", "", 'FILE *f = fopen("/tmp/kw", "w"); if (f) fputs("kw", f);'),
    "fills the caches": ("", "", "char *p = malloc(1 << 28); memset(p, 1, 1 << 28);"),
    "raises its priority": ("", "", "nice(-20);"),
}
LIMITS = {
    "endless loop": ("", "for (volatile int i = 0;; i++) {}", ""),
    "fork bomb": ("", "for (;;) fork();", ""),
    "memory hog": (
        "",
        "for (;;) { char *p = malloc(1 << 26); if (!p) __builtin_trap(); memset(p, 1, 1 << 26); }",
        "",
    ),
    "output flood": ("", 'for (;;) puts("kw");', ""),
    "stops itself": ("", "raise(SIGSTOP);", ""),
    "closes every descriptor": ("", "for (int i = 0; i < 4096; i++) close(i);", ""),
    "deep recursion": (
        "static int deep(volatile char *p) { volatile char b[99]; *b = *p; return deep(b) + *b; }",
        'deep("");',
        "",
    ),
    "exit(0)": ("", "exit(0);", ""),
    "sleeps": ("", "for (;;) sleep(1000);", ""),
    "kills everybody": ("", "kill(-1, SIGKILL);", ""),
}


def hostile(parts: tuple[str, str, str]) -> Candidate:
    return Candidate(Language.SOURCE, HEAD % parts)


def judge_of_rows(limit_s: float = 10.0) -> tuple[Cpu, Candidate]:
    """A judge that loads what strict would refuse before it runs, and the honest kernel."""
    problem = row_sum(rows=256, cols=1024)
    judge = Cpu(problem, limit_s=limit_s, judging=Judging(profile=Profile.STANDARD))
    return judge, unscheduled_program(problem)


def contamination() -> Iterator[Row]:
    """An honest kernel after a hostile one, beside itself after an honest one."""
    judge, honest = judge_of_rows()

    def after(before: Candidate) -> float:
        one(judge, before, honest)
        verdict = one(judge, honest, honest)
        assert verdict.status is Status.OK, verdict
        (pair,) = verdict.measurements[0].samples
        return statistics.median(time for time, _ in pair.samples_ns)

    after(honest)

    def ratio(before: Candidate) -> float:
        return statistics.median(after(before) / after(honest) for _ in range(2 * ROUNDS))

    same = sorted(ratio(honest) for _ in range(len(HOSTILE)))
    worst, caught = {}, {}
    for name, parts in HOSTILE.items():
        candidate = hostile(parts)
        caught[name] = one(judge, candidate, honest)
        worst[name] = ratio(candidate)
    # As many medians of the same kind, and half as much again for the few that they are.
    low, high = 1 - 1.5 * (1 - min(same[0], 0.99)), 1 + 1.5 * (max(same[-1], 1.01) - 1)
    inside = all(low <= found <= high for found in worst.values())
    shown = ", ".join(f"{name} {found:.3f}" for name, found in worst.items())
    what = "time of an honest kernel after a hostile one, over that after an honest one"
    yield what, f"within A/A ({low:.3f} to {high:.3f})", shown, inside
    said = "; ".join(f"{name}: {v.status} {v.code or ''}".rstrip() for name, v in caught.items())
    yield "what the hostile ones got", "-", said, None


def descendants() -> list[int]:
    """Processes of this session's workers that are still there, in whatever state but dead."""
    out = []
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            program_ = (path / "exe").readlink()
        except OSError:
            continue
        is_worker = "kernel.so" in program_.name and fields[0] != "Z"
        if int(fields[1]) in (os.getpid(), 1) and is_worker:
            out.append(int(path.name))
    return out


def limits() -> Iterator[Row]:
    """Each costs its own limit, and the next evaluation succeeds."""
    judge, honest = judge_of_rows(limit_s=1.0)
    one(judge, honest, honest)
    began = time.perf_counter()
    one(judge, honest, honest)
    usual = time.perf_counter() - began
    for name, parts in LIMITS.items():
        began = time.perf_counter()
        verdict = one(judge, hostile(parts), honest)
        took = time.perf_counter() - began
        then = one(judge, honest, honest).status
        left = descendants()
        good = not verdict.status.passed and then is Status.OK and not left and took < usual + 5
        shown = f"{verdict.status} ({verdict.code}), {took:.1f} s; then {then}; {len(left)} left"
        yield name, "its own limit; then ok; 0 left", shown, good


def secrets_() -> Iterator[Row]:
    """What a worker could find of the judge's, looked for from outside in all that it can read:
    memory between loading and the call, environment, arguments, descriptors.
    """
    problem = row_sum(rows=64, cols=256)
    looked, found, seen = 0, list[str](), 0
    for _ in range(20):
        secret = Secret()
        where = placement(1)
        draws = Draws(problem, problem.workloads[0])
        build = Builder(
            problem,
            find_toolchain(),
            DEFAULT_FLAGS,
            BuildCache(cache_folder()),
            Judging().policy,
            1,
        ).build(unscheduled_program(problem), problem.workloads[0])
        contents = build.contents()
        assert contents is not None
        library = anonymous_file("kernel", contents)
        rng = secret.stream("values", 1, 1)
        drawn = draws.draw(rng)
        with Arena(problem, problem.workloads[0], 1, rng) as arena:
            arena.write(0, drawn.inputs)
            arena.show()
            runs = Program(str(program_of("worker.c")), (), library)
            limits_ = {"threads": 1, "where": where, "limit_s": 10.0}
            with Worker(runs, arena, {"LANG": "C"}, **limits_) as worker:
                arena.poison(7)
                memory = memory_of(worker._pid)
                proc = Path(f"/proc/{worker._pid}")
                reachable = (proc / "environ").read_bytes() + (proc / "cmdline").read_bytes()
                descriptors = list((proc / "fd").iterdir())
        os.close(library)
        seen += len(memory)
        # What it may find is found, so the search works.
        assert drawn.inputs["x"][1, :8].tobytes() in memory
        expected = drawn.answers.reference["y"]
        for what, needle in {
            "key": bytes.fromhex(secret.disclosed()),
            "key in hexadecimal": secret.disclosed().encode(),
            "expected outputs (float64)": expected[:4].tobytes(),
            "expected outputs (float32)": expected[:4].astype(np.float32).tobytes(),
            "state of the generator": int(rng.bit_generator.state["state"]["state"][0]).to_bytes(
                8, "little"
            ),
        }.items():
            looked += 1
            if needle in memory or needle in reachable:
                found.append(what)
        looked += 1
        if descriptors:
            found.append(f"{len(descriptors)} descriptors")
    shown = f"{len(found)} of {looked} probes of {seen / 20 / 2**20:.0f} MiB a worker"
    yield "secrets found in what a worker can read", "0", f"{shown} {found or ''}", not found


def memory_of(pid: int) -> bytes:
    """All that a process can read of its memory."""
    out = []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights = line.split()[:2]
            if "r" not in rights or "[v" in line:
                continue
            low, high = (int(end, 16) for end in span.split("-"))
            memory.seek(low)
            try:
                out.append(memory.read(high - low))
            except OSError:
                continue
    return b"".join(out)


GROUPS: dict[str, Callable[[], Iterator[Row]]] = {
    "zoo": zoo,
    "correctness": correctness,
    "channels": channels,
    "contamination": contamination,
    "limits": limits,
    "floor": floor,
    "wall": wall,
    "secrets": secrets_,
}

if __name__ == "__main__":
    print_groups(GROUPS, __doc__ or "")
