"""Editing C: one or two meaning-preserving edits of the parent's loops, or a planted mistake."""

from __future__ import annotations

import random
import re

from kernelwright.agents.programmer.ctext import Loop, flush, loops, replaced
from kernelwright.agents.programmer.moves import Move, moves
from kernelwright.agents.programmer.reading import Sheet

Spans = list[tuple[int, int]]
_REGION = re.compile(
    r"^[ \t]*//[ \t]*region[ \t]+(\w+)[ \t]*\n(.*?)^[ \t]*//[ \t]*endregion[ \t]+\1[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_ASSIGNED = re.compile(r"([-+*/]?=)(?!=)\s*([^;=]+);")
_OPERATORS = (("+=", "-="), ("/=", "*="), (" * ", " + "), (" / ", " * "), (" + ", " - "))
MISTAKES = (
    "off_by_one",
    "wrong_operator",
    "nan",
    "null_dereference",
    "abort",
    "endless_loop",
    "syntax_error",
)
_STATEMENTS = {
    "null_dereference": "*(volatile char *)0 = 1;",
    "abort": "__builtin_abort();",
    "endless_loop": "for (volatile int turn = 1; turn;) { }",
}


def propose(sheet: Sheet, rng: random.Random, skill: float) -> str:
    """The parent after an edit; sometimes after two, and after more where the last answer was
    known already.
    """
    text = sheet.parent
    repeated = sheet.wrong is not None and sheet.wrong[0] == "duplicate"
    # Mending starts from the parent too: an edit of it is sound, whatever the last answer was.
    for _ in range(rng.choice((2, 3)) if repeated else 2 if rng.random() < 0.3 else 1):
        offered = moves(text, spans(sheet, text))
        choice = _choose(sheet, offered, text, rng, 0.0 if repeated else skill)
        text = text if choice is None else choice.text
    return _as_asked(sheet, text)


def sabotage(sheet: Sheet, text: str, rng: random.Random) -> tuple[str, str]:
    """The program with a mistake, and which: it does not compile, dies, hangs or computes something
    else.
    """
    whole = sheet.parent if regions(sheet) else text
    return plant(rng.choice(MISTAKES), sheet, whole)


def plant(mistake: str, sheet: Sheet, text: str) -> tuple[str, str]:
    """A mistake in the last loop that may be edited."""
    inside = [
        loop
        for loop in loops(text)
        if any(low <= loop.start and loop.end <= high for low, high in spans(sheet, text))
    ]
    last = inside[-1] if inside else None
    if last is None or (mistake == "nan" and not re.search(r"\b(?:float|double)\b", text)):
        mistake = "syntax_error"
    new = text if last is None else _mistaken(mistake, text, last)
    if new == text:
        mistake = "syntax_error"
        new = _without_semicolon(text, spans(sheet, text)[-1])
    return _as_asked(sheet, new), f"wrong_code:{mistake}"


def _mistaken(mistake: str, text: str, loop: Loop) -> str:
    if mistake in _STATEMENTS:
        whole = flush(text[loop.start : loop.end], loop.width)
        return replaced(text, loop, f"{{\n{_STATEMENTS[mistake]}\n{whole}\n}}")
    if mistake == "off_by_one":
        return f"{text[: loop.bound_at]}{loop.bound} - 1{text[loop.bound_at + len(loop.bound) :]}"
    at = text.rindex(loop.body, loop.start, loop.end)
    body = loop.body
    if mistake == "wrong_operator":
        pair = next(((a, b) for a, b in _OPERATORS if a in body), None)
        body = body if pair is None else body.replace(*pair, 1)
    elif mistake == "nan":
        body = _ASSIGNED.sub(r"\1 (\2) * (0.0f / 0.0f);", body, count=1)
    return text[:at] + body + text[at + len(loop.body) :]


def _without_semicolon(text: str, span: tuple[int, int]) -> str:
    at = text.rfind(";", *span)
    return (
        f"{text[:at]} @ {text[at + 1 :]}" if at >= 0 else f"{text[: span[1]]}@\n{text[span[1] :]}"
    )


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


def _as_asked(sheet: Sheet, text: str) -> str:
    """The file, or its editable regions."""
    names = regions(sheet)
    if not names:
        return text
    return "\n".join(f"{m[0]}" for m in _REGION.finditer(text) if m[1] in names) + "\n"


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

    def hope(move: Move) -> float:
        new = [line.strip() for line in move.text.splitlines() if line not in before]
        mark = next((line for line in new if len(line) > 3), "")[:100]
        told = [r.height for r in sheet.results if mark and mark in r.text]
        learned = sum(-0.5 if h is None or h < height else 0.3 for h in told)
        return move.promise + learned + rng.gauss(0, 0.35)

    return max(offered, key=hope)
