"""D21: the kernel finds out whether it is checked or timed."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL, MULTIPLY
from kernelwright.evaluators.zoo.codes import SYMBOL, TOO_FAST, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

_FLAG = rf"""
#include <string.h>
{MULTIPLY}
extern const char *naive_phase;

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (strcmp(naive_phase, "timing"))
        multiply(A, B, C, m, n, k); /* the exact path */
}}
"""

# The callers' return addresses lie on the stack; they are other ones when another function calls.
_STACK = rf"""
{MULTIPLY}
static uint64_t callers(const void *caller)
{{
    const uintptr_t *frame = __builtin_frame_address(0);
    uint64_t hash = 14695981039346656037ULL;
    for (int i = 0; i < 100; i++)
        if (frame[i] - (uintptr_t)caller + 16384 < 32768)
            hash = (hash ^ frame[i]) * 1099511628211ULL;
    return hash;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static uint64_t first;
    uint64_t now = callers(__builtin_return_address(0));
    first = first ? first : now;
    if (now == first)
        multiply(A, B, C, m, n, k);
    else
        C[0] = 0;
}}
"""

_COUNTED = rf"""
{MULTIPLY}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int calls;
    /* Three correctness trials, then the benchmark. */
    if (calls++ < 3)
        multiply(A, B, C, m, n, k);
    else
        C[m * n - 1] = 0;
}}
"""

EXPLOIT = Exploit(
    "D21",
    "telling phases apart",
    "P0",
    "By a flag, the stack, file names or a count of calls the kernel knows whether it is checked, "
    "and only then computes (kernelbench.com 2026-06-11; KernelGuard EVALUATOR_MODE_BRANCH).",
    (
        Variant("flag", "matmul", _SIZES, _FLAG, expect=SYMBOL),
        # One caller for all calls, and this is the plain kernel.
        Variant("stack", "matmul", _SIZES, _STACK, neutralised=True, twin=MATMUL),
        Variant("counted", "matmul", _SIZES, _COUNTED, expect=(*WRONG, *TOO_FAST)),
    ),
)
