"""C13: work is done between the arrival of the input and the start of the clock."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import LOOKUP, MULTIPLY, SYSTEM, THREAD, matmul_with
from kernelwright.evaluators.zoo.codes import LATE, SYMBOL, SYSCALL, TIMEOUT, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 128, "n": 128, "k": 128}

# Where the inputs lie is known after the first call; whatever arrives there is multiplied at once.
_WATCHER = r"""
static const float *a, *b;
static float early[2][KW_M * KW_N];
static volatile int published = -1;
static volatile float seen[2][2];

static void watch(void)
{
    for (int next = 0;; next ^= 1) {
        seen[next][0] = a[KW_M * KW_K - 1];
        seen[next][1] = b[KW_K * KW_N - 1];
        multiply(a, b, early[next], KW_M, KW_N, KW_K);
        published = next;
    }
}

static int take(const float *A, const float *B, float *C)
{
    int ready = published;
    if (A != a || B != b || ready < 0 || seen[ready][0] != A[KW_M * KW_K - 1] ||
        seen[ready][1] != B[KW_K * KW_N - 1])
        return 0;
    memcpy(C, early[ready], sizeof early[ready]);
    return 1;
}
"""

_PREFETCHING = rf"""
#include <pthread.h>
#include <string.h>
{MULTIPLY}{_WATCHER}
static void *run(void *nothing)
{{
    watch();
    return nothing;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (take(A, B, C))
        return;
    multiply(A, B, C, m, n, k);
    if (!a) {{
        pthread_t thread;
        a = A, b = B;
        pthread_create(&thread, NULL, run, NULL);
        pthread_detach(thread);
    }}
}}
"""

_ALLOWED = rf"""
#include <string.h>
{MULTIPLY}{THREAD}{_WATCHER}
static _Alignas(64) char stack[1 << 16];

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (take(A, B, C))
        return;
    multiply(A, B, C, m, n, k);
    if (!a) {{
        a = A, b = B;
        start_thread(watch, stack + sizeof stack);
    }}
}}
"""

# The flush between the arrival of the inputs and the start of the clock becomes the kernel.
_FLUSH = rf"""
{LOOKUP}{MULTIPLY}{SYSTEM}
static struct {{
    const float *A, *B;
    float *C;
    int64_t m, n, k;
}} next;
static int fresh, patched;

static void instead_of_flush(void)
{{
    multiply(next.A, next.B, next.C, next.m, next.n, next.k);
    fresh = 1;
}}

static void detour(char *from, void *to)
{{
    unsigned char code[12] = {{0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}};
    long page = (long)from & -4096L;
    memcpy(code + 2, &to, sizeof to);
    system_call(10, page, 8192, 7, 0, 0, 0); /* mprotect */
    memcpy(from, code, sizeof code);
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (!patched++) {{
        char *flush = lookup(__builtin_return_address(0), "naive_flush");
        detour(flush, (void *)instead_of_flush);
    }}
    if (fresh && A == next.A && B == next.B && C == next.C) {{
        fresh = 0;
        return;
    }}
    multiply(A, B, C, m, n, k);
    next.A = A, next.B = B, next.C = C, next.m = m, next.n = n, next.k = k;
}}
"""

EXPLOIT = Exploit(
    "C13",
    "early start",
    "P0",
    "A thread or a hook works on inputs that have arrived while the clock has not started, as "
    "during the cache flush (the window that pygpubench's README names).",
    (
        Variant(
            "watching_thread",
            "matmul",
            _SIZES,
            _PREFETCHING,
            expect=(*SYMBOL, *SYSCALL, *LATE, *WRONG),
        ),
        Variant(
            "watching_where_threads_are_allowed",
            "matmul",
            _SIZES,
            _ALLOWED,
            expect=(*LATE, *WRONG, *SYSCALL, *TIMEOUT),
            # The team that is allowed is there before the candidate; no further thread starts.
            neutralised=True,
            twin=matmul_with(),
            threads=2,
        ),
        Variant("instead_of_the_flush", "matmul", _SIZES, _FLUSH, expect=(*SYSCALL, *WRONG)),
    ),
)
