"""Cutting a prompt to a budget of tokens: what matters least goes first (`parts.PARTS`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kernelwright.agents.chat import CHARACTERS_A_TOKEN, Message
from kernelwright.agents.context.device import DeviceSheet
from kernelwright.agents.context.parts import PARTS, Part
from kernelwright.agents.context.profile import ProfileSheet

Values = Mapping[str, Any]
Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A prompt that fits, or that could not be made to.

    ``cut`` has how many entries of each part are gone, ``over`` the tokens beyond the budget that
    are left because nothing more may be cut.
    """

    messages: Messages
    cut: tuple[tuple[str, int], ...] = ()
    over: int = 0


def tokens_of(messages: Messages) -> int:
    """About how many tokens a conversation is."""
    return -(-_size(messages) // CHARACTERS_A_TOKEN)


def _size(messages: Messages) -> int:
    return sum(len(text) for _, text in messages)


def shrink(values: Values, tokens: int | None, render: Callable[[Values], Messages]) -> Shrunk:
    """The prompt with every part in its size and the whole in ``tokens``.

    Args:
        values: what is rendered.
        tokens: the budget; None for none.
        render: makes messages of values.
    """
    cut: Counter[str] = Counter()
    for part in PARTS:
        room = _room(values, part)
        for smaller, saved in _steps(values, part) if room > part.characters else ():
            values, cut[part.name] = smaller, cut[part.name] + 1
            room -= saved
            if room <= part.characters:
                break
    messages = render(values)
    most = None if tokens is None else tokens * CHARACTERS_A_TOKEN
    if most is None or _size(messages) <= most:
        return Shrunk(messages, _counted(cut))
    excess = _size(messages) - most
    for part in PARTS:
        for smaller, saved in _steps(values, part):
            values, cut[part.name] = smaller, cut[part.name] + 1
            excess -= saved
            if excess > 0:
                continue
            messages = render(values)
            excess = _size(messages) - most
            if excess <= 0:
                return Shrunk(messages, _counted(cut))
    messages = render(values)
    over = max(0, _size(messages) - most)
    return Shrunk(messages, _counted(cut), -(-over // CHARACTERS_A_TOKEN))


def _counted(cut: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple((part.name, cut[part.name]) for part in PARTS if cut[part.name])


def _steps(values: Values, part: Part) -> Iterator[tuple[Values, int]]:
    """Ever smaller values of a part, each with the characters that it saves over the one before."""
    if part.name not in values and part.name != "details":
        return
    yield from _STEPS[part.name](values, part)


def _room(values: Values, part: Part) -> int:
    """About how many characters a part takes."""
    found = values.get("failures" if part.name == "details" else part.name, ())
    if isinstance(found, DeviceSheet):
        return sum(map(len, found.lines))
    if isinstance(found, ProfileSheet):
        return sum(map(len, found.lines)) + len(found.log)
    if part.name == "details":
        return sum(len(row.detail) for row in found)
    return sum(map(_weight, found))


def _weight(entry: Any) -> int:
    """The characters of an entry: a line, or a record of texts."""
    if isinstance(entry, str):
        return len(entry)
    values = [getattr(entry, name) for name in getattr(type(entry), "__slots__", ())]
    return sum([len(value) for value in values if isinstance(value, str)])


def _oldest_rows(values: Values, part: Part) -> Iterator[tuple[Values, int]]:
    rows = list(values[part.name])
    # They are listed best first; those that stay are at the top.
    for old in sorted(rows[part.least :], key=lambda row: row.number):
        rows = [row for row in rows if row is not old]
        values = {**values, part.name: rows}
        yield values, _weight(old)


def _last_entries(values: Values, part: Part) -> Iterator[tuple[Values, int]]:
    entries = list(values[part.name])
    while len(entries) > part.least:
        gone = entries.pop()
        values = {**values, part.name: list(entries)}
        yield values, _weight(gone)


def _first_entries(values: Values, part: Part) -> Iterator[tuple[Values, int]]:
    entries = list(values[part.name])
    while len(entries) > part.least:
        gone = entries.pop(0)
        values = {**values, part.name: list(entries)}
        yield values, _weight(gone)


def _details(values: Values, part: Part) -> Iterator[tuple[Values, int]]:
    del part
    rows = list(values.get("failures", ()))
    for place in reversed(range(len(rows))):
        saved = len(rows[place].detail)
        if saved:
            rows[place] = replace(rows[place], detail="")
            values = {**values, "failures": list(rows)}
            yield values, saved


def _profile(values: Values, part: Part) -> Iterator[tuple[Values, int]]:
    sheet = values[part.name]
    if sheet.log:
        values = {**values, part.name: replace(sheet, log="")}
        yield values, len(sheet.log)
    yield from _last_lines(values, part)


def _last_lines(values: Values, part: Part) -> Iterator[tuple[Values, int]]:
    sheet = values[part.name]
    for left in reversed(range(len(sheet.lines))):
        values = {**values, part.name: replace(sheet, lines=sheet.lines[:left])}
        yield values, len(sheet.lines[left])


_STEPS: dict[str, Callable[[Values, Part], Iterator[tuple[Values, int]]]] = {
    "tried": _oldest_rows,
    "inspirations": _last_entries,
    "known": _last_entries,
    "details": _details,
    "profile": _profile,
    "failures": _last_entries,
    "pending": _first_entries,
    "device": _last_lines,
}
