"""Directives that change how many loops there are, and not their order: split and fuse."""

from __future__ import annotations

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import Binary, Expr, For, If, Procedure, Stmt, Var
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.ir.whiles import has_while
from kernelwright.env.compiler.schedule.defaults import (
    fused_name,
    spare_fused,
    spare_half,
    split_names,
)
from kernelwright.env.compiler.schedule.edit import (
    constant_extent,
    find_loop,
    finish,
    new_names,
    no_loads,
    replace_loop,
    replace_variables,
    taken_names,
    whole_argument,
)
from kernelwright.env.compiler.schedule.fixed import no_changing_loads
from kernelwright.env.compiler.schedule.partition import partition
from kernelwright.env.compiler.schedule.tails import rounded_up, shift_inwards

TAILS = ("guard", "perfect", "round_up", "shift_inwards", "partition")


def split(
    procedure: Procedure,
    loop: str,
    factor: int,
    outer: str | None = None,
    inner: str | None = None,
    tail: str = "guard",
) -> Procedure:
    """Cut a loop into blocks of ``factor`` iterations (Halide and TVM ``split``; Exo
    ``divide_loop``).

    Before::

        for i in n:
          S(i)

    After ``split("i", 4)``; the guard is left away where 4 divides n::

        for io in (n + 3) // 4:
          for ii in 4:
            if io * 4 + ii < n:
              S(io * 4 + ii)

    ``tail`` says what becomes of the last block where it is not whole (Halide's tail strategies):

    - ``guard``: its iterations are tested, as above.
    - ``perfect``: there must be none.
    - ``round_up``: it runs whole, without a test. Legal if its iterations beyond the extent write
      only temporaries, where nothing reads it; these get room for that. What they read must be
      there.
    - ``shift_inwards``: it is moved back so that it ends at the extent, and runs some iterations
      again: ``S(min(io * 4, n - 4) + ii)``. Legal if n is a number of at least 4, and the
      iterations that run again read nothing that was overwritten since they ran.
    - ``partition``: it runs apart, as after ``partition("io")``.

    Raises:
        ScheduleError: if there is no such loop, a given name is not free, the loop is not serial,
            its extent reads what it writes, or the tail is not legal; then it has the element or
            the two iterations.
    """
    found = find_loop("split", procedure, loop)
    factor = whole_argument("split", "a factor", factor)
    outer, inner = _halves(procedure, loop, outer, inner)
    new_names("split", procedure, outer, inner)
    _serial("split", found)
    if tail not in TAILS:
        raise ScheduleError("split", f"expected a tail of {' or '.join(TAILS)}, found {tail!r}")
    extent = constant_extent(found)
    divides = extent is not None and extent % factor == 0
    if tail == "perfect" and not divides:
        raise ScheduleError(
            "split", f"expected {factor} to divide the extent of {loop}, found {extent}"
        )
    no_changing_loads("split", found)
    if tail in ("round_up", "shift_inwards") and has_while(procedure.body):
        reason = f"{tail}: expected no while in the procedure, whose iterations may not run again"
        raise ScheduleError("split", reason)
    blocks = Binary("floordiv", Binary("add", found.extent, whole(factor - 1)), whole(factor))
    start: Expr = Binary("mul", Var(outer), whole(factor))
    if tail == "round_up" and not divides:
        rounded = simplify(Binary("mul", blocks, whole(factor)))
        procedure = rounded_up(procedure, found, rounded)
    if tail == "shift_inwards" and not divides:
        start = Binary("min", start, whole(_last_start(procedure, found, extent, factor)))
    index = Binary("add", start, Var(inner))
    tested = not divides and tail in ("guard", "partition")

    def rewrite(node: For) -> Stmt:
        body = replace_variables(node.body, {loop: index})
        if tested:
            body = If(Binary("lt", index, node.extent), body)
        return For(outer, simplify(blocks), For(inner, whole(factor), body))

    procedure = finish("split", replace_loop(procedure, loop, rewrite))
    if tail == "partition" and not divides:
        return partition(procedure, outer)
    return procedure


def _last_start(procedure: Procedure, loop: For, extent: int | None, factor: int) -> int:
    """Where the last block begins if it ends at the extent."""
    if extent is None or extent < factor:
        found = "no number" if extent is None else extent
        reason = f"shift_inwards: expected a number of at least {factor} as the extent"
        raise ScheduleError("split", f"{reason} of {loop.var}, found {found}")
    shift_inwards(procedure, loop, extent, factor)
    return extent - factor


def _halves(
    procedure: Procedure, loop: str, outer: str | None, inner: str | None
) -> tuple[str, str]:
    """The names of a loop's halves; an empty one means the usual name and no other."""
    usual = split_names(loop)
    outer = usual[0] if outer == "" else outer
    inner = usual[1] if inner == "" else inner
    taken = taken_names(procedure) | {name for name in (outer, inner) if name is not None}
    if outer is None:
        outer = spare_half(loop, "o", taken)
    if inner is None:
        inner = spare_half(loop, "i", taken | {outer})
    return outer, inner


def fuse(procedure: Procedure, loop: str, inner: str, fused: str | None = None) -> Procedure:
    """Run two loops, one directly inside the other, as one (Halide and TVM ``fuse``).

    Before::

        for i in n:
          for j in 8:
            S(i, j)

    After ``fuse("i", "j")``::

        for i_j in n * 8:
          S(i_j // 8, i_j % 8)

    Raises:
        ScheduleError: if the loops are not nested directly, the inner extent depends on the outer
            loop, or one is not serial.
    """
    outside = find_loop("fuse", procedure, loop)
    inside = find_loop("fuse", procedure, inner)
    if outside.body != inside:
        raise ScheduleError("fuse", f"expected loop {inner} directly inside loop {loop}")
    if mentions(inside.extent, loop):
        raise ScheduleError("fuse", f"the extent of {inner} depends on {loop}")
    for each in (outside, inside):
        no_loads("fuse", f"the extent of {each.var}", each.extent)
        # Two negative extents have a positive product, and mean no iterations at all.
        known = isinstance(each.extent, Var) and each.extent.name in procedure.extents
        if not known and (constant_extent(each) is None):
            reason = f"expected a number or an extent of the procedure in loop {each.var}"
            raise ScheduleError("fuse", reason)
    if fused is None:
        fused = spare_fused(loop, inner, taken_names(procedure))
    if fused == "":
        fused = fused_name(loop, inner)
    new_names("fuse", procedure, fused)
    for each in (outside, inside):
        _serial("fuse", each)
    values = {
        loop: Binary("floordiv", Var(fused), inside.extent),
        inner: Binary("mod", Var(fused), inside.extent),
    }

    def rewrite(node: For) -> Stmt:
        extent = simplify(Binary("mul", node.extent, inside.extent))
        return For(fused, extent, replace_variables(inside.body, {**values}))

    return finish("fuse", replace_loop(procedure, loop, rewrite))


def _serial(op: str, loop: For) -> None:
    if loop.kind != "serial":
        raise ScheduleError(op, f"expected a serial loop, found {loop.var} {loop.kind}")
