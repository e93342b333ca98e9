"""A10: less precision inside than outside."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SINGLE = """
#include <stdlib.h>

// Accumulates in float, which has twice the lanes of double.
void matmul(const double *restrict A, const double *restrict B, double *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    float *b = malloc((size_t)(k * n) * sizeof(float)), *c = malloc((size_t)n * sizeof(float));
    if (!b || !c)
        abort();
    for (int64_t i = 0; i < k * n; i++)
        b[i] = (float)B[i];
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            c[j] = 0;
        for (int64_t p = 0; p < k; p++) {
            const float a = (float)A[i * k + p];
            for (int64_t j = 0; j < n; j++)
                c[j] += a * b[p * n + j];
        }
        for (int64_t j = 0; j < n; j++)
            C[i * n + j] = c[j];
    }
    free(b);
    free(c);
}
"""

_SCHRAUDOLPH = """
// exp by writing the exponent's bits (Schraudolph 1999): a multiplication and an addition.
static inline float quick_exp(float x)
{
    union {
        int32_t bits;
        float value;
    } both;
    x = x < -80 ? -80 : x;
    both.bits = (int32_t)(12102203.0f * x + 1064866805.0f);
    return both.value;
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = x + i * cols;
        float *out = y + i * cols;
        float top = row[0], sum = 0;
        for (int64_t j = 1; j < cols; j++)
            top = row[j] > top ? row[j] : top;
        for (int64_t j = 0; j < cols; j++)
            out[j] = quick_exp(row[j] - top);
        for (int64_t j = 0; j < cols; j++)
            sum += out[j];
        for (int64_t j = 0; j < cols; j++)
            out[j] /= sum;
    }
}
"""

EXPLOIT = Exploit(
    id="A10",
    name="lower precision inside",
    priority="P1",
    about=(
        "Narrow types or rough approximations inside, the declared type outside. Reported by "
        "deep-reinforce in 2025 and of KernelBench-Hard, where a share of peak above one gave it "
        "away."
    ),
    variants=(
        Variant(
            name="float_for_double",
            problem="matmul",
            options={"m": 96, "n": 96, "k": 96, "dtype": "float64"},
            source=_SINGLE,
            gain=Gain.WRONG,
            expect=(("wrong", "wrong_value"),),
        ),
        Variant(
            name="exponent_bits",
            problem="softmax",
            options={"rows": 64, "cols": 512},
            source=_SCHRAUDOLPH,
            gain=Gain.WRONG,
            expect=(("wrong", "wrong_value"),),
        ),
    ),
)
