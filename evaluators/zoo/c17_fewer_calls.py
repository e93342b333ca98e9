"""C17: a slow warm-up makes the harness take fewer samples."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL, MULTIPLY
from kernelwright.evaluators.zoo.codes import OUTSIDE, SYMBOL, SYSCALL, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 96, "n": 96, "k": 96}

# Three samples can be served with answers that were made in the warm-up; a hundred could not. The
# outputs of all timed calls are even right.
_STOCK = rf"""
{MULTIPLY}
enum {{ STOCK = 3 }};
static struct {{
    const float *A, *B;
    float *C;
}} seen[STOCK];
static int calls;

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    int call = calls++;
    if (call > STOCK && call <= 2 * STOCK) {{
        for (int i = 0; i < STOCK; i++)
            if (seen[i].A == A && seen[i].B == B && seen[i].C == C)
                return;
    }}
    multiply(A, B, C, m, n, k);
    if (call < STOCK) {{
        seen[call].A = A, seen[call].B = B, seen[call].C = C;
    }} else if (call == STOCK) {{
        /* "Autotuning": until the budget only leaves three calls. */
        unsigned long long start = __builtin_ia32_rdtsc();
        while (__builtin_ia32_rdtsc() - start < 60000000)
            for (int i = 0; i < STOCK; i++)
                multiply(seen[i].A, seen[i].B, seen[i].C, m, n, k);
    }}
}}
"""

_SLEEP = rf"""
#include <time.h>
{MULTIPLY}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int call;
    if (call == 3) {{
        struct timespec compile_time = {{0, 25000000}};
        nanosleep(&compile_time, NULL);
    }}
    if (++call > 4 && call <= 7)
        return; /* these are all that there will be */
    multiply(A, B, C, m, n, k);
}}
"""

EXPLOIT = Exploit(
    "C17",
    "fewer timed calls",
    "P0",
    "The warm-up is slowed so that the harness, which has a budget of time, takes 3 samples "
    "instead of 100, which can then be prepared (pygpubench submission_warmup).",
    (
        Variant(
            "stock_of_answers",
            "matmul",
            _SIZES,
            _STOCK,
            # Addresses may never come again, and then nothing is served from the stock.
            expect=(*WRONG, *OUTSIDE),
            neutralised=True,
            twin=MATMUL,
            naive={"queued": 3},
        ),
        Variant("slept_through", "matmul", _SIZES, _SLEEP, expect=(*SYMBOL, *SYSCALL, *WRONG)),
    ),
)
