"""Every identifier that generated code has beyond the procedure's own, so that generator, tests and
readers agree.
"""

from __future__ import annotations

import re

# C's own words, and what the generated headers declare; a procedure may use none of them as a name.
_WORDS = (
    "auto break case char const continue default do double else enum extern float for goto "
    "if inline int long register restrict return short signed sizeof static struct switch "
    "typedef union unsigned void volatile while main asm typeof linux unix free malloc "
    "abort aligned_alloc abs int32_t int64_t uint8_t fabs sqrt exp log tanh erf floor fabsf "
    "sqrtf expf logf tanhf erff floorf "
)
RESERVED = frozenset(_WORDS.split())
# What looks like a macro of some header, like a vector type, or like this module's own names.
_SUSPECT = re.compile(r"[A-Z_][A-Z0-9_]{2,}|[fi](32|64)x\d+|kw_.*")


def is_free(name: str) -> bool:
    """Whether C, its headers and this module leave a name to the procedure."""
    return name not in RESERVED and not _SUSPECT.fullmatch(name)


def vector_type(dtype: str, lanes: int) -> str:
    """The type of a vector: ``f32x16``."""
    short = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}[dtype]
    return f"{short}x{lanes}"


def floor_division(dtype: str) -> str:
    """The helper for integer division towards minus infinity."""
    return f"kw_floordiv_{dtype}"


def modulo(dtype: str) -> str:
    """The helper for the remainder of that division."""
    return f"kw_mod_{dtype}"


def minimum(dtype: str) -> str:
    """The helper for the lesser of two."""
    return f"kw_min_{dtype}"


def maximum(dtype: str) -> str:
    """The helper for the greater of two."""
    return f"kw_max_{dtype}"


def extent(var: str) -> str:
    """The extent of a loop where it is loaded: read once, before the loop."""
    return f"kw_{var}_extent"
