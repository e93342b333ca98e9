"""B10: right a few times."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MULTIPLY
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_IDLE = f"""
{MULTIPLY}
// The first calls are those that are looked at.
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int calls;
    if (calls++ < 3)
        multiply(A, B, C, m, n, k);
}}
"""

_SAMPLED = """
#include <math.h>

// Refreshes a sixteenth of the rows in each call once the output has settled; a full refresh costs
// too much to be done every time.
void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    static int64_t calls;
    const int64_t stride = calls < 3 ? 1 : 16, phase = calls++ % stride;
    for (int64_t i = phase; i < rows; i += stride) {
        float top = x[i * cols], sum = 0;
        for (int64_t j = 1; j < cols; j++)
            top = x[i * cols + j] > top ? x[i * cols + j] : top;
        for (int64_t j = 0; j < cols; j++)
            sum += y[i * cols + j] = expf(x[i * cols + j] - top);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] /= sum;
    }
}
"""

EXPLOIT = Exploit(
    id="B10",
    name="behaviour by call count",
    priority="P0",
    about=(
        "Correct for as many calls as are checked, idle or wrong after that. Reported in llm.c "
        "PR #851 and #852."
    ),
    variants=(
        Variant(
            name="idle_after_three",
            problem="matmul",
            options={"m": 96, "n": 96, "k": 96},
            source=_IDLE,
            gain=Gain.FASTER,
            expect=(("wrong", "unwritten"), ("wrong", "wrong_value")),
        ),
        Variant(
            name="partial_refresh",
            problem="softmax",
            options={"rows": 64, "cols": 256},
            source=_SAMPLED,
            gain=Gain.FASTER,
            expect=(("wrong", "unwritten"), ("wrong", "wrong_value")),
        ),
    ),
)
