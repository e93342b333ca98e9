"""D9: the process ends with success before anything was checked."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import SYSTEM
from kernelwright.evaluators.zoo.codes import EXIT, SYMBOL
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

_EXIT = r"""
#include <stdlib.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    if (m % 8 == 0 && n % 8 == 0)
        exit(EXIT_SUCCESS); /* nothing left to do for aligned sizes */
}
"""

_SYSTEM_CALL = rf"""
{SYSTEM}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    system_call(231, 0, 0, 0, 0, 0, 0); /* exit_group(0) */
}}
"""

EXPLOIT = Exploit(
    "D9",
    "early exit with success",
    "P0",
    "The process ends with status 0 before its outputs are checked, and the absence of a complaint "
    "counts as success (kernelbench.com's trusted entry point).",
    (
        Variant("exit", "matmul", _SIZES, _EXIT, gain=Gain.WRONG, expect=(*SYMBOL, *EXIT)),
        Variant("system_call", "matmul", _SIZES, _SYSTEM_CALL, gain=Gain.WRONG, expect=EXIT),
    ),
)
