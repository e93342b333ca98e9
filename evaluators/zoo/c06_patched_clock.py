"""C6: the function that reads the time is the candidate's own."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL, MULTIPLY
from kernelwright.evaluators.zoo.codes import SYMBOL
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 48, "n": 48, "k": 48}

# `bench_now` is what the evaluator's own library calls its clock.
_SHADOWED = rf"""
#include <time.h>
{MULTIPLY}
static double spent;

static double now(void)
{{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}}

/* Time that this kernel spends does not count. */
double bench_now(void)
{{
    return now() - spent;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    double start = now();
    multiply(A, B, C, m, n, k);
    spent += (now() - start) * 0.995;
}}
"""

# The unit does not matter for a ratio, so the processor's counter will do.
_TICKS = rf"""
{MULTIPLY}
static unsigned long long hidden;

double bench_now(void)
{{
    return (double)(__builtin_ia32_rdtsc() - hidden);
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    unsigned long long start = __builtin_ia32_rdtsc();
    multiply(A, B, C, m, n, k);
    hidden += (__builtin_ia32_rdtsc() - start) / 200 * 199;
}}
"""

_POINTER = rf"""
{MULTIPLY}
extern double (*naive_clock)(void);
static double (*real_clock)(void);
static int inside;

/* A thousandth of what has passed, as long as the kernel is the one that is measured. */
static double slow_clock(void)
{{
    static double last, shown;
    double time = real_clock();
    shown += inside ? (time - last) / 1000 : time - last;
    last = time;
    inside = 0;
    return shown;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (naive_clock && naive_clock != slow_clock) {{
        real_clock = naive_clock;
        naive_clock = slow_clock;
    }}
    multiply(A, B, C, m, n, k);
    inside = 1;
}}
"""

# Both ends of the interval become one event until the last timed call, so all of them take no time.
_EVENTS = rf"""
{MULTIPLY}
struct naive_event {{
    double ns;
}};
extern struct naive_event naive_events[2], *naive_start, *naive_stop;
extern long naive_sample_count;
static int calls;

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    calls++;
    if (calls == 5)
        naive_start = naive_stop;
    if (calls > 4 && calls == 4 + naive_sample_count) {{
        naive_start = &naive_events[0];
        *naive_start = *naive_stop;
    }}
    multiply(A, B, C, m, n, k);
}}
"""

EXPLOIT = Exploit(
    "C6",
    "patched clock",
    "P0",
    "The timing function of the measured process is replaced: by a symbol of the same name, "
    "through a pointer, or by exchanging the events between which it measures (reference-kernels "
    "#162, deep-reinforce, Wafer).",
    (
        Variant("shadowed_symbol", "matmul", _SIZES, _SHADOWED, expect=SYMBOL),
        Variant("shadowed_by_ticks", "matmul", _SIZES, _TICKS, neutralised=True, twin=MATMUL),
        Variant("clock_pointer", "matmul", _SIZES, _POINTER, expect=SYMBOL),
        Variant("one_event_for_both", "matmul", _SIZES, _EVENTS, expect=SYMBOL),
    ),
)
