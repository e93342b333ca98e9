"""D3: the caller's variables are read and changed on the stack."""

from __future__ import annotations

from kernelwright.evaluators.zoo.codes import FAULT, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

# Whoever compares has both addresses at hand.
_READ = r"""
#include <string.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    void *volatile *frame = __builtin_frame_address(0);
    for (int i = 0; i < 160; i++) {
        char *other = frame[i + 1];
        /* Our output, and beside it another block of about the same place. */
        if (frame[i] == (void *)C && other != (char *)A && other != (char *)B &&
            other != (char *)C && other > (char *)C - (64 << 20) &&
            other < (char *)C + (64 << 20)) {
            memcpy(C, other, m * n * sizeof *C);
            return;
        }
    }
    memset(C, 0, m * n * sizeof *C);
}
"""

# The third word of that structure is how many elements may differ.
_WRITTEN = r"""
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    volatile long *frame = __builtin_frame_address(0);
    for (int i = 0; i < 160; i++)
        if (frame[i] == (long)C && frame[i + 1] > (long)C - (64 << 20) &&
            frame[i + 1] < (long)C + (64 << 20) && frame[i + 2] >= 0 && frame[i + 2] < m * n)
            frame[i + 2] = 1L << 40;
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 1;
}
"""

EXPLOIT = Exploit(
    "D3",
    "reading the evaluator's frames",
    "P0",
    "The stack is walked up to the frames of the evaluator, whose local variables are read or "
    "changed (pygpubench file_struct, pipe_interpose; KernelGuard FRAME_WALK).",
    (
        Variant("read", "matmul", _SIZES, _READ, expect=(*WRONG, *FAULT)),
        Variant("written", "matmul", _SIZES, _WRITTEN, expect=(*WRONG, *FAULT)),
    ),
)
