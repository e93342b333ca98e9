"""The audit of noise: what a rule claims where the truth is known, counted.

Simulated jobs run side by side in processes of their own; what is measured on this machine is
measured one after the other, by calling the judge itself.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from kernelwright.env.protocols import Evaluator
from kernelwright.env.types import Status
from kernelwright.evaluators.rates import Rate
from kernelwright.search.laboratory.bench import Bench, Claim, Rule
from kernelwright.search.laboratory.noise import HARDEST, SIMULATED, Clock, Traces, traces_of
from kernelwright.search.laboratory.real import (
    STEPS,
    Comparison,
    compared,
    faster,
    identical_search,
    planted,
    recorded,
)

# The speedups that are planted.
PLANTED = (1.00, 1.01, 1.02, 1.03, 1.05, 1.10)
OURS = "ours"
# How many candidates a search has.
CANDIDATES = 300
# How many planted comparisons there are between two calibrations.
_CALIBRATED = 10
# What our own rule has to keep: the greatest rates of false wins, the least of finding a true 3%
# and 5%, the coverage of 95% intervals, and the greatest mean bias.
FALSE_WIN, FOUND, COVERAGE, BIAS = 0.01, {1.03: 0.80, 1.05: 0.99}, (0.93, 0.97), 0.001


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything an audit does: simulated comparisons of identical kernels, simulated
    searches (of identical kernels on recorded traces, and with one faster kernel), comparisons a
    planted speedup, jobs a cell of the table of rules; and on this machine comparisons of identical
    kernels, searches among them, comparisons a planted speedup, and recorded process pairs.
    """

    singles: int = 20_000
    searches: int = 2_000
    powers: int = 1_000
    planted: int = 2_000
    cells: int = 200
    real_singles: int = 60
    real_searches: int = 20
    real_planted: int = 20
    traces: int = 150
    candidates: int = CANDIDATES


QUICK = Sizes(400, 40, 40, 100, 20, 6, 1, 3, 20, 100)
_TRACED_PAIRS = 24
# The keys of a row of the table of rules.
_FIGURES = (
    *("rule", "clock", "aa_false_win", "search_false_win"),
    *(f"found_{share:.2f}" for share in FOUND),
    *("bias", "calls", "error"),
)


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a rule: on which clock, with how many candidates, of which the first has this
    speedup, and which seed.
    """

    rule: str
    clock: Clock
    speedup: float
    candidates: int
    seed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rule claimed, if anything, and how many calls it timed."""

    claim: Claim | None
    speedup: float
    calls: int

    @property
    def is_false(self) -> bool:
        """Whether a kernel that is no faster was called faster."""
        claim = self.claim
        if claim is None or not claim.is_win:
            return False
        return claim.candidate != 0 or self.speedup <= 1

    @property
    def is_found(self) -> bool:
        """Whether the faster kernel was called faster."""
        return self.claim is not None and self.claim.is_win and not self.is_false

    @property
    def bias(self) -> float | None:
        """The named speedup over the truth, less 1; None without a claim."""
        if self.claim is None:
            return None
        truth = self.speedup if self.claim.candidate == 0 else 1.0
        return self.claim.speedup / truth - 1

    @property
    def covers(self) -> bool | None:
        """Whether the interval holds the truth; None without one."""
        claim = self.claim
        if claim is None or claim.low is None or claim.high is None:
            return None
        truth = self.speedup if claim.candidate == 0 else 1.0
        return claim.low <= truth <= claim.high


class RuleError(RuntimeError):
    """A rule that raised, or claimed what is no claim: whose it was and what it did."""


