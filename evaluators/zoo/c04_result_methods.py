"""C4: methods of one result that answer the checker's questions."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "C4",
    "overridden methods of a result",
    "P0",
    "The comparison calls methods of the returned tensor, which the candidate has replaced on that "
    "instance (reference-kernels PR #161).",
    not_applicable="a result is bytes in memory and has no methods",
)
