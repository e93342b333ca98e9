"""Knobs as a prompt writes them: their values and what is said of them, the rules between them, and
programs as positions of values (levels).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import numpy as np

from kernelwright.agents.programmer.reading import Sheet
from kernelwright.env.spaces.expressions import Constraint, ExpressionError

Levels = tuple[int, ...]
Choices = dict[str, list[object]]
_KNOB = re.compile(r"^- `(\w+)`: one of (.+)$", re.MULTILINE)
_RULE = re.compile(r"^- ([^`].*)$", re.MULTILINE)


def read_choices(sheet: Sheet) -> Choices:
    """The knobs and their values, as the prompt lists them."""
    found = {name: _read_values(text)[0] for name, text in _KNOB.findall(sheet.rules)}
    return {name: values for name, values in found.items() if values}


def read_meanings(sheet: Sheet) -> dict[str, str]:
    """What the prompt says that each knob is."""
    return {name: _read_values(text)[1].strip(" ()") for name, text in _KNOB.findall(sheet.rules)}


def _read_values(text: str) -> tuple[list[object], str]:
    """The JSON values at the start of a line, separated by commas, and what follows them."""
    out: list[object] = []
    at = 0
    while True:
        try:
            value, at = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            return out, text[at:]
        out.append(value)
        if text[at : at + 2] != ", ":
            return out, text[at:]
        at += 2


def read_rules(sheet: Sheet) -> list[Constraint]:
    """The rules between knobs, as the prompt lists them."""
    out = []
    for rule in _RULE.findall(sheet.rules):
        text, *given = rule.split("; ")
        where = tuple((name, value) for name, _, value in (g.partition(" = ") for g in given))
        try:
            rule_read = Constraint("rule", text, "", where)
        except ExpressionError:
            continue  # prose, for people
        out.append(rule_read)
    return out


def obeys(rules: Sequence[Constraint], values: Mapping[str, object]) -> bool:
    """Whether knob values obey the rules."""
    row = {name: np.array([value]) for name, value in values.items()}
    return all(rule.holds(row)[0] for rule in rules)


def levels_of(text: str, choices: Choices) -> Levels | None:
    """The positions of the values of a JSON object; a value that is none takes the last place, so
    that an answer with one wrong value can still be mended.
    """
    try:
        values = json.loads(text)
        return tuple(
            known.index(values[name]) if values[name] in known else len(known) - 1
            for name, known in choices.items()
        )
    except (ValueError, KeyError, TypeError):
        return None


def values_of(levels: Levels, choices: Choices) -> dict[str, object]:
    """The values at some positions, by knob."""
    pairs = zip(choices.items(), levels, strict=True)
    return {name: values[level] for (name, values), level in pairs}


def text_of(levels: Levels, choices: Choices) -> str:
    """The values at some positions as an answer has them."""
    return json.dumps(values_of(levels, choices))


def told_levels(told: str, choices: Choices, parent: Levels) -> Levels:
    """The parent with the values that words name: "set `bm` to 128", "bm = 128", "bm: 128"."""
    levels = list(parent)
    for place, (name, values) in enumerate(choices.items()):
        said = re.search(rf"\b{re.escape(name)}\b`?\s*(?:to|=|:)\s*\"?([\w.+-]*\w)", told)
        words = [str(value) for value in values]
        if said and said[1] in words:
            levels[place] = words.index(said[1])
    return tuple(levels)
