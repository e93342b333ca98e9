"""D14: a child outlives the candidate."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MULTIPLY, SYSTEM
from kernelwright.evaluators.zoo.codes import LATE, SYMBOL, SYSCALL
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 32, "n": 32, "k": 32}

_DAEMON = rf"""
#include <signal.h>
#include <unistd.h>
{MULTIPLY}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int calls;
    if (!calls++ && !fork()) {{
        setsid();
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        for (;;)
            pause();
    }}
    multiply(A, B, C, m, n, k);
}}
"""

# Twice, so that nobody waits for it.
_ORPHAN = rf"""
{MULTIPLY}{SYSTEM}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int calls;
    if (!calls++) {{
        long child = system_call(57, 0, 0, 0, 0, 0, 0);         /* fork */
        if (!child) {{
            if (!system_call(57, 0, 0, 0, 0, 0, 0))
                for (system_call(112, 0, 0, 0, 0, 0, 0);;)      /* setsid */
                    system_call(34, 0, 0, 0, 0, 0, 0);          /* pause */
            system_call(60, 0, 0, 0, 0, 0, 0);
        }}
        system_call(61, child, 0, 0, 0, 0, 0);                  /* wait4 */
    }}
    multiply(A, B, C, m, n, k);
}}
"""

_PROGRAM = rf"""
#include <unistd.h>
{MULTIPLY}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int calls;
    if (!calls++ && !fork()) {{
        execl("/bin/sleep", "sleep", "600", (char *)0);
        _exit(0);
    }}
    multiply(A, B, C, m, n, k);
}}
"""

EXPLOIT = Exploit(
    "D14",
    "surviving child",
    "P0",
    "A process that the candidate started goes on after the candidate has been judged (pygpubench "
    "thread_fd).",
    (
        Variant(
            "daemon",
            "matmul",
            _SIZES,
            _DAEMON,
            gain=Gain.DAMAGE,
            expect=(*SYMBOL, *SYSCALL, *LATE),
            needs=("fork",),
        ),
        Variant(
            "orphan",
            "matmul",
            _SIZES,
            _ORPHAN,
            gain=Gain.DAMAGE,
            expect=SYSCALL,
            needs=("fork",),
        ),
        Variant(
            "other_program",
            "matmul",
            _SIZES,
            _PROGRAM,
            gain=Gain.DAMAGE,
            expect=(*SYMBOL, *SYSCALL, *LATE),
            needs=("fork", "exec"),
        ),
    ),
)
