"""E2: the reference itself is submitted."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "E2",
    "the reference itself",
    "P0",
    "The candidate inherits from the reference, or calls it, and does nothing of its own (Kevin; "
    "kernelbench.com).",
    not_applicable=(
        "the reference is not in the process that a kernel runs in; looking for one there is "
        "classes E1 and E3"
    ),
)
