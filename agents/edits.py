"""Edits of a text, applied: lines that are to be found, and what takes their place.

Every edit is looked for in the text as it was shown, so their order means nothing. What a block
has alike on both sides is where it belongs and stays as the text has it; only what differs is
changed. Models copy badly, so lines are matched in steps (`agents.places`), and what fits no place
or several is refused with a reason that it can be mended by.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from kernelwright.agents.edit_blocks import Edit, Misfit, is_elided
from kernelwright.agents.lines import Lines, squeezed
from kernelwright.agents.places import Place, nearest, places
from kernelwright.env.spaces.source import marker

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Region:
    """What may be changed: the lines between two others, by their indices."""

    name: str
    opened: int
    closed: int


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines from ``low`` up to ``high`` become ``lines``; ``number`` is that of the edit."""

    low: int
    high: int
    lines: tuple[str, ...]
    number: int


Hunks: TypeAlias = tuple[Hunk, ...]


def regions_of(text: str, names: Sequence[str]) -> tuple[Region, ...]:
    """The editable regions of a text; their markers are the lines before and behind them."""
    found: list[Region] = []
    opened: tuple[str, int] | None = None
    for at, line in enumerate(text.split("\n")):
        kind, name = marker(line) or ("", "")
        if name not in names:
            continue
        if kind == "region":
            opened = (name, at)
        elif opened is not None and opened[0] == name:
            found.append(Region(name, opened[1], at))
    return tuple(found)


def apply_edits(
    text: str, edits: Sequence[Edit], regions: Sequence[Region] | None = None
) -> str | Misfit:
    """A text after some edits, or why one of them is not applied; then none is.

    Args:
        text: what is edited.
        edits: in any order; no two may change the same lines.
        regions: what may be changed, None for everything.
    """
    lines = Lines.of(text)
    hunks: list[Hunk] = []
    for number, edit in enumerate(edits, start=1):
        found = _hunks(lines, edit, number)
        if isinstance(found, Misfit):
            return Misfit(found.kind, f"edit {number}: {found.reason}")
        hunks += found
    hunks.sort(key=lambda hunk: (hunk.low, hunk.high))
    for hunk in hunks:
        if regions is not None and not any(_inside(hunk, region) for region in regions):
            names = ", ".join(region.name for region in regions)
            line = lines.raw[min(hunk.low, len(lines.raw) - 1)]
            where = f"line {hunk.low + 1} is outside the regions {names}: {line.strip()!r:.100}"
            return Misfit("outside", f"edit {hunk.number}: {where}")
    for left, right in pairwise(hunks):
        if right.low < left.high:
            both = f"edits {left.number} and {right.number} change line {right.low + 1} both"
            return Misfit("overlap", both)
    out = list(lines.raw)
    for hunk in reversed(hunks):
        out[hunk.low : hunk.high] = hunk.lines
    return "\n".join(out)


def _inside(hunk: Hunk, region: Region) -> bool:
    return region.opened < hunk.low and hunk.high <= region.closed


def _hunks(lines: Lines, edit: Edit, number: int) -> Hunks | Misfit:
    """What an edit changes of a text."""
    search = Lines.of("\n".join(edit.search))
    if not any(line.strip() for line in edit.search):
        return Misfit("empty", "expected lines of the parent to be found, found none")
    for line in (*edit.search, *edit.replace):
        if is_elided(line) and squeezed(line) not in lines.squeezed:
            reason = f"expected every line written out, found {line.strip()!r:.80}"
            return Misfit("elided", reason)
    if list(map(squeezed, edit.search)) == list(map(squeezed, edit.replace)):
        return Misfit("idle", "expected a change, found the same lines on both sides")
    found = places(lines, search)
    if not found:
        near = "; ".join(_quoted(lines, at) for at in _near(lines, search))
        reason = "expected lines of the parent as they are shown, found none such"
        return Misfit("nowhere", f"{reason}; the nearest are {near}" if near else reason)
    if len(found) > 1:
        where = ", ".join(str(place.first + 1) for place in found[:8])
        reason = f"expected lines that stand once, found them at lines {where}; add lines around"
        return Misfit("several", reason)
    place = found[0]
    if place.part is not None:
        return (_within(lines, edit, place, number),)
    return _changes(lines, search, edit, place, number)