def run_job(resolve: Callable[[str], Rule], job: Job) -> Outcome:
    """Run one job. The faster kernel is anywhere among the candidates; in the outcome it is 0, and
    any other 1.

    Raises:
        RuleError: if the rule raises or its claim is none.
    """
    rng = np.random.default_rng(job.seed)
    place = int(rng.integers(job.candidates))
    speedups = [1.0] * job.candidates
    speedups[place] = job.speedup
    bench = Bench(job.clock, speedups, rng)
    try:
        claim = resolve(job.rule)(bench)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a rule is anybody's
        raise RuleError(f"the rule {job.rule}: {type(error).__name__}: {error}") from None
    wrong = _no_claim(claim, job.candidates)
    if wrong:
        raise RuleError(f"the rule {job.rule}: expected a claim, found {wrong}")
    if claim is not None:
        claim = replace(claim, candidate=int(claim.candidate != place))
    return Outcome(claim, job.speedup, bench.calls)


def _no_claim(claim: object, candidates: int) -> str | None:
    """Why this is no claim among so many candidates, None if it is one (or none was made)."""
    if claim is None:
        return None
    if not isinstance(claim, Claim):
        return f"{type(claim).__name__} {claim!r:.80}"
    if not 0 <= claim.candidate < candidates:
        return f"candidate {claim.candidate} of {candidates}"
    figures = [claim.speedup, *(v for v in (claim.low, claim.high) if v is not None)]
    if not (math.isfinite(claim.speedup) and claim.speedup > 0) or any(map(math.isnan, figures)):
        return f"speedup {claim.speedup!r}, limits {claim.low!r} and {claim.high!r}"
    return None


