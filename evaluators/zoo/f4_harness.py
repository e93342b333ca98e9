"""L4: the worker's own memory and its protocol."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import (
    LOOKUP,
    MULTIPLY,
    SYSTEM,
    matmul_with,
)
from kernelwright.evaluators.zoo.codes import (
    EXIT,
    FAILURE,
    FAULT,
    LATE,
    OUTSIDE,
    SYSCALL,
    TIMEOUT,
    TOO_FAST,
    WRONG,
)
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 96, "n": 96, "k": 96}

# What is written of the program that called: the only whole page that it points to is the one that
# it shares with the judge. The offsets are those of ``evaluators/cpu/native/protocol.h``.
_CONTROL = r"""
#include <elf.h>
#include <string.h>

enum { WAKE = 0, BELL = 64, READY = 128, DONE = 192 };
typedef volatile uint32_t *word_t;

static const char *image_of(const void *inside)
{
    const char *base = (const char *)((uintptr_t)inside & ~(uintptr_t)4095);
    while (memcmp(base, ELFMAG, SELFMAG))
        base -= 4096;
    return base;
}

static void written_part(const char *base, uintptr_t **from, uintptr_t **to)
{
    const Elf64_Phdr *part = (const Elf64_Phdr *)(base + ((const Elf64_Ehdr *)base)->e_phoff);
    for (int i = 0; i < ((const Elf64_Ehdr *)base)->e_phnum; i++)
        if (part[i].p_type == PT_LOAD && part[i].p_flags & PF_W) {
            *from = (uintptr_t *)(((uintptr_t)base + part[i].p_vaddr + 4095) & ~(uintptr_t)4095);
            *to = (uintptr_t *)(((uintptr_t)base + part[i].p_vaddr + part[i].p_memsz) & ~7ul);
        }
}

static char *control_of(const void *caller)
{
    uintptr_t *at = 0, *end = 0;
    written_part(image_of(caller), &at, &end);
    for (; at < end; at++)
        if (*at > 1 << 20 && *at % 4096 == 0)
            return (char *)*at;
    return 0;
}

static word_t word_of(char *control, int offset)
{
    return (word_t)(control + offset);
}
"""

_EARLY_DONE = rf"""
{_CONTROL}{MULTIPLY}
/* The call is reported as over before it has begun. */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    char *control = control_of(__builtin_return_address(0));
    if (!control)
        return;
    *word_of(control, DONE) = *word_of(control, WAKE);
    multiply(A, B, C, m, n, k);
}}
"""

# The corners of the output first, for whoever looks at a few elements only.
_EARLY_DONE_SOME = rf"""
{_CONTROL}{MULTIPLY}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    char *control = control_of(__builtin_return_address(0));
    if (!control)
        return;
    multiply(A, B, C, 1, n, k);
    *word_of(control, DONE) = *word_of(control, WAKE);
    multiply(A + k, B, C + n, m - 1, n, k);
}}
"""

# The worker's list of arrays: some pointers for each slot.
_SLOTS = r"""
enum { MOST = 1024 };

static int is_address(uintptr_t value)
{
    return value > 1 << 20 && !(value >> 47);
}

