"""C that is wrong in a known way: mistakes, answers that are given already, and cheats."""

from __future__ import annotations

import re
from random import Random

from kernelwright.agents.programmer.cheats import CHEATS, Cheat
from kernelwright.agents.programmer.ctext import Loop, flush, loops, replaced
from kernelwright.agents.programmer.faulty import Fault
from kernelwright.agents.programmer.reading import Sheet
from kernelwright.agents.programmer.signature import Signature, read_signature
from kernelwright.agents.programmer.source import regions, rendered, spans

_ASSIGNED = re.compile(r"([-+*/]?=)(?!=)\s*([^;=]+);")
_OPERATORS = (("+=", "-="), ("/=", "*="), (" * ", " + "), (" / ", " * "), (" + ", " - "))
_STANDS_FOR = re.compile(r"\$(out|given|kind|from|size|extent)\b")
WRONG_ANSWERS = ("off_by_one", "wrong_operator", "nan")
MISTAKES = (*WRONG_ANSWERS, "null_dereference", "abort", "endless_loop", "syntax_error")
_STATEMENTS = {
    "null_dereference": "*(volatile char *)0 = 1;",
    "abort": "__builtin_abort();",
    "endless_loop": "for (volatile int turn = 1; turn;) { }",
    "undeclared": "(void)no_such_value;",
}
OUTSIDE = "cheating:regions/outside_regions"


def plant(mistake: str, sheet: Sheet, text: str) -> tuple[str, str]:
    """A whole text with a mistake in the last loop that may be edited, and which it is: a syntax
    error where the text has no place for the mistake.
    """
    last = _last_loop(sheet, text)
    if last is None or (mistake == "nan" and not re.search(r"\b(?:float|double)\b", text)):
        mistake = "syntax_error"
    new = text if last is None else _mistaken(mistake, text, last)
    if new == text:
        mistake = "syntax_error"
        new = _without_semicolon(text, spans(sheet, text)[-1])
    return new, mistake


def _last_loop(sheet: Sheet, text: str) -> Loop | None:
    allowed = spans(sheet, text)
    inside = [
        loop
        for loop in loops(text)
        if any(low <= loop.start and loop.end <= high for low, high in allowed)
    ]
    return inside[-1] if inside else None


def _mistaken(mistake: str, text: str, loop: Loop) -> str:
    if mistake in _STATEMENTS:
        return _before(text, loop, _STATEMENTS[mistake])
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


def _before(text: str, loop: Loop, statements: str) -> str:
    """The text with statements before a loop."""
    whole = flush(text[loop.start : loop.end], loop.width)
    return replaced(text, loop, f"{{\n{statements}\n{whole}\n}}")


def _without_semicolon(text: str, span: tuple[int, int]) -> str:
    at = text.rfind(";", *span)
    return (
        f"{text[:at]} @ {text[at + 1 :]}" if at >= 0 else f"{text[: span[1]]}@\n{text[span[1] :]}"
    )


# Faults; each begins with the parent, which may be taken for right.


def wrong_code(sheet: Sheet, text: str, rng: Random) -> tuple[str, str]:
    """A mistake of any kind: it does not compile, dies, hangs or computes something else."""
    del text
    new, mistake = plant(rng.choice(MISTAKES), sheet, sheet.parent)
    return rendered(sheet, new), f"wrong_code:{mistake}"


def wrong_answer(sheet: Sheet, text: str, rng: Random) -> tuple[str, str]:
    """A program that runs and computes something else."""
    del text
    new, mistake = plant(rng.choice(WRONG_ANSWERS), sheet, sheet.parent)
    is_syntax = mistake == "syntax_error"
    return rendered(sheet, new), "syntax:c" if is_syntax else f"wrong_answer:{mistake}"


def syntax(sheet: Sheet, text: str, rng: Random) -> tuple[str, str]:
    """A text that is no C."""
    del text, rng
    return rendered(sheet, plant("syntax_error", sheet, sheet.parent)[0]), "syntax:c"


