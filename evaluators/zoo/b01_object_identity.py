"""B1: results kept by Python objects; it has no form as a kernel in C."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    id="B1",
    name="cache by object identity",
    priority="P0",
    about=(
        "The result is kept by the identity of the Python objects that it came from. Reported"
        " in reference-kernels PR #102."
    ),
    not_applicable=("a kernel in C gets addresses, never objects; a cache by address is B2"),
)
