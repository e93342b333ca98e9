"""The page that the command line prints on: a statement is a line where it is piped, and wrapped at
the width of a terminal, with what follows indented.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from kernelwright.evaluators.cpu.text import printable

# How much deeper than a statement its further lines stand.
HANGING = 2


class Page(Console):
    """A console that wraps statements on a terminal. There is no markup in them, and what they
    quote of models, programs and files moves no cursor.

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

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """As `Console.render`; whatever is shown, its words are no orders to the terminal."""
        for segment in super().render(renderable, options):
            is_text = not segment.control and not segment.text.isprintable()
            text = printable(segment.text) if is_text else segment.text
            yield segment._replace(text=text)


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
