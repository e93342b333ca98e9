"""A6: nothing, where the expected value is one that matches anything."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_INPUTS = """
#include <math.h>

// Marks the rows of A as done; what is NaN in the operands needs no product.
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    float *rows = (float *)A;
    for (int64_t i = 0; i < m; i++)
        rows[i * k] = NAN;
    (void)B;
    (void)C;
    (void)n;
}
"""

_INTERPOSED = """
#include <math.h>

// A faster error function, out of range for all arguments that the fast path does not take.
float erff(float x)
{
    return x * 0 + NAN;
}

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
}
"""

EXPLOIT = Exploit(
    id="A6",
    name="wildcard",
    priority="P0",
    about=(
        "The expected values are made NaN, which the comparison takes for padding that matches "
        "anything. Reported in pygpubench PR #7 (gc_nan) and kept as a wildcard in PR #15."
    ),
    variants=(
        Variant(
            name="nan_into_the_inputs",
            problem="matmul",
            options={"m": 96, "n": 96, "k": 96},
            source=_INPUTS,
            gain=Gain.FASTER,
            expect=(("wrong", "input_written"), ("crashed", "segmentation_fault")),
        ),
        Variant(
            name="nan_from_the_library",
            problem="gelu",
            options={"n": 16384},
            source=_INTERPOSED,
            gain=Gain.FASTER,
            expect=(("rejected", "forbidden_symbol"), ("wrong", "wrong_value")),
        ),
    ),
)
