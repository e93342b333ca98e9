"""A text by lines and words, in the forms in which badly copied ones are compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

# A comment or a literal; of a comment in stars its beginning.
_SILENT = re.compile(r"//[^\n]*|/\*|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def squeezed(line: str) -> str:
    """A line without the blanks that mean nothing."""
    return re.sub(r" ?([^\w ]) ?", r"\1", " ".join(line.split()))


def without_comments(text: str) -> str:
    """A C text with blanks for its comments, line for line. One that is not closed is none."""
    out, at, last = list[str](), 0, text.rfind("*/")
    while found := _SILENT.search(text, at):
        end = found.end()
        if found[0] == "/*" and end <= last:
            end = text.index("*/", end) + 2
        word = text[found.start() : end]
        is_comment = word[0] == "/" and word != "/*"
        blank = " " + "\n" * word.count("\n") if is_comment else word
        out += [text[at : found.start()], blank]
        at = end
    return "".join((*out, text[at:]))


def runs(text: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    """Where some words or lines stand one after the other in a text, in order; they may overlap."""
    numbers: dict[str, str] = {}
    there, here = (
        "".join(numbers.setdefault(word, chr(len(numbers))) for word in words)
        for words in (text, wanted)
    )
    at = there.find(here)
    while at >= 0:
        yield at
        at = there.find(here, at + 1)


@dataclass(frozen=True)
class Lines:
    """A text by lines, in the forms in which they are compared."""

    raw: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Lines:
        """The lines of a text."""
        return cls(tuple(text.split("\n")))

    @cached_property
    def squeezed(self) -> tuple[str, ...]:
        """Each line without the blanks that mean nothing."""
        return tuple(map(squeezed, self.raw))

    @cached_property
    def code(self) -> tuple[str, ...]:
        """The same without comments."""
        return tuple(map(squeezed, without_comments("\n".join(self.raw)).split("\n")))

    @cached_property
    def words(self) -> tuple[tuple[str, int], ...]:
        """The words and signs of the code, each with its line."""
        return tuple(
            (word, at) for at, line in enumerate(self.code) for word in _TOKEN.findall(line)
        )
