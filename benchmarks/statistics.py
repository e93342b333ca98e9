"""What becomes of claims: how often identical kernels are called faster, what is found, how far
off it is, and whether it is found again.

Prints a table with targets; exits with 1 if one falls short. ``--only GROUP`` prints a part. The
groups on this machine are to be run alone: they are about its noise.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one: this.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import statistics
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from table import Row, print_groups

from kernelwright.configs import api
from kernelwright.configs.build import build
from kernelwright.configs.judges import audit_judges
from kernelwright.configs.load import read_config
from kernelwright.configs.noise import rule_of
from kernelwright.env.types import Stage, Status
from kernelwright.evaluators.cpu.target import Cpu
from kernelwright.evaluators.rates import Rate
from kernelwright.evaluators.statistics import Interval, speedup
from kernelwright.search.finals import confirm_request
from kernelwright.search.laboratory.audit import (
    BIAS,
    COVERAGE,
    FALSE_WIN,
    FOUND,
    Laboratory,
    Sizes,
    on_this_machine,
    recorded_traces,
    simulated,
)
from kernelwright.search.laboratory.bench import Bench
from kernelwright.search.laboratory.bout import bout
from kernelwright.search.laboratory.judge import BASELINE, BenchJudge, kernel
from kernelwright.search.laboratory.noise import HARDEST, Clock, Traces
from kernelwright.search.laboratory.real import (
    STEPS,
    Calibration,
    calibrated,
    compared,
    planted,
    planted_problem,
    regrets,
)
from kernelwright.search.store import DATABASE, SqliteStore
from kernelwright.search.summary import best_trial

# More planted comparisons than an audit has: a coverage of 95% is seen within a percent or so.
SIZES = Sizes(real_planted=50)
MOST_CALLS, REGRET, FLIPS = 6000, 1.005, 0.005
# Of selection: kernels a search, whose log speeds spread by so much, and how many searches.
SELECTED, SPREAD, SELECTIONS, REAL_SELECTIONS = 300, 0.02, 100, 5
REAL_SELECTED = 60
# Candidates that are judged twice.
TWICE = 200
# Campaigns whose claims are measured again.
CAMPAIGNS = ("matmul_schedule", "softmax_schedule", "transpose_schedule")
SMALL = ("budget.trials=12", "judge.race.rounds=2")


@cache
def judge() -> Cpu:
    """This machine's judge of planted kernels."""
    return Cpu(planted_problem())


@cache
def traces() -> Traces:
    """Identical kernels on this machine."""
    return recorded_traces(judge(), SIZES.traces)


@cache
def calibration() -> Calibration:
    """Of the planted kernel."""
    return calibrated(judge())


def tell(what: str) -> None:
    """Say what is done, beside the table."""
    print(what, file=sys.stderr)


def on_clocks() -> Iterator[Row]:
    """Simulated clocks, and traces of this machine."""
    with Laboratory(rule_of, progress=tell) as laboratory:
        found = simulated(laboratory, SIZES, traces())
    aa, search = (Rate(found[key]["count"], found[key]["total"]) for key in ("aa", "search"))
    model = "2% lognormal, 2% window drift, 5% heavy tails"
    met = aa.share <= FALSE_WIN and aa.high <= 2 * FALSE_WIN
    yield f"A/A false win, one comparison, simulated ({model})", "at most 1%", str(aa), met
    what = f"A/A false win, search of {SIZES.candidates} identical, on {found['search_clock']}"
    yield what, "at most 1%", str(search), search.share <= FALSE_WIN
    for speedup_, share in found["power"].items():
        calls = found["calls"][speedup_]
        least = FOUND.get(float(speedup_))
        target = f"at least {least:.0%}, at most {MOST_CALLS:,} calls" if least else "-"
        got = f"{share:.1%} of {SIZES.powers}; {calls['mean']:.0f} calls, {calls['most']} at most"
        met_ = share >= least and calls["most"] <= MOST_CALLS if least else None
        yield f"a true {speedup_}x among {SIZES.candidates}, drift and tails", target, got, met_
    yield from quality("simulated", found["coverage"], found["bias"], 6 * SIZES.planted)


def quality(where: str, coverage: float, bias: float, count: int) -> Iterator[Row]:
    """Coverage and mean bias of confirmed measurements."""
    low, high = COVERAGE
    rate = Rate(round(coverage * count), count)
    met = low <= coverage <= high
    yield f"coverage of 95% intervals, {where}", "93 to 97%", str(rate), met
    got = f"{100 * bias:+.3f} points"
    yield f"mean bias, all confirmed, {where}", "within 0.1 points", got, abs(bias) <= BIAS


