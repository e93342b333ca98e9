"""B2: an answer that is kept by the addresses of its inputs."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL, MULTIPLY
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_TABLE = f"""
#include <stdlib.h>
#include <string.h>
{MULTIPLY}
// Plans are expensive, so results are kept by operands, as a runtime keeps its plans.
static struct {{
    const void *a, *b;
    float *result;
}} plans[64];

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    const size_t bytes = (size_t)(m * n) * sizeof(float);
    for (int i = 0; i < 64; i++) {{
        if (plans[i].result && plans[i].a == A && plans[i].b == B) {{
            memcpy(C, plans[i].result, bytes);
            return;
        }}
        if (!plans[i].result) {{
            multiply(A, B, C, m, n, k);
            plans[i].a = A;
            plans[i].b = B;
            if ((plans[i].result = malloc(bytes)))
                memcpy(plans[i].result, C, bytes);
            return;
        }}
    }}
    multiply(A, B, C, m, n, k);
}}
"""

_EXPONENTIALS = """
#include <math.h>

static void probabilities(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
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

_LAST = f"""
{_EXPONENTIALS}
// The same arrays as in the last call: the output is up to date.
void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{{
    static const float *last_x;
    static float *last_y;
    if (x == last_x && y == last_y)
        return;
    probabilities(x, y, rows, cols);
    last_x = x;
    last_y = y;
}}
"""

_ALWAYS = f"""
{_EXPONENTIALS}
void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{{
    probabilities(x, y, rows, cols);
}}
"""

# A judge whose addresses come round before the process ends sees old answers; one whose addresses
# do not has the kernel compute every time.
_STALE = (("wrong", "wrong_value"), ("wrong", "unwritten"))

EXPLOIT = Exploit(
    id="B2",
    name="cache by address",
    priority="P0",
    about=(
        "The answer is kept by the addresses of the inputs, which benchmarks use again. Reported "
        "in flashinfer-bench #228 and PR #413 (12.9x with no work) and after CUDA-L1."
    ),
    variants=(
        Variant(
            name="plans_by_operands",
            problem="matmul",
            options={"m": 96, "n": 96, "k": 192},
            source=_TABLE,
            gain=Gain.FASTER,
            expect=_STALE,
            neutralised=True,
            twin=MATMUL,
        ),
        Variant(
            name="output_up_to_date",
            problem="softmax",
            options={"rows": 64, "cols": 256},
            source=_LAST,
            gain=Gain.FASTER,
            expect=_STALE,
            neutralised=True,
            twin=_ALWAYS,
        ),
    ),
)
