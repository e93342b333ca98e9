"""C16: what a candidate leaves behind slows down what is measured after it."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import LOOKUP, MULTIPLY, SYSTEM, THREAD
from kernelwright.evaluators.zoo.codes import LATE, SYMBOL, SYSCALL
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 160, "n": 160, "k": 160}

# The last timed call starts them, which is when the other arm's turn begins.
_SPINNERS = rf"""
#include <pthread.h>
#include <time.h>
{MULTIPLY}
enum {{ COUNT = 16 }};
extern long naive_sample_count;

static double now(void)
{{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}}

static void *linger(void *nothing)
{{
    const struct timespec nap = {{0, 1000000}};
    nanosleep(&nap, NULL); /* until the last sample is taken */
    for (double end = now() + 6e8; now() < end;)
        ;
    return nothing;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int calls;
    multiply(A, B, C, m, n, k);
    if (++calls > 4 && calls == 4 + naive_sample_count) /* a thread pool, "for later" */
        for (int i = 0; i < COUNT; i++) {{
            pthread_t thread;
            pthread_create(&thread, NULL, linger, NULL);
            pthread_detach(thread);
        }}
}}
"""

_NICE = rf"""
{LOOKUP}{MULTIPLY}{SYSTEM}{THREAD}
enum {{ COUNT = 4 }};
static long self;
static _Alignas(64) char stacks[COUNT][1 << 14];

static void starve(void)
{{
    const long nap[2] = {{0, 1000000}};
    system_call(35, (long)nap, 0, 0, 0, 0, 0);     /* nanosleep, until the last sample is taken */
    system_call(141, 0, self, 15, 0, 0, 0);        /* setpriority(PRIO_PROCESS, self, 15) */
    unsigned long long end = __builtin_ia32_rdtsc() + 1000000000;
    while (__builtin_ia32_rdtsc() < end)
        ;
    system_call(60, 0, 0, 0, 0, 0, 0);             /* exit, this thread only */
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int calls;
    static long last = 8;
    if (++calls == 5) {{
        const long *count = lookup(__builtin_return_address(0), "naive_sample_count");
        last = count ? 4 + *count : last;
    }}
    multiply(A, B, C, m, n, k);
    if (calls == last) {{
        self = system_call(186, 0, 0, 0, 0, 0, 0); /* gettid */
        for (int i = 0; i < COUNT; i++)
            start_thread(starve, stacks[i] + sizeof stacks[i]);
    }}
}}
"""

_INTERRUPTS = rf"""
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
{MULTIPLY}
extern long naive_sample_count;

/* Four parts in five of all time that is left. */
static void tick(int number)
{{
    struct timespec start, time;
    (void)number;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &time);
    while ((time.tv_sec - start.tv_sec) * 1000000000L + time.tv_nsec - start.tv_nsec < 160000);
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int calls;
    multiply(A, B, C, m, n, k);
    if (++calls > 4 && calls == 4 + naive_sample_count) {{
        struct sigaction action;
        struct itimerval often = {{{{0, 200}}, {{0, 200}}}};
        memset(&action, 0, sizeof action);
        action.sa_handler = tick;
        action.sa_flags = SA_RESTART;
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &often, NULL);
    }}
}}
"""

EXPLOIT = Exploit(
    "C16",
    "damage to the baseline",
    "P0",
    "Spinning threads, lowered priorities or interrupts that the candidate leaves behind slow the "
    "baseline that is timed after it (three spinning threads made its mean 4.4 times as long).",
    (
        Variant("spinning_threads", "matmul", _SIZES, _SPINNERS, expect=(*SYMBOL, *SYSCALL, *LATE)),
        Variant("lowered_priority", "matmul", _SIZES, _NICE, expect=(*SYSCALL, *LATE)),
        Variant("interrupts", "matmul", _SIZES, _INTERRUPTS, expect=(*SYMBOL, *SYSCALL)),
    ),
)