def on_machine() -> Iterator[Row]:
    """Real kernels with planted speedups."""
    found = on_this_machine(judge(), SIZES, tell)
    real, searched = found["aa_real"], found["search_real"]
    what = f"A/A false win, real, {found['aa_process_pairs']} process pairs"
    got = f"{real['wins']} of {real['comparisons']}, {found['aa_losses']} false losses"
    yield what, "at most 1 of 60", got, real["wins"] <= 1
    got = f"{searched['wins']} of {searched['searches']}"
    what = f"A/A false win, real searches of {SIZES.candidates} identical"
    yield what, "0 of 20", got, searched["wins"] == 0
    for speedup_, share in found["power_real"].items():
        yield f"a real {speedup_}x, confirmed alone", "-", f"{share:.0%}", None
    yield (
        "real confirmations that the host was too noisy for",
        "-",
        str(found["unstable_real"]),
        None,
    )
    count = SIZES.real_singles + 5 * SIZES.real_planted - found["unstable_real"]
    yield from quality("real", found["coverage_real"], found["bias_real"], count)


def selection() -> Iterator[Row]:
    """How much is lost by what is chosen: the best kernel's speed over the chosen one's."""
    for clock in (HARDEST, traces()):
        lost = [_regret(clock, seed) for seed in range(SELECTIONS)]
        what = f"selection regret, {SELECTED} kernels of {SPREAD:.0%} spread, {clock.name}"
        got = statistics.geometric_mean(lost)
        yield what, f"at most {REGRET}", f"{got:.4f} (greatest {max(lost):.4f})", got <= REGRET
    lost = []
    for seed in range(REAL_SELECTIONS):
        tell(f"real selection {seed + 1} of {REAL_SELECTIONS}")
        logs = SPREAD * np.random.default_rng(seed).standard_normal(REAL_SELECTED)
        lost.append(regrets(judge(), np.exp(logs).tolist(), calibration()))
    got = statistics.geometric_mean(lost)
    what = f"selection regret, {REAL_SELECTED} real kernels of {SPREAD:.0%} spread"
    yield what, f"at most {REGRET}", f"{got:.4f} (greatest {max(lost):.4f})", got <= REGRET


def _regret(clock: Clock, seed: int) -> float:
    rng = np.random.default_rng([8, seed])
    speedups = np.exp(SPREAD * rng.standard_normal(SELECTED)).tolist()
    bench = Bench(clock, speedups, rng)
    candidates = [kernel(number) for number in range(SELECTED)]
    found = bout(BenchJudge(bench, rng), BASELINE, candidates)
    return float(max(speedups) / speedups[found.finalists[0]])


def again() -> Iterator[Row]:
    """Verdicts of the same candidates, twice."""
    rng = np.random.default_rng(9)
    flips, changes = 0, 0
    for number in range(TWICE):
        if number % 20 == 0:
            tell(f"judged twice: {number} of {TWICE}")
        steps = calibration().steps(float(np.exp(rng.normal(0, 0.03))))
        truth = calibration().speedup(STEPS, steps)
        first, second = (
            compared(judge(), planted(STEPS), planted(steps), truth).status for _ in range(2)
        )
        flips += {first, second} == {Status.WIN, Status.LOSS}
        changes += first is not second
    rate = Rate(flips, TWICE)
    yield "win to loss or back on re-evaluation", "at most 0.5%", str(rate), rate.share <= FLIPS
    yield "any change of a verdict on re-evaluation", "-", str(Rate(changes, TWICE)), None


def campaigns() -> Iterator[Row]:
    """The claims of campaigns, measured again without one."""
    for name in CAMPAIGNS:
        tell(f"the campaign {name}")
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            api.run(name, out, overrides=SMALL)
            with SqliteStore(out / DATABASE, readonly=True) as store:
                best = best_trial(store.trials())
        assert best is not None
        claim = best.verdict(Stage.CONFIRM)
        contest = build(read_config(name, SMALL)).plan.contest
        (found,) = contest.evaluator.evaluate([confirm_request(contest, best, 0)])
        one, two = (None if v is None else speedup(v) for v in (claim, found))
        both = (
            one is not None
            and two is not None
            and one.low <= two.estimate <= one.high
            and two.low <= one.estimate <= two.high
        )
        got = f"{_interval(one)} and {_interval(two)}"
        yield (
            f"{name}: the campaign's claim and a benchmark's",
            "within each other's intervals",
            got,
            both,
        )


def _interval(found: Interval | None) -> str:
    return (
        "none" if found is None else f"{found.estimate:.3f} ({found.low:.3f} to {found.high:.3f})"
    )


def judges() -> Iterator[Row]:
    """One hostile and noisy campaign under two judges."""
    report: dict[str, Any] = audit_judges(quick=False, noisy=True, seen=lambda what: None).as_json()
    for tally in report["judges"]:
        best, ours = tally["best"], tally["profile"] != "naive"
        exploits = f"{tally['exploits_believed']} of {tally['exploits']} exploits believed"
        twins = f"{tally['twins_faster']} of {tally['twins']} twins called faster"
        got = f"{exploits}, {twins}"
        if best is not None:
            got += f"; best: {best['claimed']:.3g}x by {best['name']} ({best['kind']})"
        is_met = not (tally["exploits_believed"] or tally["twins_faster"])
        target = "none believed" if ours else "-"
        yield f"hostile campaign under {tally['profile']}", target, got, is_met if ours else None


GROUPS = {
    "clocks": on_clocks,
    "machine": on_machine,
    "selection": selection,
    "again": again,
    "campaigns": campaigns,
    "judges": judges,
}

if __name__ == "__main__":
    print_groups(GROUPS, __doc__ or "")