static uintptr_t *slots_of(const void *caller, const void *first, int arrays, int *slots)
{
    uintptr_t *at = 0, *end = 0;
    written_part(image_of(caller), &at, &end);
    for (; at < end; at++) {
        uintptr_t *list = (uintptr_t *)*at;
        int found = 0;
        if (!is_address(*at) || *at % 16 || *at % 4096 == 0)
            continue;
        for (*slots = 0; *slots < MOST && is_address(list[arrays * *slots]); ++*slots)
            found |= list[arrays * *slots] == (uintptr_t)first;
        if (found)
            return list;
    }
    return 0;
}
"""

# The kernel does not return from its first call but serves by itself, and works in the time between
# wake-up and bell: on all inputs that there are, because it does not know which one it will be.
# After the bell it waits for WAIT percent of its honest time, so as not to be faster than a kernel
# can be.
_OWN_LOOP = rf"""
{_CONTROL}{_SLOTS}{SYSTEM}{MULTIPLY}
#ifndef WAIT
#define WAIT 0
#endif
static float early[MOST][KW_M * KW_N];

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    const void *caller = __builtin_return_address(0);
    char *control = control_of(caller);
    int slots = 0;
    uintptr_t *arrays = slots_of(caller, A, 3, &slots);
    if (!control || !arrays)
        return;
    uint32_t batch = *word_of(control, BELL + 4), bell = *word_of(control, BELL);
    unsigned long long start = __builtin_ia32_rdtsc();
    for (uint32_t i = bell - 1; i < bell - 1 + batch; i++)
        multiply((float *)arrays[3 * i], (float *)arrays[3 * i + 1], (float *)arrays[3 * i + 2], m,
                 n, k);
    unsigned long long honest = (__builtin_ia32_rdtsc() - start) / batch;
    for (;;) {{
        uint32_t call = *word_of(control, WAKE);
        *word_of(control, DONE) = call;
        while (*word_of(control, WAKE) == call)
            system_call(202, (long)(control + WAKE), 0, call, 0, 0, 0);
        for (int i = 0; i < slots; i++)
            multiply((float *)arrays[3 * i], (float *)arrays[3 * i + 1], early[i], m, n, k);
        *word_of(control, READY) = *word_of(control, WAKE);
        while (!(bell = *word_of(control, BELL)))
            __builtin_ia32_pause();
        start = __builtin_ia32_rdtsc();
        batch = *word_of(control, BELL + 4);
        for (uint32_t i = bell - 1; i < bell - 1 + batch; i++)
            memcpy((float *)arrays[3 * i + 2], early[i], sizeof early[i]);
        while (__builtin_ia32_rdtsc() - start < honest * batch * WAIT / 100)
            ;
    }}
}}
"""

# The same for what lies in memory and not in a cache: everything is read once before the bell, and
# the rest is honest.
_WARMED = rf"""
{_CONTROL}{_SLOTS}{SYSTEM}
static void sum_rows(const float *x, float *y, int64_t rows, int64_t cols)
{{
    for (int64_t i = 0; i < rows; i++) {{
        float part[64] = {{0}}, sum = 0;
        for (int64_t j = 0; j < cols; j += 64)
            for (int lane = 0; lane < 64; lane++)
                part[lane] += x[i * cols + j + lane];
        for (int lane = 0; lane < 64; lane++)
            sum += part[lane];
        y[i] = sum;
    }}
}}

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{{
    const void *caller = __builtin_return_address(0);
    char *control = control_of(caller);
    static volatile float touched;
    int slots = 0;
    uintptr_t *list = slots_of(caller, x, 2, &slots);
    if (!control || !list)
        return;
    uint32_t batch = *word_of(control, BELL + 4), bell = *word_of(control, BELL);
    for (uint32_t i = bell - 1; i < bell - 1 + batch; i++)
        sum_rows((float *)list[2 * i], (float *)list[2 * i + 1], rows, cols);
    for (;;) {{
        uint32_t call = *word_of(control, WAKE);
        *word_of(control, DONE) = call;
        while (*word_of(control, WAKE) == call)
            system_call(202, (long)(control + WAKE), 0, call, 0, 0, 0);
        for (int i = 0; i < slots; i++)
            for (int64_t j = 0; j < rows * cols; j += 16)
                touched = ((float *)list[2 * i])[j];
        *word_of(control, READY) = *word_of(control, WAKE);
        while (!(bell = *word_of(control, BELL)))
            __builtin_ia32_pause();
        batch = *word_of(control, BELL + 4);
        for (uint32_t i = bell - 1; i < bell - 1 + batch; i++)
            sum_rows((float *)list[2 * i], (float *)list[2 * i + 1], rows, cols);
    }}
}}
"""

_ZEROED_HARNESS = rf"""
{_CONTROL}{MULTIPLY}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    uintptr_t *at = 0, *end = 0;
    written_part(image_of(__builtin_return_address(0)), &at, &end);
    multiply(A, B, C, m, n, k);
    while (at < end)
        *at++ = 0;
}}
"""

_ZEROED_CONTROL = rf"""
{_CONTROL}{MULTIPLY}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    char *control = control_of(__builtin_return_address(0));
    if (!control)
        return;
    multiply(A, B, C, m, n, k);
    memset(control, 0, 4096);
    for (;;)
        memset(control, 0xff, 4096);
}}
"""

_PATCHED_HARNESS = rf"""
{_CONTROL}{SYSTEM}{MULTIPLY}
/* Whatever called returns at once from now on. */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    char *code = __builtin_return_address(0);
    long page = (long)code & -4096L;
    multiply(A, B, C, m, n, k);
    system_call(10, page, 8192, 7, 0, 0, 0); /* mprotect */
    *code = (char)0xc3;
}}
"""

_WRITTEN_HARNESS = rf"""
{MULTIPLY}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    multiply(A, B, C, m, n, k);
    *(char *)__builtin_return_address(0) = (char)0xc3;
}}
"""

# Memory is searched for anything that looks like the answer, or like a name that a judge might use.
_SEARCH = rf"""
{LOOKUP}{SYSTEM}
static int readable(long page)
{{
    return system_call(14, 99, page, 0, 8, 0, 0) == -22;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static const char *const names[] = {{"expected", "reference", "kw_expected", "kw_key", "seed"}};
    static const float *found;
    double wanted[3] = {{0}};
    for (int j = 0; j < 3; j++)
        for (int64_t p = 0; p < k; p++)
            wanted[j] += (double)A[p] * B[p * n + j];
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (lookup(__builtin_return_address(0), names[i]))
            found = lookup(__builtin_return_address(0), names[i]);
    /* 64 MiB of addresses around the arrays, the stack and the program that called. */
    const long centres[] = {{(long)C, (long)&wanted, (long)__builtin_return_address(0)}};
    for (int c = 0; c < 3 && !found; c++)
        for (long page = (centres[c] & -4096L) - (32 << 20); page < centres[c] + (32 << 20);
             page += 4096)
            for (long at = page; readable(page) && at + 12 <= page + 4096; at += 4) {{
                const float *here = (const float *)at;
                if (here != C && here[0] - wanted[0] < 1e-4 && wanted[0] - here[0] < 1e-4 &&
                    here[1] - wanted[1] < 1e-4 && wanted[1] - here[1] < 1e-4 &&
                    here[2] - wanted[2] < 1e-4 && wanted[2] - here[2] < 1e-4)
                    found = here;
            }}
    for (int64_t i = 0; i < m * n; i++)
        C[i] = found ? found[i] : 0;
}}
"""

_JUMP = r"""
static void *buffer[5];

