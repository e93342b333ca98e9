"""Every identifier that generated code has beyond the procedure's own, so that generator, tests and
readers agree.
"""

from __future__ import annotations

# C's own words, and what the generated headers declare; a procedure may use none of them as a name.
_WORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch "
    "typedef union unsigned void volatile while main abs sqrt exp log tanh erf floor int32_t "
    "int64_t uint8_t "
)
RESERVED = frozenset(_WORDS.split())


def vector_type(dtype: str, lanes: int) -> str:
    """The type of a vector: ``f32x16``."""
    short = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}[dtype]
    return f"{short}x{lanes}"


def floor_division() -> str:
    """The helper for integer division towards minus infinity."""
    return "kw_floordiv"


def modulo() -> str:
    """The helper for the remainder of that division."""
    return "kw_mod"


def minimum(dtype: str) -> str:
    """The helper for the lesser of two."""
    return f"kw_min_{dtype}"


def maximum(dtype: str) -> str:
    """The helper for the greater of two."""
    return f"kw_max_{dtype}"


def extent(var: str) -> str:
    """The extent of a loop where it is loaded: read once, before the loop."""
    return f"kw_{var}_extent"
