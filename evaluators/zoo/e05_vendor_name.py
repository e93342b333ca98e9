"""E5: a function has a vendor's name."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "E5",
    "decoy with a vendor's name",
    "P2",
    "A function is named so that a profiler's filter takes it for the kernel (KernelGYM matches "
    "names by substring).",
    not_applicable="no profiler's names take part in a verdict",
)
