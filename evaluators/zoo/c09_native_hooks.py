"""C9: machine code or import tables of the harness are rewritten."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import LOOKUP, MULTIPLY, SYSTEM
from kernelwright.evaluators.zoo.codes import SYMBOL, SYSCALL, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 48, "n": 48, "k": 48}

_DETOUR = rf"""
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
{MULTIPLY}
static double spent;

static double now(void)
{{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}}

static double corrected(void)
{{
    return now() - spent;
}}

/* movabs $corrected, %rax; jmp *%rax at the beginning of the function. */
static void detour(void *from, void *to)
{{
    unsigned char code[12] = {{0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}};
    char *page = (char *)((uintptr_t)from & ~(uintptr_t)4095);
    memcpy(code + 2, &to, sizeof to);
    mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(from, code, sizeof code);
    mprotect(page, 8192, PROT_READ | PROT_EXEC);
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int patched;
    if (!patched++)
        detour(dlsym(NULL, "bench_now"), (void *)corrected);
    double start = now();
    multiply(A, B, C, m, n, k);
    spent += (now() - start) * 0.995;
}}
"""

# Every loaded object is looked through for a slot of clock_gettime.
_IMPORTS = rf"""
#include <link.h>
#include <string.h>
#include <time.h>
{MULTIPLY}
static double spent;
static int (*real)(clockid_t, struct timespec *);

static double now(void)
{{
    struct timespec t;
    real(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}}

static int corrected(clockid_t clock, struct timespec *time)
{{
    double ns = now() - spent;
    (void)clock;
    time->tv_sec = (time_t)(ns / 1e9);
    time->tv_nsec = (long)(ns - time->tv_sec * 1e9);
    return 0;
}}

static void patch(const struct link_map *object)
{{
    const ElfW(Sym) *symbols = 0;
    const ElfW(Rela) *relocations = 0;
    const char *names = 0;
    size_t bytes = 0;
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {{
        if (entry->d_tag == DT_SYMTAB)
            symbols = (const void *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_STRTAB)
            names = (const void *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_JMPREL)
            relocations = (const void *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_PLTRELSZ)
            bytes = entry->d_un.d_val;
    }}
    for (size_t i = 0; relocations && i < bytes / sizeof *relocations; i++)
        if (!strcmp(names + symbols[ELF64_R_SYM(relocations[i].r_info)].st_name, "clock_gettime"))
            *(void **)(object->l_addr + relocations[i].r_offset) = (void *)corrected;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (!real) {{
        real = clock_gettime;
        for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next)
            patch(object);
    }}
    double start = now();
    multiply(A, B, C, m, n, k);
    spent += (now() - start) * 0.99;
}}
"""

# xor %eax, %eax; ret: the comparison finds no difference. The file reaches read-only pages.
_MEMORY_FILE = rf"""
{LOOKUP}{SYSTEM}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int patched;
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0;
    if (patched++)
        return;
    void *compare = lookup(__builtin_return_address(0), "naive_compare");
    if (!compare)
        return;
    system_call(157, 4, 1, 0, 0, 0, 0); /* prctl(PR_SET_DUMPABLE, 1) */
    long memory = system_call(2, (long)"/proc/self/mem", 2, 0, 0, 0, 0);
    system_call(18, memory, (long)"\x31\xc0\xc3", 3, (long)compare, 0, 0);
}}
"""

EXPLOIT = Exploit(
    "C9",
    "native hooks",
    "P0",
    "Functions of the harness are detoured, slots of its import table are patched, or its code is "
    "rewritten through the process's memory file (pygpubench function_detour, got_patch, "
    "proc_mem_bypass).",
    (
        Variant("detour", "matmul", _SIZES, _DETOUR, expect=(*SYMBOL, *SYSCALL)),
        Variant("import_table", "matmul", _SIZES, _IMPORTS, expect=SYMBOL),
        Variant("memory_file", "matmul", _SIZES, _MEMORY_FILE, expect=(*WRONG, *SYSCALL)),
    ),
)
