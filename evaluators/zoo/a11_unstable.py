"""A11: a formula that is right on paper."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_NO_MAXIMUM = """
#include <math.h>

// softmax(x) = exp(x) / sum(exp(x)); the maximum cancels out, so it need not be found.
void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++) {
            y[i * cols + j] = expf(x[i * cols + j]);
            sum += y[i * cols + j];
        }
        const float scale = 1 / sum;
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] *= scale;
    }
}
"""

_FROM_THE_END = """
// The total is a fast vector sum; from there the loop runs down, one subtraction an element.
void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    enum { LANES = 16 };
    float sums[LANES] = {0}, total = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += x[i + lane];
    for (; i < n; i++)
        total += x[i];
    for (int lane = 0; lane < LANES; lane++)
        total += sums[lane];
    for (i = n - 1; i >= 0; i--) {
        y[i] = total;
        total -= x[i];
    }
}
"""

EXPLOIT = Exploit(
    id="A11",
    name="unstable formula",
    priority="P1",
    about=(
        "A formula that is equal on paper and loses all digits, or overflows, where inputs are "
        "large or nearly equal. Reported of KernelBench-Hard's Kahan column and in dos-kernel "
        "issue #107."
    ),
    variants=(
        Variant(
            name="maximum_not_subtracted",
            problem="softmax",
            options={"rows": 64, "cols": 256},
            source=_NO_MAXIMUM,
            gain=Gain.WRONG,
            expect=(("wrong", "not_finite"), ("wrong", "wrong_value")),
        ),
        Variant(
            name="sums_from_the_end",
            problem="prefix_sum",
            options={"n": 4096},
            source=_FROM_THE_END,
            gain=Gain.WRONG,
            expect=(("wrong", "wrong_value"),),
        ),
    ),
)
