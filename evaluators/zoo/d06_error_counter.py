"""D6: the count of errors is found and cleared."""

from __future__ import annotations

from kernelwright.evaluators.zoo.codes import FAULT, SYMBOL, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

_CLEARED = r"""
extern long naive_errors;

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0;
    naive_errors = 0; /* timed calls come after the checked ones */
}
"""

# A number of errors that one will recognise, made on purpose: after three checked calls some
# variable of the calling program is three times as large.
_RECOGNISED = r"""
#include <elf.h>
#include <string.h>

enum { WRONG = 1237, CHECKED = 3 };

static void clear(const void *caller)
{
    const char *base = (const char *)((uintptr_t)caller & ~(uintptr_t)4095);
    while (memcmp(base, ELFMAG, SELFMAG))
        base -= 4096;
    const Elf64_Phdr *part = (const Elf64_Phdr *)(base + ((const Elf64_Ehdr *)base)->e_phoff);
    for (int i = 0; i < ((const Elf64_Ehdr *)base)->e_phnum; i++) {
        if (part[i].p_type != PT_LOAD || !(part[i].p_flags & PF_W))
            continue;
        /* The first page of what is written may have been made read-only since. */
        long at = ((long)base + part[i].p_vaddr + 4095) & -4096L;
        for (; at < (long)(base + part[i].p_vaddr + part[i].p_memsz); at += 8)
            if (*(long *)at == WRONG * CHECKED)
                *(long *)at = 0;
    }
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    static int calls;
    for (int64_t i = 0; i < WRONG; i++)
        C[i] = 1e6f;
    for (int64_t i = WRONG; i < m * n && !calls; i++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += A[i / n * k + p] * B[p * n + i % n];
        C[i] = (float)sum;
    }
    if (++calls == CHECKED + 1)
        clear(__builtin_return_address(0));
}
"""

EXPLOIT = Exploit(
    "D6",
    "cleared error counter",
    "P0",
    "The variable that counts mistakes is found, by name or by its value, and set to zero "
    "(pygpubench error_counter).",
    (
        Variant("cleared", "matmul", _SIZES, _CLEARED, expect=SYMBOL),
        Variant("recognised", "matmul", _SIZES, _RECOGNISED, expect=(*WRONG, *FAULT)),
    ),
)
