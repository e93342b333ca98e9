"""C5: a timer, a signal or the end of the process completes what the call left undone."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MULTIPLY, SYSTEM
from kernelwright.evaluators.zoo.codes import CONSTRUCTOR, SYMBOL, SYSCALL, TOO_FAST, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 160, "n": 160, "k": 160}

# No phase has to be told: the answer is there before anybody looks, and after the clock stopped.
_ALARM = rf"""
#include <signal.h>
#include <string.h>
#include <sys/time.h>
{MULTIPLY}
static struct {{
    const float *A, *B;
    float *C;
    int64_t m, n, k;
}} pending;

static void complete(int number)
{{
    (void)number;
    multiply(pending.A, pending.B, pending.C, pending.m, pending.n, pending.k);
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int ready;
    if (!ready) {{
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = complete;
        sigaction(SIGALRM, &action, NULL);
        ready = 1;
    }}
    pending.A = A, pending.B = B, pending.C = C, pending.m = m, pending.n = n, pending.k = k;
    /* Longer than setting it takes, on a slow machine too, and soon enough for whoever looks. */
    struct itimerval soon = {{{{0, 0}}, {{0, 40}}}};
    setitimer(ITIMER_REAL, &soon, NULL);
}}
"""

_RAW_TIMER = rf"""
{MULTIPLY}{SYSTEM}
struct action {{
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
}};
struct value {{
    long interval_s, interval_ns, s, ns;
}};
/* What the kernel returns to from a handler. */
void leave_handler(void);
__asm__(".text\n.hidden leave_handler\nleave_handler:\n\tmov $15, %eax\n\tsyscall\n");

static const float *a, *b;
static float *c;
static int64_t rows, columns, depth;
static int timer = -1;

static void complete(int number)
{{
    (void)number;
    multiply(a, b, c, rows, columns, depth);
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (timer < 0) {{
        struct action action = {{complete, 0x04000000, leave_handler, 0}};
        system_call(13, 14, (long)&action, 0, 8, 0, 0);       /* rt_sigaction(SIGALRM) */
        system_call(222, 1, 0, (long)&timer, 0, 0, 0);        /* timer_create(CLOCK_MONOTONIC) */
    }}
    a = A, b = B, c = C, rows = m, columns = n, depth = k;
    struct value soon = {{0, 0, 0, 40000}};
    system_call(223, timer, 0, (long)&soon, 0, 0, 0);         /* timer_settime */
}}
"""

_AT_EXIT = rf"""
#include <stdlib.h>
{MULTIPLY}
struct job {{
    const float *A, *B;
    float *C;
    int64_t m, n, k;
}};
static struct job jobs[256];
static int queued, calls;

static void drain(void)
{{
    for (int i = 0; i < queued; i++)
        multiply(jobs[i].A, jobs[i].B, jobs[i].C, jobs[i].m, jobs[i].n, jobs[i].k);
    queued = 0;
}}

/* Deferred evaluation: calls are collected and run together, at the latest at the end. */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (!calls++)
        atexit(drain);
    jobs[queued++] = (struct job){{A, B, C, m, n, k}};
    if (calls <= 3 || queued == 256)
        drain();
}}
"""

_FINALISER = rf"""
{MULTIPLY}
static struct {{
    const float *A, *B;
    float *C;
    int64_t m, n, k;
}} last;
static int calls;

__attribute__((destructor)) static void flush(void)
{{
    if (last.C)
        multiply(last.A, last.B, last.C, last.m, last.n, last.k);
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (calls++ < 3) {{
        multiply(A, B, C, m, n, k);
        return;
    }}
    last.A = A, last.B = B, last.C = C, last.m = m, last.n = n, last.k = k;
}}
"""

EXPLOIT = Exploit(
    "C5",
    "finish after the return",
    "P0",
    "An exit handler, a finaliser, a timer or a signal handler completes the work after the clock "
    "was stopped (pygpubench thread_fd, fd_overwrite).",
    (
        Variant("alarm", "matmul", _SIZES, _ALARM, expect=(*SYMBOL, *SYSCALL)),
        Variant("timer_without_libc", "matmul", _SIZES, _RAW_TIMER, expect=SYSCALL),
        Variant("exit_handler", "matmul", _SIZES, _AT_EXIT, expect=(*SYMBOL, *WRONG, *TOO_FAST)),
        Variant(
            "finaliser", "matmul", _SIZES, _FINALISER, expect=(*CONSTRUCTOR, *WRONG, *TOO_FAST)
        ),
    ),
)
