"""Any candidate as C: what a judge builds, what an export holds.

A schedule lowers the problem's definition; knob values become a schedule by the problem's sketch or
macros of its template; source text is taken as it is. Fixed extents stand in front of the user's
own text as macros, ``KW_M`` for the extent ``m``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.pipeline import lower
from kernelwright.env.compiler.runtime.call import Argument
from kernelwright.env.compiler.schedule.decision import without_decisions
from kernelwright.env.types import Candidate, Directive, Language, Problem, Scalar, Workload


class ProgramError(CompilerError):
    """A candidate that has no C form on this problem; it says which part is missing."""


@dataclass(frozen=True, slots=True)
class Program:
    """C text with one function ``entry`` after the calling convention, and the schedule that it
    came from, if it did.
    """

    text: str
    entry: str
    trace: tuple[Directive, ...] | None = None


def program(problem: Problem, candidate: Candidate, workload: Workload) -> Program:
    """The C of a candidate.

    Raises:
        CompilerError: if a directive is refused, or the problem cannot express the candidate.
    """
    payload = candidate.payload
    match candidate.language:
        case Language.KNOBS if problem.template is not None:
            text = [*_macros(candidate.knobs), *extent_macros(workload), problem.template]
            return Program("\n".join(text), problem.name)
        case Language.KNOBS if problem.sketch is not None:
            return _scheduled(problem, problem.sketch(candidate.knobs), workload)
        case Language.SCHEDULE:
            trace = tuple(step for step in payload if isinstance(step, Directive))
            return _scheduled(problem, without_decisions(trace), workload)
        case Language.SOURCE | Language.TEMPLATE if isinstance(payload, str):
            return Program("\n".join([*extent_macros(workload), payload]), problem.name)
    raise ProgramError(f"{problem.name}: expected a candidate with a C form, found {candidate}")


def arguments(problem: Problem) -> tuple[Argument, ...]:
    """The array arguments of a problem's kernels: inputs, then outputs, in declared order."""
    roles = [
        t for role in ("input", "output", "scratch") for t in problem.tensors if t.role == role
    ]
    return tuple(Argument(t.name, t.shape, t.dtype, t.role == "input") for t in roles)


def definition_of(problem: Problem, workload: Workload) -> Procedure:
    """The unscheduled LoopIR of a problem.

    Raises:
        ProgramError: if it has none for this workload.
    """
    if problem.definition is None:
        raise ProgramError(f"{problem.name}: expected a definition in LoopIR, found none")
    try:
        procedure: Procedure = problem.definition(workload)
    except ValueError as error:
        raise ProgramError(f"{problem.name}: {error}") from None
    return procedure


def _scheduled(problem: Problem, trace: tuple[Directive, ...], workload: Workload) -> Program:
    lowered = lower(definition_of(problem, workload), trace)
    return Program(lowered.source, lowered.procedure.name, trace)


def extent_macros(workload: Workload) -> list[str]:
    """``#define KW_M 512`` for every fixed extent."""
    fixed = [(name, value) for name, value in workload.extents if isinstance(value, int)]
    return [f"#define KW_{name.upper()} {value}" for name, value in fixed]


def _macros(knobs: Mapping[str, Scalar]) -> list[str]:
    return [f"#define {name} {int(v) if isinstance(v, bool) else v}" for name, v in knobs.items()]
