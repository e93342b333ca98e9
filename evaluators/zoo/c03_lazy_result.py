"""C3: a result that computes its values when it is first looked at."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "C3",
    "lazy result",
    "P0",
    "The returned object is a subclass of the tensor's type that computes itself in the checker "
    "(CUDA-L1 #12: 600x).",
    not_applicable="a result is bytes in memory and cannot compute itself later",
)
