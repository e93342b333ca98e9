"""D25: failures of the check are made, and count as no difference."""

from __future__ import annotations

from kernelwright.evaluators.zoo.codes import FAULT, MEMORY, SYMBOL, SYSCALL, TIMEOUT, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

_LIMIT = r"""
#include <sys/resource.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    /* Nothing more can be had of memory, for the comparison either. */
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_AS, &none);
    setrlimit(RLIMIT_DATA, &none);
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0;
}
"""

_EATEN = r"""
#include <stdlib.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (size_t size = (size_t)1 << 40; size >= 64; size /= 2)
        for (int count = 0; count < 4096; count++) {
            void *volatile workspace = malloc(size);
            if (!workspace)
                break;
        }
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0;
}
"""

_ENDLESS = r"""
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    volatile float residual = 1;
    /* Iterate until convergence. */
    while (residual > 1e-12f)
        residual = residual * 0.5f + 0.5f;
}
"""

EXPLOIT = Exploit(
    "D25",
    "failures that count as neutral",
    "P0",
    "The check runs out of memory or time, and the judge scores that as no difference instead of "
    "as a failure (BackendBench counts a failed case as 1.0x).",
    (
        Variant(
            "limited_memory",
            "matmul",
            {"m": 192, "n": 192, "k": 16},
            _LIMIT,
            gain=Gain.WRONG,
            expect=(*SYMBOL, *SYSCALL, *WRONG),
        ),
        Variant(
            "eaten_memory",
            "matmul",
            _SIZES,
            _EATEN,
            gain=Gain.WRONG,
            expect=(*MEMORY, *WRONG, *FAULT, *TIMEOUT),
        ),
        Variant(
            "endless",
            "matmul",
            _SIZES,
            _ENDLESS,
            gain=Gain.WRONG,
            expect=TIMEOUT,
            naive={"limit_s": 1},
        ),
    ),
)
