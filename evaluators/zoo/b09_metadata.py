"""B9: results kept by a tensor's version; it has no form as a kernel in C."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    id="B9",
    name="key on metadata",
    priority="P0",
    about=(
        "The result is kept by a tensor's version counter or other metadata. Reported of "
        "KernelBench-Hard."
    ),
    not_applicable=("arrays in C have no metadata"),
)
