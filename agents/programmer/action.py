"""Acting through tools: what is not known yet is asked for, and then the best is submitted.

The order is list, look, estimate or measure, submit, of those tools that the prompt offers; tools
are told by what their names begin with.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from random import Random

from kernelwright.agents.programmer import knobs, schedule, source
from kernelwright.agents.programmer.faulty import Fault
from kernelwright.agents.programmer.plan import language_of
from kernelwright.agents.programmer.reading import Sheet

# What a step is, by the words that a tool's name may have; the order is that of the steps.
STEPS: dict[str, tuple[str, ...]] = {
    "list": ("list", "legal", "moves", "choices"),
    "look": ("print", "show", "ir", "state"),
    "apply": ("apply", "set", "step", "do"),
    "estimate": ("estimate", "model", "predict", "cost"),
    "measure": ("measure", "run", "time", "judge", "evaluate"),
    "submit": ("submit", "finish", "done", "answer"),
}
# Programs that one who is skilled looks at before one is submitted.
MOST_ESTIMATES = 3
_FIGURE = re.compile(r"(?:speedup|estimate)\W{0,4}\s*([0-9]+(?:\.[0-9]+)?)", re.IGNORECASE)


def propose(sheet: Sheet, rng: Random, skill: float) -> str:
    """The next action as a JSON object of ``tool`` and ``arguments``."""
    offered = tools(sheet)
    done = [step_of(tool) for tool, _ in sheet.acts]
    estimates = MOST_ESTIMATES if rng.random() < skill else 1
    if "list" in offered and not done and rng.random() < 0.5 + 0.5 * skill:
        return _act(offered["list"], {})
    if "estimate" in offered and done.count("estimate") < estimates:
        return _act(offered["estimate"], _program(sheet, offered["estimate"], rng, skill))
    submit = offered.get("submit") or offered.get("measure") or offered.get("apply")
    if submit is None:
        name = next(iter(offered.values()), ("submit", ()))
        return _act(name, {})
    return _act(submit, _best_estimated(sheet, submit, rng, skill))


Tool = tuple[str, tuple[str, ...]]


def tools(sheet: Sheet) -> dict[str, Tool]:
    """The tools that the prompt lists, by the step that each is for: name and its arguments."""
    out: dict[str, Tool] = {}
    for name, listed in sheet.tools:
        words = [re.split(r"[:=]", part)[0].strip() for part in listed.split(",")]
        out.setdefault(step_of(name), (name, tuple(word for word in words if word)))
    return out


def step_of(tool: str) -> str:
    """The step that a tool is for; its own name if for none that is known."""
    parts = tool.lower().split("_")
    for step, words in STEPS.items():
        if any(part in words for part in parts):
            return step
    return tool


def _program(sheet: Sheet, tool: Tool, rng: Random, skill: float) -> dict[str, object]:
    """A program for a tool: under its first argument, or where there is none under ``program``."""
    language = language_of(sheet)
    tried = tuple(_text_of(arguments) for _, arguments in sheet.acts)
    asked = replace(sheet, mark=language, pending=(*sheet.pending, *tried))
    writer = {"json": knobs.propose, "python": schedule.propose}.get(language, source.propose)
    return {tool[1][0] if tool[1] else "program": writer(asked, rng, skill)}


def _best_estimated(sheet: Sheet, tool: Tool, rng: Random, skill: float) -> dict[str, object]:
    """What was estimated last, if its estimate is known and no failure, else something new."""
    looked = [arguments for name, arguments in sheet.acts if step_of(name) == "estimate"]
    figure = _FIGURE.search(sheet.heard)
    if not looked or figure is None or float(figure[1]) <= 0:
        return _program(sheet, tool, rng, skill)
    return {tool[1][0] if tool[1] else "program": _text_of(looked[-1])}


def _text_of(arguments: str) -> str:
    """The first text among an action's arguments."""
    values = json.loads(arguments)
    texts = [v for v in values.values() if isinstance(v, str)] if isinstance(values, dict) else []
    return texts[0] if texts else ""


def _act(tool: Tool, arguments: dict[str, object]) -> str:
    return json.dumps({"tool": tool[0], "arguments": arguments})


FAULTS: dict[str, Fault] = {
    "unparsable": lambda sheet, text, rng: ('{"tool": "sub', "unparsable"),
    "syntax": lambda sheet, text, rng: (text[:-1], "syntax:bracket"),
    "wrong_schema": lambda sheet, text, rng: ('["submit"]', "wrong_schema"),
    "illegal": lambda sheet, text, rng: (
        json.dumps({"tool": "no_such_tool", "arguments": {}}),
        "illegal:tool",
    ),
    "cheating": lambda sheet, text, rng: (
        json.dumps({"tool": "record_result", "arguments": {"speedup": 99.0}}),
        "cheating:dialect/claimed_result",
    ),
}
