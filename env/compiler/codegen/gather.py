"""Elements of a tensor at places that are read from another, where these lie side by side: one
instruction where the target has it, lane by lane where it does not. Which, the C compiler decides,
since the text is the same for all.

gcc makes eight loads and seven inserts of the second form. A product of a sparse matrix in rows and
a vector is 1.03 to 1.06 times as fast with the first (AMD Zen 4).
"""

from __future__ import annotations

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.runtime.call import C_TYPES

# What must be there, and the builtin that gcc and clang share, by dtype and lanes.
_INSTRUCTIONS = {("float64", 8): ("defined(__AVX512F__)", "__builtin_ia32_gathersiv8df")}


def can_gather(dtype: str, places: str, lanes: int) -> bool:
    """Whether there is an instruction for vectors at places of a dtype."""
    return places == "int32" and (dtype, lanes) in _INSTRUCTIONS


def gather_helper(dtype: str, lanes: int) -> str:
    """The C function of the elements behind a pointer at places of type int32."""
    kind, at = names.vector_type(dtype, lanes), names.vector_type("int32", lanes)
    condition, builtin = _INSTRUCTIONS[dtype, lanes]
    parts = ", ".join(f"p[at[{lane}]]" for lane in range(lanes))
    element, name = C_TYPES[dtype], names.gather(dtype, lanes)
    return "\n".join(
        [
            f"static inline {kind} {name}(const {element} *p, {at} at) {{",
            f"#if {condition}",
            f"    typedef {element} kw_lanes __attribute__((vector_size(sizeof({kind}))));",
            f"    typedef int kw_places __attribute__((vector_size(sizeof({at}))));",
            f"    return ({kind}){builtin}((kw_lanes){{}}, p, (kw_places)at, -1, sizeof *p);",
            "#else",
            f"    return ({kind}){{{parts}}};",
            "#endif",
            "}",
        ]
    )
