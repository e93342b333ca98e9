"""The dtypes of LoopIR: which are whole, which are floats, how large they are, what they hold.

Arithmetic stays in its dtype: every float16 operation rounds to float16 and the short whole numbers
wrap around, as NumPy's scalars do.
"""

from __future__ import annotations

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float16", "float32", "float64")
DTYPES = ("bool", *INTEGERS, *FLOATS)
ITEM_BYTES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "float16": 2,
    "float32": 4,
    "float64": 8,
}


def whole_range(dtype: str) -> range:
    """The whole numbers that an integer dtype holds."""
    count = 1 << 8 * ITEM_BYTES[dtype]
    return range(count) if dtype in UNSIGNED else range(-(count >> 1), count >> 1)


def fits(value: float, dtype: str) -> bool:
    """Whether a whole number is one of an integer dtype."""
    held = whole_range(dtype)
    return held.start <= value < held.stop
