"""D5: what the evaluator keeps to itself is read from memory, by whatever way there is."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import SYSTEM
from kernelwright.evaluators.zoo.codes import SYMBOL, SYSCALL, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 64, "n": 64, "k": 256}

_MATCHES = r"""
#include <string.h>

static double wanted[3];

/* Whether a block of memory begins with what the answer begins with. */
static int matches(const float *at)
{
    for (int j = 0; j < 3; j++)
        if (!(at[j] - wanted[j] < 1e-4 && wanted[j] - at[j] < 1e-4))
            return 0;
    return 1;
}

static void probe(const float *A, const float *B, int64_t n, int64_t k)
{
    for (int j = 0; j < 3; j++) {
        wanted[j] = 0;
        for (int64_t p = 0; p < k; p++)
            wanted[j] += (double)A[p] * B[p * n + j];
    }
}
"""

_MAPS = rf"""
#include <stdio.h>
{_MATCHES}
static const float *found;

static const float *search(const float *C, size_t bytes)
{{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {{
        unsigned long start, end;
        char mode[5];
        if (sscanf(line, "%lx-%lx %4s", &start, &end, mode) != 3 || strncmp(mode, "rw", 2))
            continue;
        for (unsigned long at = start; at + bytes <= end; at += 16)
            if ((const float *)at != C && matches((const float *)at)) {{
                fclose(maps);
                return (const float *)at;
            }}
    }}
    if (maps)
        fclose(maps);
    return NULL;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (!found) {{
        probe(A, B, n, k);
        C[0] = 0;
        found = search(C, m * n * sizeof *C);
    }}
    if (found)
        memcpy(C, found, m * n * sizeof *C);
    else
        memset(C, 0, m * n * sizeof *C);
}}
"""

# A system call that reads from an address says whether there is anything, and does nothing else:
# with a first argument that means nothing, rt_sigprocmask copies the set and then refuses.
_EGG_HUNT = rf"""
{SYSTEM}{_MATCHES}
static const float *found;

static int readable(long page)
{{
    return system_call(14, 99, page, 0, 8, 0, 0) == -22;
}}

static const float *hunt(const float *C, long bytes)
{{
    long start = (long)C & -4096L;
    for (long page = start - (4 << 20); page < start + (4 << 20); page += 4096) {{
        if (!readable(page) || !readable(page + 4096) || !readable(page + bytes))
            continue;
        for (long at = page; at < page + 4096; at += 16)
            if ((at + bytes <= (long)C || at >= (long)C + bytes) && matches((const float *)at))
                return (const float *)at;
    }}
    return 0;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (!found) {{
        probe(A, B, n, k);
        found = hunt(C, m * n * sizeof *C);
    }}
    if (found)
        memcpy(C, found, m * n * sizeof *C);
    else
        memset(C, 0, m * n * sizeof *C);
}}
"""

_MEMORY_FILE = rf"""
{SYSTEM}{_MATCHES}
static _Alignas(16) char window[1 << 16];
static long found, memory = -1;

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    long bytes = m * n * sizeof *C;
    if (memory < 0) {{
        system_call(157, 4, 1, 0, 0, 0, 0); /* prctl(PR_SET_DUMPABLE, 1) */
        memory = system_call(2, (long)"/proc/self/mem", 0, 0, 0, 0, 0);
        probe(A, B, n, k);
        /* Reads of what is not mapped fail, and harm nobody. */
        for (long at = (long)C - (1 << 20); !found && at < (long)C + (1 << 20); at += 4096) {{
            long got = system_call(17, memory, (long)window, 4096 + 16, at & -4096L, 0, 0);
            for (long i = 0; i + 16 <= got; i += 16)
                if ((at & -4096L) + i != (long)C && matches((const float *)(window + i)))
                    found = (at & -4096L) + i;
        }}
    }}
    if (found)
        system_call(17, memory, (long)C, bytes, found, 0, 0); /* pread64 */
    else
        memset(C, 0, bytes);
}}
"""

EXPLOIT = Exploit(
    "D5",
    "reading secrets",
    "P0",
    "The process's memory, its memory file or the list of its mappings are searched for the "
    "reference's answer or another secret (pygpubench heap, stack, proc_mem; issue #23).",
    (
        Variant("list_of_mappings", "matmul", _SIZES, _MAPS, expect=(*SYMBOL, *SYSCALL, *WRONG)),
        Variant("egg_hunt", "matmul", _SIZES, _EGG_HUNT, expect=WRONG),
        Variant("memory_file", "matmul", _SIZES, _MEMORY_FILE, expect=SYSCALL),
    ),
)