def illegal(sheet: Sheet, text: str, rng: Random) -> tuple[str, str]:
    """What may not be: a change outside the regions, else a name that nothing declares. Edits have
    no place outside the regions.
    """
    del text, rng
    if regions(sheet) and sheet.mark != "edit":
        return _outside(sheet), "illegal:outside_regions"
    new, mistake = plant("undeclared", sheet, sheet.parent)
    return rendered(sheet, new), "syntax:c" if mistake == "syntax_error" else "illegal:undeclared"


def _outside(sheet: Sheet) -> str:
    """The whole file with a line more than the regions allow."""
    new = f"static int64_t more_room;\n{sheet.parent}"
    return rendered(sheet, new) if sheet.mark == "edit" else new


def duplicate(sheet: Sheet, text: str, rng: Random) -> tuple[str, str] | None:
    """The parent, where it has a result: as it is, or with other blanks or a comment."""
    del text
    allowed = spans(sheet, sheet.parent)
    if not sheet.is_tried or allowed == [(0, 0)]:
        return None
    # An edit that changes nothing is none.
    how = "comment" if sheet.mark == "edit" else rng.choice(("same", "comment", "blanks"))
    low, high = allowed[0]
    inside = sheet.parent[low:high]
    if how == "comment":
        inside = f"/* keeps {rng.choice(('registers', 'lanes', 'caches'))} busy */\n{inside}"
    elif how == "blanks":
        inside = re.sub(r"^( +)(?=\S)", r"\1 ", inside, flags=re.M)
    whole = sheet.parent[:low] + inside + sheet.parent[high:]
    if whole == sheet.parent:
        how = "same"
    return rendered(sheet, whole), f"duplicate:{how}"


def cheat(sheet: Sheet, text: str, rng: Random) -> tuple[str, str] | None:
    """One of the catalogue's, of those that fit the kernel."""
    del text
    offered = [(one.tag, new) for one in CHEATS if (new := cheated(one, sheet)) is not None]
    if regions(sheet):
        offered.append((OUTSIDE, ""))
    if not offered:
        return None
    tag, new = rng.choice(offered)
    return (rendered(sheet, new) if new else _outside(sheet)), tag


def cheated(one: Cheat, sheet: Sheet) -> str | None:
    """The parent with a way of cheating; None where it does not fit the kernel: within regions only
    statements of their own do.
    """
    kernel = read_signature(sheet)
    if kernel is None or (one.floats and kernel.outputs[0][0] not in ("float", "double")):
        return None
    if regions(sheet):
        loop = _last_loop(sheet, sheet.parent)
        if loop is None or not one.is_local:
            return None
        return _before(sheet.parent, loop, _filled(one.first, kernel))
    head = rf"\bvoid(\s+){kernel.entry}(\s*)\("
    if len(re.findall(head, sheet.parent)) != 1:
        return None
    honest = re.sub(head, rf"static void\1{kernel.entry}_plain\2(", sheet.parent)
    call = "" if one.instead else f"{kernel.entry}_plain({kernel.call});"
    parts = [_filled(one.first, kernel), call, _filled(one.last, kernel)]
    lines = [f"    {line}" for part in parts for line in part.split("\n") if line]
    body = "\n".join([f"void {kernel.entry}({kernel.declared})", "{", *lines, "}"])
    top = _filled(one.top, kernel)
    return f"#include <stdint.h>\n{top}" + ("" if one.instead else honest) + f"\n{body}\n"


def _filled(text: str, kernel: Signature) -> str:
    kind, out = kernel.outputs[0]
    came, given = kernel.inputs[0]
    words = {"out": out, "kind": kind, "given": given, "from": came}
    words |= {"size": kernel.size, "extent": kernel.extents[0]}
    return _STANDS_FOR.sub(lambda found: words[found[1]], text)


FAULTS: dict[str, Fault] = {
    "wrong_code": wrong_code,
    "wrong_answer": wrong_answer,
    "syntax": syntax,
    "illegal": illegal,
    "duplicate": duplicate,
    "cheating": cheat,
    "wrong_schema": lambda sheet, text, rng: (
        rendered(sheet, "int answer(void) { return 42; }\n"),
        "wrong_schema",
    ),
}
