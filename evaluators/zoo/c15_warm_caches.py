"""C15: operands are in the cache that are claimed to be in memory."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "C15",
    "warm caches",
    "P1",
    "Inputs are repeated, or the flush is smaller than the cache (kernelbench.com: 0.520 of the "
    "peak became 0.426 with a flush).",
    not_applicable=(
        "the state of the cache is the judge's doing and not the text's: an honest kernel gets "
        "the same warm operands, and the declared state is the same for both arms"
    ),
)
