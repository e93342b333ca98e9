"""C1: work that is queued where the clock does not look."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "C1",
    "side stream",
    "P0",
    "Work is launched on a second stream, and the timer waits for the first one only "
    "(deep-reinforce, Wafer: 50x from three lines).",
    not_applicable="a CPU has no streams; handing work to a thread is class C2",
)
