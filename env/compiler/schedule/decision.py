"""Decisions: what a program that writes schedules drew, recorded in the trace beside the directives
that came of it (the sampling instructions of MetaSchedule, Shao et al., NeurIPS 2022, section 3).

A decision is an entry of the trace like a directive. It is written before the first directive that
may use it and does nothing to loops: directives hold plain numbers, so the scheduled procedure is a
function of them alone, and a candidate's key leaves decisions out. What an entry has is the name of
the decision, its value and its domain::

    sample_perfect_tile('i_tile', 64, 16, 4, 2, 8)         # 64 = 4 * 2 * 8, the last at most 16
    sample_partitioned_tile('j_tile', 64, 1, 16, 2, 2, 16)  # 64 = 2 * 2 * 16, 16 divides 2 * 16
    sample_categorical('lanes', 8, 4, 8, 16)               # 8 of 4, 8 and 16
    sample_compute_location('blurx', 'yo', 'root', 'yo')   # 'yo' of 'root' and 'yo'

Probabilities are the program's and no part of the record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.schedule.domain import Choice, Domain, Tile, Value
from kernelwright.env.types import Directive, Scalar

DECISIONS = (
    "sample_perfect_tile",
    "sample_partitioned_tile",
    "sample_categorical",
    "sample_compute_location",
)


@dataclass(frozen=True, slots=True)
class Decision:
    """A name, what it may be, and what it is."""

    name: str
    domain: Domain
    value: Value

    @property
    def entry(self) -> Directive:
        """The entry of a trace that records it."""
        return Directive(self.domain.op, self.name, self.domain.arguments(self.value))


def read_decision(entry: Directive) -> Decision:
    """The decision that an entry records.

    Raises:
        ScheduleError: if it records none, or its value is not in its domain.
    """
    try:
        domain, value = _parsed(entry.op, entry.args)
    except (TypeError, ValueError) as error:
        reason = str(error).removeprefix(f"{entry.op}: ")
        raise ScheduleError(entry.op, f"{entry.target}: {reason}") from None
    fault = domain.fault(value)
    if fault is not None:
        raise ScheduleError(entry.op, f"{entry.target}: {fault}")
    return Decision(entry.target, domain, value)


def _parsed(op: str, args: Sequence[Scalar]) -> tuple[Domain, Value]:
    match op, tuple(args):
        case "sample_perfect_tile", (extent, most, *factors):
            return Tile(_whole(extent), len(factors), max_inner=_whole(most)), tuple(factors)
        case "sample_partitioned_tile", (extent, place, inner, *factors):
            parts, where = len(factors), _whole(place)
            if not 0 <= where <= parts or _whole(inner) < 1:
                expected = f"a place from 0 to {parts} and a factor of at least 1"
                raise ValueError(f"expected {expected}, found {place!r} and {inner!r}")
            tile = Tile(_whole(extent), parts, position=where, inner_factor=_whole(inner))
            return tile, tuple(factors)
        case (("sample_categorical" | "sample_compute_location"), (value, *options)):
            return Choice(tuple(options), op=op), (value,)
    if op in DECISIONS:
        raise ValueError(f"expected a value and its domain, found {tuple(args)}")
    raise ValueError(f"expected one of {', '.join(DECISIONS)}, found {op!r}")


def decisions_of(trace: Sequence[Directive]) -> dict[str, Decision]:
    """The decisions that a trace records, by name.

    Raises:
        ScheduleError: if one is not in its domain, or two have one name.
    """
    found: dict[str, Decision] = {}
    for entry in trace:
        if entry.is_decision:
            decision = read_decision(entry)
            if decision.name in found:
                raise ScheduleError(entry.op, f"expected one decision {decision.name}, found two")
            found[decision.name] = decision
    return found


def without_decisions(trace: Sequence[Directive]) -> tuple[Directive, ...]:
    """The directives of a trace alone."""
    return tuple(step for step in trace if not step.is_decision)


def _whole(value: Scalar) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise ValueError(f"expected a whole number, found {value!r}")
    return value


def nearest_entry(entry: Directive) -> Directive | None:
    """The entry with a value of its own domain instead of one that is not: of a choice the option
    most like it, of a tile the outermost factor that its others leave. None if there is none.
    """
    try:
        domain, value = _parsed(entry.op, entry.args)
    except (TypeError, ValueError):
        return None
    if isinstance(domain, Choice):
        found: Value = (min(domain.options, key=lambda option: _unlike(option, value[0])),)
    else:
        inner = [v for v in value[1:] if isinstance(v, int) and v > 0]
        extent = domain.extent if isinstance(domain, Tile) else 0
        found = (extent // max(1, math.prod(inner)), *inner)
    if domain.fault(found) is not None:
        return None
    return Decision(entry.target, domain, found).entry


def _unlike(option: Scalar, value: Scalar) -> float:
    """How different an option is from a value: numbers by their distance, anything else as text."""
    if isinstance(option, int | float) and isinstance(value, int | float):
        return abs(option - value)
    return 1.0 - SequenceMatcher(None, str(option), str(value)).ratio()
