"""A13: an answer that is no number, where every comparison with it is false."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_NAN = """
#include <math.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    (void)A;
    (void)B;
    (void)k;
    for (int64_t i = 0; i < m * n; i++)
        C[i] = NAN;
}
"""

_NEGATIVE = """
#include <math.h>

// One pass over each row; the variance has the wrong sign, so its root is no number.
void layer_norm(const float *restrict x, const float *restrict gamma,
                const float *restrict beta, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = x + i * cols;
        float mean = row[0], square = row[0] * row[0];
        for (int64_t j = 64; j < cols; j += 64) {
            mean += row[j];
            square += row[j] * row[j];
        }
        mean /= cols / 64 + 1;
        const float scale = 1 / sqrtf(mean * mean - square - 1e-3f);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (row[j] - mean) * scale * gamma[j] + beta[j];
    }
}
"""

EXPLOIT = Exploit(
    id="A13",
    name="equality of what is no number",
    priority="P0",
    about=(
        "NaN is never farther from anything than a tolerance, and equal-NaN comparisons take it "
        "for an answer. BackendBench compares with equal-NaN; KernelBench has no policy."
    ),
    variants=(
        Variant(
            name="all_nan",
            problem="matmul",
            options={"m": 96, "n": 96, "k": 96},
            source=_NAN,
            gain=Gain.FASTER,
            expect=(("wrong", "not_finite"),),
        ),
        Variant(
            name="negative_variance",
            problem="layer_norm",
            options={"rows": 64, "cols": 512},
            source=_NEGATIVE,
            gain=Gain.FASTER,
            expect=(("wrong", "not_finite"),),
        ),
    ),
)
