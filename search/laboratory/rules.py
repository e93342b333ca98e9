"""Rules for saying that a kernel is faster: ours, and those that published searchers use.

Each is a function of a bench (`Rule`). Of many candidates each of theirs takes the best by its own
figure. Sources: KernelBench (Ouyang et al. 2025) times 3 warm-up and 10 to 100 calls, takes the
mean rounded to three digits and counts a speedup above 1 (fast_1); Triton's ``do_bench`` runs
100 ms of calls and returns their mean; timeit's documentation recommends the minimum.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelwright.env.types import Stage, Status
from kernelwright.evaluators.statistics import speedup
from kernelwright.search.laboratory.bench import Bench, Claim
from kernelwright.search.laboratory.bout import bout
from kernelwright.search.laboratory.judge import BASELINE, BenchJudge, kernel
from kernelwright.search.laboratory.noise import Factors

# What others ask of a speedup before they call it one.
FASTER, SOME = 1.0, 1.02
_DO_BENCH_NS = 1e8
# So many calls of a short kernel say no more: they share their window.
_DO_BENCH_MOST = 1000


def ours(bench: Bench) -> Claim | None:
    """Pairs in fresh processes, a race on medians and Huber's location, one confirmation after the
    other on fresh samples at one error rate.
    """
    rng = np.random.default_rng(int(bench.times(None, 1)[0] * 2**20) % 2**63)
    judge = BenchJudge(bench, rng)
    found = bout(judge, BASELINE, [kernel(number) for number in range(bench.candidates)])
    confirmed = found.confirmed
    if not confirmed:
        return None
    best = next((t for t in confirmed if t.status is Status.WIN), confirmed[0])
    verdict = best.verdict(Stage.CONFIRM)
    interval = None if verdict is None else speedup(verdict)
    if interval is None:
        return None
    won = best.status is Status.WIN
    return Claim(best.number, interval.estimate, won, interval.low, interval.high)


def mean_of_10(bench: Bench) -> Claim:
    """The mean of 10 calls over that of a baseline timed once; a win above 1.02."""
    return _best(bench, 10, np.mean, SOME)


def min_of_30(bench: Bench) -> Claim:
    """The least of 30 calls over that of a baseline timed once; a win above 1.02."""
    return _best(bench, 30, np.min, SOME)


def median_of_50(bench: Bench) -> Claim:
    """The median of 50 calls over that of a baseline timed once; a win above 1.02."""
    return _best(bench, 50, np.median, SOME)


def fast_1(bench: Bench) -> Claim:
    """KernelBench's: the mean of 10 calls, rounded to three digits; a win above 1."""
    return _best(bench, 10, lambda times: float(f"{np.mean(times):.3g}"), FASTER)


def do_bench(bench: Bench) -> Claim:
    """Triton's: the mean of 100 ms of calls; a win above 1.02."""
    calls = int(min(_DO_BENCH_MOST, max(1, _DO_BENCH_NS / bench.time_ns)))
    return _best(bench, calls, np.mean, SOME)


def _best(bench: Bench, calls: int, figure: Callable[[Factors], float], threshold: float) -> Claim:
    base = figure(bench.times(None, calls))
    ratios = [base / figure(bench.times(number, calls)) for number in range(bench.candidates)]
    best = int(np.argmax(ratios))
    return Claim(best, float(ratios[best]), bool(ratios[best] > threshold))
