"""Editing C: one or two meaning-preserving edits of the parent's loops."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from kernelwright.agents.programmer.edits import between
from kernelwright.agents.programmer.moveadvice import advised
from kernelwright.agents.programmer.moves import Move, moves
from kernelwright.agents.programmer.reading import Sheet

Spans = list[tuple[int, int]]
_REGION = re.compile(
    r"^[ \t]*//[ \t]*region[ \t]+(\w+)[ \t]*\n(.*?)^[ \t]*//[ \t]*endregion[ \t]+\1[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
# How much more an edit promises that a plan names.
PLANNED = 2.0


def propose(sheet: Sheet, rng: random.Random, skill: float) -> str:
    """The parent after an edit, in the form that is asked for."""
    return rendered(sheet, improved(sheet, rng, skill)[0])


def improved(sheet: Sheet, rng: random.Random, skill: float) -> tuple[str, list[str]]:
    """The parent after an edit, sometimes after two, and after more where the last answer was known
    already; and what the edits are called.
    """
    text, names = sheet.parent, list[str]()
    repeated = sheet.wrong is not None and sheet.wrong[0] == "duplicate"
    # Mending starts from the parent too: an edit of it is sound, whatever the last answer was.
    for _ in range(rng.choice((2, 3)) if repeated else 2 if rng.random() < 0.3 else 1):
        offered = moves(text, spans(sheet, text))
        choice = _choose(sheet, offered, text, rng, 0.0 if repeated else skill)
        if choice is not None:
            text = choice.text
            names.append(choice.name)
    return text, names


def rendered(sheet: Sheet, whole: str) -> str:
    """A file as the prompt wants it: whole, by its editable regions, or as edits of the parent."""
    if sheet.mark == "edit":
        return between(sheet.parent, whole)
    names = regions(sheet)
    if not names:
        return whole
    return "\n".join(f"{m[0]}" for m in _REGION.finditer(whole) if m[1] in names) + "\n"


def regions(sheet: Sheet) -> list[str]:
    """The names of the editable regions; none means that the whole file may change."""
    found = re.search(r"may change, for NAME in: (.*)\.$", sheet.rules, re.M)
    return found[1].split(", ") if found else []


def spans(sheet: Sheet, text: str) -> Spans:
    """Where the text may be edited."""
    names = regions(sheet)
    if not names:
        return [(0, len(text))]
    found = [m.span(2) for m in _REGION.finditer(text) if m[1] in names]
    return found or [(0, 0)]


def _choose(
    sheet: Sheet, offered: list[Move], text: str, rng: random.Random, skill: float
) -> Move | None:
    """An edit: with chance ``skill`` one that promises much, by rule and by what the listed results
    with the same line show.
    """
    if not offered:
        return None
    if rng.random() >= skill:
        return rng.choice(offered)
    height = sheet.height or 0.0
    before = set(text.splitlines())
    named = {m.name for m in offered if re.search(rf"\b{re.escape(m.name)}\b", sheet.plan)}
    # "simd reduction" names no "simd".
    planned = {name for name in named if not any(name in other for other in named - {name})}

    def advice(move: Move) -> float:
        # The profile's lines are those of the parent as it is shown.
        around = sheet.around if text == sheet.parent else replace(sheet.around, log="")
        return advised(move, text, height, around)

    def hope(move: Move) -> float:
        new = [line.strip() for line in move.text.splitlines() if line not in before]
        mark = next((line for line in new if len(line) > 3), "")[:100]
        told = [r.height for r in sheet.results if mark and mark in r.text]
        learned = sum(-0.5 if h is None or h < height else 0.3 for h in told)
        wanted = PLANNED * (move.name in planned)
        return move.promise + learned + wanted + advice(move) + rng.gauss(0, 0.35)

    return max(offered, key=hope)
