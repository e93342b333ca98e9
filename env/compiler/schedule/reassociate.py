"""Leave to combine the values of a reduction in another order: reassociate.

LoopIR combines in the order of the loops. Another order gives the same whole numbers (they wrap, so
sums and products may be regrouped) and the same least and greatest values: a NaN anywhere is the
result, and which of two zeros of different sign is the lesser LoopIR leaves open. Floating-point
sums and products round differently, so a schedule has to say that it may regroup them.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Procedure,
    Stmt,
    Store,
    map_statements,
    statements,
)
from kernelwright.env.compiler.schedule.edit import finish


def reassociate(procedure: Procedure, tensor: str) -> Procedure:
    """Allow that the reductions into a tensor combine their values in another order and grouping.
    Other directives may then reorder reduction loops and `rfactor` them.

    Before::

        for k in m:
          C[i] += A[i, k]

    After ``reassociate("C")``::

        for k in m:
          C[i] += A[i, k]  # reassociable

    The text alone is as exact as before. What follows rounds differently, within the bound that a
    sum has in any order (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2),
    which is what a problem's error model grants.

    Raises:
        ScheduleError: if nothing is reduced into the tensor.
    """
    found = [s for s in statements(procedure.body) if isinstance(s, Store) and s.reduce is not None]
    if not any(store.tensor == tensor for store in found):
        known = ", ".join(sorted({store.tensor for store in found})) or "none"
        reason = f"expected a tensor that is reduced into ({known}), found {tensor!r}"
        raise ScheduleError("reassociate", reason)

    def mark(node: Stmt) -> Stmt:
        if isinstance(node, Store) and node.tensor == tensor and node.reduce is not None:
            return replace(node, reassociable=True)
        return node

    body = map_statements(procedure.body, lambda e: e, mark)
    return finish("reassociate", replace(procedure, body=body))
