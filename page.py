"""The page that the command line prints on: a statement is a line where it is piped, and wrapped at
the width of a terminal, with what follows indented.
"""

from __future__ import annotations

import textwrap
from typing import Any

from rich.console import Console

# How much deeper than a statement its further lines stand.
HANGING = 2


class Page(Console):
    """A console that wraps statements on a terminal. There is no markup in them.

    ``COLUMNS`` says how wide a terminal is, and not that there is one: some programs (readline)
    leave it to whatever they start, and a pipe's lines must not depend on that.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """As `Console.print`; text is wrapped between words, or not at all."""
        if objects and all(isinstance(each, str) for each in objects):
            options["soft_wrap"] = True
            if self.is_terminal:
                objects = tuple(wrapped(each, self.width) for each in objects)
        super().print(*objects, **options)


def wrapped(text: str, width: int) -> str:
    """Every line that is wider than this as several, the further ones indented a little more.

    Words are not broken: a path or a command can be copied as it stands.
    """
    return "\n".join(_wrapped(line, width) for line in text.split("\n"))


def _wrapped(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line.strip(),
        max(width, len(indent) + HANGING + 1),
        initial_indent=indent,
        subsequent_indent=indent + HANGING * " ",
        break_long_words=False,
        break_on_hyphens=False,
    )
