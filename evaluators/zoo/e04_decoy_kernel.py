"""E4: a kernel is launched that does not matter."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "E4",
    "decoy kernel",
    "P1",
    "A kernel is launched so that launches are counted, and the answer comes from elsewhere "
    "(KernelGYM; kernelbench.com's fig leaf).",
    not_applicable="nothing but the candidate's function runs, and no launches are counted",
)
