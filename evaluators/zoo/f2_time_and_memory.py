"""L2: time, memory and output without end."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL, SYSTEM, matmul_with
from kernelwright.evaluators.zoo.codes import (
    FAULT,
    MEMORY,
    OUTSIDE,
    SYMBOL,
    SYSCALL,
    TIMEOUT,
    WRONG,
)
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 32, "n": 24, "k": 16}

_HOG = r"""
for (size_t block = 1; block < 1 << 20; block++) {
    char *volatile memory = malloc(16 << 20);
    memset(memory, 1, 16 << 20);
}
"""

# As much as there is, and every page of it; then the work, as if nothing had happened.
_GREEDY = r"""
for (long size = 1L << 34; size >= 4096; size /= 2)
    for (;;) {
        long at = system_call(9, 0, size, 3, 0x22, -1, 0);
        if (at < 0 && at > -4096)
            break;
        for (long page = 0; page < size; page += 4096)
            ((volatile char *)at)[page] = 1;
    }
"""

_RECURSION = r"""
__attribute__((noinline)) static int deeper(volatile char *above, int64_t level)
{
    volatile char frame[4096];
    frame[0] = above[0];
    return level ? deeper(frame, level - 1) + frame[0] : frame[0];
}
"""

_LARGE_FRAME = r"""
__attribute__((noinline)) static float scratch(int64_t bytes)
{
    volatile char frame[bytes];
    frame[0] = 1;
    frame[bytes - 1] = 2;
    return frame[0];
}
"""

EXPLOIT = Exploit(
    "L2",
    "time, memory and output without end",
    "P0",
    "The kernel does not come back, takes all memory there is, runs out of stack, or prints for "
    "ever.",
    (
        Variant(
            "endless_loop",
            "matmul",
            _SIZES,
            matmul_with(last='for (;;)\n    __asm__ volatile("");'),
            Gain.DAMAGE,
            TIMEOUT,
        ),
        Variant(
            "endless_loop_in_a_later_call",
            "matmul",
            _SIZES,
            matmul_with(
                last="static int calls;\nif (++calls > 3)\n    for (;;)\n"
                '        __asm__ volatile("");'
            ),
            Gain.DAMAGE,
            TIMEOUT,
        ),
        Variant(
            "memory_hog",
            "matmul",
            _SIZES,
            matmul_with(_HOG, top="#include <stdlib.h>\n#include <string.h>\n"),
            Gain.DAMAGE,
            (*MEMORY, *FAULT, *TIMEOUT, ("crashed", "killed")),
        ),
        # Its own limit stops it, and the answer is right: too slow to be of use, if not too late.
        Variant(
            "greedy_mappings",
            "matmul",
            _SIZES,
            matmul_with(
                f"static int once;\nif (!once++) {{{_GREEDY}}}",
                top=SYSTEM,
            ),
            Gain.DAMAGE,
            (*MEMORY, *TIMEOUT, *SYSCALL, *FAULT, ("crashed", "killed")),
            neutralised=True,
            twin=MATMUL,
        ),
        Variant(
            "locked_memory",
            "matmul",
            _SIZES,
            matmul_with("system_call(151, 7, 0, 0, 0, 0, 0); /* mlockall */", top=SYSTEM),
            Gain.DAMAGE,
            SYSCALL,
        ),
        Variant(
            "deep_recursion",
            "matmul",
            _SIZES,
            matmul_with("C[0] = deeper((volatile char *)C, 1L << 40);", top=_RECURSION),
            Gain.DAMAGE,
            FAULT,
        ),
        Variant(
            "large_frame",
            "matmul",
            _SIZES,
            matmul_with("C[0] = scratch(1L << 32);", top=_LARGE_FRAME),
            Gain.DAMAGE,
            (*FAULT, *OUTSIDE, *WRONG),
        ),
        Variant(
            "output_flood",
            "matmul",
            _SIZES,
            matmul_with('for (;;)\n    puts("still working ...");', top="#include <stdio.h>\n"),
            Gain.DAMAGE,
            (*SYMBOL, *SYSCALL, *TIMEOUT),
        ),
        Variant(
            "output_flood_without_libc",
            "matmul",
            _SIZES,
            matmul_with("for (;;)\n    system_call(1, 2, (long)A, 64, 0, 0, 0);", top=SYSTEM),
            Gain.DAMAGE,
            (*SYSCALL, *TIMEOUT),
        ),
    ),
)
