"""Fenced blocks: writing text into them so that it cannot get out, and finding them in replies."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelwright.agents.chat import Malformed

# A fence, the first word behind it without what some wrap it in (``{.c}``), and any other words.
_OPEN = re.compile(
    r"([ \t]*)(?:(`{3,})[ \t]*\{?\.?([^\s`,;:{}]*)[^`]*|(~{3,})[ \t]*\{?\.?([^\s,;:{}]*).*)"
)
# What reasoning models think aloud; blocks in there are drafts.
_THOUGHT = re.compile(r"<think>.*?</think>|^.*?</think>", re.DOTALL)


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
        opened = _OPEN.fullmatch(line)
        if opened:
            indent, fence = opened[1], opened[2] or opened[4]
            mark = (opened[3] or opened[5] or "").lower()
    if fence:
        found.append(Block(mark, "".join(f"{x}\n" for x in lines), closed=False))
    return found


def _dedented(line: str, most: int) -> str:
    """A line without its first blanks, at most so many."""
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[min(blanks, most) :]


def answer_block(reply: str, marks: tuple[str, ...]) -> str | Malformed:
    """The text of the block that holds the answer: the last one with one of these marks, else the
    only one.

    A block without its closing fence is not read: its end is not known.
    """
    found = blocks(_THOUGHT.sub("", reply))
    marked = [block for block in found if block.mark in marks]
    bare = [block for block in found if not block.mark]
    chosen = marked or (bare if len(found) == 1 else [])
    if not chosen:
        seen = ", ".join(block.mark or "unmarked" for block in found) or "none"
        return Malformed("unparsable", f"expected one fenced ```{marks[0]} block, found {seen}")
    if not chosen[-1].closed:
        return Malformed("unparsable", f"the fenced ```{marks[0]} block is not closed")
    return chosen[-1].text
