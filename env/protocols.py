"""The seams of the world: what a space and a judge must offer. No base classes; anything of this
shape fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.types import Candidate, Evidence, Request, Verdict, Workload


@dataclass(frozen=True, slots=True)
class Violation:
    """Why a candidate is not in a space: the rule's class code and a sentence with the values."""

    code: str
    reason: str


class Space(Protocol):
    """The candidates of one language; ``default`` is the plain one, where there is one."""

    @property
    def can_sample(self) -> bool:
        """Whether it has candidates to draw; a space of source text has not."""
        ...

    @property
    def default(self) -> Candidate | None:
        """The candidate that a search starts from."""
        ...

    def check(self, candidate: Candidate) -> tuple[Violation, ...]:
        """Every rule that the candidate breaks; empty if it is in the space."""
        ...

    def canonical(self, candidate: Candidate) -> Candidate:
        """The one candidate that stands for all spellings of the same program."""
        ...

    def sample(self, rng: np.random.Generator) -> Candidate:
        """A valid candidate."""
        ...

    def neighbours(self, candidate: Candidate) -> tuple[Candidate, ...]:
        """The valid candidates one step away, in a fixed order."""
        ...

    def mutate(
        self, candidate: Candidate, rng: np.random.Generator, steps: int = 1
    ) -> Candidate | None:
        """A valid candidate some steps away, or None if this draw gave none."""
        ...

    def crossover(
        self, left: Candidate, right: Candidate, rng: np.random.Generator
    ) -> Candidate | None:
        """A valid mixture of two candidates, or None if this draw gave none."""
        ...

    def features(self, candidate: Candidate) -> NDArray[np.float64]:
        """Numbers for a model to learn from."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A space that can say more of a candidate that is not in it than `Space.check`, which is asked
    often.
    """

    def explain(self, candidate: Candidate) -> tuple[Violation, ...]:
        """The violations of `Space.check`, with what would have been accepted."""
        ...


def explained(space: Space, candidate: Candidate) -> tuple[Violation, ...]:
    """Why a candidate is not in a space, in as many words as the space has; empty if it is."""
    violations = space.check(candidate)
    return space.explain(candidate) if violations and isinstance(space, Explains) else violations


class Evaluator(Protocol):
    """A judge. It does not know where candidates come from.

    ``deterministic`` promises that a verdict is a function of the request and the evaluator's
    settings, so it may be remembered.
    """

    @property
    def deterministic(self) -> bool:
        """Whether equal requests get equal verdicts."""
        ...

    @property
    def evidence(self) -> Evidence:
        """Where its times come from."""
        ...

    def evaluate(self, requests: Sequence[Request]) -> Sequence[Verdict]:
        """One verdict for each request, in order."""
        ...

    def floor_ns(self, workload: Workload) -> float:
        """The least time physics allows, in ns (the roofline); 0 where it is not known."""
        ...


@runtime_checkable
class Builds(Protocol):
    """An evaluator that can build a candidate before it is asked about it, from any thread."""

    def prepare(self, candidate: Candidate) -> None:
        """Build it; a failure is kept for the verdict."""
        ...


@runtime_checkable
class Estimates(Protocol):
    """An evaluator that knows how long a request will take."""

    def estimate_s(self, request: Request) -> float:
        """Wall time in s."""
        ...


@runtime_checkable
class Repeats(Protocol):
    """An evaluator whose times vary, so that another look at a candidate tells more."""

    @property
    def repeats(self) -> bool:
        """Whether they do."""
        ...


@runtime_checkable
class Discloses(Protocol):
    """An evaluator that draws from a secret of its own, and says which when it is done with it."""

    def disclose(self) -> str | None:
        """The secret used so far, for the record; None if none was. Another one is drawn for what
        is judged afterwards.
        """
        ...


@runtime_checkable
class Oracle(Protocol):
    """What only scoring may ask: the truth behind the samples. Drivers never see it."""

    def true_ns(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """The noise-free time of each candidate in ns; NaN where it fails."""
        ...
