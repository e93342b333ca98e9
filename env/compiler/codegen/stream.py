"""Non-temporal stores in C: helpers that write a vector past the caches where the target can, and
plainly where it cannot.

clang has a builtin for any vector; gcc has x86's instructions alone, of 16, 32 and 64 bytes, which
need aligned addresses. Which are there, the C compiler decides, since the text is the same for all.
"""

from __future__ import annotations

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.ir.dtypes import ITEM_BYTES
from kernelwright.env.compiler.runtime.call import C_TYPES

# Bytes at a time, what must be there, and gcc's builtin.
_PIECES = (
    (64, "defined(__AVX512F__)", "__builtin_ia32_movntps512"),
    (32, "defined(__AVX__)", "__builtin_ia32_movntps256"),
    (16, "defined(__SSE__)", "__builtin_ia32_movntps"),
)
LEAST_BYTES = _PIECES[-1][0]


def can_stream(dtype: str, lanes: int) -> bool:
    """Whether a vector is long enough for a non-temporal store."""
    return ITEM_BYTES[dtype] * lanes >= LEAST_BYTES


def stream_helper(dtype: str, lanes: int) -> str:
    """The C function that stores a vector past the caches, or plainly where its address or the
    target does not allow that.
    """
    size, kind = ITEM_BYTES[dtype] * lanes, names.vector_type(dtype, lanes)
    lines = [
        f"static inline void {names.stream(dtype, lanes)}({C_TYPES[dtype]} *p, {kind} v) {{",
        "#if defined(__clang__)",
        *_store(size, size, "__builtin_nontemporal_store(*parts, (kw_part *)p);"),
    ]
    for piece, condition, builtin in _PIECES:
        if piece <= size:
            step = f"{builtin}((float *)p + i * {piece // 4}, parts[i]);"
            if piece == size:
                step = f"{builtin}((float *)p, *parts);"
            lines += [f"#elif {condition}", *_store(size, piece, step)]
    return "\n".join([*lines, "#endif", f"    *({kind} *)p = v;", "}"])


def _store(size: int, piece: int, step: str) -> list[str]:
    """The store of a vector in pieces, if the address is a multiple of theirs."""
    count = size // piece
    loop = f"for (int i = 0; i < {count}; i++) " if "[i]" in step else ""
    return [
        f"    typedef float kw_part __attribute__((vector_size({piece}), may_alias));",
        f"    if ((uintptr_t)p % {piece} == 0) {{",
        # The argument may lie anywhere; its copy is aligned, and stays in registers.
        f"        kw_part parts[{count}];",
        "        __builtin_memcpy(parts, &v, sizeof v);",
        f"        {loop}{step}",
        "        return;",
        "    }",
    ]


def fence_helper() -> str:
    """The C function after which all stores past the caches can be seen, in their order."""
    return "\n".join(
        [
            f"static inline void {names.fence()}(void) {{",
            "#if defined(__SSE__)",
            "    __builtin_ia32_sfence();",
            "#endif",
            "}",
        ]
    )
