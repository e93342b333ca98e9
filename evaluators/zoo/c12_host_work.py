"""C12: work on the host that a device's timer does not see."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "C12",
    "work on the host under a device's timer",
    "P1",
    "The timer adds up spans of device kernels only, and the host does the rest (the default "
    "timers of SOL-ExecBench and flashinfer-bench).",
    not_applicable="host and device are the same on a CPU",
)
