"""A16: a result that is somebody else's memory; it has no form as a kernel in C."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    id="A16",
    name="alias of an input",
    priority="P0",
    about=(
        "The result is a view of an input, or of the reference's buffer. KernelGuard has "
        "rules for pass-through."
    ),
    not_applicable=(
        "a kernel in C returns nothing; the judge owns the outputs, which overlap with nothing"
    ),
)
