"""Reviewing a program before it is judged: ``ok``, or ``reject`` with a reason."""

from __future__ import annotations

import ast
import json
import re
from random import Random

from kernelwright.agents.programmer import knobtext
from kernelwright.agents.programmer.ctext import blanked
from kernelwright.agents.programmer.directives import listed
from kernelwright.agents.programmer.faulty import Fault
from kernelwright.agents.programmer.plan import language_of
from kernelwright.agents.programmer.reading import Sheet
from kernelwright.agents.programmer.signature import read_signature

# What no kernel needs, with what is wrong with it.
_FORBIDDEN = (
    (r"\b(?:fopen|open|fork|system|exec\w*|_?exit|pthread_\w+)\s*\(", "calls {}"),
    (r"\b(?:clock|time|clock_gettime|gettimeofday)\s*\(|\brdtsc\b", "looks at the clock: {}"),
    (r"__attribute__\s*\(\(\s*(?:constructor|ifunc)", "works while it is loaded: {}"),
    (r"\b(?:syscall|__asm__|asm)\b", "has machine code of its own: {}"),
    (r"\bstatic\s+(?!const|inline|void)[\w ]+[\w\]\[]*\s*(?:=[^;]*)?;", "keeps something: {}"),
)
_ENDLESS = re.compile(r"\bfor\s*\(\s*;\s*;\s*\)|\bwhile\s*\(\s*1\s*\)|volatile int turn")


def propose(sheet: Sheet, rng: Random, skill: float) -> str:
    """What is wrong with the program shown; one who is unskilled may overlook it."""
    fault = found_fault(sheet)
    if fault is None or rng.random() >= 0.3 + 0.7 * skill:
        return "ok\n"
    return f"reject: {fault}\n"


def found_fault(sheet: Sheet) -> str | None:
    """What can be seen to be wrong with the program that is shown; None if nothing."""
    text, language = sheet.shown or sheet.parent, language_of(sheet)
    if not text.strip():
        return "there is no program"
    if listed(text) in sheet.seen or " ".join(text.split()) in {
        " ".join(row.split()) for row in sheet.seen
    }:
        return "it is listed already"
    if language == "json":
        return _in_knobs(sheet, text)
    return _in_schedule(text) if language == "python" else _in_c(sheet, text)


def _in_knobs(sheet: Sheet, text: str) -> str | None:
    choices = knobtext.read_choices(sheet)
    try:
        values = json.loads(text)
    except ValueError:
        return "it is no JSON"
    if not isinstance(values, dict) or set(values) != set(choices):
        return "it does not have a value for each knob"
    for name, value in values.items():
        if value not in choices[name]:
            return f"{name} has no value {json.dumps(value):.40}"
    return None if knobtext.obeys(knobtext.read_rules(sheet), values) else "it breaks a rule"


def _in_schedule(text: str) -> str | None:
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return "it is no Python"
    strange = [
        node
        for node in body
        if not (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
        )
    ]
    return "it has more than directives" if strange else None


def _in_c(sheet: Sheet, text: str) -> str | None:
    plain = blanked(text)
    for pattern, wrong in _FORBIDDEN:
        found = re.search(pattern, plain)
        if found:
            return wrong.format(" ".join(found[0].split())[:60])
    if _ENDLESS.search(plain):
        return "it may not end"
    if "@" in plain or plain.count("{") != plain.count("}"):
        return "it is no C"
    kernel = read_signature(sheet)
    if kernel is not None and f"{kernel.entry}" not in plain:
        return f"it does not define {kernel.entry}"
    if kernel is not None and not re.search(rf"\b{kernel.inputs[0][1]}\s*\[", plain):
        return f"it does not read {kernel.inputs[0][1]}"
    return None


FAULTS: dict[str, Fault] = {
    "wrong_schema": lambda sheet, text, rng: ("maybe\n", "wrong_schema"),
    "wrong_answer": lambda sheet, text, rng: (
        ("reject: it could be faster\n" if text.startswith("ok") else "ok\n"),
        "wrong_answer:verdict",
    ),
    "cheating": lambda sheet, text, rng: ("ok\n", "cheating:judge/waved_through"),
}
