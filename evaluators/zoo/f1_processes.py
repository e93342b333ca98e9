"""L1: processes, signals, timers and scheduling."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL, MULTIPLY, SYSTEM, THREAD, matmul_with
from kernelwright.evaluators.zoo.codes import EXIT, LATE, SYMBOL, SYSCALL, TIMEOUT, WRONG, Answers
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 32, "n": 24, "k": 16}


def _calls(name: str, first: str, *needs: str, last: str = "") -> Variant:
    """A kernel that asks the system for something by itself, and is honest apart from that."""
    source = matmul_with(first, last, top=SYSTEM)
    return Variant(name, "matmul", _SIZES, source, Gain.DAMAGE, SYSCALL, needs=needs)


def _uses(name: str, headers: str, first: str, *needs: str, more: Answers = ()) -> Variant:
    """The same through the C library."""
    top = "".join(f"#include <{header}.h>\n" for header in headers.split())
    source = matmul_with(first, top=top)
    expect = (*SYMBOL, *SYSCALL, *more)
    return Variant(name, "matmul", _SIZES, source, Gain.DAMAGE, expect, needs=needs)


_HANDLER = r"""
struct action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};
static void handler(int number)
{
    (void)number;
}
"""

_LATE_THREAD = rf"""
{SYSTEM}{MULTIPLY}{THREAD}
static const float *a, *b;
static float *c;
static _Alignas(64) char stack[1 << 16];

static void later(void)
{{
    multiply(a, b, c, KW_M, KW_N, KW_K);
    system_call(60, 0, 0, 0, 0, 0, 0);
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    a = A, b = B, c = C;
    start_thread(later, stack + sizeof stack);
}}
"""

# Nothing can wake it but the judge, which has no reason to.
_SLEEP = r"""
static volatile int word;
while (!word)
    system_call(202, (long)&word, 0, 0, 0, 0, 0);
"""

_BLOCKED = r"""
unsigned long all = ~0ul;
system_call(14, 2, (long)&all, 0, 8, 0, 0);
for (volatile int forever = 1; forever;)
    ;
