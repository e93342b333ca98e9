"""From a procedure and a schedule to a callable: the visible list of named steps. Start reading the
compiler here.

    verify     the procedure is well formed
    schedule   every directive, each proved legal or refused
    simplify   expressions folded, what never runs removed; parallel and vectorized loops carry
               nothing
    generate   C with vector types
    build      a shared library from the cache, or a compiler
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from kernelwright.env.compiler.codegen.c import arguments, generate
from kernelwright.env.compiler.codegen.comment import block_comment
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.ir.simplify import simplify_procedure
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.call import Kernel
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.compiler.schedule.edit import check_kinds
from kernelwright.env.compiler.schedule.memo import cached_apply
from kernelwright.env.compiler.schedule.trace import print_trace
from kernelwright.env.types import Directive

Arrays: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A scheduled procedure, its C, and the schedule that led there.

    What is built is ``source``: two schedules that lead to the same C are built once.
    """

    procedure: Procedure
    source: str
    trace: tuple[Directive, ...] = ()

    @property
    def listing(self) -> str:
        """The C to be read: its schedule in a comment at the head, a directive a line."""
        directives = print_trace(self.trace).splitlines() or ["none"]
        head = [f"{self.procedure.name}, with the schedule", "", *(f"  {d}" for d in directives)]
        return f"{block_comment(head)}\n\n{self.source}"


def lower(procedure: Procedure, trace: Sequence[Directive] = ()) -> Lowered:
    """A procedure after its schedule, and its C.

    Raises:
        VerifyError: if the procedure is not well formed.
        ScheduleError: at the first directive that may not be applied.
        CodegenError: if the result has no C form.
    """
    try:
        if trace:
            # What a directive leaves is simplified, verified and proved already.
            final = cached_apply(verify(procedure), trace)
        else:
            final = check_kinds("lower", verify(simplify_procedure(verify(procedure))))
        return Lowered(final, generate(final), tuple(trace))
    except RecursionError:
        raise CodegenError("expected expressions of less than a thousand levels") from None


def compile_procedure(
    procedure: Procedure,
    trace: Sequence[Directive] = (),
    *,
    cache: BuildCache,
    toolchain: str | None = None,
    flags: Sequence[str] = DEFAULT_FLAGS,
) -> Kernel:
    """A procedure as a callable on NumPy arrays.

    Raises:
        VerifyError: if the procedure is not well formed.
        ScheduleError: at the first directive that may not be applied.
        CodegenError: if the result has no C form.
        BuildError: if there is no compiler, or it refuses.
    """
    lowered = lower(procedure, trace)
    build = cache.build(lowered.source, find_toolchain(toolchain), flags)
    final = lowered.procedure
    return Kernel(build.library, final.name, arguments(final), final.extents)


def compiled_runner(
    cache: BuildCache,
    trace: Sequence[Directive] = (),
    *,
    toolchain: str | None = None,
    flags: Sequence[str] = DEFAULT_FLAGS,
) -> Callable[[Procedure, Arrays, Mapping[str, int]], dict[str, NDArray[Any]]]:
    """What runs a procedure on inputs and extents as the interpreter does, compiled after a
    schedule: for `sparse.run.evaluate` and its like, which make procedures of their own.
    """

    def run(procedure: Procedure, inputs: Arrays, extents: Mapping[str, int]) -> dict[str, Any]:
        kernel = compile_procedure(procedure, trace, cache=cache, toolchain=toolchain, flags=flags)
        return kernel(inputs, extents)

    return run
