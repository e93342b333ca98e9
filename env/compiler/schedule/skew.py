"""Skewing: a loop shifted by another, in loops that stay rectangular, so that other directives
follow it.
"""

from __future__ import annotations

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import Binary, Expr, For, If, Procedure, Stmt, Var
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.normal import normalized
from kernelwright.env.compiler.schedule.defaults import row_names
from kernelwright.env.compiler.schedule.edit import (
    finish,
    new_names,
    replace_loop,
    taken_names,
    whole_argument,
)
from kernelwright.env.compiler.schedule.nests import at, perfect_nest

MAX_FACTOR = 64


def skew(
    procedure: Procedure, loop: str, inner: str, factor: int, skewed: str | None = None
) -> Procedure:
    """Add ``factor`` times a loop to the loop inside it (Wolfe 1986).

    The order stays the same; what changes is which loops may follow: after skewing, a nest whose
    distances had a negative component may be interchanged and tiled. The new loop, named
    ``skewed`` (the two names joined without one), runs over all values that the sum takes, with a
    guard for those that belong to this iteration of ``loop``, so that its bounds do not depend on
    ``loop``. `unimodular` and `affine` generate exact bounds instead.

    Before::

        for t in m:
          for i in n:
            S(t, i)

    After ``skew("t", "i", 1)``::

        for t in m:
          for t_i in n + m - 1:
            if t_i - t >= 0 and t_i - t < n:
              S(t, t_i - t)

    Always legal.

    Raises:
        ScheduleError: if ``inner`` is not directly inside ``loop``, its extent depends on ``loop``,
            one is not serial, or the factor is 0 or beyond `MAX_FACTOR`.
    """
    whole_argument("skew", f"a factor from -{MAX_FACTOR} to {MAX_FACTOR}", factor, -MAX_FACTOR)
    if factor == 0 or factor > MAX_FACTOR:
        reason = f"expected a factor from -{MAX_FACTOR} to {MAX_FACTOR} other than 0"
        raise ScheduleError("skew", f"{reason}, found {factor}")
    nest = perfect_nest("skew", procedure, (loop, inner))
    outside, inside = nest.chain
    if mentions(inside.extent, loop):
        raise ScheduleError("skew", f"the extent of {inner} depends on {loop}")
    if skewed is None:
        taken = taken_names(procedure) - {inner}
        (skewed,) = row_names((loop, inner), ((factor, 1),), taken)
    if skewed != inner:
        new_names("skew", procedure, skewed)
    # The sum's lowest value is 0, or for a negative factor that of the last iteration.
    last = Binary("sub", outside.extent, whole(1))
    lowest: Expr = Binary("mul", last, whole(factor)) if factor < 0 else whole(0)
    reach = Binary("mul", last, whole(abs(factor)))
    place = normalized(
        Binary("sub", Binary("add", Var(skewed), lowest), Binary("mul", Var(loop), whole(factor)))
    )
    extent = normalized(Binary("add", inside.extent, reach))
    held = Binary(
        "and",
        Binary("ge", place, whole(0)),
        Binary("lt", place, inside.extent),
    )

    def rewrite(node: For) -> Stmt:
        body: Stmt = nest.body
        for guard in reversed(nest.guards):
            body = If(guard, body)
        body = If(held, at(body, {inner: place}))
        return For(node.var, node.extent, For(skewed, extent, body, inside.kind), node.kind)

    return finish("skew", replace_loop(procedure, loop, rewrite))
