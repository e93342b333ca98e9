"""E9: many copies that hardly differ."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "E9",
    "flood of near clones",
    "P2",
    "Many copies that hardly differ are submitted, and one of them wins by noise (KernelGuard "
    "DUPLICATE_SPAM, NEAR_CLONE_SPAM).",
    not_applicable=(
        "a flood is many texts, each of them honest; what it gains is settled by fresh samples of "
        "few finalists, not by the verdict on one text"
    ),
)
