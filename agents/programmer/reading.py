"""A rendered prompt, read back: what a programmer takes from it. Text in, text out; no other
knowledge gets in, so a prompt that leaves something out makes a worse programmer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.agents.chat import Message
from kernelwright.agents.dialects.fences import blocks
from kernelwright.agents.programmer.background import (
    NOTHING,
    Background,
    Result,
    lines_of,
    read_background,
)
from kernelwright.agents.programmer.directives import listed

# What an answer may be: the marks of its fenced block.
MARKS = ("json", "python", "steps", "c", "edit", "plan", "review", "action")
_MARKED = re.compile(rf"```({'|'.join(MARKS)})\b")
_ROW = re.compile(r"^- `(.*)`: (.*)$")
_PENDING = re.compile(r"^- `(.*)`$")
_REPAIR = re.compile(r"^Your answer could not be used \((\w+)\): (.*?)\n\nKeep the idea", re.S)
_OUTPUT = re.compile(r"^- output `(\w+)`: \w+\[(.*)\]$", re.M)
_TOOL = re.compile(r"^[-*] `(\w+)(?:\(([^)`]*)\))?`", re.M)
# Sections that a program stands in which is to be reviewed.
SHOWN = ("Candidate", "Proposal", "Code", "Program")
_SPEEDUP = re.compile(r"^([0-9.e+-]+)x$")


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a prompt says. ``wrong`` is what the last message says of the last answer, ``said``.

    ``mark`` is the form of the answer, or the first of ``forms`` where one may choose; ``around``
    is what is said beside the search's own results.
    ``is_tried`` says that the parent has a result; ``outputs`` are the kernel's, each with its
    shape; ``shown`` is a program to be reviewed; ``tools`` are names with their arguments, ``acts``
    the actions of the conversation so far and ``heard`` what the last message of one says;
    ``is_bare`` says that JSON stands alone.
    """

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
    is_tried: bool = False
    outputs: tuple[tuple[str, str], ...] = ()
    plan: str = ""
    shown: str = ""
    tools: tuple[tuple[str, str], ...] = ()
    acts: tuple[tuple[str, str], ...] = ()
    heard: str = ""
    is_bare: bool = False
    forms: tuple[str, ...] = ()
    around: Background = NOTHING

    @property
    def seen(self) -> frozenset[str]:
        """The lines of everything that may not be proposed again."""
        failed = (text for text, _ in self.failures)
        others = (listed(r.text) for r in self.around.others)
        return frozenset([*(r.text for r in self.results), *self.pending, *failed, *others])


def read_prompt(messages: Sequence[Message], *, is_bare: bool = False) -> Sheet:
    """The prompt's content. A later message of a conversation says more, or the same anew.

    ``is_bare`` says that the server was asked for JSON and nothing around it.
    """
    users = [text for role, text in messages if role == "user"]
    parts: dict[str, str] = {}
    for text in users:
        told = sections(text)
        if "Parent" in told:
            parts.pop("Profile", None)  # of another one
        parts |= told
    last = users[-1] if users else ""
    repair = _REPAIR.match(last) if len(messages) > 1 else None
    said = [text for role, text in messages if role == "assistant"]
    parent, results = parts.get("Parent", ""), parts.get("Results", "")
    height = re.search(r"speedup (\S+x)\.", parent)
    hint = re.search(r"Direction for this one: (.*)\.$", parts.get("Answer", last), re.M)
    forms = wanted_marks(parts.get("Answer", ""), last)
    return Sheet(
        mark=forms[0] if forms else "",
        rules=parts.get("Language", ""),
        parent=_first_block(parent),
        height=_height(height[1]) if height else 0.0,
        results=tuple(_rows(results)),
        pending=tuple(m[1] for line in results.splitlines() if (m := _PENDING.match(line))),
        failures=tuple(_failures(parts.get("Failures", ""))),
        hint=hint[1] if hint else "",
        wrong=(repair[1], repair[2]) if repair else None,
        said=said[-1] if said else "",
        is_tried=height is not None,
        outputs=tuple(_OUTPUT.findall(parts.get("Task", ""))),
        plan=_plan(parts, said),
        shown=_first_block(next((parts[name] for name in SHOWN if name in parts), "")),
        tools=tuple(_TOOL.findall(parts.get("Tools", ""))),
        acts=tuple(act for text in said for act in _acts(text)),
        heard=last if said else "",
        is_bare=is_bare,
        forms=forms,
        around=read_background(parts),
    )


def wanted_marks(answer: str, last: str) -> tuple[str, ...]:
    """The marks that an answer may have: those that the last message asks for, else those that the
    section on answers does. None if no known one is asked for.
    """
    again = last.partition("Keep the idea and answer again")[2]
    for text in (again, sections(last).get("Answer", ""), answer, last):
        asked = re.findall(r"begins with ```(\w+)", text)
        found = [m[1]] if not asked and (m := _MARKED.search(text)) else asked
        known = tuple(dict.fromkeys(mark for mark in found if mark in MARKS))
        if known and (asked or text is not last):
            return known
    return ()


def _first_block(text: str) -> str:
    found = blocks(text)
    return found[0].text if found else ""


def _plan(parts: dict[str, str], said: Sequence[str]) -> str:
    """The plan of a section of that name, else the last that was answered, else an instruction."""
    if "Plan" in parts:
        return _first_block(parts["Plan"]) or parts["Plan"]
    told = [block.text for text in said for block in blocks(text) if block.mark == "plan"]
    return told[-1] if told else parts.get("Instruction", "")


def _acts(text: str) -> list[tuple[str, str]]:
    """The actions in an answer as (tool, arguments)."""
    out = []
    for block in blocks(text):
        try:
            act = json.loads(block.text) if block.mark == "action" else None
        except (ValueError, RecursionError):
            continue
        if isinstance(act, dict) and isinstance(act.get("tool"), str):
            out.append((act["tool"], json.dumps(act.get("arguments", {}), sort_keys=True)))
    return out


def sections(text: str) -> dict[str, str]:
    """The parts under headings of level two; a heading inside a fenced block is none."""
    out: dict[str, list[str]] = {}
    name = ""
    for line, is_outside in lines_of(text):
        if is_outside and line.startswith("## "):
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