class Laboratory:
    """Runs jobs side by side, in processes that last as long as it is open.

    Args:
        resolve: what gives a rule for its name; importable by name, for other processes call it.
        workers: how many processes.
        progress: told what is done next.
    """

    def __init__(
        self,
        resolve: Callable[[str], Rule],
        workers: int | None = None,
        progress: Callable[[str], None] = lambda what: None,
    ) -> None:
        self._resolve, self.progress = resolve, progress
        self._workers = workers or len(os.sched_getaffinity(0))
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def run(self, jobs: Iterable[Job]) -> list[Outcome]:
        """The outcomes in the order of the jobs."""
        listed = list(jobs)
        task = partial(run_job, self._resolve)
        if self._workers == 1 or len(listed) < 2 * self._workers:
            return [task(job) for job in listed]
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self._workers, get_context("spawn"))
        chunk = max(1, min(100, len(listed) // (4 * self._workers)))
        return list(self._pool.map(task, listed, chunksize=chunk))


def jobs_of(
    rule: str, clock: Clock, speedup: float, candidates: int, count: int, label: int
) -> list[Job]:
    """So many jobs that differ in their seeds."""
    per_mille = round(1000 * speedup)
    return [
        Job(rule, clock, speedup, candidates, (label, per_mille, candidates, number))
        for number in range(count)
    ]


def simulated(laboratory: Laboratory, sizes: Sizes, traces: Traces | None) -> dict[str, Any]:
    """What our rule does on simulated clocks and, if given, on recorded traces."""
    laboratory.progress("identical kernels, one by one")
    singles = laboratory.run(jobs_of(OURS, HARDEST, 1.0, 1, sizes.singles, 1))
    out: dict[str, Any] = {"aa": _rate(o.is_false for o in singles)}
    out["aa_false_win"] = out["aa"]["rate"]
    clock: Clock = traces or HARDEST
    laboratory.progress("searches among identical kernels")
    nulls = laboratory.run(jobs_of(OURS, clock, 1.0, sizes.candidates, sizes.searches, 2))
    out["search"] = _rate(o.is_false for o in nulls)
    out["search_false_win"] = out["search"]["rate"]
    out["search_clock"] = clock.name
    out["power"], out["calls"], out["powers"] = {}, {}, sizes.powers
    for planted_speedup in PLANTED[1:]:
        laboratory.progress(f"searches for one kernel of {planted_speedup:.2f}x")
        found = laboratory.run(
            jobs_of(OURS, HARDEST, planted_speedup, sizes.candidates, sizes.powers, 3)
        )
        name = f"{planted_speedup:.2f}"
        out["power"][name] = statistics.fmean(o.is_found for o in found)
        out["calls"][name] = {
            "mean": statistics.fmean(o.calls for o in found),
            "most": max(o.calls for o in found),
        }
    laboratory.progress("planted speedups, one by one")
    confirmed = [
        o
        for planted_speedup in PLANTED
        for o in laboratory.run(jobs_of(OURS, HARDEST, planted_speedup, 1, sizes.planted, 4))
    ]
    out |= _quality([o.covers for o in confirmed], [o.bias for o in confirmed])
    return out


def rules_table(
    laboratory: Laboratory, rules: Sequence[str], clocks: Sequence[Clock], sizes: Sizes
) -> list[dict[str, Any]]:
    """How often each rule is wrong and right on each clock: one row a rule and clock."""
    rows: list[dict[str, Any]] = []
    for rule in rules:
        for clock in clocks:
            laboratory.progress(f"the rule {rule} on {clock.name}")
            try:
                rows.append(_row(laboratory, rule, clock, sizes))
            except RuleError as error:
                # What others did is not lost by it.
                rows = [row for row in rows if row["rule"] != rule]
                rows.append({**dict.fromkeys(_FIGURES), "rule": rule, "error": str(error)})
                break
    return rows


def _row(laboratory: Laboratory, rule: str, clock: Clock, sizes: Sizes) -> dict[str, Any]:
    """One rule on one clock."""
    count = sizes.candidates
    single = laboratory.run(jobs_of(rule, clock, 1.0, 1, 5 * sizes.cells, 5))
    null = laboratory.run(jobs_of(rule, clock, 1.0, count, sizes.cells, 6))
    found = {
        share: laboratory.run(jobs_of(rule, clock, share, count, sizes.cells, 7)) for share in FOUND
    }
    claims = [o.bias for outcomes in (null, *found.values()) for o in outcomes]
    return {
        "rule": rule,
        "clock": clock.name,
        "aa_false_win": statistics.fmean(o.is_false for o in single),
        "search_false_win": statistics.fmean(o.is_false for o in null),
        **{
            f"found_{share:.2f}": statistics.fmean(o.is_found for o in outcomes)
            for share, outcomes in found.items()
        },
        "bias": _mean(claims),
        "calls": round(statistics.fmean(o.calls for o in null)),
        "error": None,
    }


def on_this_machine(
    evaluator: Evaluator, sizes: Sizes, progress: Callable[[str], None]
) -> dict[str, Any]:
    """What the judge says of real kernels: identical ones, one by one and in searches, and planted
    speedups.
    """
    same = planted(STEPS)
    singles, searches = [], []
    for number in range(sizes.real_singles):
        progress(f"identical kernels on this machine, {number + 1} of {sizes.real_singles}")
        singles.append(compared(evaluator, same, same, 1.0))
    for number in range(sizes.real_searches):
        progress(f"searches on this machine, {number + 1} of {sizes.real_searches}")
        searches.append(identical_search(evaluator, sizes.candidates))
    confirmed = list(singles)
    found: dict[str, list[Comparison]] = {}
    errors = [0.0]
    for planted_speedup in PLANTED[1:]:
        for done in range(0, sizes.real_planted, _CALIBRATED):
            progress(f"{planted_speedup:.2f}x on this machine, {done} of {sizes.real_planted}")
            count = min(_CALIBRATED, sizes.real_planted - done)
            some, error = faster(evaluator, planted_speedup, count)
            found.setdefault(f"{planted_speedup:.2f}", []).extend(some)
            confirmed.extend(some)
            errors.append(error)
    wins = sum(c.status is Status.WIN for c in singles)
    told = [c for c in confirmed if c.interval is not None]
    quality = _quality([c.covers for c in told], [c.bias for c in told])
    return {
        "aa_real": {"wins": wins, "comparisons": len(singles)},
        "aa_process_pairs": 10 * len(singles),
        "aa_losses": sum(c.status is Status.LOSS for c in singles),
        "search_real": {
            "wins": sum(any(t.status is Status.WIN for t in b.confirmed) for b in searches),
            "searches": len(searches),
        },
        "power_real": {
            name: statistics.fmean(c.status is Status.WIN for c in each)
            for name, each in found.items()
        },
        "coverage_real": quality["coverage"],
        "bias_real": quality["bias"],
        "unstable_real": sum(c.status is Status.UNSTABLE for c in confirmed),
        "calibration_error": max(errors),
    }


def recorded_traces(evaluator: Evaluator, process_pairs: int) -> Traces:
    """Traces of identical kernels on this machine, in fresh processes at fresh places."""
    return traces_of("traces of this machine", recorded(evaluator, process_pairs, _TRACED_PAIRS))


def audit(
    evaluator: Evaluator,
    sizes: Sizes,
    rules: Sequence[str],
    laboratory: Laboratory,
    *,
    with_real: bool = True,
) -> dict[str, Any]:
    """The whole audit as one JSON object; ``shortfalls`` says what our own rule does not keep."""
    progress = laboratory.progress
    progress("recording identical kernels")
    traces = recorded_traces(evaluator, sizes.traces) if with_real else None
    out = simulated(laboratory, sizes, traces)
    clocks: list[Clock] = [*SIMULATED, *([traces] if traces else [])]
    out["rules"] = rules_table(laboratory, rules, clocks, sizes)
    out["candidates"] = sizes.candidates
    out["failed_rules"] = [row["error"] for row in out["rules"] if row["error"]]
    if with_real:
        out |= on_this_machine(evaluator, sizes, progress)
    out["shortfalls"] = shortfalls(out)
    return out


def shortfalls(found: Mapping[str, Any]) -> list[str]:
    """What our own rule does not keep, as far as so many jobs can tell."""
    out = []
    for key, what in (("aa", "comparisons"), ("search", "searches")):
        rate = found[key]
        if rate["low"] > FALSE_WIN:
            out.append(f"false wins in {rate['count']} of {rate['total']} {what}")
    if found.get("aa_real", {"wins": 0})["wins"] > 1:
        out.append(f"{found['aa_real']['wins']} false wins on this machine")
    if found.get("search_real", {"wins": 0})["wins"] > 0:
        out.append(f"{found['search_real']['wins']} false wins in searches on this machine")
    for least_speedup, least in FOUND.items():
        share = found["power"].get(f"{least_speedup:.2f}", 0.0)
        rate_found = Rate(round(share * found["powers"]), found["powers"])
        if rate_found.high < least:
            out.append(f"a true {least_speedup:.2f}x is found in {rate_found}")
    if found["coverage"] is None:
        return [*out, "nothing was confirmed, so nothing is known of coverage and bias"]
    low, high = found["coverage_interval"]
    if high < COVERAGE[0] or low > COVERAGE[1]:
        out.append(f"coverage {found['coverage']:.3f}")
    if abs(found["bias"]) - 2 * found["bias_error"] > BIAS:
        out.append(f"bias {found['bias']:.4f}")
    return out


def _rate(flags: Iterable[bool]) -> dict[str, Any]:
    listed = list(flags)
    rate = Rate(sum(listed), len(listed))
    return {
        "count": rate.count,
        "total": rate.total,
        "rate": rate.share,
        "low": rate.low,
        "high": rate.high,
    }


def _quality(covers: Sequence[bool | None], biases: Sequence[float | None]) -> dict[str, Any]:
    known = [flag for flag in covers if flag is not None]
    values = [bias for bias in biases if bias is not None]
    if not known or not values:
        return {"coverage": None, "coverage_interval": (0.0, 1.0), "bias": 0.0, "bias_error": 0.0}
    rate = Rate(sum(known), len(known))
    spread = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return {
        "coverage": rate.share,
        "coverage_interval": (rate.low, rate.high),
        "bias": statistics.fmean(values),
        "bias_error": spread,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
