"""C as text with just enough structure to edit loops: where they begin and end, what they count.

Positions are found in a copy whose comments and literals are blanked, so nothing in them counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLANK = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_FOR = re.compile(r"\bfor\s*\(")
_COUNTING = re.compile(
    r"\s*(?P<type>int64_t|int32_t|int|long|size_t|ptrdiff_t)\s+(?P<var>\w+)\s*=\s*(?P<first>[^;]+?)"
    r"\s*;\s*(?P=var)\s*<\s*(?P<bound>[^;]+?)\s*;"
    r"\s*(?:(?P=var)\s*\+\+|\+\+\s*(?P=var)|(?P=var)\s*\+=\s*1)\s*",
)
_HEAD = ("type", "var", "first", "bound")
_JUMP = re.compile(r"\b(?:break|continue|return|goto)\b|^\s*#", re.MULTILINE)
_LOOPING = re.compile(r"\b(?:for|while|do)\b")


@dataclass(frozen=True, slots=True)
class Loop:
    """A ``for``; one that counts up by one has a ``var`` with its type and bounds.

    ``start`` and ``end`` enclose the statement, pragmas directly before it included; ``head`` is
    where the word stands. ``body`` is its text without the outer braces, indented as in the file.
    """

    start: int
    head: int
    bound_at: int
    end: int
    type: str
    var: str
    first: str
    bound: str
    body: str
    width: int
    body_width: int

    @property
    def code(self) -> str:
        """The body, moved to the left margin."""
        return flush(self.body, self.body_width)

    @property
    def is_innermost(self) -> bool:
        """Whether there is no loop in it."""
        return not _LOOPING.search(blanked(self.body))

    @property
    def is_straight(self) -> bool:
        """Whether nothing jumps out of its body, and no preprocessor line stands in it."""
        return not _JUMP.search(blanked(self.body))


def blanked(text: str) -> str:
    """The text with comments and literals as blanks, position for position."""
    return _BLANK.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def all_loops(text: str) -> list[Loop]:
    """Every ``for``, in the order of the text."""
    plain = blanked(text)
    out = []
    for match in _FOR.finditer(plain):
        closed = _closing(plain, match.end() - 1)
        end = None if closed is None else statement_end(plain, closed + 1)
        if closed is None or end is None:
            continue
        start = _with_pragmas(plain, match.start())
        inside = text[closed + 1 : end].strip()
        if inside.startswith("{"):
            inside = inside[1:-1].strip()
        widths = _column(text, start), _column(text, text.find(inside, closed))
        head = _COUNTING.fullmatch(plain, match.end(), closed)
        places = [head.span(name) for name in _HEAD] if head else [(0, 0)] * len(_HEAD)
        kind, var, first, bound = (text[low:high] for low, high in places)
        at = places[-1][0]
        out.append(Loop(start, match.start(), at, end, kind, var, first, bound, inside, *widths))
    return out


def loops(text: str) -> list[Loop]:
    """Every loop that counts up by one."""
    return [loop for loop in all_loops(text) if loop.var]


def statement_end(plain: str, at: int) -> int | None:
    """Behind the statement that begins at or after ``at``; None if it has no end."""
    begin = re.compile(r"\s*(?:#[^\n]*\n\s*)*").match(plain, at)
    at = begin.end() if begin else at
    if plain[at : at + 1] == "{":
        closed = _closing(plain, at)
        return None if closed is None else closed + 1
    control = re.compile(r"(for|while|if)\s*\(").match(plain, at)
    if control is None:
        semicolon = plain.find(";", at)
        return None if semicolon < 0 else semicolon + 1
    closed = _closing(plain, control.end() - 1)
    end = None if closed is None else statement_end(plain, closed + 1)
    if end is not None and control[1] == "if":
        other = re.compile(r"\s*else\b").match(plain, end)
        end = statement_end(plain, other.end()) if other else end
    return end


def flush(text: str, width: int) -> str:
    """A statement that stands ``width`` columns in, moved to the left margin; its first line is
    there already.
    """
    first, *rest = text.split("\n")
    return "\n".join([first, *(line[min(width, _indentation(line)) :] for line in rest)])


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _column(text: str, at: int) -> int:
    """The indentation of the line on which something stands."""
    line = text.rfind("\n", 0, at) + 1
    return _indentation(text[line:at])


def replaced(text: str, loop: Loop, new: str) -> str:
    """The text with the loop's statement replaced, indented as it was."""
    line = text.rfind("\n", 0, loop.start) + 1
    pad = text[line : loop.start]
    pad = pad if not pad.strip() else ""
    indented = new.replace("\n", f"\n{pad}")
    return text[: loop.start] + indented + text[loop.end :]


def _closing(plain: str, opened: int) -> int | None:
    """Where the bracket that opens there closes."""
    pair = {"(": ")", "{": "}"}[plain[opened]]
    depth = 0
    for at in range(opened, len(plain)):
        if plain[at] == plain[opened]:
            depth += 1
        elif plain[at] == pair:
            depth -= 1
            if depth == 0:
                return at
    return None


def _with_pragmas(plain: str, start: int) -> int:
    """Where the pragmas that stand on the lines directly before a statement begin."""
    first = start
    while True:
        line = plain.rfind("\n", 0, first)
        above = plain.rfind("\n", 0, max(line, 0)) + 1
        text = plain[above : max(line, 0)]
        if line < 0 or plain[line + 1 : first].strip() or not text.strip().startswith("#pragma"):
            return first
        first = above + len(text) - len(text.lstrip())
