"""C14: a part of the cache is set aside for data that is used again."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "C14",
    "privileged cache lines",
    "P1",
    "A persisting carve-out of the cache keeps data warm that the measurement takes for cold "
    "(llm.c #851: 3,530 GB/s on a card of 864 GB/s; pygpubench PR #49).",
    not_applicable=(
        "a process on a CPU cannot set cache aside; what non-temporal hints move is the time of "
        "an honest kernel, and what is then warm is the judge's doing (class C15)"
    ),
)
