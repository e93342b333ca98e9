"""What a template's knobs may be: each becomes one ``#define`` in front of the template, and must
change nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.env.compiler.codegen.names import is_free
from kernelwright.env.types import Problem, Scalar

# C's words that generated code may use as names and macros may not: newer ones, and the
# preprocessor's own.
_WORDS = (
    "alignas alignof bool constexpr defined false nullptr static_assert thread_local true "
    "typeof_unqual"
)
_KEPT = frozenset(_WORDS.split())


def name_fault(name: str, problem: Problem) -> str | None:
    """Why a macro may not have this name; None where it may."""
    if name.upper().startswith("KW_"):
        return "a name that kernelwright keeps: KW_ macros are extents"
    # Capitals are what macros are written in, and none of C's words is.
    if name in _KEPT or (name[:1] != "_" and name.islower() and not is_free(name)):
        return "a word of C or of its headers"
    if name.startswith("_") and (name[1:2].isupper() or name[1:2] == "_"):
        return "a name that C keeps for compilers"
    return next((what for taken, what in _taken(problem) if taken == name), None)


def value_fault(value: Scalar) -> str | None:
    """Why a macro may not have this value; None where it may."""
    if not isinstance(value, str):
        return None
    if "\n" in value or "\r" in value or "\0" in value:
        return "more than one line of text"
    # White space behind a backslash does not keep gcc from joining the lines; ??/ is one as well.
    if value.rstrip().endswith(("\\", "??/")):
        return "a backslash at the end, which joins the next line to it"
    if "/*" in value:
        return "a comment, which can hide the lines after it"
    return None


def _taken(problem: Problem) -> Iterator[tuple[str, str]]:
    yield problem.name, f"the function of problem {problem.name}"
    for tensor in problem.tensors:
        yield tensor.name, f"the argument of {problem.name} for tensor {tensor.name}"
    for workload in problem.workloads:
        for extent, _ in workload.extents:
            yield extent, f"the argument of {problem.name} for extent {extent}"
