"""Choosing knob values: a step from the parent towards what the listed results speak for."""

from __future__ import annotations

import json
import math
import random
import re
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from kernelwright.agents.dialects.fences import blocks
from kernelwright.agents.programmer.reading import Sheet
from kernelwright.env.spaces.expressions import Constraint, ExpressionError

Levels = tuple[int, ...]
Choices = dict[str, list[object]]
_KNOB = re.compile(r"^- `(\w+)`: one of (.+)$", re.MULTILINE)
_RULE = re.compile(r"^- ([^`].*)$", re.MULTILINE)
# A plan's words for a value, after the knob: "set `bm` to 128", "bm = 128", "bm: 128".
_SAID = r"\b{}\b`?\s*(?:to|=|:)\s*\"?([\w.+-]*\w)"
# How much a failure counts as slower than the parent, in log2 of speed.
DREAD = 1.0
# Programs from anywhere that are thought of beside the parent's neighbours.
STRANGERS = 64
# How far a result speaks for others, in shares of a knob's range; how little it is believed.
REACH, DOUBT = 0.9, 0.02
# What the unknown counts for, in log2 of speed.
CURIOUS = 0.3
# By how much judgement errs at best, and how much more without skill, in log2 of speed.
ERROR, CARELESS = 0.05, 1.3


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
    error = math.inf if repeated else ERROR + CARELESS * (1.0 - skill)
    return _text(_step(sheet, choices, parent, rng, error), choices)


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
    sheet: Sheet, choices: Choices, parent: Levels, rng: random.Random, error: float
) -> Levels:
    """The unseen program, near the parent or near other good ones, that obeys the rules and for
    which the listed results speak most.

    Judgement errs by ``error``, in log2 of speed. Where it is infinite what promised most turned
    out to be known already, and not all that is known is listed: then any will do.
    """
    seen = {_levels(text, choices) for text in sheet.seen} | {parent}
    offered = _offered(sheet, choices, parent, rng)
    fresh = [levels for levels in offered if levels not in seen]
    promises = [0.0] * len(fresh) if error == math.inf else _promises(sheet, choices, parent, fresh)
    hopes = [promise + min(error, 1.0) * rng.gauss(0, 1) for promise in promises]
    rules = read_rules(sheet)
    for _, levels in sorted(zip(hopes, fresh, strict=True), reverse=True):
        if obeys(rules, _values(levels, choices)):
            return levels
    return _anything(choices, rng)


def _promises(sheet: Sheet, choices: Choices, parent: Levels, offered: list[Levels]) -> list[float]:
    """How fast programs may be, in log2: what the listed ones say by how near they are (a Gaussian
    process), and a part of what is not known.
    """
    known = dict(_lessons(sheet, choices))
    known.setdefault(parent, sheet.height or 0.0)
    scale = np.array([max(len(values) - 1, 1) for values in choices.values()])
    told = np.array(list(known)) / scale
    heights = np.array(list(known.values()))
    asked = np.array(offered, dtype=float).reshape(len(offered), len(scale)) / scale
    own = np.linalg.inv(_alike(told, told) + DOUBT * np.eye(len(told)))
    near = _alike(asked, told)
    means = heights.mean() + near @ own @ (heights - heights.mean())
    unknown = np.sqrt(np.clip(1.0 - np.einsum("ij,jk,ik->i", near, own, near), 0.0, 1.0))
    # Rounded, so that no machine's last bits choose.
    return [round(float(promise), 9) for promise in means + CURIOUS * unknown]


def _alike(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much programs have to say of each other, by their levels as shares of their ranges."""
    squares = ((left[:, None, :] - right[None, :, :]) ** 2).sum(axis=-1)
    alike: NDArray[np.float64] = np.exp(-squares / (2 * REACH**2))
    return alike


def _lessons(sheet: Sheet, choices: Choices) -> list[tuple[Levels, float]]:
    """The listed programs with their heights; one that failed counts as slower than the parent."""
    dread = (sheet.height or 0.0) - DREAD
    tried = [(r.text, r.height) for r in sheet.results] + [(t, None) for t, _ in sheet.failures]
    read = [(_levels(text, choices), height) for text, height in tried]
    return [(levels, dread if got is None else got) for levels, got in read if levels is not None]


def _planned(sheet: Sheet, choices: Choices, parent: Levels) -> Levels | None:
    """The parent with what a plan says of its knobs; None if that is known already or refused."""
    levels = list(parent)
    for place, (name, values) in enumerate(choices.items()):
        told = re.search(_SAID.format(re.escape(name)), sheet.plan)
        words = [str(value) for value in values]
        if told and told[1] in words:
            levels[place] = words.index(told[1])
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


def _offered(sheet: Sheet, choices: Choices, parent: Levels, rng: random.Random) -> list[Levels]:
    """Programs to choose from, by the direction asked for: anywhere, mixtures of good ones with the
    parent, or the parent's neighbours and some from anywhere.
    """
    good = [x for r in sheet.results if r.height is not None and (x := _levels(r.text, choices))]
    if sheet.hint.startswith("try a part of the space"):
        out = [_anything(choices, rng) for _ in range(3 * STRANGERS)]
    elif sheet.hint.startswith("mix") and len(good) > 1:
        out = []
        for _ in range(STRANGERS):
            other = rng.choice(good)
            out.append(tuple(rng.choice(pair) for pair in zip(parent, other, strict=True)))
    else:
        out = [way for d in (1, 2) for way in _neighbours(parent, choices, d)]
        out += [_anything(choices, rng) for _ in range(STRANGERS)]
    return list(dict.fromkeys(out))


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
