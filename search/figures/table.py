"""A reference figure, and the table of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from kernelwright.search.figures import SECTIONS


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: what it is, what is accepted, and what was recomputed; ``ok`` means exactly
    that.
    """

    id: str
    title: str
    accepted: str
    got: str
    ok: bool


def exact(figure_id: str, title: str, accepted: str, got: str) -> Figure:
    """A figure that must equal every printed digit."""
    return Figure(figure_id, title, accepted, got, got == accepted)


def between(
    figure_id: str, title: str, low: float, high: float, got: float, digits: int = 2
) -> Figure:
    """A figure that must lie in a range, both ends included."""
    accepted = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return Figure(figure_id, title, accepted, f"{got:.{digits}f}", low <= got <= high)


def all_figures() -> list[Figure]:
    """Every figure, recomputed in this call."""
    out: list[Figure] = []
    for section in SECTIONS:
        module, _, name = section.partition(":")
        out += getattr(import_module(module), name)()
    return out
