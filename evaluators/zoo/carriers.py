"""C text that several exploits share: the honest kernels that they ride on, and their tools.

The tools are for Linux on x86-64, like the exploits that use them: system calls without the C
library, a thread without it, and a look into the symbol table of whatever program called.
"""

from __future__ import annotations

MATMUL = r"""
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            C[i * n + j] = 0;
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                C[i * n + j] += A[i * k + p] * B[p * n + j];
    }
}
"""
"""A kernel, whole."""

MULTIPLY = r"""
static void multiply(const float *restrict A, const float *restrict B, float *restrict C,
                     int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            C[i * n + j] = 0;
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                C[i * n + j] += A[i * k + p] * B[p * n + j];
    }
}
"""
"""The same as a function of another name, for what calls it now and then."""

ROW_SUM = r"""
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
"""
"""A kernel, whole."""


def matmul_with(first: str = "", last: str = "", *, top: str = "") -> str:
    """An honest product with something done before and after it.

    Args:
        first: statements before the product.
        last: statements after it.
        top: what stands in front of the function.
    """
    body = "\n".join(
        f"    {line}" for part in (first, "@", last) for line in part.split("\n") if line
    )
    body = body.replace("    @", "    multiply(A, B, C, m, n, k);")
    return f"""{top}{MULTIPLY}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
{body}
}}
"""


FAST_ROW_SUM = r"""
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    enum { LANES = 64 };
    for (int64_t i = 0; i < rows; i++) {
        float part[LANES] = {0}, sum = 0;
        int64_t j = 0;
        for (; j + LANES <= cols; j += LANES)
            for (int lane = 0; lane < LANES; lane++)
                part[lane] += x[i * cols + j + lane];
        for (; j < cols; j++)
            sum += x[i * cols + j];
        for (int lane = 0; lane < LANES; lane++)
            sum += part[lane];
        y[i] = sum;
    }
}
"""
"""An honest kernel that is several times as fast as the plain one."""

SYSTEM = r"""
static inline long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
"""
"""``system_call``: no symbol tells of it."""

THREAD = r"""
/* CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM */
static long start_thread(void (*work)(void), void *top)
{
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    register void (*r12)(void) __asm__("r12") = work;
    long result;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "call *%%r12\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "a"(56L), "D"(0x50f00L), "S"(top), "d"(0L), "r"(r10), "r"(r8), "r"(r12)
                     : "rcx", "r11", "memory");
    return result;
}
"""
"""``start_thread``: a thread that the C library does not know of, on a stack below ``top``."""

LOOKUP = r"""
#include <elf.h>
#include <string.h>

/* A symbol of the program that an address lies in, by its own tables. */
static void *lookup(const void *inside, const char *wanted)
{
    const char *base = (const char *)((uintptr_t)inside & ~(uintptr_t)4095);
    while (memcmp(base, ELFMAG, SELFMAG))
        base -= 4096;
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)base;
    const Elf64_Phdr *part = (const Elf64_Phdr *)(base + head->e_phoff);
    const Elf64_Dyn *entry = 0;
    for (int i = 0; i < head->e_phnum; i++)
        if (part[i].p_type == PT_DYNAMIC)
            entry = (const Elf64_Dyn *)(base + part[i].p_vaddr);
    const char *symbols = 0, *names = 0;
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const char *at = (const char *)entry->d_un.d_ptr;
        at = at < base ? base + (uintptr_t)at : at;
        if (entry->d_tag == DT_SYMTAB)
            symbols = at;
        else if (entry->d_tag == DT_STRTAB)
            names = at;
    }
    /* The names come right after the symbols. */
    for (const Elf64_Sym *s = (const Elf64_Sym *)symbols; symbols && (const char *)s < names; s++)
        if (s->st_shndx && !strcmp(names + s->st_name, wanted))
            return (void *)(base + s->st_value);
    return 0;
}
"""
"""``lookup``: `__builtin_return_address(0)` of a kernel lies in whatever called it."""
