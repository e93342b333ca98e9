"""C whose author says what may be tuned: a macro with the values worth trying behind it.

```c
#define TILE 8 // tune: 4, 8, 16, 32
```
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Candidate, Knob, Language, Scalar

MOST_MACROS = 6
MOST_VALUES = 16
# A number that is written in one way alone, so that it reads back as it stands, and that a knob
# may have: `010` is eight in C.
_WHOLE = r"(?<![-\w])(?:0|-?[1-9]\d{0,14})(?![-\w])"
_NUMBER = re.compile(_WHOLE, re.ASCII)
_MACRO = re.compile(
    r"^([ \t]*#[ \t]*define[ \t]+)([A-Za-z_]\w*)([ \t]+)"
    rf"({_WHOLE})([ \t]*//[ \t]*tune:[ \t]*)([-\d, \t]+)$",
    re.MULTILINE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Tunable:
    """A program and its macros; the values of each hold the one that it has."""

    text: str
    knobs: tuple[Knob, ...]
    default: tuple[tuple[str, Scalar], ...]

    @property
    def space(self) -> KnobSpace:
        """Every choice of values."""
        return KnobSpace(self.knobs, default=self.default)

    def program(self, values: Mapping[str, Scalar]) -> Candidate:
        """The program with other values."""

        def written(found: re.Match[str]) -> str:
            head, name, blank, old, tail, listed = found.groups()
            return f"{head}{name}{blank}{values.get(name, old)}{tail}{listed}"

        return Candidate(Language.SOURCE, _MACRO.sub(written, self.text))


def read_tunable(candidate: Candidate, space: Any) -> Tunable | None:
    """What may be tuned of a program; None if nothing. Macros that stand twice, have one value, or
    stand where the space allows no change are left as they are.
    """
    text = str(candidate.payload)
    found = list(_MACRO.finditer(text))
    names = [match[2] for match in found]
    knobs: list[Knob] = []
    default: list[tuple[str, Scalar]] = []
    for match in found:
        name, own = match[2], int(match[4])
        listed = [int(word) for word in _NUMBER.findall(match[6])]
        values = tuple(sorted({own, *listed[:MOST_VALUES]}))
        other = next((value for value in values if value != own), None)
        if other is None or names.count(name) > 1 or len(knobs) == MOST_MACROS:
            continue
        knob = Knob(name, values)
        changed = Tunable(text, (knob,), ((name, own),)).program({name: other})
        if not space.check(changed):
            knobs.append(knob)
            default.append((name, own))
    return Tunable(text, tuple(knobs), tuple(default)) if knobs else None
