"""What a template is shown in the midst of a search, made up: a template is tried with it before a
call is paid, because most of it is not there in the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kernelwright.agents.context.device import DeviceSheet
from kernelwright.agents.context.library import Passage
from kernelwright.agents.context.profile import ProfileSheet
from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.memory import Failure, Parent, Row

PASSAGE = Passage("page", "a page", "what it says")
DEVICE = DeviceSheet("a machine", ("a figure of it",))
PROFILE = ProfileSheet(("a fact",), fenced("a log", "text"))


def midway(parent: Parent | None) -> dict[str, Any]:
    """The values of a search that has seen passes and failures.

    Args:
        parent: what stands for every program.
    """
    shown = parent or Parent("0" * 8, "speedup 1x", fenced("a program", "text"))
    return {
        "parent": shown,
        "tried": [Row("a program", "1.5x", 1), Row("another", "wrong", 2)],
        "count": 2,
        "pending": ["a third"],
        "failures": [
            Failure("another", "wrong", "error_bound", fenced("why", "text")),
            Failure("a fourth", "timeout", None, ""),
        ],
        "failed": [("timeout", 1), ("wrong (error_bound)", 1)],
        "inspirations": [shown],
    }


def in_between(beginning: Mapping[str, Any], midway: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every part alone and every part lacking: a search has passes before failures or failures
    before passes, and agents and limits of tokens leave parts away.
    """
    for name in midway:
        if midway[name] != beginning[name]:
            yield {**beginning, name: midway[name]}
            yield {**midway, name: beginning[name]}
