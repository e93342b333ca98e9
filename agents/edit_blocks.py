"""The edits that a block of an answer holds.

    <<<<<<< SEARCH
    lines of the text
    =======
    lines that take their place
    >>>>>>> REPLACE

What they are is said here; where they belong, in `agents.edits`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

MOST_EDITS = 32
# On one side of an edit.
MOST_LINES = 500
MOST_CHARACTERS = 64 * 1024
MisfitKind = Literal[
    "malformed",
    "empty",
    "elided",
    "idle",
    "nowhere",
    "several",
    "unshown",
    "unknown_name",
    "outside",
    "overlap",
]
_SEARCH = re.compile(r"<{5,}\s*(?:SEARCH|ORIGINAL|HEAD)?", re.IGNORECASE)
_MIDDLE = re.compile(r"={5,}")
_REPLACE = re.compile(r">{5,}\s*(?:REPLACE|UPDATED)?", re.IGNORECASE)
# A line in the place of others: dots, as they are or in a comment, or words to that effect.
MOST_ELIDED = 200  # characters of such a line
_ELIDED = re.compile(
    r"\s*(?:(?://+|/\*+)\s*)?(?:\.{3,}|…).*"
    r"|\s*(?://+|/\*+).*\b(?:existing code|rest of|unchanged|same as before|omitted)\b.*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines to be found, and what takes their place."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why edits are not applied: a class, and a sentence that they can be mended by."""

    kind: MisfitKind
    reason: str

    def __post_init__(self) -> None:
        if self.kind not in get_args(MisfitKind):
            expected = ", ".join(get_args(MisfitKind))
            raise ValueError(f"Misfit.kind: expected one of {expected}, found {self.kind!r}")


def has_edits(block: str) -> bool:
    """Whether a block's text looks like edits."""
    return any(_SEARCH.fullmatch(line.strip()) for line in block.split("\n"))


def read_edits(block: str) -> tuple[Edit, ...] | Misfit:
    """The edits of a block's text, in order."""
    edits: list[Edit] = []
    search: list[str] | None = None
    replace: list[str] | None = None
    for number, line in enumerate(block.split("\n"), start=1):
        mark = line.strip()
        if search is None:
            if _SEARCH.fullmatch(mark):
                search = []
            elif re.search(r"[;{}()=>]", line):
                return _malformed(number, "<<<<<<< SEARCH", line)
        elif _SEARCH.fullmatch(mark):
            wanted = "=======" if replace is None else ">>>>>>> REPLACE"
            return _malformed(number, wanted, line)
        elif replace is None:
            if _REPLACE.fullmatch(mark):
                return _malformed(number, "=======", line)
            if _MIDDLE.fullmatch(mark):
                replace = []
            else:
                search.append(line.rstrip("\r"))
        elif _MIDDLE.fullmatch(mark):
            return _malformed(number, ">>>>>>> REPLACE", line)
        elif _REPLACE.fullmatch(mark):
            edits.append(Edit(tuple(search), tuple(replace)))
            search = replace = None
        else:
            replace.append(line.rstrip("\r"))
    if search is not None:
        wanted = "=======" if replace is None else ">>>>>>> REPLACE"
        return Misfit("malformed", f"edit {len(edits) + 1}: expected a line {wanted}, found none")
    if not 0 < len(edits) <= MOST_EDITS:
        return Misfit("malformed", f"expected 1 to {MOST_EDITS} edits, found {len(edits)}")
    for place, edit in enumerate(edits, start=1):
        for side in (edit.search, edit.replace):
            if len(side) > MOST_LINES or sum(map(len, side)) > MOST_CHARACTERS:
                wanted = f"at most {MOST_LINES} lines, of {MOST_CHARACTERS} characters in all"
                return Misfit("malformed", f"edit {place}: expected {wanted}, found more")
    return tuple(edits)


def _malformed(number: int, wanted: str, line: str) -> Misfit:
    return Misfit("malformed", f"line {number}: expected a line {wanted}, found {line.strip():.80}")


def is_elided(line: str) -> bool:
    """Whether a line stands for others that are not written out."""
    return len(line) <= MOST_ELIDED and _ELIDED.fullmatch(line) is not None
