"""The problem as a prompt states it: what is computed on what, how much work it is, how exact the
result must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernelwright.agents.dialects.dialect import Dialect
from kernelwright.env.types import ErrorModel, ExtentRange, Problem, Workload
from kernelwright.prompts import render as prompts


@dataclass(frozen=True, slots=True)
class TensorLine:
    """One tensor; its shape as text."""

    role: str
    name: str
    dtype: str
    shape: str


@dataclass(frozen=True, slots=True)
class WorkLine:
    """One workload. Counts are None where extents are ranges: then there is no one number."""

    label: str
    flops: int | None
    moved_bytes: int | None

    @property
    def intensity(self) -> str:
        """Operations a byte, for a roofline."""
        if self.flops is None or not self.moved_bytes:
            return "unknown"
        return f"{self.flops / self.moved_bytes:.3g}"


@dataclass(frozen=True, slots=True)
class ProblemSheet:
    """What a template knows of the problem."""

    name: str
    tensors: tuple[TensorLine, ...]
    workloads: tuple[WorkLine, ...]
    bound: str


def problem_sheet(problem: Problem) -> ProblemSheet:
    """The problem, for a template."""
    tensors = tuple(
        TensorLine(t.role, t.name, t.dtype, ", ".join(map(str, t.shape))) for t in problem.tensors
    )
    lines = tuple(_work(problem, workload) for workload in problem.workloads)
    return ProblemSheet(
        problem.name, tensors, lines, _bound(problem.error_model, problem.magnitude is not None)
    )


def _work(problem: Problem, workload: Workload) -> WorkLine:
    label = ", ".join(f"{name}={_extent(extent)}" for name, extent in workload.extents)
    if any(isinstance(extent, ExtentRange) for _, extent in workload.extents):
        return WorkLine(label, None, None)
    return WorkLine(label, problem.flops(workload), problem.moved_bytes(workload))


def _extent(extent: int | ExtentRange) -> str:
    return str(extent) if isinstance(extent, int) else f"{extent.low}..{extent.high}"


def _bound(model: ErrorModel, elementwise: bool) -> str:
    if model.bound == 0:
        return "no error at all"
    if elementwise:
        return (
            f"an elementwise rounding error bound of unit {model.bound:.2e}, which allows another "
            "order of summation"
        )
    return f"a relative error of {model.bound:.2e} in the norm"


def lasting_values(problem: Problem, dialect: Dialect) -> dict[str, Any]:
    """The values of a template that stay the same through a search: what the problem and the
    language are, and the text that states each, ``task`` and ``rules``.
    """
    values: dict[str, Any] = {
        "problem": problem_sheet(problem),
        "dialect": {"name": dialect.name, "facts": dialect.facts()},
    }
    task = prompts.part("_task", **values)
    return values | {"task": task, "rules": prompts.part(f"_rules_{dialect.name}", **values)}
