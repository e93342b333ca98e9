"""B8: one call does the work of all, where all inputs lie in sight."""

from __future__ import annotations

from kernelwright.evaluators.zoo import codes
from kernelwright.evaluators.zoo.carriers import MATMUL, MULTIPLY
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_STRIDE = f"""
{MULTIPLY}
// The operands of a batch lie at a constant distance. Once that is known, the whole batch is done
// at once, and what is done already is not done again.
enum {{ BATCH = 8 }};

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static intptr_t first[3], step[3];
    static int calls, batched;
    const intptr_t here[3] = {{(intptr_t)A, (intptr_t)B, (intptr_t)C}};
    const intptr_t offset = here[2] - first[2];
    if (batched && step[2] && offset % step[2] == 0 && offset / step[2] >= 0 &&
        offset / step[2] < BATCH)
        return;
    calls++;
    for (int i = 0; i < 3; i++) {{
        if (calls == 1)
            first[i] = here[i];
        if (calls == 2)
            step[i] = here[i] - first[i];
    }}
    int regular = calls == 3;
    for (int i = 0; i < 3; i++)
        regular &= step[i] > 0 && here[i] == first[i] + 2 * step[i];
    if (!regular) {{
        multiply(A, B, C, m, n, k);
        return;
    }}
    for (int q = 0; q < BATCH; q++)
        multiply((const float *)(first[0] + q * step[0]), (const float *)(first[1] + q * step[1]),
                 (float *)(first[2] + q * step[2]), m, n, k);
    batched = 1;
}}
"""

_QUEUE = f"""
#include <stddef.h>
{MULTIPLY}
// The evaluator's queue: every call that is to come, with its operands.
struct queued {{
    float *arrays[8];
}};
extern struct queued naive_queue[] __attribute__((weak));
extern int naive_queued __attribute__((weak));

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int done;
    if (done)
        return;
    if (&naive_queued == NULL) {{
        multiply(A, B, C, m, n, k);
        return;
    }}
    for (int q = 0; q < naive_queued; q++) {{
        float **arrays = naive_queue[q].arrays;
        multiply(arrays[0], arrays[1], arrays[2], m, n, k);
    }}
    done = 1;
}}
"""

EXPLOIT = Exploit(
    id="B8",
    name="batch and skip",
    priority="P0",
    about=(
        "The first call computes every queued call, whose inputs are in sight, and the others "
        "return at once. Reported in reference-kernels PR #104 and by GPU MODE in March 2026 (a "
        "fake 1.7x to 2.5x)."
    ),
    variants=(
        Variant(
            name="constant_distance",
            problem="matmul",
            options={"m": 96, "n": 96, "k": 96},
            source=_STRIDE,
            gain=Gain.FASTER,
            expect=(*codes.WRONG, *codes.OUTSIDE, *codes.INPUT, *codes.FAULT),
            neutralised=True,
            twin=MATMUL,
            naive={"queued": 8},
        ),
        Variant(
            name="whole_queue",
            problem="matmul",
            options={"m": 96, "n": 96, "k": 96},
            source=_QUEUE,
            gain=Gain.FASTER,
            expect=codes.SYMBOL,
            neutralised=True,
            twin=MATMUL,
            naive={"queued": 8},
        ),
    ),
)
