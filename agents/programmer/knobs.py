"""Choosing knob values: a step from the parent towards what the listed results speak for."""

from __future__ import annotations

import json
import math
import random
import re
from itertools import combinations, product

from kernelwright.agents.dialects.fences import blocks
from kernelwright.agents.programmer.knobhopes import promises
from kernelwright.agents.programmer.knobtext import (
    Choices,
    Levels,
    levels_of,
    obeys,
    read_choices,
    read_rules,
    text_of,
    told_levels,
    values_of,
)
from kernelwright.agents.programmer.reading import Sheet

# Programs from anywhere that are thought of beside the parent's neighbours.
STRANGERS = 64
# By how much judgement errs at best, and how much more without skill, in log2 of speed.
ERROR, CARELESS = 0.05, 1.3


def propose(sheet: Sheet, rng: random.Random, skill: float) -> str:
    """A JSON object. With chance ``skill`` it is the most promising step, else any values."""
    choices = read_choices(sheet)
    parent = levels_of(sheet.parent, choices)
    repeated = sheet.wrong is not None and sheet.wrong[0] == "duplicate"
    refused = sheet.wrong is not None and sheet.wrong[0] == "illegal"
    if refused and parent is not None and rng.random() < 0.3 + 0.7 * skill:
        mended = _mend(sheet, choices, parent, rng)
        if mended is not None:
            return text_of(mended, choices)
    if not parent or rng.random() >= skill:
        return text_of(_anything(choices, rng), choices)
    planned = _planned(sheet, choices, parent)
    if planned is not None and not repeated:
        return text_of(planned, choices)
    error = math.inf if repeated else ERROR + CARELESS * (1.0 - skill)
    return text_of(_step(sheet, choices, parent, rng, error), choices)


def _step(
    sheet: Sheet, choices: Choices, parent: Levels, rng: random.Random, error: float
) -> Levels:
    """The unseen program, near the parent or near other good ones, that obeys the rules and for
    which the listed results speak most.

    Judgement errs by ``error``, in log2 of speed. Where it is infinite what promised most turned
    out to be known already, and not all that is known is listed: then any will do.
    """
    seen = {levels_of(text, choices) for text in sheet.seen} | {parent}
    offered = _offered(sheet, choices, parent, rng)
    fresh = [levels for levels in offered if levels not in seen]
    likely = [0.0] * len(fresh) if error == math.inf else promises(sheet, choices, parent, fresh)
    hopes = [promise + min(error, 1.0) * rng.gauss(0, 1) for promise in likely]
    rules = read_rules(sheet)
    for _, levels in sorted(zip(hopes, fresh, strict=True), reverse=True):
        if obeys(rules, values_of(levels, choices)):
            return levels
    return _anything(choices, rng)


def _planned(sheet: Sheet, choices: Choices, parent: Levels) -> Levels | None:
    """The parent with what a plan says of its knobs; None if that is known already or refused."""
    moved = told_levels(sheet.plan, choices, parent)
    seen = {levels_of(text, choices) for text in sheet.seen} | {parent}
    legal = obeys(read_rules(sheet), values_of(moved, choices))
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
    parent, or the parent's neighbours and some from anywhere; and what won elsewhere, with its
    neighbours.
    """
    shown = [*sheet.results, *sheet.around.others]
    won = [x for winner in sheet.around.winners if (x := levels_of(winner.text, choices))]
    good = [x for r in shown if r.height is not None and (x := levels_of(r.text, choices))]
    good = list(dict.fromkeys([*good, *won]))
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
    near = [way for levels in won for way in _neighbours(levels, choices, 1)]
    return list(dict.fromkeys([*out, *won, *near]))


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
    said = levels_of(found[-1].text if found else sheet.said, choices)
    if said is None or sheet.wrong is None:
        return None
    names = list(choices)
    changed = [i for i, (a, b) in enumerate(zip(parent, said, strict=True)) if a != b]
    named = [i for i in changed if re.search(rf"\b{names[i]}\b", sheet.wrong[1])]
    if not changed:
        return None
    back = rng.choice(named or changed)
    return tuple(parent[i] if i == back else level for i, level in enumerate(said))
