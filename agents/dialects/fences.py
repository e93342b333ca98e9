"""Fenced blocks: writing text into them so that it cannot get out, and finding them in replies."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelwright.agents.chat import Malformed

# Characters of a program: more than anybody writes, and few enough to be read in no time.
MOST_BLOCK = 200_000
# The first word behind a fence without what some wrap it in (``{.c}``). Answers are strangers'
# text of any length: nothing here may look at a character more than a few times.
_MARK = re.compile(r"[ \t]*\{?\.?([^\s`,;:{}]*)")
# What reasoning models think aloud; blocks in there are drafts.
_THOUGHT, _SAID = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: what it is marked with, and its text without the fences."""

    mark: str
    text: str
    closed: bool = True


def fenced(text: str, mark: str) -> str:
    """The text as a block, behind fences longer than any in it."""
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    body = text if text.endswith("\n") or not text else text + "\n"
    return f"{fence}{mark}\n{body}{fence}"


def blocks(reply: str) -> list[Block]:
    """Every fenced block in order, without the indentation of its opening fence; the last may be
    left open.
    """
    found: list[Block] = []
    indent, fence, mark, lines = "", "", "", list[str]()
    for line in reply.replace("\r\n", "\n").split("\n"):
        if fence:
            closing = line.strip()
            if closing and not closing.strip(fence[0]) and len(closing) >= len(fence):
                found.append(Block(mark, "".join(f"{x}\n" for x in lines)))
                fence, lines = "", []
            else:
                lines.append(_dedented(line, len(indent)))
            continue
        opened = _opened(line)
        if opened is not None:
            indent, fence, mark = opened
    if fence:
        found.append(Block(mark, "".join(f"{x}\n" for x in lines), closed=False))
    return found


def _opened(line: str) -> tuple[str, str, str] | None:
    """The indentation, fence and mark of a line that opens a block; None if it does not."""
    behind = line.lstrip(" \t")
    rest = behind.lstrip(behind[:1]) if behind[:1] in ("`", "~") else behind
    fence = behind[: len(behind) - len(rest)]
    if len(fence) < 3 or (fence[0] == "`" and "`" in rest):
        return None
    mark = _MARK.match(rest)
    assert mark is not None  # it may be empty
    return line[: len(line) - len(behind)], fence, mark[1].lower()


def _dedented(line: str, most: int) -> str:
    """A line without its first blanks, at most so many."""
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[min(blanks, most) :]


def spoken(reply: str) -> str:
    """A reply without a byte order mark, and without what was thought aloud: up to the first
    ``</think>``, and from then on what stands between two such marks.
    """
    reply = reply.removeprefix("\ufeff")
    _, said, rest = reply.partition(_SAID)
    if not said:
        return reply
    out, at = list[str](), 0
    while True:
        start = rest.find(_THOUGHT, at)
        end = rest.find(_SAID, start) if start >= 0 else -1
        if end < 0:
            return "".join((*out, rest[at:]))
        out.append(rest[at:start])
        at = end + len(_SAID)


def answer_block(reply: str, marks: tuple[str, ...]) -> str | Malformed:
    """The text of the block that holds the answer: the last one with one of these marks, else the
    only one.

    A block without its closing fence is not read: its end is not known.
    """
    found = blocks(spoken(reply))
    marked = [block for block in found if block.mark in marks]
    bare = [block for block in found if not block.mark]
    chosen = marked or (bare if len(found) == 1 else [])
    if not chosen:
        seen = ", ".join(block.mark or "unmarked" for block in found) or "none"
        return Malformed("unparsable", f"expected one fenced ```{marks[0]} block, found {seen}")
    if not chosen[-1].closed:
        return Malformed("unparsable", f"the fenced ```{marks[0]} block is not closed")
    size = len(chosen[-1].text)
    if size > MOST_BLOCK:
        wanted = f"expected a block of at most {MOST_BLOCK} characters"
        return Malformed("unparsable", f"{wanted}, found {size}")
    return chosen[-1].text
