"""Everything a campaign needs, resolved: names have become objects, numbers have been checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kernelwright.env.protocols import Evaluator, Space
from kernelwright.env.types import CacheState, Candidate, Reference, Role
from kernelwright.search.driver import Driver, Journal
from kernelwright.search.tuning.serving import Serving


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent: screened candidates, wall seconds with the confirmation included, and
    calls, tokens and money of a language model. None is no limit.
    """

    trials: int | None = None
    seconds: float | None = None
    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class StopRules:
    """When to stop early: at a share of the roofline, after so many trials without a better one, at
    a speedup over the baseline, or at a time in us.
    """

    roofline: float | None = None
    plateau: int | None = None
    speedup: float | None = None
    time_us: float | None = None


@dataclass(frozen=True, slots=True)
class ConfirmPlan:
    """How many finalists may be confirmed, on how many process pairs of how many pairs, and the
    chance that the whole search claims a win for what is no faster.
    """

    finalists: int = 3
    process_pairs: int = 10
    pairs: int = 8
    alpha: float = 0.01


@dataclass(frozen=True, slots=True)
class Baseline:
    """What speedups are measured against; ``is_trial`` makes it trial 0."""

    name: Literal["unscheduled", "default", "library"] | str
    candidate: Candidate
    is_trial: bool = False


@dataclass(frozen=True, slots=True)
class Contest:
    """How finalists are chosen and confirmed: by whom, against what, in how many rounds of a race
    and with which error rate; ``state`` is where operands are when a call starts. ``race_extra``
    gives the race a purse instead: at most this share of the entrants' samples (`search.halving`).
    """

    evaluator: Evaluator
    baseline: Candidate
    library: Candidate | None = None
    confirm: ConfirmPlan = ConfirmPlan()
    race_rounds: int = 5
    state: CacheState = CacheState.COLD
    race_extra: float | None = None

    @property
    def against_baseline(self) -> tuple[Reference, ...]:
        """What screens and heights are paired with."""
        return (Reference(Role.BASELINE, self.baseline),)

    @property
    def confirm_against(self) -> tuple[Reference, ...]:
        """What a confirmation is paired with: the baseline, and the library where its time is
        known.
        """
        library = () if self.library is None else (Reference(Role.LIBRARY, self.library),)
        return self.against_baseline + library


@dataclass(frozen=True, slots=True)
class Plan:
    """A campaign, ready to run.

    ``screen_pairs`` is the number of pairs in a screen of a target that measures; ``race_rounds``
    how many rounds there are between screens and confirmations; ``state`` is where operands are
    when a call starts; ``floors_ns`` are the least times by workload that `StopRules.roofline` is a
    share of, those of the verdicts unless given; ``serving`` is what the tuning cache knows.
    ``screen_cut`` is the ratio to the best time from which on a screen may end early
    (`search.cut`), ``race_extra`` the purse of the race (see `Contest`).
    """

    space: Space
    evaluator: Evaluator
    make_driver: Callable[[Journal], Driver]
    baseline: Baseline
    budget: Budget
    library: Candidate | None = None
    stop: StopRules = StopRules()
    confirm: ConfirmPlan = ConfirmPlan()
    batch: int = 8
    seed: int = 0
    screen_pairs: int = 1
    race_rounds: int = 5
    state: CacheState = CacheState.COLD
    floors_ns: tuple[tuple[str, float], ...] = ()
    serving: Serving | None = None
    screen_cut: float | None = None
    race_extra: float | None = None

    @property
    def contest(self) -> Contest:
        """What its finals are played by."""
        return Contest(
            self.evaluator,
            self.baseline.candidate,
            self.library,
            self.confirm,
            self.race_rounds,
            self.state,
            self.race_extra,
        )

    @property
    def against_baseline(self) -> tuple[Reference, ...]:
        """What the first screens are paired with."""
        return self.contest.against_baseline
