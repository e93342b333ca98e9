"""What formats of others have no word for, as one block of our own in their metadata: names of
extents, a library's samples, a default, and the units that times had.
"""

from __future__ import annotations

from typing import Any

from kernelwright.env.landscape.record import Landscape
from kernelwright.env.landscape.units import in_unit, unit_of

BLOCK = "kernelwright"


def block_of(landscape: Landscape, unit: str, *, named: bool) -> dict[str, Any]:
    """The block of a landscape in a file of times in ``unit``; ``named`` says that its extents need
    their names.
    """
    block: dict[str, Any] = {}
    if named:
        block["extents"] = dict(landscape.extents)
    if landscape.library is not None:
        block |= {"library": landscape.library, "library_ns": list(landscape.library_ns)}
    if landscape.default is not None:
        block["default"] = dict(landscape.default)
    first = landscape.entries[0]
    if (first.unit, first.cost_unit) != (unit, unit):
        block |= {"unit": first.unit, "cost_unit": first.cost_unit}
    return block


def in_block(block: Any) -> dict[str, Any]:
    """The fields of a `Landscape` that a block holds.

    Raises:
        TypeError: if it is no such block.
    """
    if block is None:
        return {}
    if not isinstance(block, dict):
        raise TypeError(f"{BLOCK}: expected a mapping, found {block!r:.80}")
    fields: dict[str, Any] = {}
    if "extents" in block:
        fields["extents"] = tuple(dict(block["extents"]).items())
    if "library" in block:
        fields |= {"library": block["library"], "library_ns": tuple(block["library_ns"])}
    if "default" in block:
        fields["default"] = tuple(sorted(dict(block["default"]).items()))
    return fields


def units_in(block: Any, unit: str) -> tuple[str, str]:
    """The units of times and costs before they were written in ``unit``."""
    given = block if isinstance(block, dict) else {}
    return unit_of(given.get("unit", unit)), unit_of(given.get("cost_unit", unit))


def rounded(landscape: Landscape, unit: str) -> tuple[str, ...]:
    """What a file of times in ``unit`` loses: the last digits of those of another unit."""
    lost = 0
    for entry in landscape.entries:
        costs = tuple([cost for _, cost in entry.costs])
        for times, own in ((entry.times, entry.unit), (costs, entry.cost_unit)):
            if own != unit:
                lost += in_unit(in_unit(times, own, unit), unit, own) != times
    if not lost:
        return ()
    entries = "1 configuration" if lost == 1 else f"{lost} configurations"
    return (f"the last digit of times of {entries}, whose unit is not {unit}",)
