"""Whether a procedure has a C form: its names, its size, the memory of its temporaries."""

from __future__ import annotations

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.codegen.memory import places
from kernelwright.env.compiler.codegen.unrolled import written
from kernelwright.env.compiler.codegen.work_items import as_loops
from kernelwright.env.compiler.ir.nodes import Allocate, For, Procedure, statements

MAX_UNROLLED = 2048


def check_form(procedure: Procedure) -> None:
    """See that a procedure has a C form of sensible size, without writing it.

    Raises:
        CodegenError: if a name is C's own, more than `MAX_UNROLLED` statements would be written, or
            a temporary cannot live in the memory that it is asked to, or as `as_loops` does.
    """
    check_names(procedure)
    loops_alone = as_loops(procedure)
    places(loops_alone)
    count = written(loops_alone.body)
    if count > MAX_UNROLLED:
        raise CodegenError(
            f"expected at most {MAX_UNROLLED} statements after unrolling, found {count}"
        )


def check_names(procedure: Procedure) -> None:
    """See that C leaves the names of a procedure free.

    Raises:
        CodegenError: if it does not; it has the first such name.
    """
    found = [*procedure.extents, *(t.name for t in procedure.tensors)]
    for node in statements(procedure.body):
        match node:
            case For(var, _, _, _):
                found.append(var)
            case Allocate(tensor, _):
                found.append(tensor.name)
    refused = [name for name in found if not names.is_free(name)]
    if not names.is_free_function(procedure.name):
        refused.insert(0, procedure.name)
    if refused:
        raise CodegenError(f"expected a name that C leaves free, found {refused[0]!r}")
