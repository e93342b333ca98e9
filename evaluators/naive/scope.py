"""Which problems the naive evaluator can judge."""

from __future__ import annotations

from kernelwright.env.types import ExtentRange, Problem, Workload

# What ``naive.c`` has room for, and the types whose elements it can read.
_SHAPES, _ARRAYS, _EXTENTS = 8, 8, 8
_DTYPES = ("int32", "int64", "float32", "float64")


def unsuited(problem: Problem) -> str | None:
    """Why the naive evaluator cannot judge a problem, None if it can."""
    if any(_is_ranged(workload) for workload in problem.workloads):
        return "extents that are drawn from a range, where it knows only numbers"
    counts = {
        "shapes": (len(problem.workloads), _SHAPES),
        "arrays": (len(problem.tensors), _ARRAYS),
        "extents": (len(problem.workloads[0].extents), _EXTENTS),
    }
    for what, (count, most) in counts.items():
        if count > most:
            return f"{count} {what}, where it has room for {most}"
    odd = [tensor for tensor in problem.tensors if tensor.dtype not in _DTYPES]
    return f"{odd[0].name} of {odd[0].dtype}, which it cannot read" if odd else None


def _is_ranged(workload: Workload) -> bool:
    return any(isinstance(extent, ExtentRange) for _, extent in workload.extents)
