"""Passages that need no campaign: a page for each directive, and the sections of Markdown
files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelwright.agents.context.library import Passage, passage
from kernelwright.agents.dialects.schedule import directive_help
from kernelwright.env.compiler.schedule import known_directives

_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")


def directive_pages() -> list[Passage]:
    """What each directive does, with the loops before and after."""
    found = []
    for op in known_directives():
        told = directive_help(op)
        found.append(passage("directive", told.call, told.text))
    return found


def sections_of(name: str, text: str) -> Iterable[Passage]:
    """The sections of a Markdown file, each under its heading; what stands in a fence is none."""
    title, lines, fence = name, list[str](), ""
    for line in text.splitlines():
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if mark and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence else _HEADING.match(line)
        if heading:
            yield from _section(name, title, lines)
            title, lines = heading[1], []
        else:
            lines.append(line)
    yield from _section(name, title, lines)


def _section(name: str, title: str, lines: list[str]) -> Iterable[Passage]:
    text = "\n".join(lines).strip()
    if text:
        yield passage("page", title if title == name else f"{name}: {title}", text)
