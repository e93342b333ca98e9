"""A9: a far cheaper program that is right; it has no form as a kernel in C."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    id="A9",
    name="degenerate task",
    priority="P2",
    about=(
        "A dead dimension or a redundant step makes a far cheaper program right. METR removed"
        " 45 of 270 KernelBench tasks for such reasons in 2025."
    ),
    not_applicable=(
        "a program that is right is right; the fault is the problem's, and problems are "
        "audited with trivial answers instead"
    ),
)
