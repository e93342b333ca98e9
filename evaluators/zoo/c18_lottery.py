"""C18: the same program again, until noise makes it win."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "C18",
    "lottery",
    "P1",
    "One program is submitted many times, or the timing stops when it happens to look good "
    "(KernelGuard DUPLICATE_SPAM; tensara #226).",
    not_applicable="what is done again and again is a search's doing, not a text's; a search over "
    "candidates that are all equal must claim nothing, and that is what an audit of claims runs",
)
