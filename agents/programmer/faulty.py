"""What makes a program wrong in a known way."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from kernelwright.agents.programmer.reading import Sheet

# From the prompt and an honest answer to a wrong one with its ground truth (the class, and behind a
# colon which of its kinds), or to None where the language has no such fault.
Fault: TypeAlias = Callable[[Sheet, str, Random], tuple[str, str] | None]
