"""What the device and the profile let one expect of knob values, before any result speaks: rules of
thumb, in log2 of speed. What the knobs are is taken from what the prompt says of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwright.agents.programmer.knobtext import (
    Choices,
    Levels,
    read_meanings,
    told_levels,
    values_of,
)
from kernelwright.agents.programmer.reading import Sheet

Values = Mapping[str, object]
Rule = Callable[[Values], float]
# What a tile of twice the size is worth where data are what limits, and costs where registers
# spill; what a stage more is worth where copies are waited for; what a value that a page names is.
REUSE, SPILL, STAGE, READ = 0.15, 0.3, 0.2, 0.3
_DATA = ("l2", "l3", "hbm", "dram", "shared", "loads", "access")
_SIDE = re.compile(r"\b(rows|columns) of (\w+) a block computes")
_HELD = re.compile(r"\brows of \w+ in registers|\bvectors\b.*\bregister tile|side by side")
_LANES = re.compile(r"\belements of a vector\b")
_STAGES = re.compile(r"\bstages\b")
_GROUPS = re.compile(r"\b(?:warps|threads) in a block")


def expected(
    sheet: Sheet, choices: Choices, parent: Levels, asked: Sequence[Levels]
) -> NDArray[np.float64]:
    """What is expected of programs beside the parent; all alike where nothing is told."""
    meanings = read_meanings(sheet)
    origin = values_of(parent, choices)
    rules = [
        *_of_device(sheet, meanings, choices),
        *_of_profile(sheet, meanings, choices, origin),
        *_of_pages(sheet, choices, parent),
    ]
    values = [values_of(levels, choices) for levels in asked]
    return np.array([sum(rule(row) for rule in rules) for row in values], dtype=float)


def _named(meanings: Mapping[str, str], pattern: re.Pattern[str], choices: Choices) -> list[str]:
    """The knobs with positive whole numbers of which something is said."""
    found = [name for name, said in meanings.items() if pattern.search(said) and name in choices]
    return [name for name in found if all(type(v) is int and v > 0 for v in choices[name])]


def _number(values: Values, name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value


def _of_device(sheet: Sheet, meanings: Mapping[str, str], choices: Choices) -> list[Rule]:
    machine, sides = sheet.around.machine, _named(meanings, _SIDE, choices)
    rules: list[Rule] = []
    extents = {name: extent for name, extent in _sides(sheet, meanings).items() if name in sides}
    if machine is None:
        return []
    if machine.sms and extents:

        def filled(values: Values) -> float:
            """SMs that have a block, on average over the rounds."""
            blocks = math.prod(-(-extent // _number(values, n)) for n, extent in extents.items())
            rounds = -(-blocks // machine.sms)
            return math.log2(blocks / (rounds * machine.sms))

        rules.append(filled)
    held, lanes = _named(meanings, _HELD, choices), _named(meanings, _LANES, choices)
    if held and lanes:

        def tiled(values: Values) -> float:
            vectors = math.prod(_number(values, name) for name in held)
            return machine.hope(vectors, _number(values, lanes[0]))

        rules.append(tiled)
    return rules


def _sides(sheet: Sheet, meanings: Mapping[str, str]) -> dict[str, int]:
    """The knobs that cut an output into blocks, with the extent that each cuts."""
    shapes, extents = dict(sheet.outputs), dict(sheet.around.extents)
    out = {}
    for name, said in meanings.items():
        side = _SIDE.search(said)
        axes = re.findall(r"\w+", shapes.get(side[2], "")) if side else []
        if side and len(axes) == 2:
            axis = axes[0 if side[1] == "rows" else 1]
            if axis in extents:
                out[name] = extents[axis]
    return out


def _of_profile(
    sheet: Sheet, meanings: Mapping[str, str], choices: Choices, origin: Values
) -> list[Rule]:
    around = sheet.around
    tile = _named(meanings, _SIDE, choices) or _named(meanings, _HELD, choices)
    groups, stages = _named(meanings, _GROUPS, choices), _named(meanings, _STAGES, choices)
    spills = max(around.fact("spills") or 0.0, around.fact("spilled_words") or 0.0) > 0
    rules: list[Rule] = []

    def grown(values: Values, names: list[str]) -> float:
        """By how much some knobs are larger than the parent's, in log2."""
        return sum(math.log2(_number(values, n) / _number(origin, n)) for n in names)

    if spills:
        rules.append(lambda values: SPILL * (grown(values, groups) - grown(values, tile)))
    elif around.bound in _DATA:
        rules.append(lambda values: REUSE * grown(values, tile))
    if around.bound == "latency":
        rules.append(lambda values: STAGE * grown(values, stages))
    return rules


def _of_pages(sheet: Sheet, choices: Choices, parent: Levels) -> list[Rule]:
    """Values that retrieved pages name."""
    told = values_of(told_levels(sheet.around.advice, choices, parent), choices)
    origin = values_of(parent, choices)
    named = {name: value for name, value in told.items() if value != origin[name]}
    if not named:
        return []
    return [lambda values: READ * sum(values[name] == value for name, value in named.items())]
