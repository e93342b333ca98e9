"""The table of the CPU path: the quickstart, the init example, the judge's overhead, the mock
model.

    python benchmarks/cpu_path.py [--only GROUP]…

Groups: quickstart, plain, template, overhead, faults. One thread; peers run in the same rounds;
ratios of paired times.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from table import Row, print_groups

from kernelwright.agents.report import confusion
from kernelwright.configs.build import Built, build
from kernelwright.configs.load import read_config
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.types import (
    Candidate,
    Language,
    Problem,
    Reference,
    Request,
    Role,
    Stage,
    Verdict,
)
from kernelwright.evaluators.cpu.build import Builder
from kernelwright.evaluators.cpu.policy import Policy
from kernelwright.evaluators.cpu.target import Cpu, unscheduled_program
from kernelwright.evaluators.statistics import Interval, speedup
from kernelwright.search.campaign import Campaign
from kernelwright.search.plan import ConfirmPlan
from kernelwright.search.store import MemoryStore

ROOT = Path(__file__).resolve().parent.parent
LOCAL = Path(__file__).resolve().parent
# The unscheduled loops as a person writes them, in the order of the lowering: i, j, k.
NAIVE_C = """
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    (void)m; (void)n; (void)k;
    for (int64_t i = 0; i < KW_M; i++)
        for (int64_t j = 0; j < KW_N; j++)
            C[i * KW_N + j] = 0.0f;
    for (int64_t i = 0; i < KW_M; i++)
        for (int64_t j = 0; j < KW_N; j++)
            for (int64_t p = 0; p < KW_K; p++)
                C[i * KW_N + j] += A[i * KW_K + p] * B[p * KW_N + j];
}
"""
OVERHEAD_CANDIDATES = 40
FAULT_CALLS = 1000


def kernelwright(*words: str, folder: Path) -> str:
    """The standard output of a command."""
    command = [sys.executable, "-P", "-m", "kernelwright", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def shown(interval: Interval) -> str:
    return f"{interval.estimate:.2f}x (95% {interval.low:.2f} to {interval.high:.2f})"


def confirmed(
    judge: Cpu, candidate: Candidate, reference: Candidate, process_pairs: int = 10
) -> Interval:
    """The ratio of two programs, measured as a claim is."""
    against = (Reference(Role.BASELINE, reference),)
    request = Request(candidate, Stage.CONFIRM, against, process_pairs=process_pairs, pairs=8)
    (verdict,) = judge.evaluate([request])
    interval = speedup(verdict)
    if interval is None:
        raise RuntimeError(f"{verdict.status}: {verdict.evidence}")
    return interval


def quickstart() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        text = kernelwright("run", "quickstart", "--out", "run", "--json", folder=Path(folder))
        seconds = time.perf_counter() - began
    summary = json.loads(text)
    best = summary["best"]
    met = best["speedup"] >= 6 and best["ci_low"] > 5
    found = f"{best['speedup']:.1f}x (95% {best['ci_low']:.1f} to {best['ci_high']:.1f})"
    yield "quickstart over the unscheduled lowering", "at least 6x, lower end above 5", found, met
    yield "quickstart, wall time", "at most 60 s", f"{seconds:.1f} s", seconds <= 60
    share = summary["library_ratio"]
    yield "quickstart, share of OpenBLAS", "at least 0.5", f"{share:.2f}", share >= 0.5


def plain() -> Iterator[Row]:
    problem = matmul()
    naive = Candidate(Language.SOURCE, NAIVE_C)
    # The same instructions, and times that move by a third with where B's columns lie in memory.
    ratio = confirmed(Cpu(problem), unscheduled_program(problem), naive, process_pairs=40)
    what = "unscheduled lowering over hand-written naive C (same order, flags, restrict)"
    yield what, "at least 0.95x", shown(ratio), ratio.estimate >= 0.95


def template() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernelwright("init", "mykernel", folder=folder)
        config = folder / "mykernel" / "mykernel.yaml"
        text = kernelwright("run", str(config), "--out", "run", "--json", folder=folder)
        built = build(read_config(config))
    best = json.loads(text)["best"]
    met = best["speedup"] >= 1.3 and best["ci_low"] > 1
    found = f"{best['speedup']:.2f}x (95% {best['ci_low']:.2f} to {best['ci_high']:.2f})"
    what = "template campaign on the init example, over its default"
    yield what, "at least 1.3x, lower end above 1", found, met
    ratio = default_over_plain(built)
    what = "the init example's default over the plain loop (gcc -O3 -march=native)"
    yield what, "at least 1.0x", shown(ratio), ratio.estimate >= 1.0


def default_over_plain(built: Built) -> Interval:
    assert isinstance(built.target, Cpu)
    assert built.space.default is not None
    return confirmed(built.target, built.space.default, unscheduled_program(built.problem))


def bare(text: str, reference: str, data: Path, runner: str, pairs: int) -> float:
    """Seconds of a bare compiler call and a bare run of the calls that a screen makes."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "kernel.c", Path(folder) / "kernel.so"
        began = time.perf_counter()
        source.write_text(text)
        command = [*find_toolchain().command, *DEFAULT_FLAGS, "-shared", "-fPIC", "-fwrapv"]
        subprocess.run([*command, str(source), "-o", str(library), "-lm"], check=True)
        words = [runner, str(library), reference, str(data), str(pairs)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began


def build_runner(folder: Path) -> str:
    runner = folder / "bare_runner"
    flags = ["-O2", str(LOCAL / "bare_runner.c"), "-o", str(runner), "-ldl"]
    subprocess.run([*find_toolchain().command, *flags], check=True)
    return str(runner)


def screened(judge: Cpu, candidate: Candidate, reference: Candidate, pairs: int) -> Verdict:
    against = (Reference(Role.INCUMBENT, reference),)
    request = Request(candidate, Stage.SCREEN, against, pairs=pairs)
    (verdict,) = judge.evaluate([request])
    return verdict


def overhead() -> Iterator[Row]:
    """Fresh candidates, each built and judged, and beside it compiled and run bare: in turns."""
    problem, rng, pairs = matmul(), np.random.default_rng(1), 5
    workload = problem.workloads[0]
    assert problem.definition is not None
    space = ScheduleSpace(problem.definition(workload))
    ratios, passed = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        judge = Cpu(problem)
        cache = BuildCache(folder / "bare")
        builder = Builder(problem, find_toolchain(), DEFAULT_FLAGS, cache, Policy(), 1)
        runner, incumbent = build_runner(folder), incumbent_of(problem)
        screened(judge, incumbent, incumbent, 1)
        reference = str(builder.build(incumbent, workload).library)
        data = operands(problem, folder)
        while passed < OVERHEAD_CANDIDATES:
            candidate = space.sample(rng)
            began = time.perf_counter()
            verdict = screened(judge, candidate, incumbent, pairs)
            ours = time.perf_counter() - began
            samples = verdict.measurements[0].samples if verdict.measurements else ()
            # Those that a screen leaves after one pair make other calls than a bare run.
            if not samples or len(samples[0].samples_ns) < pairs:
                continue
            passed += 1
            text = builder.text(candidate, workload)
            ratios.append(ours / bare(text, reference, data, runner, pairs))
    found = statistics.median(ratios)
    low, high = np.quantile(ratios, (0.25, 0.75))
    text = f"{found:.2f}x (quartiles {low:.2f} to {high:.2f}, {len(ratios)} candidates)"
    # The timed calls only: fresh values, their answers and stressed calls are the judge's, whose
    # cost beside a judge that draws fresh values too is a row of benchmarks/judge.py.
    what = "from a candidate to its screened verdict, beside bare gcc and a run of the timed calls"
    yield what, "-", text, None


def incumbent_of(problem: Problem) -> Candidate:
    """A good register tile, as incumbents are."""
    from kernelwright.env.compiler.schedule.trace import parse_trace

    text = (
        "split('i', 8)\nsplit('j', 32)\nsplit('ji', 16, 'ju', 'jv')\n"
        "reorder('jo', 'io', 'p', 'ii', 'ju', 'jv')\nunroll('ii')\nunroll('ju')\nvectorize('jv')\n"
    )
    del problem
    return Candidate(Language.SCHEDULE, parse_trace(text))


def operands(problem: Problem, folder: Path) -> Path:
    """A file with what the bare runner needs: extents, sizes, and the input values."""
    workload = problem.workloads[0]
    arrays = problem.inputs(workload, np.random.default_rng(0))
    outputs = problem.reference(arrays)
    sizes = [(name, array.nbytes) for name, array in arrays.items()]
    itemsize = np.dtype(problem.tensors[-1].dtype).itemsize
    written = [(name, array.size * itemsize) for name, array in outputs.items()]
    path = folder / "operands"
    head = [len(workload.fixed), *workload.fixed.values(), len(sizes), len(written)]
    counts = [size for _, size in (*sizes, *written)]
    with path.open("wb") as file:
        file.write(np.array([*head, *counts], np.int64).tobytes())
        for name, _ in sizes:
            file.write(arrays[name].tobytes())
    return path


# What is no program, and must never be judged; and what a program that is wrong may end as.
NO_PROGRAM = {"truncated", "refused", "empty", "prose", "unparsable", "wrong_schema"}
FAILED = {"wrong", "crashed", "build_error", "timeout"}
# The class in which each fault is to be filed, where that has another name.
FILED_AS = {"prose": "unparsable"}


def faults() -> Iterator[Row]:
    """A mock that answers badly 40 times in 100, in every language; what became of each answer."""
    for config in ("matmul_llm_mock", "softmax_source_mock", "matmul_knobs_mock"):
        overrides = ["agents.backend.faults=0.4", f"budget={{calls: {FAULT_CALLS}}}"]
        overrides += ["target={name: cpu-model}"] if "source" not in config else []
        yield from fault_rows(config, overrides)


def fault_rows(config: str, overrides: Sequence[str]) -> Iterator[Row]:
    """Runs with one seed after the other, until there were enough calls."""
    matrix: Counter[tuple[str, str]] = Counter()
    seed = 0
    while sum(matrix.values()) < FAULT_CALLS:
        store = MemoryStore()
        built = build(read_config(config, [*overrides, f"seed={seed}"]))
        Campaign(replace(built.plan, confirm=ConfirmPlan(1, 2, 1)), store).run()
        matrix.update(confusion(store.events(), store.trials()))
        seed += 1
    calls = sum(matrix.values())
    bad = {pair: n for pair, n in matrix.items() if pair[0] in NO_PROGRAM}
    amiss = sum(n for (sent, got), n in bad.items() if got != FILED_AS.get(sent, sent))
    what = f"{config}, 40% faults: replies that are no program, filed as another class or judged"
    text = f"{amiss} of {sum(bad.values())} in {calls} calls"
    yield what, f"0 in {FAULT_CALLS:,} calls", text, amiss == 0
    wrong = {got: n for (sent, got), n in matrix.items() if sent == "wrong_code"}
    if wrong:
        slipped = sum(n for got, n in wrong.items() if got not in (*FAILED, "duplicate"))
        what = f"{config}, 40% faults: wrong code that passed"
        text = f"{slipped} of {sum(wrong.values())}: {dict(sorted(wrong.items()))}"
        yield what, "0", text, slipped == 0
    for (sent, got), count in sorted(matrix.items()):
        yield f"{config}: injected {sent}, became {got}", "printed", f"{count}", None


GROUPS = {
    "quickstart": quickstart,
    "plain": plain,
    "template": template,
    "overhead": overhead,
    "faults": faults,
}

if __name__ == "__main__":
    print_groups(GROUPS, __doc__)