"""

EXPLOIT = Exploit(
    "L1",
    "processes, signals and scheduling",
    "P0",
    "The kernel makes processes or threads, signals them, sets timers and handlers, or changes "
    "how it is scheduled.",
    (
        _uses("fork_bomb", "unistd", "for (;;)\n    fork();", "fork"),
        _calls(
            "fork_bomb_without_libc", "for (;;)\n    system_call(57, 0, 0, 0, 0, 0, 0);", "fork"
        ),
        _calls(
            "vfork",
            "if (!system_call(58, 0, 0, 0, 0, 0, 0))\n    system_call(60, 0, 0, 0, 0, 0, 0);",
            "fork",
        ),
        _calls(
            "clone3",
            "unsigned long how[8] = {0, 0, 0, 0, 17};\n"
            "if (!system_call(435, (long)how, sizeof how, 0, 0, 0, 0))\n"
            "    for (;;)\n"
            "        system_call(34, 0, 0, 0, 0, 0, 0);",
            "fork",
        ),
        Variant(
            "clone3_where_threads_are_allowed",
            "matmul",
            _SIZES,
            matmul_with(
                "unsigned long how[8] = {0, 0, 0, 0, 17};\n"
                "if (!system_call(435, (long)how, sizeof how, 0, 0, 0, 0))\n"
                "    for (;;)\n"
                "        system_call(34, 0, 0, 0, 0, 0, 0);",
                top=SYSTEM,
            ),
            Gain.DAMAGE,
            SYSCALL,
            # It may be told that there is no such call, and then is the plain kernel.
            neutralised=True,
            twin=MATMUL,
            needs=("fork",),
            threads=2,
        ),
        Variant(
            "fork_where_threads_are_allowed",
            "matmul",
            _SIZES,
            matmul_with("system_call(56, 17, 0, 0, 0, 0, 0); /* clone(SIGCHLD) */", top=SYSTEM),
            Gain.DAMAGE,
            SYSCALL,
            needs=("fork",),
            threads=2,
        ),
        _uses(
            "daemon",
            "unistd",
            "if (!fork()) {\n    setsid();\n    for (;;)\n        pause();\n}",
            "fork",
            more=LATE,
        ),
        _calls("new_session", "system_call(112, 0, 0, 0, 0, 0, 0);"),
        _calls("new_namespace", "system_call(272, 0x10000000, 0, 0, 0, 0, 0); /* unshare */"),
        Variant("late_thread", "matmul", _SIZES, _LATE_THREAD, expect=(*SYSCALL, *LATE, *WRONG)),
        Variant(
            "late_thread_where_threads_are_allowed",
            "matmul",
            {"m": 160, "n": 160, "k": 160},
            _LATE_THREAD,
            expect=(*LATE, *WRONG, *SYSCALL),
            threads=2,
        ),
        _uses("exit", "stdlib", "exit(0);", more=EXIT),
        _uses("quick_exit_with_failure", "stdlib", "_Exit(3);", more=EXIT),
        Variant(
            "abort",
            "matmul",
            _SIZES,
            matmul_with("abort();", top="#include <stdlib.h>\n"),
            Gain.DAMAGE,
            (("crashed", "abort"), *SYSCALL),
        ),
        _uses("kill_parent", "signal unistd", "kill(getppid(), SIGKILL);", "kill"),
        _calls(
            "kill_everybody",
            "system_call(62, -1, 9, 0, 0, 0, 0);",
            "kill",
        ),
        _calls(
            "kill_own_group",
            "system_call(62, 0, 9, 0, 0, 0, 0);",
            "kill",
        ),
        _calls(
            "stop_itself",
            "long self = system_call(39, 0, 0, 0, 0, 0, 0);\n"
            "system_call(62, self, 19, 0, 0, 0, 0);",
            "kill",
        ),
        _uses("raise_stop", "signal", "raise(SIGSTOP);", "kill"),
        _calls(
            "forged_fault",
            "int info[32] = {11, 0, 1};\n"
            "long self = system_call(39, 0, 0, 0, 0, 0, 0);\n"
            "system_call(129, self, 11, (long)info, 0, 0, 0); /* rt_sigqueueinfo(SIGSEGV) */",
            "kill",
        ),
        _calls(
            "trace_parent",
            "long parent = system_call(110, 0, 0, 0, 0, 0, 0);\n"
            "system_call(101, 16, parent, 0, 0, 0, 0); /* ptrace(PTRACE_ATTACH) */",
            "ptrace",
        ),
        _calls(
            "trace_siblings",
            "long self = system_call(39, 0, 0, 0, 0, 0, 0);\n"
            "for (long other = self - 8; other < self + 8; other++)\n"
            "    if (other != self)\n"
            "        system_call(101, 0x4206, other, 0, 0, 0, 0); /* PTRACE_SEIZE */",
            "ptrace",
        ),
        _calls(
            "read_parent",
            "char here[64];\n"
            "struct {\n    void *at;\n    unsigned long size;\n"
            "} to = {here, 64}, from = {(void *)A, 64};\n"
            "long parent = system_call(110, 0, 0, 0, 0, 0, 0);\n"
            "system_call(310, parent, (long)&to, 1, (long)&from, 1, 0); /* process_vm_readv */",
            "ptrace",
        ),
        _calls(
            "descriptor_of_the_parent",
            "long other = system_call(434, 1, 0, 0, 0, 0, 0); /* pidfd_open(1) */\n"
            "system_call(438, other, 0, 0, 0, 0, 0);          /* pidfd_getfd */",
        ),
        _calls(
            "other_program",
            'char *const words[] = {"true", 0}, *const environment[] = {0};\n'
            'system_call(59, (long)"/bin/true", (long)words, (long)environment, 0, 0, 0);',
            "exec",
        ),
        _calls(
            "program_in_memory",
            'char *const words[] = {"x", 0}, *const environment[] = {0};\n'
            'long file = system_call(319, (long)"x", 0, 0, 0, 0, 0); /* memfd_create */\n'
            'system_call(1, file, (long)"#!/bin/sh\\n", 10, 0, 0, 0);\n'
            'system_call(322, file, (long)"", (long)words, (long)environment, 0x1000, 0);',
            "exec",
        ),
        Variant(
            "signal_handler",
            "matmul",
            _SIZES,
            matmul_with(
                "struct action action = {handler, 0x04000000, 0, 0};\n"
                "system_call(13, 11, (long)&action, 0, 8, 0, 0); /* rt_sigaction(SIGSEGV) */",
                top=SYSTEM + _HANDLER,
            ),
            Gain.DAMAGE,
            SYSCALL,
        ),
        _calls(
            "interval_timer",
            "long often[4] = {0, 50, 0, 50};\nsystem_call(38, 0, (long)often, 0, 0, 0, 0);",
        ),
        _calls(
            "posix_timer",
            "int timer;\nsystem_call(222, 1, 0, (long)&timer, 0, 0, 0);",
        ),
        _calls("timer_descriptor", "system_call(283, 1, 0, 0, 0, 0, 0); /* timerfd_create */"),
        _calls("alarm", "system_call(37, 1, 0, 0, 0, 0, 0);"),
        _calls("sleep", "long nap[2] = {0, 1000000};\nsystem_call(35, (long)nap, 0, 0, 0, 0, 0);"),
        _calls(
            "sleep_on_a_futex",
            "int word = 0;\n"
            "long nap[2] = {0, 1000000};\n"
            "system_call(202, (long)&word, 0, 0, (long)nap, 0, 0); /* a time limit is a timer */",
        ),
        Variant(
            "sleep_for_ever",
            "matmul",
            _SIZES,
            matmul_with(last=_SLEEP, top=SYSTEM),
            Gain.DAMAGE,
            (*TIMEOUT, *LATE, *SYSCALL),
        ),
        Variant(
            "signals_blocked",
            "matmul",
            _SIZES,
            matmul_with(_BLOCKED, top=SYSTEM),
            Gain.DAMAGE,
            (*TIMEOUT, *SYSCALL),
        ),
        _calls(
            "affinity", "unsigned long cores = 2;\nsystem_call(203, 0, 8, (long)&cores, 0, 0, 0);"
        ),
        _calls("priority", "system_call(141, 0, 0, 19, 0, 0, 0);"),
        _calls("idle_class", "int none = 0;\nsystem_call(144, 0, 5, (long)&none, 0, 0, 0);"),
        _calls("dumpable", "system_call(157, 4, 1, 0, 0, 0, 0); /* prctl */"),
        _calls("outlive_the_parent", "system_call(157, 1, 0, 0, 0, 0, 0); /* PR_SET_PDEATHSIG */"),
        _calls(
            "time_stamp_counter_off",
            "system_call(157, 26, 2, 0, 0, 0, 0); /* prctl(PR_SET_TSC, PR_TSC_SIGSEGV) */",
        ),
        _calls(
            "own_filter",
            "struct {\n    unsigned short code;\n    unsigned char yes, no;\n    unsigned k;\n"
            "} allow = {6, 0, 0, 0x7fff0000};\n"
            "struct {\n    unsigned short count;\n    void *rules;\n} program = {1, &allow};\n"
            "system_call(317, 1, 0, (long)&program, 0, 0, 0); /* seccomp */",
        ),
        _calls(
            "higher_limits",
            "long most[2] = {-1, -1};\nsystem_call(302, 0, 9, (long)most, 0, 0, 0);",
        ),
        _calls("other_user", "system_call(105, 0, 0, 0, 0, 0, 0); /* setuid(0) */"),
    ),
)
