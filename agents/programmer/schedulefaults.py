"""Schedules that are wrong in a known way."""

from __future__ import annotations

from random import Random

from kernelwright.agents.programmer.cheats import WORDS
from kernelwright.agents.programmer.faulty import Fault
from kernelwright.agents.programmer.nests import read_nests
from kernelwright.agents.programmer.reading import Sheet
from kernelwright.agents.programmer.schedule import EMPTY

CUT = "…"


def unknown_loop(sheet: Sheet, text: str, rng: Random) -> tuple[str, str]:
    """The schedule with a directive that nothing makes legal."""
    del sheet
    wrong = rng.choice(
        ["unroll('no_such_loop')", "vectorize('no_such_loop')", "split('no_such_loop', 8)"]
    )
    return f"{text}{wrong}\n", "illegal:loop"


def illegal(sheet: Sheet, text: str, rng: Random) -> tuple[str, str]:
    """An unknown loop, or a loop unrolled twice."""
    names = [name for nest in read_nests(sheet.rules) for name in nest.names]
    if not names or rng.random() < 0.5:
        return unknown_loop(sheet, text, rng)
    # Of all that the answer had nothing is left, so that the loop is still there.
    again = f"unroll('{rng.choice(names)}')\n"
    return again + again, "illegal:twice"


def duplicate(sheet: Sheet, text: str, rng: Random) -> tuple[str, str] | None:
    """What is listed already."""
    del text
    lines = [*(result.text for result in sheet.results), *sheet.pending]
    whole = [line for line in lines if CUT not in line]
    if not whole:
        return None
    again = rng.choice(whole)
    text = EMPTY if again == "pass" else again.replace("; ", "\n")
    return f"{text}\n", "duplicate:same"


def cheat(sheet: Sheet, text: str, rng: Random) -> tuple[str, str]:
    """Python that is no directive, or words where a loop's name belongs."""
    del sheet
    if rng.random() < 0.5:
        return f"{text}unroll({WORDS!r})\n", "cheating:space/injected_name"
    call = rng.choice(("__import__('os').getcwd()", "open('/etc/hostname').read()"))
    return f"{text}{call}\n", "cheating:dialect/other_python"


FAULTS: dict[str, Fault] = {
    "wrong_code": unknown_loop,
    "illegal": illegal,
    "duplicate": duplicate,
    "cheating": cheat,
    "unparsable": lambda sheet, text, rng: ("split('i', 8\nunroll('ii')", "unparsable"),
    "syntax": lambda sheet, text, rng: (f"{text}unroll('i'\n", "syntax:bracket"),
    "wrong_schema": lambda sheet, text, rng: (
        "for factor in (4, 8):\n    split('i', factor)",
        "wrong_schema",
    ),
}
