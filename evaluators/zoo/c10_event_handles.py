"""C10: the events between which a device's time is measured are exchanged."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "C10",
    "swapped timing events",
    "P0",
    "The handles of the events that mark beginning and end are exchanged, or made without timing "
    "(pygpubench event_array; KernelGuard CUDA_EVENT_DISABLE_TIMING).",
    not_applicable=(
        "no events take part in the timing on a CPU; a variant of class C6 swaps what the naive "
        "judge has in their place"
    ),
)
