"""Choosing knob values: a step from the parent towards what the listed results speak for."""

from __future__ import annotations

import json
import math
import random
import re
from itertools import combinations, product

import numpy as np

from kernelwright.agents.dialects.fences import blocks
from kernelwright.agents.programmer.reading import Sheet
from kernelwright.env.spaces.expressions import Constraint, ExpressionError

Levels = tuple[int, ...]
Choices = dict[str, list[object]]
_KNOB = re.compile(r"^- `(\w+)`: one of (.+)$", re.MULTILINE)
_RULE = re.compile(r"^- ([^`].*)$", re.MULTILINE)
# A plan's words for a value: "set `bm` to 128", "bm = 128", "bm: 128".
_SAID = re.compile(r"`?\b(\w+)\b`?\s*(?:to|=|:)\s*`?\"?([\w.+-]*\w)")
# How much a failure next door counts against a step, in log2 of speed.
DREAD = 1.0
TRIES = 32
# How much is lost by the unknown with every step further.
FAR = 0.1


def propose(sheet: Sheet, rng: random.Random, skill: float) -> str:
    """A JSON object. With chance ``skill`` it is the most promising step, else any values."""
    choices = read_choices(sheet)
    parent = _levels(sheet.parent, choices)
    repeated = sheet.wrong is not None and sheet.wrong[0] == "duplicate"
    refused = sheet.wrong is not None and sheet.wrong[0] == "illegal"
    if refused and parent is not None and rng.random() < 0.3 + 0.7 * skill:
        mended = _mend(sheet, choices, parent, rng)
        if mended is not None:
            return _text(mended, choices)
    if not parent or rng.random() >= skill:
        return _text(_anything(choices, rng), choices)
    planned = _planned(sheet, choices, parent)
    if planned is not None and not repeated:
        return _text(planned, choices)
    far = _far(sheet, choices, rng)
    if far is not None and not repeated:
        return _text(far, choices)
    return _text(_step(sheet, choices, parent, rng, blind=repeated), choices)


def read_choices(sheet: Sheet) -> Choices:
    """The knobs and their values, as the prompt lists them."""
    found = {name: _read_values(text) for name, text in _KNOB.findall(sheet.rules)}
    return {name: values for name, values in found.items() if values}


def _read_values(text: str) -> list[object]:
    """The JSON values at the start of a line, separated by commas; documentation may follow."""
    out: list[object] = []
    at = 0
    while True:
        try:
            value, at = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            return out
        out.append(value)
        if text[at : at + 2] != ", ":
            return out
        at += 2


def _step(
    sheet: Sheet, choices: Choices, parent: Levels, rng: random.Random, *, blind: bool
) -> Levels:
    """The unseen neighbour that obeys the rules and for which the listed results speak most.

    Every listed result that differs from the parent is a direction with a gain; a neighbour is
    credited with a gain by how much of the direction it goes along. ``blind`` goes anywhere near:
    what promised most turned out to be known already, and not all that is known is listed.
    """
    seen = {_levels(text, choices) for text in sheet.seen} | {parent}
    lessons = _lessons(sheet, choices, parent)
    around = [(way, d) for d in (1, 2) for way in _neighbours(parent, choices, d)]

    def promise(levels: Levels, distance: int) -> float:
        if blind:
            return rng.random()
        move = [b - a for a, b in zip(parent, levels, strict=True)]
        told = sum(gain * _along(move, way) for way, gain in lessons)
        return told - FAR * distance + rng.gauss(0, FAR)

    hopes = [(promise(way, d), way) for way, d in around if way not in seen]
    rules = read_rules(sheet)
    for _, levels in sorted(hopes, reverse=True):
        if obeys(rules, _values(levels, choices)):
            return levels
    return _anything(choices, rng)


def _planned(sheet: Sheet, choices: Choices, parent: Levels) -> Levels | None:
    """The parent with what a plan says of its knobs; None if that is known already or refused."""
    told = {name: value for name, value in _SAID.findall(sheet.plan) if name in choices}
    levels = list(parent)
    for place, (name, values) in enumerate(choices.items()):
        words = [str(value) for value in values]
        if told.get(name) in words:
            levels[place] = words.index(told[name])
    moved = tuple(levels)
    seen = {_levels(text, choices) for text in sheet.seen} | {parent}
    legal = obeys(read_rules(sheet), _values(moved, choices))
    return moved if legal and moved not in seen else None


