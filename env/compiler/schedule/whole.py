"""What directives leave whole: a `While`, whose iterations nobody knows beforehand.

A directive may move or copy one as it stands, and change what is inside. None may move a store
into it, out of it or past a part of it; those that could are refused where there is one.
"""

from __future__ import annotations

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import LoopKind, Procedure, loops
from kernelwright.env.compiler.ir.whiles import has_while

# Directives that rewrite loops around statements which they keep as they are, or that the
# dependences of a `While` as the model has it prove.
KEEPING = frozenset(
    {
        "split",
        "fuse",
        "reorder",
        "tile",
        "reverse",
        "peel",
        "partition",
        "specialize",
        "rename",
        "add_unit_loop",
        "unroll",
        "vectorize",
        "parallel",
        "set_scope",
        # No directive: what a pipeline with an empty schedule does.
        "lower",
    }
)


def check_whiles(op: str, procedure: Procedure) -> None:
    """See that a directive may be applied to a procedure, or has been, for all of its `While`s.

    Raises:
        ScheduleError: if there is one, and the directive does not keep them whole; or if one is in
            a vectorized loop.
    """
    if not has_while(procedure.body):
        return
    if op not in KEEPING:
        raise ScheduleError(op, "expected no while in the procedure, which must stay whole")
    for loop in loops(procedure):
        if loop.kind is LoopKind.VECTORIZED and has_while(loop.body):
            raise ScheduleError(op, f"expected no while in vectorized loop {loop.var}, found one")
