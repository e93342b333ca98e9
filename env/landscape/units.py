"""Units of time in tuning files: their spellings, and conversions that keep the digits.

Times stay in the unit of the file that they came from, because a factor of a million is not exact
in binary. A conversion moves the decimal point of the shortest text of a number, so every number
of up to 15 digits comes back as it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

POWERS = {"ns": 0, "us": 3, "ms": 6, "s": 9}
SCALES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Nanoseconds in a unit."""

NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}
_WORDS = {
    **{unit: unit for unit in NAMES},
    **{name: unit for unit, name in NAMES.items()},
    **{name.removesuffix("s"): unit for unit, name in NAMES.items()},
    "miliseconds": "ms",  # as files of 2024 and 2025 spell it
    "sec": "s",
}


def unit_of(word: object) -> str:
    """The unit that a word of a file stands for.

    Raises:
        ValueError: if it stands for none.
    """
    unit = _WORDS.get(word.strip().lower()) if isinstance(word, str) else None
    if unit is None:
        listed = ", ".join(NAMES.values())
        raise ValueError(f"time unit: expected one of {listed}, found {word!r:.80}")
    return unit


def moved(value: float, power: int) -> float:
    """``value`` times ten to the ``power``, rounded once.

    Raises:
        ValueError: if it would become 0, or infinite.
    """
    if power == 0:
        return value
    mantissa, _, exponent = repr(float(value)).partition("e")
    found = float(f"{mantissa}e{int(exponent or 0) + power}")
    if math.isinf(found) or (found == 0) != (value == 0):
        raise ValueError(f"expected a time that its unit can hold, found {value!r:.80}")
    return found


def in_unit(times: Iterable[float], unit: str, to: str) -> tuple[float, ...]:
    """Times of one unit in another."""
    power = POWERS[unit] - POWERS[to]
    return tuple(times) if power == 0 else tuple([moved(time, power) for time in times])
