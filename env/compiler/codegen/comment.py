"""Comments of generated C."""

from __future__ import annotations

from collections.abc import Iterable


def block_comment(lines: Iterable[str]) -> str:
    """Lines as one C comment that nothing in them can end, or start anew."""
    body = [part for line in lines for part in (line.splitlines() or [""])]
    safe = [part.replace("*/", "* /").replace("/*", "/ *") for part in body]
    return "\n".join(["/*", *(f" * {part}".rstrip() for part in safe), " */"])
