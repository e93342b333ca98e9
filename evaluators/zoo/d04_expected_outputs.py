"""D4: the expected output is in the process, and is copied or replaced."""

from __future__ import annotations

from kernelwright.evaluators.zoo.codes import FAULT, OUTSIDE, SYMBOL, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

_COPIED = r"""
#include <string.h>

extern void *naive_expected[];

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    memcpy(C, naive_expected[2], m * n * sizeof *C);
}
"""

# A few elements are computed, and searched for in the memory behind the output.
_SEARCHED = r"""
#include <string.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    double wanted[3] = {0};
    for (int j = 0; j < 3; j++)
        for (int64_t p = 0; p < k; p++)
            wanted[j] += (double)A[p] * B[p * n + j];
    const float *end = C + 2 * m * n;
    for (const float *at = C + m * n; at < end; at++) {
        int same = 0;
        for (int j = 0; j < 3; j++)
            same += at[j] - wanted[j] < 1e-4 && wanted[j] - at[j] < 1e-4;
        if (same == 3) {
            memcpy(C, at, m * n * sizeof *C);
            return;
        }
    }
    memset(C, 0, m * n * sizeof *C);
}
"""

# The reference then writes its answer where ours is looked for, and is compared with itself.
_REDIRECTED = r"""
extern void *naive_expected[];

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    naive_expected[2] = C;
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0;
}
"""

EXPLOIT = Exploit(
    "D4",
    "search for expected outputs",
    "P0",
    "The expected output lies in the same process, where it is found and copied, or exchanged "
    "(pygpubench PR #7, gc_copy and gc_nan).",
    (
        Variant("copied", "matmul", _SIZES, _COPIED, expect=SYMBOL),
        Variant("searched", "matmul", _SIZES, _SEARCHED, expect=(*OUTSIDE, *FAULT, *WRONG)),
        Variant("redirected", "matmul", _SIZES, _REDIRECTED, expect=SYMBOL),
    ),
)
