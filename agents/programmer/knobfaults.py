"""Knob values that are wrong in a known way."""

from __future__ import annotations

import json
from random import Random

from kernelwright.agents.programmer.cheats import WORDS
from kernelwright.agents.programmer.faulty import Fault
from kernelwright.agents.programmer.knobtext import obeys, read_choices, read_rules
from kernelwright.agents.programmer.reading import Sheet

TRIES = 64


def unknown_value(sheet: Sheet, text: str, rng: Random) -> tuple[str, str] | None:
    """The object with a value that its knob does not have."""
    values = json.loads(text)
    if not values:
        return None
    name = rng.choice(sorted(values))
    known = read_choices(sheet)[name]
    numbers = [v for v in known if isinstance(v, int | float) and not isinstance(v, bool)]
    values[name] = 3 * max(numbers) + 1 if len(numbers) == len(known) else f"no {name}"
    return json.dumps(values), "illegal:value"


def illegal(sheet: Sheet, text: str, rng: Random) -> tuple[str, str] | None:
    """Known values that break a rule, or an unknown one."""
    rules, choices = read_rules(sheet), read_choices(sheet)
    for _ in range(TRIES if rules and rng.random() < 0.5 else 0):
        values = {name: rng.choice(known) for name, known in choices.items()}
        if not obeys(rules, values):
            return json.dumps(values), "illegal:rule"
    return unknown_value(sheet, text, rng)


def duplicate(sheet: Sheet, text: str, rng: Random) -> tuple[str, str] | None:
    """What is listed already: as it is, or spelt another way."""
    del text
    listed = [*(result.text for result in sheet.results), *sheet.pending]
    if not listed:
        return None
    again = rng.choice(listed)
    if rng.random() < 0.5:
        return again, "duplicate:same"
    pairs = list(json.loads(again).items())
    rng.shuffle(pairs)
    whole = {k: float(v) if type(v) is int and abs(v) < 2**53 else v for k, v in pairs}
    return json.dumps(whole, indent=2), "duplicate:spelling"


def cheat(sheet: Sheet, text: str, rng: Random) -> tuple[str, str] | None:
    """Words where a number belongs, or a result of its own making."""
    values = json.loads(text)
    del sheet
    if values and rng.random() < 0.5:
        values[rng.choice(sorted(values))] = WORDS
        return json.dumps(values), "cheating:space/injected_value"
    values["speedup"] = 99.0
    return json.dumps(values), "cheating:dialect/claimed_result"


FAULTS: dict[str, Fault] = {
    "wrong_code": unknown_value,
    "illegal": illegal,
    "duplicate": duplicate,
    "cheating": cheat,
    "unparsable": lambda sheet, text, rng: ('{"fast": tru', "unparsable"),
    "syntax": lambda sheet, text, rng: (text.rstrip().rstrip("}"), "syntax:bracket"),
    "wrong_schema": lambda sheet, text, rng: ('["fast", "faster"]', "wrong_schema"),
}
