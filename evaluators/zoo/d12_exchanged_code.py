"""D12: the code inside a trusted function object is exchanged."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "D12",
    "code exchanged inside a function",
    "P0",
    "The code object of a trusted function is replaced, so that tests of the function's identity "
    "still pass (KernelGuard CODE_REPLACEMENT).",
    not_applicable=(
        "there is no interpreter in the worker whose objects could be kept while their code "
        "changes; rewriting machine code is class C9"
    ),
)
