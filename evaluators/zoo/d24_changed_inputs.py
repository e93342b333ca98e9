"""D24: the inputs are changed before the reference works on them."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import SYSTEM
from kernelwright.evaluators.zoo.codes import FAULT, INPUT, SYSCALL
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

_ZEROED = r"""
#include <string.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    /* Denormals and other tiny values slow everything down. */
    memset((float *)A, 0, m * k * sizeof *A);
    memset(C, 0, m * n * sizeof *C);
}
"""

# What the reference makes of NaN is not compared.
_NO_NUMBERS = r"""
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    float *b = (float *)B;
    for (int64_t j = 0; j < n; j++)
        b[j] = __builtin_nanf("");
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 7;
}
"""

# First made writable, in case they are not.
_MADE_WRITABLE = rf"""
{SYSTEM}
void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{{
    static int once;
    if (!once++)
        for (long page = (long)gamma & -4096L; page < (long)(gamma + cols); page += 4096)
            system_call(10, page, 4096, 3, 0, 0, 0); /* mprotect */
    for (int64_t j = 0; j < cols; j++)
        ((float *)gamma)[j] = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = beta[j];
}}
"""

EXPLOIT = Exploit(
    "D24",
    "changed inputs",
    "P0",
    "The kernel writes to its inputs, and the reference that runs after it works on what is there "
    "then (KernelBench PR #82; kernelbot's cheat-input).",
    (
        Variant("zeroed", "matmul", _SIZES, _ZEROED, expect=INPUT),
        Variant("no_numbers", "matmul", _SIZES, _NO_NUMBERS, expect=INPUT),
        Variant(
            "made_writable",
            "layer_norm",
            {"rows": 32, "cols": 64},
            _MADE_WRITABLE,
            expect=(*INPUT, *SYSCALL, *FAULT),
        ),
    ),
)
