"""The parts of a prompt: which is cut before which, and how much room each may take.

What a program must be (``task``, ``language``), the program to improve and the form of the answer
are never cut: a shorter prompt without them asks something else.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A part that may be cut.

    Args:
        name: the value of the templates that it stands for.
        least: how many of its entries stay whatever the budget.
        characters: the most that it may take, budget or not.
        about: what is cut of it, in which order.
    """

    name: str
    least: int
    characters: int
    about: str


KEPT = ("task", "language", "parent", "answer")
"""What is never cut."""

PARTS: tuple[Part, ...] = (
    Part("tried", 2, 24_000, "attempts, the oldest first; the best stay"),
    Part("inspirations", 0, 24_000, "other good programs, the last first"),
    Part("known", 0, 9_000, "retrieved passages, the least fitting first"),
    Part("details", 0, 6_000, "logs of failures, the oldest first"),
    Part("profile", 0, 4_000, "what is known of the parent's run: its log, then the last lines"),
    Part("failures", 0, 9_000, "failed programs, the oldest first"),
    Part("pending", 0, 24_000, "programs proposed in this batch, the oldest first"),
    Part("device", 0, 3_000, "the machine's figures, the last first"),
)
"""In the order in which they are cut."""
