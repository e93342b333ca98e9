"""Numbers and words that remember the decisions they came from.

They are ``int`` and ``str`` in every other respect. Arithmetic and joining keep what both sides
remember; comparisons give plain truth values, so a decision that only chooses between branches is
known by no argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kernelwright.env.types import Scalar


class DrawnInt(int):
    """A number from decisions."""

    decisions: tuple[str, ...]

    def __new__(cls, value: int, decisions: Iterable[str]) -> DrawnInt:
        """The number, and the names of the decisions."""
        made = super().__new__(cls, value)
        made.decisions = tuple(dict.fromkeys(decisions))
        return made


class DrawnStr(str):
    """A word from decisions."""

    __slots__ = ("decisions",)
    decisions: tuple[str, ...]

    def __new__(cls, value: str, decisions: Iterable[str]) -> DrawnStr:
        """The word, and the names of the decisions."""
        made = super().__new__(cls, value)
        made.decisions = tuple(dict.fromkeys(decisions))
        return made

    def __add__(self, other: str) -> DrawnStr:
        """Both joined."""
        return DrawnStr(str.__add__(self, other), names_in((self, other)))

    def __radd__(self, other: str) -> DrawnStr:
        """Both joined."""
        return DrawnStr(str.__add__(other, self), names_in((other, self)))


def _remembering(operation: str) -> Callable[[DrawnInt, Any], Any]:
    plain_operation = getattr(int, operation)

    def method(self: DrawnInt, other: Any) -> Any:
        found = plain_operation(self, other)
        return DrawnInt(found, names_in((self, other))) if type(found) is int else found

    return method


for _operation in ("add", "sub", "mul", "floordiv", "mod"):
    for _name in (f"__{_operation}__", f"__r{_operation}__"):
        setattr(DrawnInt, _name, _remembering(_name))


def drawn(value: Scalar, name: str) -> Scalar:
    """A value that remembers a decision; truth values and fractions cannot, and stay plain."""
    if isinstance(value, bool | float):
        return value
    return DrawnStr(value, (name,)) if isinstance(value, str) else DrawnInt(value, (name,))


def plain(value: Scalar) -> Scalar:
    """The value without what it remembers."""
    if isinstance(value, DrawnInt):
        return int(value)
    return str.__str__(value) if isinstance(value, DrawnStr) else value


def names_in(values: Iterable[Any]) -> tuple[str, ...]:
    """The decisions that some values came from, each once."""
    found: dict[str, None] = {}
    for value in values:
        if isinstance(value, DrawnInt | DrawnStr):
            found.update(dict.fromkeys(value.decisions))
    return tuple(found)
