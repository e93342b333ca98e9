"""A prompt's text by its sections: what an agent adds stands before what is said of the answer."""

from __future__ import annotations

import re

ANSWER = "## Answer"
_FENCE = re.compile(r" {0,3}(`{3,})")


def cut(text: str) -> tuple[str, str]:
    """A text before its last heading `ANSWER`, and from there on; the second part is empty if there
    is none. What stands in fenced blocks is no heading.
    """
    fence, place, at = "", len(text), 0
    for line in text.splitlines(keepends=True):
        run = _FENCE.match(line)
        if run and not fence:
            fence = run[1]
        elif run and len(run[1]) >= len(fence) and not line.strip().strip("`"):
            fence = ""
        elif not fence and line.rstrip() == ANSWER:
            place = at
        at += len(line)
    return text[:place], text[place:]


def joined(*parts: str) -> str:
    """Sections with an empty line between them; empty ones are left out."""
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"
