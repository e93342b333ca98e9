"""Drivers replayed on recorded spaces: asked and told, without a campaign around them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from recordings import BUDGET, Minima, Space, load

from kernelwright.env.spaces.expressions import own_rule
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import (
    CacheState,
    Evidence,
    Knob,
    Measurement,
    Role,
    Stage,
    Status,
    Unpaired,
    Verdict,
)
from kernelwright.search.driver import Driver
from kernelwright.search.trial import Trial

Make = Callable[[KnobSpace, int, int], Driver]
FAILED = Verdict(Status.BUILD_ERROR, "recorded")


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded space as a knob space, with verdict and time over best by flat index."""

    space: KnobSpace
    verdicts: dict[int, tuple[Verdict, float | None]]
    ratios: dict[int, float]


@dataclass(frozen=True, slots=True)
class Run:
    """A search: its running minima, what it used of the budget, and CPU s of the driver alone."""

    minima: Minima
    used: int
    cpu_s: float
    stopped: str | None


def knob_space(recorded: Space) -> KnobSpace:
    """The space by its published rules, enumerated."""
    knobs = tuple(Knob(name, values) for name, values in recorded.knobs.items())
    names = frozenset(recorded.knobs)
    return KnobSpace(knobs, [own_rule(rule, names) for rule in recorded.restrictions])


@lru_cache(maxsize=32)
def recording(name: str) -> Recording:
    """The recorded space of that name."""
    recorded = load(name)
    space = knob_space(recorded)
    verdicts, ratios = {}, {}
    for config, taken in recorded.times.items():
        index = space.index_of(dict(zip(recorded.knobs, config, strict=True)))
        ratios[index] = taken / recorded.best
        verdicts[index] = (FAILED, None)
        if math.isfinite(taken):
            verdicts[index] = (timed(taken, recorded.best), math.log2(recorded.best / taken))
    assert set(verdicts) == set(space.valid.tolist())
    return Recording(space, verdicts, ratios)


def timed(taken: float, best: float) -> Verdict:
    """A verdict with one recorded time, beside the best."""
    samples = Unpaired((taken,), (best,), reference_exact=True)
    measurement = Measurement(
        "recorded",
        Role.BASELINE,
        "best",
        samples,
        "recorded",
        CacheState.COLD,
        Evidence.RECORDED,
        "recorded",
    )
    return Verdict(Status.OK, measurements=(measurement,))


def play(
    name: str, make: Make, seed: int, *, batch: int = 1, budget: int = BUDGET, enough: float = 1.0
) -> Run:
    """A search of a recorded space, up to a budget or until the best is within ``enough``.

    Raises:
        ValueError: if the driver proposes something invalid or again.
    """
    replayed = recording(name)
    cpu = time.process_time()
    driver = make(replayed.space, seed, batch)
    cpu_s = time.process_time() - cpu
    found: list[tuple[int, float]] = []
    seen: set[int] = set()
    best, ask = math.inf, 0
    while len(seen) < budget and best > enough:
        ask += 1
        cpu = time.process_time()
        proposals = driver.ask(batch)
        cpu_s += time.process_time() - cpu
        if not proposals:
            break
        trials = []
        for proposal in proposals[: budget - len(seen)]:
            index = replayed.space.index(proposal.candidate)
            if index in seen or index not in replayed.verdicts:
                raise ValueError(f"{name}: expected something new, found {proposal.candidate}")
            verdict, objective = replayed.verdicts[index]
            screens = ((Stage.SCREEN, verdict),)
            trials.append(
                Trial(
                    len(seen), proposal.candidate, screens, objective, proposal.proposer, (), 0, ask
                )
            )
            seen.add(index)
            if replayed.ratios[index] < best:
                best = replayed.ratios[index]
                found.append((len(seen), best))
        cpu = time.process_time()
        driver.tell(trials)
        cpu_s += time.process_time() - cpu
    return Run(tuple(found), len(seen), cpu_s, driver.stopped)
