"""A rendered prompt, read back: what a programmer takes from it. Text in, text out; no other
knowledge gets in, so a prompt that leaves something out makes a worse programmer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.agents.chat import Message
from kernelwright.agents.dialects.fences import blocks

_FENCE = re.compile(r"^ {0,3}`{3,}")
_ROW = re.compile(r"^- `(.*)`: (.*)$")
_PENDING = re.compile(r"^- `(.*)`$")
_REPAIR = re.compile(r"^Your answer could not be used \((\w+)\): (.*?)\n\nKeep the idea", re.S)
_SPEEDUP = re.compile(r"^([0-9.e+-]+)x$")


@dataclass(frozen=True, slots=True)
class Result:
    """A tried program as the prompt lists it; ``height`` is log2 of the speedup, None if it
    failed.
    """

    text: str
    height: float | None


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a prompt says. ``wrong`` is what the last message says of the last answer, ``said``."""

    mark: str
    rules: str
    parent: str
    height: float | None
    results: tuple[Result, ...]
    pending: tuple[str, ...]
    failures: tuple[tuple[str, str], ...]
    hint: str
    wrong: tuple[str, str] | None
    said: str

    @property
    def seen(self) -> frozenset[str]:
        """The lines of everything that may not be proposed again."""
        failed = (text for text, _ in self.failures)
        return frozenset([*(r.text for r in self.results), *self.pending, *failed])


def read_prompt(messages: Sequence[Message]) -> Sheet:
    """The prompt's content."""
    asked = next((text for role, text in messages if role == "user"), "")
    parts = sections(asked)
    repair = _REPAIR.match(messages[-1][1]) if len(messages) > 1 else None
    said = next((text for role, text in reversed(messages) if role == "assistant"), "")
    answer = parts.get("Answer", messages[-1][1])
    mark = re.search(r"begins with ```(\w+)", answer)
    parent = blocks(parts.get("Parent", ""))
    height = re.search(r"speedup (\S+x)\.", parts.get("Parent", ""))
    hint = re.search(r"Direction for this one: (.*)\.$", answer, re.M)
    return Sheet(
        mark=mark[1] if mark else "",
        rules=parts.get("Language", ""),
        parent=parent[0].text if parent else "",
        height=_height(height[1]) if height else 0.0,
        results=tuple(_rows(parts.get("Results", ""))),
        pending=tuple(
            m[1] for line in parts.get("Results", "").splitlines() if (m := _PENDING.match(line))
        ),
        failures=tuple(_failures(parts.get("Failures", ""))),
        hint=hint[1] if hint else "",
        wrong=(repair[1], repair[2]) if repair else None,
        said=said,
    )


def sections(text: str) -> dict[str, str]:
    """The parts under headings of level two; a heading inside a fenced block is none."""
    out: dict[str, list[str]] = {}
    name, fence = "", ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark:
            run = line.strip()
            length = len(run) - len(run.lstrip("`"))
            if not fence:
                fence = "`" * length
            elif length >= len(fence) and not run.strip("`"):
                fence = ""
        if not fence and line.startswith("## "):
            name = line[3:].strip()
        else:
            out.setdefault(name, []).append(line)
    return {key: "\n".join(lines) for key, lines in out.items()}


def _rows(text: str) -> list[Result]:
    found = (_ROW.match(line) for line in text.splitlines())
    return [Result(m[1], _height(m[2])) for m in found if m]


def _height(text: str) -> float | None:
    speed = _SPEEDUP.match(text)
    return math.log2(max(float(speed[1]), 1e-9)) if speed else None


def _failures(text: str) -> list[tuple[str, str]]:
    """Each failed program with all that is said of it."""
    out: list[tuple[str, str]] = []
    for line in text.splitlines():
        row = _ROW.match(line)
        if row:
            out.append((row[1], row[2]))
        elif out:
            out[-1] = (out[-1][0], f"{out[-1][1]}\n{line}")
    return out
