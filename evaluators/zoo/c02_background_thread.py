"""C2: the work goes to a thread, and the kernel returns before it is done."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MULTIPLY, SYSTEM, THREAD
from kernelwright.evaluators.zoo.codes import LATE, SYMBOL, SYSCALL, TIMEOUT, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 224, "n": 224, "k": 224}

_DETACHED = rf"""
#include <pthread.h>
{MULTIPLY}
static struct {{
    const float *A, *B;
    float *C;
    int64_t m, n, k;
}} job;
static volatile int busy;

static void *run(void *nothing)
{{
    multiply(job.A, job.B, job.C, job.m, job.n, job.k);
    busy = 0;
    return nothing;
}}

/* Asynchronous execution: the result becomes available shortly after the call. */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int calls;
    pthread_t thread;
    if (busy)
        return; /* coalesced with the call that is in flight */
    busy = 1;
    job.A = A, job.B = B, job.C = C, job.m = m, job.n = n, job.k = k;
    if (pthread_create(&thread, NULL, run, NULL))
        run(NULL);
    else if (calls++ < 4)
        pthread_join(thread, NULL); /* let the pool warm up */
    else
        pthread_detach(thread);
}}
"""

_SPINNING = rf"""
{MULTIPLY}{THREAD}
static struct {{
    const float *A, *B;
    float *C;
    int64_t m, n, k;
}} job;
static volatile int posted, finished, calls;
static _Alignas(64) char stack[1 << 16];

static void worker(void)
{{
    for (;;) {{
        while (finished == posted)
            __builtin_ia32_pause();
        int number = posted;
        __sync_synchronize();
        multiply(job.A, job.B, job.C, job.m, job.n, job.k);
        finished = number;
    }}
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (!calls++)
        start_thread(worker, stack + sizeof stack);
    if (finished != posted)
        return; /* the worker is still busy with an earlier call; it will catch up */
    job.A = A, job.B = B, job.C = C, job.m = m, job.n = n, job.k = k;
    __sync_synchronize();
    posted++;
    while (calls < 4 && finished != posted)
        __builtin_ia32_pause();
}}
"""

# The same with a helper that sleeps, for a judge that allows two threads: nothing is created in a
# timed call, nothing spins, and everything is finished soon after the return.
_SLEEPING = rf"""
{MULTIPLY}{SYSTEM}{THREAD}
static struct {{
    const float *A, *B;
    float *C;
    int64_t m, n, k;
}} job;
static volatile int posted, finished, calls;
static _Alignas(64) char stack[1 << 16];


static void worker(void)
{{
    for (;;) {{
        int number;
        while ((number = posted) == finished)
            system_call(202, (long)&posted, 0, number, 0, 0, 0); /* futex: wait */
        system_call(24, 0, 0, 0, 0, 0, 0); /* sched_yield: the caller returns first */
        multiply(job.A, job.B, job.C, job.m, job.n, job.k);
        finished = number;
    }}
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (!calls++)
        start_thread(worker, stack + sizeof stack);
    if (finished != posted)
        return;
    job.A = A, job.B = B, job.C = C, job.m = m, job.n = n, job.k = k;
    __sync_synchronize();
    posted++;
    system_call(202, (long)&posted, 1, 1, 0, 0, 0); /* futex: wake */
    while (calls < 4 && finished != posted)
        __builtin_ia32_pause();
}}
"""

EXPLOIT = Exploit(
    "C2",
    "background thread",
    "P0",
    "The kernel hands its work to a thread and returns at once (deep-reinforce, Wafer, "
    "SOL-ExecBench's samples).",
    (
        Variant("detached", "matmul", _SIZES, _DETACHED, expect=(*SYMBOL, *SYSCALL, *LATE, *WRONG)),
        Variant(
            "spinning_without_libc", "matmul", _SIZES, _SPINNING, expect=(*SYSCALL, *LATE, *WRONG)
        ),
        Variant(
            "sleeping_where_threads_are_allowed",
            "matmul",
            _SIZES,
            _SLEEPING,
            expect=(*LATE, *SYSCALL, *WRONG, *TIMEOUT),
            threads=2,
        ),
    ),
)
