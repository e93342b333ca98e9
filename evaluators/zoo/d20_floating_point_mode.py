"""D20: the floating-point mode is changed, so that the reference computes something else."""

from __future__ import annotations

from kernelwright.evaluators.zoo.codes import CONSTRUCTOR, FP_MODE, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

# A long sum that is rounded down all the way is too small by far more than any tolerance; the
# reference's becomes that, too.
_DOWNWARD = r"""
#include <immintrin.h>

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    _mm_setcsr(_mm_getcsr() | 0x2000);
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
"""

_UPWARD = r"""
#include <fenv.h>

void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    float sum = 0;
    fesetround(FE_UPWARD);
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        y[i] = sum;
    }
}
"""

# What the start-up code of fast-math does, and the other half of the mode at it.
_AT_LOAD = r"""
#include <immintrin.h>

__attribute__((constructor)) static void mode(void)
{
    _mm_setcsr(0x1f80 | 0x8040 | 0x4000); /* no denormals, upward */
}

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
"""

EXPLOIT = Exploit(
    "D20",
    "floating-point mode",
    "P0",
    "Rounding or the treatment of denormals is changed and left that way, and code that runs "
    "later computes something else (llvm-project #57589; moyix 2022). An unmasked exception that "
    "slows the baseline is in class C20.",
    (
        Variant(
            "rounded_down",
            "row_sum",
            {"rows": 4, "cols": 65536},
            _DOWNWARD,
            gain=Gain.WRONG,
            expect=(*FP_MODE, *WRONG),
        ),
        Variant(
            "rounded_up",
            "prefix_sum",
            {"n": 65536},
            _UPWARD,
            gain=Gain.WRONG,
            expect=(*FP_MODE, *WRONG),
        ),
        Variant(
            "at_load",
            "row_sum",
            {"rows": 4, "cols": 65536},
            _AT_LOAD,
            gain=Gain.WRONG,
            expect=(*CONSTRUCTOR, *FP_MODE, *WRONG),
        ),
    ),
)
