"""Words that a candidate chooses, made fit to be shown: in a terminal, a page or a prompt."""

from __future__ import annotations

import re

# Control characters but tab and line end, and what turns the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with control characters as their codes."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
