"""What an agent usually asks for a proposal, so that it can be said beforehand what a budget buys.

A driver may offer it as ``usual``, for its own options; of one that does not it is as of the plain
agent. All figures are measured with the simulated model (`docs/backends.md`), on knobs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usual:
    """The questions of an agent.

    ``others`` are those for a proposal beside the one for its program (plans, reviews, actions);
    ``growth`` is how much longer than the first a question is on average, less 1; ``share`` is the
    part of the proposals that the model writes, and ``most`` how many it writes at most (None: it
    writes as long as there is a budget).
    """

    others: float = 0.0
    growth: float = 0.5
    share: float = 1.0
    most: int | None = None


def growth(history: int, inspirations: int = 0) -> float:
    """That of questions which list so many of what was tried and show other programs."""
    return 0.3 + 0.02 * history + 0.05 * inspirations
