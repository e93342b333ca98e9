"""The C interface of a problem's kernels, as the header that a person or a model writes against."""

from __future__ import annotations

from kernelwright.env.compiler.runtime.call import CallError, prototype
from kernelwright.env.problems.program import ProgramError, arguments, extent_macros
from kernelwright.env.types import Problem, TensorSpec, Workload

ALIGNMENT = 64


def declaration(problem: Problem) -> str:
    """The prototype of a problem's kernels, without its semicolon.

    Raises:
        ProgramError: if a tensor has no C type.
    """
    extents = tuple(name for name, _ in problem.workloads[0].extents)
    try:
        return prototype(problem.name, arguments(problem), extents)
    except CallError as error:
        raise ProgramError(f"{problem.name}: {error}") from None


def abi(problem: Problem) -> str:
    """The header of a problem: what its arguments are, the macros of its fixed extents, and the
    prototype.

    Raises:
        ProgramError: if the problem has no C form.
    """
    head = declaration(problem)
    widest = max(len(tensor.name) for tensor in problem.tensors)
    one = problem.workloads[0] if len(problem.workloads) == 1 else None
    macros = extent_macros(one) if one else []
    lines = [
        f"// {problem.identity}: the C interface of its kernels.",
        "//",
        *(f"//   {_tensor(tensor, widest)}" for tensor in problem.tensors),
        *_shapes(problem),
        "//",
        f"// Arrays are row-major, start at multiples of {ALIGNMENT} bytes and do not overlap;",
        "// outputs hold no values yet, and every element of them must be written.",
        f"// Correct is what is within {problem.error_model.bound:.3g} {_unit(problem)}.",
        "",
        "#include <stdint.h>",
        "",
        *([*macros, ""] if macros else []),
        f"{head};",
    ]
    return "\n".join(lines) + "\n"


def _tensor(tensor: TensorSpec, widest: int) -> str:
    shape = "".join(f"[{extent}]" for extent in tensor.shape)
    return f"{tensor.name:<{widest}}  {tensor.role:<7}  {tensor.dtype}{shape}"


def _shapes(problem: Problem) -> list[str]:
    """The workloads, where macros alone do not say them."""
    if len(problem.workloads) == 1:
        return [f"// with {_extents(problem.workloads[0])}"]
    macros = "each is built on its own, with KW_ macros for its extents"
    return [f"// with one of ({macros}):", *(f"//   {_extents(w)}" for w in problem.workloads)]


def _extents(workload: Workload) -> str:
    parts = [
        f"{name} = {extent}"
        if isinstance(extent, int)
        else f"{extent.low} <= {name} <= {extent.high}"
        for name, extent in workload.extents
    ]
    return ", ".join(parts)


def _unit(problem: Problem) -> str:
    if problem.error_model.bound == 0:
        return "of the reference: every bit counts"
    if problem.magnitude is not None:
        return "of each element's magnitude, measured from a float64 reference"
    return "of the norm of a float64 reference, in norm"
