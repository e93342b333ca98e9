"""A bandit over strategies, or over which knobs to change.

``level: strategies``: other drivers propose, all of them told everything, and a credit decides who
is asked. An arm's credit is the share of its latest proposals that were the best so far when they
came, later ones weighing more (the area under the curve of its successes), plus a bonus for arms
tried rarely, which falls as 1 / √uses (Ansel et al., OpenTuner, PACT 2014, section 4; the bonus is
that of UCB1, Auer et al. 2002).

``level: groups``: every proposal changes the best known configurations, and the bandit learns which
knobs to change: first which group, then in the group one knob alone or all together. Values are
drawn anew, so knobs that must move together can (docs/coordinate-descent.md).
"""

from __future__ import annotations

import itertools
import math
from bisect import insort
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Proposal
from kernelwright.search.driver import Driver
from kernelwright.search.drivers.credits import Credits
from kernelwright.search.drivers.pool import EXHAUSTED, ListedPool, listed
from kernelwright.search.trial import Trial

STRATEGIES = ("hill_climb", "annealing", "evolution", "cost_model")
TRIES = 16
PARENTS = 8


class Bandit:
    """Learns which strategy, or which knobs, to bet on."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        level: Annotated[
            Literal["strategies", "groups"], Field(description="what is chosen among")
        ] = "strategies",
        strategies: Annotated[
            tuple[str, ...], Field(min_length=1, description="drivers, with their default options")
        ] = STRATEGIES,
        groups: Annotated[
            tuple[tuple[str, ...], ...],
            Field(description="knobs that are changed together; none is all pairs"),
        ] = (),
        initial: Annotated[
            int, Field(ge=1, description="random configurations before knobs are changed")
        ] = 16,
        window: Annotated[
            int, Field(ge=1, le=10_000, description="outcomes of an arm that are remembered")
        ] = 50,
        explore: Annotated[
            float, Field(ge=0, description="the weight of the bonus for arms tried rarely")
        ] = 0.1,
    ) -> None:
        credit = {"window": window, "explore": explore}
        self._level: _Strategies | _Groups = (
            _Strategies(space, strategies, seed, batch, credit)
            if level == "strategies"
            else _Groups(space, groups, initial, seed, credit)
        )
        self._arm: dict[str, tuple[str, ...]] = {}
        self._best = -math.inf

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._level.stopped

    @property
    def credits(self) -> dict[str, Credits]:
        """The credits: of strategies one table, of groups one more for each group."""
        return self._level.credits

    def ask(self, n: int) -> list[Proposal]:
        """Proposals of the arms with the best credit."""
        out: list[Proposal] = []
        while len(out) < n:
            found = self._level.propose()
            if found is None:
                break
            arm, candidate, parents = found
            self._arm[candidate.key] = arm
            says = " ".join(("bandit", *(part for part in arm if part)))
            out.append(Proposal(candidate, says, parents))
        return out

    def tell(self, trials: Sequence[Trial]) -> None:
        """Credit whoever proposed what was the best so far, and tell the trials to all."""
        for trial in trials:
            value = -math.inf if trial.objective is None else trial.objective
            success = value > self._best
            self._best = max(value, self._best)
            for table, arm in zip(
                self._tables(trial), self._arm.pop(trial.candidate.key, ()), strict=False
            ):
                if arm in table.uses:
                    table.record(arm, success=success)
        self._level.tell(trials)

    def _tables(self, trial: Trial) -> list[Credits]:
        arm = self._arm.get(trial.candidate.key, ())
        names = ["", *arm][: len(arm)]
        return [self.credits[name] for name in names if name in self.credits]


class _Strategies:
    """Other drivers as arms."""

    def __init__(
        self,
        space: Space,
        strategies: Sequence[str],
        seed: int,
        batch: int,
        credit: Mapping[str, Any],
    ) -> None:
        self._drivers = {
            name: _driver(name)(space, seed=seed + place, batch=batch)
            for place, name in enumerate(strategies)
        }
        if len(self._drivers) != len(strategies):
            raise OptionError("strategies", "different drivers", ", ".join(strategies))
        self.credits = {"": Credits(strategies, **credit)}
        self._seen: set[str] = set()
        self._spent: dict[str, str] = {}

    @property
    def stopped(self) -> str | None:
        """Why the last of the drivers stopped."""
        return list(self._spent.values())[-1] if len(self._spent) == len(self._drivers) else None

    def propose(self) -> tuple[tuple[str, ...], Any, tuple[str, ...]] | None:
        """Something new from the driver with the best credit."""
        while len(self._spent) < len(self._drivers):
            arm = self.credits[""].choose()
            driver = self._drivers[arm]
            for _ in range(TRIES):
                proposals = driver.ask(1)
                if not proposals:
                    self._drop(arm, driver)
                    break
                (proposal,) = proposals
                if proposal.candidate.key not in self._seen:
                    self._seen.add(proposal.candidate.key)
                    return (arm,), proposal.candidate, proposal.parents
        return None

    def _drop(self, arm: str, driver: Driver) -> None:
        self._spent[arm] = driver.stopped or EXHAUSTED
        self.credits[""].uses.pop(arm, None)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Everything to everybody."""
        self._seen.update(trial.candidate.key for trial in trials)
        for driver in self._drivers.values():
            driver.tell(trials)


