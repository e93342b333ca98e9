"""A12: a result of another shape; it has no form as a kernel in C."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    id="A12",
    name="other shape, type or strides",
    priority="P0",
    about=(
        "A result of another shape, type or stride that broadcasts or converts to the right "
        "one. robust-kbench compares without looking at either."
    ),
    not_applicable=(
        "a kernel in C returns nothing; the judge owns the outputs, with their shapes and types"
    ),
)
