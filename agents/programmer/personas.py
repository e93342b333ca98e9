"""Simulated models that differ: how good they are, what they get wrong, how long they take and what
they cost. All of it is declared, so what a choice among them should find is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.agents.programmer.faults import fault_rates
from kernelwright.env.options import OptionError, nearest


@dataclass(frozen=True, slots=True)
class Persona:
    """One simulated model.

    Args:
        about: what it is like.
        skill: 0 makes random moves, 1 the most promising ones.
        faults: its rates of faults, as the option of that name.
        first_s: virtual seconds until an answer begins.
        token_s: virtual seconds of every token of the answer.
        prompt_usd: what a million tokens of a prompt cost.
        completion_usd: what a million tokens of an answer cost.
    """

    about: str
    skill: float
    faults: float | str | Mapping[str, float]
    first_s: float
    token_s: float
    prompt_usd: float
    completion_usd: float

    @property
    def rates(self) -> dict[str, float]:
        """The rate of every class of faults."""
        return fault_rates(self.faults)


PLAIN = Persona("no faults, no time, no price", 0.7, 0.0, 0.0, 0.0, 0.0, 0.0)

PERSONAS: dict[str, Persona] = {
    "swift": Persona(
        "small, quick and cheap; random moves as often as not", 0.35, 0.15, 0.2, 0.004, 0.1, 0.4
    ),
    "careful": Persona(
        "slow and dear; the best moves, and hardly a fault", 0.95, 0.03, 4.0, 0.02, 3.0, 15.0
    ),
    "bold": Persona(
        "good moves, but one answer in three is illegal, wrong or known",
        0.85,
        {"illegal": 0.15, "wrong_answer": 0.1, "duplicate": 0.1},
        1.0,
        0.01,
        1.0,
        5.0,
    ),
    "frontier": Persona("a large model, with every fault", 0.8, "frontier", 2.0, 0.015, 2.0, 8.0),
    "hostile": Persona("three answers in ten cheat", 0.6, "hostile", 1.0, 0.01, 1.0, 4.0),
    "small": Persona(
        "a very small model in JSON mode; one answer in eight is whole",
        0.1,
        "small-json",
        0.1,
        0.02,
        0.0,
        0.0,
    ),
}


def persona_named(name: str | None) -> Persona:
    """The persona of a name, `PLAIN` for none.

    Raises:
        OptionError: if there is none; it lists the known ones.
    """
    if name is None:
        return PLAIN
    if name not in PERSONAS:
        near = nearest(name, PERSONAS)
        raise OptionError("persona", f"one of {', '.join(PERSONAS)}", repr(name), near)
    return PERSONAS[name]