class _Groups:
    """Groups of knobs as arms, and in each its knobs and the whole."""

    def __init__(
        self,
        space: Space,
        groups: Sequence[Sequence[str]],
        initial: int,
        seed: int,
        credit: Mapping[str, Any],
    ) -> None:
        self._space = listed(space)
        self._pool = ListedPool(self._space, np.random.default_rng(seed))
        self._initial, self._proposed = initial, 0
        chosen = _checked(self._space, groups) or _pairs(self._space)
        self._groups = {"+".join(group): group for group in chosen}
        self.credits = {"": Credits(list(self._groups), **credit)}
        for name, group in self._groups.items():
            inside = [*group, "all"] if len(group) > 1 else list(group)
            self.credits[name] = Credits(inside, **credit)
        self._best: list[tuple[float, int, int]] = []  # (-objective, trial number, index)

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._pool.stopped

    def propose(self) -> tuple[tuple[str, ...], Any, tuple[str, ...]] | None:
        """A random configuration first; then a group, what of it, and values for that."""
        arm: tuple[str, ...] = ()
        index: int | None = None
        parents: tuple[str, ...] = ()
        if self._proposed >= self._initial and self._best:
            group = self.credits[""].choose()
            part = self.credits[group].choose()
            names = self._groups[group] if part == "all" else (part,)
            arm, parent = (group, part), self._parent()
            index = self._changed(parent, names)
            parents = (self._space.candidate(parent).key,)
        if index is None:
            arm, parents, index = (), (), self._pool.draw()
        if index is None:
            return None
        self._pool.remove(index)
        self._proposed += 1
        return arm, self._space.candidate(index), parents

    def _parent(self) -> int:
        """One of the best, the better the more likely."""
        draw = self._pool.uniform
        return self._best[int(min(draw(), draw(), draw()) * len(self._best))][2]

    def _changed(self, index: int, names: Sequence[str]) -> int | None:
        """The configuration with other values of all these knobs, unvisited; None if no draw gave
        one.
        """
        levels = self._space.unflat(index)
        for _ in range(TRIES):
            new = list(levels)
            for name in names:
                knob = self._space.names.index(name)
                new[knob] = self._other_level(levels[knob], self._space.shape[knob])
            found = self._space.flat(new)
            if found in self._pool:
                return found
        return None

    def _other_level(self, level: int, size: int) -> int:
        """Another level: a step away as often as any."""
        draw = self._pool.uniform
        if size == 1:
            return level
        if draw() < 0.5:
            up = level == 0 or (level < size - 1 and draw() < 0.5)
            return level + 1 if up else level - 1
        return (level + 1 + int(draw() * (size - 1))) % size

    def tell(self, trials: Sequence[Trial]) -> None:
        """Keep the best as parents."""
        for trial in trials:
            index = self._space.index(trial.candidate)
            self._pool.remove(index)
            if trial.objective is not None:
                insort(self._best, (-trial.objective, trial.number, index))
                del self._best[PARENTS:]


def _driver(name: str) -> Any:
    from kernelwright.search.drivers import DRIVERS

    usable = [other for other in DRIVERS if other not in ("bandit", "listed")]
    if name not in usable:
        raise OptionError("strategies", f"some of {', '.join(usable)}", repr(name))
    module, _, attribute = DRIVERS[name].partition(":")
    return getattr(import_module(module), attribute)


def _checked(space: KnobSpace, groups: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """The groups, of knobs that there are, each knob once in a group."""
    for group in groups:
        if not group or len(set(group)) != len(group) or not set(group) <= set(space.names):
            expected = f"groups of different knobs among {', '.join(space.names)}"
            raise OptionError("groups", expected, str(list(group)))
    return tuple(dict.fromkeys(tuple(group) for group in groups))


def _pairs(space: KnobSpace) -> tuple[tuple[str, ...], ...]:
    """All pairs of knobs that have several values: which must move together is to be learned."""
    names = [knob.name for knob in space.knobs if len(knob.values) > 1] or list(space.names)
    return tuple(itertools.combinations(names, min(2, len(names))))