def _quoted(lines: Lines, at: int) -> str:
    return f"line {at + 1}: {lines.raw[at].strip()!r:.100}"


def _near(lines: Lines, search: Lines) -> list[int]:
    wanted = next(line for line in search.raw if line.strip())
    return nearest(lines, wanted)


def _within(lines: Lines, edit: Edit, place: Place, number: int) -> Hunk:
    """A part of one line replaced."""
    assert place.part is not None
    line, (low, high) = lines.raw[place.first], place.part
    new = "\n".join(edit.replace).strip()
    return Hunk(
        place.first, place.first + 1, tuple(f"{line[:low]}{new}{line[high:]}".split("\n")), number
    )


def _changes(lines: Lines, search: Lines, edit: Edit, place: Place, number: int) -> Hunks | Misfit:
    """The hunks of an edit whose lines were found: what its two sides have alike stays."""
    if place.whole is not None:
        last = len(edit.search)
        return (Hunk(*place.whole, _indented(lines, edit, place, (0, last), edit.replace), number),)
    strange = _strange(lines, edit) if place.is_loose else None
    if strange is not None:
        return Misfit("unknown_name", f"{strange!r} does not occur in the parent")
    old, new = ([squeezed(line) for line in side] for side in (edit.search, edit.replace))
    out: list[Hunk] = []
    steps = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for tag, i1, i2, j1, j2 in steps:
        if tag == "equal":
            continue
        if tag == "insert" and not any(new[j1:j2]):
            continue  # blank lines
        if not place.holds(range(i1, i2), search, lines):
            reason = "expected the lines that change as they are shown, found others"
            return Misfit("nowhere", f"{reason}, near line {place.first + 1}")
        span = place.span(i1, i2)
        if span is None:
            reason = "expected all lines of the parent, found that some in between are left out"
            return Misfit("unshown", f"{reason}, near line {place.first + 1}")
        given = _indented(lines, edit, place, (i1, i2), edit.replace[j1:j2])
        if span[0] < span[1] or given:
            out.append(Hunk(*span, given, number))
    return tuple(out)


def _strange(lines: Lines, edit: Edit) -> str | None:
    """A name that the search has wrong and the new lines use."""
    have = set(_WORD.findall("\n".join(lines.raw)))
    wrong = {name for line in edit.search for name in _WORD.findall(line)} - have
    shown = set(map(squeezed, edit.search))
    new = [line for line in edit.replace if squeezed(line) not in shown]
    used = [name for line in new for name in _WORD.findall(line)]
    return next((name for name in used if name in wrong), None)


def _indented(
    lines: Lines, edit: Edit, place: Place, span: tuple[int, int], new: Sequence[str]
) -> tuple[str, ...]:
    """New lines, moved as far as the found lines nearest to them stand from where the edit has
    them.
    """
    low, high = span
    beside = [*range(low, high), *range(low - 1, -1, -1), *range(high, len(edit.search))]
    anchor = next((i for i in beside if i in place.at and edit.search[i].strip()), None)
    if anchor is None:
        return tuple(new)
    there, here = lines.raw[place.at[anchor]], edit.search[anchor]
    pad, own = _indentation(there), _indentation(here)
    if pad == own:
        return tuple(new)
    out = []
    for line in new:
        if not line.strip():
            out.append("")
        elif line.startswith(own):
            out.append(pad + line[len(own) :])
        else:
            out.append(pad[: max(0, len(pad) - len(own) + len(_indentation(line)))] + line.lstrip())
    return tuple(out)


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
