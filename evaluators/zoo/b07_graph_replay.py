"""B7: a captured graph of device work; it has no form as a kernel in C."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    id="B7",
    name="graph replay on stale pointers",
    priority="P0",
    about=(
        "A captured graph of device work is replayed on the addresses of its capture. "
        "Reported of KernelBench-Hard in August 2026."
    ),
    not_applicable=("a CPU has no graphs of captured work"),
)