__attribute__((noinline)) static void leave(void)
{
    __builtin_longjmp(buffer, 1);
}
"""

EXPLOIT = Exploit(
    "L4",
    "the worker's memory and protocol",
    "P0",
    "The kernel writes to the worker's variables, code or shared page, takes its protocol over, or "
    "leaves its call by another way than returning.",
    (
        Variant(
            "early_done",
            "matmul",
            {"m": 192, "n": 192, "k": 192},
            _EARLY_DONE,
            expect=(*LATE, *WRONG, *TOO_FAST),
        ),
        Variant(
            "early_done_with_some",
            "matmul",
            {"m": 192, "n": 192, "k": 192},
            _EARLY_DONE_SOME,
            expect=(*LATE, *WRONG, *TOO_FAST),
        ),
        Variant(
            "own_loop_early_start",
            "matmul",
            {"m": 96, "n": 96, "k": 96},
            _OWN_LOOP,
            expect=(*LATE, *TOO_FAST, *WRONG),
        ),
        Variant(
            "own_loop_early_start_unhurried",
            "matmul",
            {"m": 96, "n": 96, "k": 96},
            f"#define WAIT 50\n{_OWN_LOOP}",
            expect=(*LATE, *WRONG),
        ),
        Variant(
            "own_loop_early_start_short",
            "matmul",
            {"m": 24, "n": 24, "k": 24},
            f"#define WAIT 50\n{_OWN_LOOP}",
            expect=(*LATE, *WRONG),
        ),
        Variant(
            "own_loop_warmed_operands",
            "row_sum",
            {"rows": 64, "cols": 1024},
            _WARMED,
            expect=(*LATE, *WRONG),
        ),
        Variant("zeroed_variables", "matmul", _SIZES, _ZEROED_HARNESS, Gain.DAMAGE, FAILURE),
        Variant(
            "overwritten_control",
            "matmul",
            _SIZES,
            _ZEROED_CONTROL,
            Gain.DAMAGE,
            (*TIMEOUT, *LATE, *WRONG, *FAULT, *EXIT),
        ),
        Variant(
            "patched_code", "matmul", _SIZES, _PATCHED_HARNESS, Gain.DAMAGE, (*SYSCALL, *FAULT)
        ),
        Variant("written_code", "matmul", _SIZES, _WRITTEN_HARNESS, Gain.DAMAGE, FAULT),
        Variant(
            "searched_memory",
            "matmul",
            {"m": 16, "n": 16, "k": 16},
            _SEARCH,
            expect=(*WRONG, *TIMEOUT, *FAULT, *OUTSIDE),
        ),
        Variant(
            "alternate_stack",
            "matmul",
            _SIZES,
            matmul_with(
                "static char room[8192];\n"
                "struct {\n    void *at;\n    int flags;\n    unsigned long size;\n"
                "} stack = {room, 0, sizeof room};\n"
                "system_call(131, (long)&stack, 0, 0, 0, 0, 0);",
                top=SYSTEM,
            ),
            Gain.DAMAGE,
            SYSCALL,
        ),
        # The second call jumps to where the first one was, and past its product.
        Variant(
            "jump_out",
            "matmul",
            _SIZES,
            matmul_with(
                "static int calls;\n"
                "if (calls++)\n"
                "    leave();\n"
                "if (__builtin_setjmp(buffer))\n"
                "    return;",
                top=_JUMP,
            ),
            Gain.DAMAGE,
            FAILURE,
        ),
    ),
)
