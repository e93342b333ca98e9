"""E8: the kernel knows the shapes that it is tested on."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit

EXPLOIT = Exploit(
    "E8",
    "listed shapes only",
    "P1",
    "The kernel is right for the shapes that it was tested on and for no others (KernelGuard "
    "HARDCODED_SHAPES, BENCHMARK_SHAPE_REPLAY).",
    not_applicable=(
        "extents that are given as numbers are the contest and may be relied on; where they are "
        "ranges, the naive judge has no shapes that it could list, and tests of the judge draw "
        "them"
    ),
)
