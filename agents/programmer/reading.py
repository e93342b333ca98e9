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

# What an answer may be: the marks of its fenced block.
MARKS = ("json", "python", "c", "edit", "plan", "review", "action")
_MARKED = re.compile(rf"```({'|'.join(MARKS)})\b")
_FENCE = re.compile(r"^ {0,3}`{3,}")
_ROW = re.compile(r"^- `(.*)`: (.*)$")
_PENDING = re.compile(r"^- `(.*)`$")
_REPAIR = re.compile(r"^Your answer could not be used \((\w+)\): (.*?)\n\nKeep the idea", re.S)
_OUTPUT = re.compile(r"^- output `(\w+)`: \w+\[(.*)\]$", re.M)
_TOOL = re.compile(r"^[-*] `(\w+)(?:\(([^)`]*)\))?`", re.M)
# Sections that a program stands in which is to be reviewed.
SHOWN = ("Candidate", "Proposal", "Code", "Program")
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
    """What a prompt says. ``wrong`` is what the last message says of the last answer, ``said``.

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

    @property
    def seen(self) -> frozenset[str]:
        """The lines of everything that may not be proposed again."""
        failed = (text for text, _ in self.failures)
        return frozenset([*(r.text for r in self.results), *self.pending, *failed])


def read_prompt(messages: Sequence[Message], *, is_bare: bool = False) -> Sheet:
    """The prompt's content. A later message of a conversation says more, or the same anew.

    ``is_bare`` says that the server was asked for JSON and nothing around it.
    """
    users = [text for role, text in messages if role == "user"]
    parts: dict[str, str] = {}
    for text in users:
        parts |= sections(text)
    last = users[-1] if users else ""
    repair = _REPAIR.match(last) if len(messages) > 1 else None
    said = [text for role, text in messages if role == "assistant"]
    parent, results = parts.get("Parent", ""), parts.get("Results", "")
    height = re.search(r"speedup (\S+x)\.", parent)
    hint = re.search(r"Direction for this one: (.*)\.$", parts.get("Answer", last), re.M)
    return Sheet(
        mark=wanted_mark(parts.get("Answer", ""), last),
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
    )


def wanted_mark(answer: str, last: str) -> str:
    """The mark that an answer shall have: the first that the last message asks for, else the first
    that the section on answers does. Empty if no known one is asked for.
    """
    again = last.partition("Keep the idea and answer again")[2]
    for text in (again, sections(last).get("Answer", ""), answer, last):
        asked = re.search(r"begins with ```(\w+)", text)
        found = _MARKED.search(text) if asked is None else asked
        if found and found[1] in MARKS and (asked or text is not last):
            return found[1]
    return ""


def _first_block(text: str) -> str:
    found = blocks(text)
    return found[0].text if found else ""


def _plan(parts: dict[str, str], said: Sequence[str]) -> str:
    """The plan of a section of that name, else the last that was answered."""
    if "Plan" in parts:
        return _first_block(parts["Plan"]) or parts["Plan"]
    told = [block.text for text in said for block in blocks(text) if block.mark == "plan"]
    return told[-1] if told else ""


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
