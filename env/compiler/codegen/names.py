"""Every identifier that generated code has beyond the procedure's own, so that generator, tests and
readers agree.
"""

from __future__ import annotations

from kernelwright.env.compiler.ir.dtypes import ITEM_BYTES
from kernelwright.env.compiler.ir.names import is_free, is_free_function

__all__ = [
    "base",
    "extent",
    "fence",
    "floor_division",
    "gather",
    "hoisted",
    "instruction",
    "is_free",
    "is_free_function",
    "maximum",
    "minimum",
    "modulo",
    "register",
    "select",
    "stream",
    "thread_copy",
    "vector_type",
]


def vector_type(dtype: str, lanes: int) -> str:
    """The type of a vector: ``f32x16``."""
    bits = 8 * ITEM_BYTES[dtype]
    return f"{dtype[0]}{bits}x{lanes}"


def hoisted(number: int) -> str:
    """A remainder or quotient that was computed in front of a loop."""
    return f"kw_at_{number}"


def select(dtype: str) -> str:
    """The helper that chooses without a branch."""
    return f"kw_select_{dtype}"


def gather(dtype: str, lanes: int) -> str:
    """The helper for the elements at a vector of places."""
    return f"kw_gather_{vector_type(dtype, lanes)}"


def lane_sum(dtype: str, lanes: int) -> str:
    """The helper that adds up the lanes of a vector."""
    return f"kw_sum_{vector_type(dtype, lanes)}"


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


def thread_copy(tensor: str, number: int) -> str:
    """A virtual thread's own of a temporary."""
    return f"kw_{tensor}_thread{number}"


def instruction(name: str) -> str:
    """The function that does what an instruction means."""
    return f"kw_call_{name}"


def register(tensor: str, number: int) -> str:
    """A local variable that holds elements of a temporary: ``kw_C_register_0``; of one called
    ``at`` not what is `hoisted`.
    """
    return f"kw_{number}_at" if tensor == "at" else f"kw_{tensor}_{number}"


def stream(dtype: str, lanes: int) -> str:
    """The helper that stores a vector past the caches."""
    return f"kw_stream_{vector_type(dtype, lanes)}"


def fence() -> str:
    """The helper that waits for such stores."""
    return "kw_fence"


def base(tensor: str) -> str:
    """The address of a tensor's first element, where addresses are made."""
    return f"kw_{tensor}_base"
