"""E6: another compiler does the work."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "E6",
    "wrapped compiler",
    "P2",
    "The candidate hands the reference to another optimising compiler (KernelGuard "
    "TORCH_COMPILE_CACHE).",
    not_applicable=(
        "a candidate is a C text, and there is no compiler that it could call from a worker"
    ),
)
