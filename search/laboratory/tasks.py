"""Schedulers of tasks, tried where the truth is known: what the weighted total time is after so
many trials, when a task and when the total is near the best, and what becomes of the others beside
a task in which nothing ever passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelwright.env.protocols import Evaluator, Oracle
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Evidence, Request, Stage, Status, Verdict, Workload
from kernelwright.search.efficiency import best_true_ns
from kernelwright.search.store import MemoryStore
from kernelwright.search.tasks.campaign import Task, TaskCampaign
from kernelwright.search.tasks.standing import Scheduler
from kernelwright.search.trial import Trial


@dataclass(frozen=True, slots=True)
class Truth:
    """The best true time of each task of a knob space, and its baseline's, in ns."""

    best_ns: tuple[float, ...]
    baseline_ns: tuple[float, ...]

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> Truth:
        """Every configuration of every task, asked of its judge."""
        best, baseline = [], []
        for task in tasks:
            space, oracle = task.plan.space, _oracle(task)
            assert isinstance(space, KnobSpace)
            best.append(best_true_ns(oracle, [space.candidate(i) for i in space.valid.tolist()]))
            baseline.append(float(oracle.true_ns([task.plan.baseline.candidate])[0]))
        return cls(tuple(best), tuple(baseline))


@dataclass(frozen=True, slots=True)
class Played:
    """A campaign of tasks, scored. A task is worth the true time of its best measured candidate, of
    its baseline while that is the best.

    Attributes:
        excess: the weighted total over the best possible one, after each trial.
        reached: of each task, the number of trials of all tasks after which it was near the best
            for the first time; None if it never was.
        counts: the trials that each task had.
    """

    excess: tuple[float, ...]
    reached: tuple[int | None, ...]
    counts: tuple[int, ...]

    def trials_to(self, excess: float) -> int | None:
        """After how many trials the weighted total stays within this share of the best."""
        above = [i for i, value in enumerate(self.excess) if value > 1 + excess]
        last = above[-1] + 1 if above else 0
        return last + 1 if last < len(self.excess) else None

    @property
    def trials_to_all(self) -> int | None:
        """After how many trials every task had been near its best."""
        known = [number for number in self.reached if number is not None]
        return max(known) if len(known) == len(self.reached) else None


def play(
    tasks: Sequence[Task],
    truth: Truth,
    *,
    scheduler: Scheduler,
    trials: int,
    share: bool,
    within: float = 0.05,
) -> Played:
    """Search once (nothing is confirmed), every task in a fresh store."""
    fresh = [replace(task, store=MemoryStore()) for task in tasks]
    # Where nothing can pass there is nothing to win.
    hopeless = [isinstance(task.plan.evaluator, Failing) for task in tasks]
    weights = np.where(hopeless, 0.0, [task.weight for task in tasks])
    least = float(weights @ np.array(truth.best_ns))
    now, heights = np.array(truth.baseline_ns), [0.0] * len(tasks)
    excess: list[float] = []
    reached: list[int | None] = [None] * len(tasks)

    def watch(number: int, told: Sequence[Trial]) -> None:
        for trial in told:
            if trial.objective is not None and trial.objective > heights[number]:
                heights[number] = trial.objective
                now[number] = _oracle(tasks[number]).true_ns([trial.candidate])[0]
            excess.append(float(weights @ now) / least)
            if reached[number] is None and now[number] <= (1 + within) * truth.best_ns[number]:
                reached[number] = len(excess)

    campaign = TaskCampaign(
        fresh, MemoryStore(), scheduler=scheduler, trials=trials, share=share, watch=watch
    )
    campaign.run(confirm=False)
    counts = tuple(len(task.store.trials()) for task in fresh)
    return Played(tuple(excess), tuple(reached), counts)


def _oracle(task: Task) -> Oracle:
    oracle = task.plan.evaluator
    assert isinstance(oracle, Oracle)
    return oracle


class Failing:
    """A judge under which nothing passes, where another one knows what would be true."""

    deterministic = True

    def __init__(self, judge: Evaluator) -> None:
        self._judge = judge

    @property
    def evidence(self) -> Evidence:
        """As of the other judge."""
        return self._judge.evidence

    def floor_ns(self, workload: Workload) -> float:
        """As of the other judge."""
        return self._judge.floor_ns(workload)

    def evaluate(self, requests: Sequence[Request]) -> list[Verdict]:
        """Everything fails to build."""
        assert all(request.stage is Stage.SCREEN for request in requests)
        return [Verdict(Status.BUILD_ERROR, "hopeless") for _ in requests]


def with_hopeless(tasks: Sequence[Task], number: int) -> list[Task]:
    """The tasks, one of them with a judge under which nothing passes."""
    out = list(tasks)
    plan = out[number].plan
    out[number] = replace(out[number], plan=replace(plan, evaluator=Failing(plan.evaluator)))
    return out
