"""The table of agents on the analytic model: how many evaluations, and how many calls of the mock
model, it takes each of them to come within 5% of the best of ``gemm_model``.

    python benchmarks/agent_drivers.py [--seeds N] [CONFIG]…

A run ends where the target is reached, or with the budget of its campaign; one that never got there
counts as infinite in the median, and its calls are those of the whole run.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import argparse
import math
import statistics
from dataclasses import dataclass

from kernelwright.configs.build import build
from kernelwright.configs.load import read_config
from kernelwright.search.campaign import Campaign
from kernelwright.search.efficiency import best_true_ns, target_watch
from kernelwright.search.store import MemoryStore
from kernelwright.search.trial import MODEL_CALL

AGENTS = ("llm", "best_of_n", "sequential", "refine", "evolve", "tool_loop", "team", "hybrid")
CONFIGS = tuple(f"gemm_model_{name}" for name in (*AGENTS, "random", "evolution"))
WITHIN = 0.05
TRIALS = 128


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: trials to the target (infinite if it was not reached), and what they took."""

    trials: float
    calls: int
    tokens: int
    best: float


def run(config: str, seed: int) -> Outcome:
    """A campaign up to its target; ``best`` is the true time of the best as a multiple of the
    least.
    """
    built = build(read_config(config, [f"seed={seed}", f"budget={{trials: {TRIALS}}}"]))
    space, target = built.space, built.target
    least = best_true_ns(target, [space.candidate(i) for i in space.valid.tolist()])
    store = MemoryStore()
    reached = target_watch(target, least, WITHIN)
    stop = Campaign(built.plan, store, until=reached).run()
    trials, events = store.trials(), store.events()
    calls = [event for event in events if event.kind == MODEL_CALL]
    passed = [trial for trial in trials if trial.objective is not None]
    best = max(passed, key=lambda trial: trial.objective, default=None)
    time = math.inf if best is None else float(target.true_ns([best.candidate])[0]) / least
    done = stop.rule == "until"
    return Outcome(
        len(trials) if done else math.inf, len(calls), sum(e.tokens for e in calls), time
    )


def main() -> None:
    """Print a row a campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("configs", nargs="*", default=CONFIGS)
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    print(f"{given.seeds} seeds, {TRIALS} trials, within {WITHIN:.0%}")
    print("| campaign | reached | trials: median | quartiles | calls: median | tokens: median |")
    print("| --- | --- | --- | --- | --- | --- |")
    for config in given.configs:
        runs = [run(config, seed) for seed in range(given.seeds)]
        trials = sorted(each.trials for each in runs)
        middle = statistics.median(trials)
        low, high = trials[len(trials) // 4], trials[(3 * len(trials)) // 4]
        found = sum(map(math.isfinite, trials))
        calls = statistics.median(each.calls for each in runs)
        tokens = statistics.median(each.tokens for each in runs)
        row = (f"{found} of {len(runs)}", f"{middle:g}", f"{low:g} to {high:g}")
        print(f"| `{config}` | {' | '.join(row)} | {calls:g} | {tokens:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
