"""B4: what was learned while answers were checked is replayed while time is taken."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_STEPS = """
#include <stdlib.h>

static void smooth(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    float *restrict next = malloc((size_t)n * sizeof(float));
    if (!next)
        abort();
    for (int64_t i = 0; i < n; i++)
        now[i] = start[i];
    for (int64_t step = 0; step < t; step++) {
        for (int64_t i = 1; i < n - 1; i++)
            next[i] = (now[i - 1] + now[i] + now[i + 1]) / 3;
        for (int64_t i = 1; i < n - 1; i++)
            now[i] = next[i];
    }
    free(next);
}
"""

_FIRST = f"""
#include <string.h>
{_STEPS}
// The graph is captured in the first call and replayed from then on.
void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{{
    static float captured[KW_N];
    static int ready;
    if (!ready) {{
        smooth(start, now, n, t);
        memcpy(captured, now, sizeof captured);
        ready = 1;
        return;
    }}
    memcpy(now, captured, sizeof captured);
}}
"""

_ROWS = """
static void sums(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
"""

_CONFIDENT = f"""
#include <string.h>
{_ROWS}
// Once two calls in a row gave the same, the data are taken for constant.
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{{
    static float last[KW_ROWS];
    static int equal;
    if (equal >= 2) {{
        memcpy(y, last, sizeof last);
        return;
    }}
    sums(x, y, rows, cols);
    equal = memcmp(last, y, sizeof last) ? 0 : equal + 1;
    memcpy(last, y, sizeof last);
}}
"""

_CAUTIOUS = f"""
{_ROWS}
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{{
    sums(x, y, rows, cols);
}}
"""

EXPLOIT = Exploit(
    id="B4",
    name="learn in the warm-up, replay in the timing",
    priority="P0",
    about=(
        "Computes while correctness is checked, remembers, and hands out what it remembers while "
        "time is taken. Reported in reference-kernels PR #142."
    ),
    variants=(
        Variant(
            name="captured_in_the_first_call",
            problem="jacobi1d",
            options={"n": 2048, "t": 128},
            source=_FIRST,
            gain=Gain.FASTER,
            expect=(("wrong", "wrong_value"),),
        ),
        Variant(
            name="confident_after_equal_answers",
            problem="row_sum",
            options={"rows": 256, "cols": 512},
            source=_CONFIDENT,
            gain=Gain.FASTER,
            neutralised=True,
            twin=_CAUTIOUS,
        ),
    ),
)
