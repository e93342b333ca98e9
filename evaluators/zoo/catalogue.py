"""The catalogue of exploit classes: the ways in which evaluators of machine-written kernels have
been, or could be, deceived, and what answers each of them here.

The rows are in ``catalogue.yaml``. What was in fact tried and caught is no part of them: that comes
from an audit (`evaluators.zoo.audit`), and `evaluators.zoo.page` puts the two side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

CATALOGUE_FILE = Path(__file__).parent / "catalogue.yaml"

FAMILIES = MappingProxyType(
    {
        "A": "not computing the answer",
        "B": "replaying an old answer",
        "C": "evading or bending the clock",
        "D": "tampering with the judge",
        "E": "not a kernel, or not the contest",
    }
)


class Priority(StrEnum):
    """How bad it is if a class gets through."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"


class Defence(StrEnum):
    """What a defence amounts to: there is nothing to attack, a check sees the attack, a rule of the
    contest settles it, or nothing answers it yet.
    """

    CONSTRUCTION = "construction"
    DETECTED = "detected"
    POLICY = "policy"
    OPEN = "open"

    @property
    def words(self) -> str:
        """How a page says it."""
        return "impossible by construction" if self is Defence.CONSTRUCTION else self.value


@dataclass(frozen=True, slots=True)
class ExploitClass:
    """One way of deceiving an evaluator.

    ``mechanism`` says how it works and ``defence`` what this project does about it, a sentence
    each; ``meant`` is what the defence is meant to amount to. ``no_c_form`` is the reason why a
    kernel in C cannot even try, empty for those that can.
    """

    id: str
    name: str
    mechanism: str
    defence: str
    priority: Priority
    meant: Defence
    no_c_form: str = ""

    def __post_init__(self) -> None:
        if self.id[:1] not in FAMILIES or not self.id[1:].isdecimal():
            families = ", ".join(FAMILIES)
            raise ValueError(f"expected an id of a family {families} and a number, found {self.id}")
        for item in fields(self):
            text = getattr(self, item.name)
            if not isinstance(text, str) or (not text and item.name != "no_c_form"):
                raise ValueError(f"{self.id}: {item.name}: expected a text, found {text!r}")

    @property
    def family(self) -> str:
        """The letter of its family, a key of `FAMILIES`."""
        return self.id[0]

    @property
    def has_c_form(self) -> bool:
        """Whether a kernel in C can try it."""
        return not self.no_c_form


@cache
def catalogue() -> MappingProxyType[str, ExploitClass]:
    """Every exploit class by its id, family by family.

    Raises:
        ValueError: if a row of the file is no exploit class; it says which.
    """
    table = yaml.safe_load(CATALOGUE_FILE.read_text())
    return MappingProxyType({name: _class(name, row) for name, row in table.items()})


def _class(name: str, row: dict[str, Any]) -> ExploitClass:
    known = {item.name for item in fields(ExploitClass)} - {"id"}
    if unknown := sorted(set(row) - known):
        raise ValueError(f"{CATALOGUE_FILE.name}: {name}: unknown key {unknown[0]!r}")
    try:
        kinds = {"priority": Priority(row["priority"]), "meant": Defence(row["meant"])}
        return ExploitClass(**(row | kinds), id=name)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{CATALOGUE_FILE.name}: {name}: {error}") from error
