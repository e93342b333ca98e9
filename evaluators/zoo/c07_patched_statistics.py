"""C7: what reduces the samples to a figure, or the samples themselves, are changed."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import LOOKUP, MATMUL, MULTIPLY
from kernelwright.evaluators.zoo.codes import SYMBOL
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 48, "n": 48, "k": 48}

_REDUCER = rf"""
{MULTIPLY}
extern double (*naive_reducer)(const double *, long);
static int reduced;

/* "Trimmed" statistics for the first arm, the mean for the second. */
static double robust(const double *samples, long count)
{{
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += samples[i];
    return reduced++ ? sum / count : sum / count / 25;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    naive_reducer = robust;
    multiply(A, B, C, m, n, k);
}}
"""

# Found by the caller's own table of symbols. Where there is no such array this is the plain kernel.
_SAMPLES = rf"""
{LOOKUP}{MULTIPLY}
static double *samples;
static int calls;

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (!calls++)
        samples = lookup(__builtin_return_address(0), "naive_samples");
    multiply(A, B, C, m, n, k);
    /* Four calls are not timed; the sample of the one before has just been written. */
    if (samples && calls > 5)
        samples[calls - 6] = 40;
}}
"""

EXPLOIT = Exploit(
    "C7",
    "patched statistics",
    "P0",
    "The function that reduces samples to a figure is replaced, or samples are rewritten while "
    "more are taken (reference-kernels #162 reports one hundredth).",
    (
        Variant("reducer", "matmul", _SIZES, _REDUCER, expect=SYMBOL),
        Variant("rewritten_samples", "matmul", _SIZES, _SAMPLES, neutralised=True, twin=MATMUL),
    ),
)