def in_words(sheet: Sheet, text: str) -> list[str]:
    """What a program changes of the parent, one knob an item."""
    before, after = _object(sheet.parent), _object(text)
    return [
        f"set `{name}` to {value}" for name, value in after.items() if before.get(name) != value
    ]


def _object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _anything(choices: Choices, rng: random.Random) -> Levels:
    return tuple(rng.randrange(len(values)) for values in choices.values())


def _far(sheet: Sheet, choices: Choices, rng: random.Random) -> Levels | None:
    """Where a direction leads that asks for more than a step; None if it asks for a step."""
    seen = {_levels(text, choices) for text in sheet.seen}
    good = [x for r in sheet.results if r.height is not None and (x := _levels(r.text, choices))]
    rules = read_rules(sheet)
    for _ in range(TRIES):
        if sheet.hint.startswith("try a part of the space"):
            levels = _anything(choices, rng)
        elif sheet.hint.startswith("mix") and len(good) > 1:
            left, right = good[0], rng.choice(good[1:])
            levels = tuple(rng.choice(pair) for pair in zip(left, right, strict=True))
        else:
            return None
        if levels not in seen and obeys(rules, _values(levels, choices)):
            return levels
    return None


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


def obeys(rules: list[Constraint], values: dict[str, object]) -> bool:
    """Whether knob values obey the rules."""
    row = {name: np.array([value]) for name, value in values.items()}
    return all(rule.holds(row)[0] for rule in rules)


def _lessons(sheet: Sheet, choices: Choices, parent: Levels) -> list[tuple[list[int], float]]:
    height = sheet.height or 0.0
    out = []
    tried = [(r.text, r.height) for r in sheet.results] + [(t, None) for t, _ in sheet.failures]
    for text, got in tried:
        levels = _levels(text, choices)
        if levels is not None and levels != parent:
            way = [b - a for a, b in zip(parent, levels, strict=True)]
            out.append((way, -DREAD if got is None else got - height))
    return out


def _along(move: list[int], way: list[int]) -> float:
    """How far a move goes along a direction, in [-1, 1]."""
    dot = sum(a * b for a, b in zip(move, way, strict=True))
    lengths = sum(a * a for a in move) * sum(b * b for b in way)
    return dot / math.sqrt(lengths)


def _neighbours(levels: Levels, choices: Choices, distance: int) -> list[Levels]:
    sizes = [len(values) for values in choices.values()]
    out = []
    for places in combinations(range(len(levels)), distance):
        for signs in product((-1, 1), repeat=distance):
            moved = list(levels)
            for place, sign in zip(places, signs, strict=True):
                moved[place] += sign
            if all(0 <= level < size for level, size in zip(moved, sizes, strict=True)):
                out.append(tuple(moved))
    return out


def _mend(sheet: Sheet, choices: Choices, parent: Levels, rng: random.Random) -> Levels | None:
    """The last answer with one of its changes taken back: one that the reason names, if any."""
    found = blocks(sheet.said)
    said = _levels(found[-1].text if found else sheet.said, choices)
    if said is None or sheet.wrong is None:
        return None
    names = list(choices)
    changed = [i for i, (a, b) in enumerate(zip(parent, said, strict=True)) if a != b]
    named = [i for i in changed if re.search(rf"\b{names[i]}\b", sheet.wrong[1])]
    if not changed:
        return None
    back = rng.choice(named or changed)
    return tuple(parent[i] if i == back else level for i, level in enumerate(said))


def _levels(text: str, choices: Choices) -> Levels | None:
    """The positions of the values of a JSON object; a value that is none takes the nearest place,
    so that an answer with one wrong value can still be mended.
    """
    try:
        values = json.loads(text)
        return tuple(
            known.index(values[name]) if values[name] in known else len(known) - 1
            for name, known in choices.items()
        )
    except (ValueError, KeyError, TypeError):
        return None


def _values(levels: Levels, choices: Choices) -> dict[str, object]:
    pairs = zip(choices.items(), levels, strict=True)
    return {name: values[level] for (name, values), level in pairs}


def _text(levels: Levels, choices: Choices) -> str:
    return json.dumps(_values(levels, choices))
