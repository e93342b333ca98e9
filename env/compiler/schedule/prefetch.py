"""prefetch: asking ahead for what a later iteration touches, which changes no value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.dtypes import ITEM_BYTES
from kernelwright.env.compiler.ir.linear import linear
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Call,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Prefetch,
    Procedure,
    Select,
    Stmt,
    Store,
    Tensor,
    Var,
    children,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.queries import (
    is_total,
    mentions,
    temporaries,
)
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.schedule.access import find_tensor
from kernelwright.env.compiler.schedule.defaults import copied_name
from kernelwright.env.compiler.schedule.edit import (
    find_loop,
    finish,
    replace_loop,
    taken_names,
    whole_argument,
)
from kernelwright.env.compiler.schedule.fixed import no_changing_loads
from kernelwright.env.compiler.schedule.legal import of_kind

LINE_BYTES = 64
MAX_LOCALITY = 3


def prefetch(
    procedure: Procedure, tensor: str, loop: str, distance: int, locality: int = 3
) -> Procedure:
    """Ask in every iteration of a loop for what the iteration ``distance`` later touches of a
    tensor (Halide ``prefetch``). Always legal.

    Where elements lie side by side, one of each cache line of 64 bytes is asked for. ``locality``
    is from 0 (used once) to 3 (keep in all levels). Accesses that differ by a constant alone are
    asked for once, where they lead. The copies of inner loops have ``_ahead`` behind their names.

    Before::

        for i in n:
          for j in 256:
            y[i, j] = x[i, j]

    After ``prefetch("x", "i", 2)``::

        for i in n:
          if i + 2 < n:
            for j_ahead in 16:
              prefetch x[i + 2, j_ahead * 16]
          for j in 256:
            y[i, j] = x[i, j]

    Raises:
        ScheduleError: if there is no such loop, it is vectorized, its extent reads what it writes,
            the tensor is not declared outside the loop, or the loop touches nothing of it that
            depends on the iteration and is known ahead.
    """
    found = find_loop("prefetch", procedure, loop)
    of_kind("prefetch", found, LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED)
    declared = find_tensor("prefetch", procedure, tensor)
    distance = whole_argument("prefetch", "a distance", distance)
    if whole_argument("prefetch", "a locality", locality, 0) > MAX_LOCALITY:
        raise ScheduleError("prefetch", f"expected a locality of 0 to 3, found {locality}")
    no_changing_loads("prefetch", found)
    inputs = {t.name for t in procedure.tensors if t.role == "input"}
    touched = [
        access
        for access in _accesses(found.body, tensor, (), ())
        if any(mentions(index, loop) for index in access.indices) and _known(access, inputs)
    ]
    if not touched:
        reason = f"expected loop {loop} to touch elements of {tensor} known ahead, found none"
        raise ScheduleError("prefetch", reason)
    if declared in temporaries(found.body):
        raise ScheduleError("prefetch", f"{tensor} lives inside loop {loop}")
    taken = taken_names(procedure)
    asks = tuple(
        _ask(access, declared, found, distance, locality, taken)
        for access in _leading(touched, loop, declared)
    )
    ahead = simplify(Binary("add", Var(loop), whole(distance)))
    guard = If(Binary("lt", ahead, found.extent), Block(asks))
    body = Block((guard, found.body))
    return finish("prefetch", replace_loop(procedure, loop, lambda _: replace(found, body=body)))


@dataclass(frozen=True, slots=True)
class _Access:
    """An access in a loop's body: what surrounds it there, and whether it is certain to happen
    where the loops and guards around it let it.
    """

    indices: tuple[Expr, ...]
    loops: tuple[For, ...]
    guards: tuple[Expr, ...]
    is_write: bool
    is_certain: bool


def _known(access: _Access, inputs: set[str]) -> bool:
    """Whether the indices can be computed ahead: where they, or the extents of the loops that they
    depend on, load or divide, the iteration must be certain to do so too, and find the same.
    """
    roots = (*access.indices, *(each.extent for each in _needed(access)))
    loaded = [p for root in roots for p in walk(root) if isinstance(p, Load)]
    return all(map(is_total, roots)) or (
        all(load.tensor in inputs for load in loaded)
        and access.is_certain
        and len(_guards(access)) == len(access.guards)
    )


def _guards(access: _Access) -> list[Expr]:
    """The guards that can be tested ahead, on the loops that the element depends on alone."""
    needed = _needed(access)
    return [
        guard
        for guard in access.guards
        if is_total(guard)
        and all(each in needed for each in access.loops if mentions(guard, each.var))
    ]


def _accesses(
    node: Stmt, tensor: str, around: tuple[For, ...], guards: tuple[Expr, ...]
) -> Iterator[_Access]:
    """Every access of a tensor. Unlike `ir.accesses` it has guards apart from choices: guards are
    asked again around a prefetch, choices only make it uncertain.
    """
    match node:
        case For(_, extent, body, _):
            yield from _reads(extent, tensor, around, guards)
            yield from _accesses(body, tensor, (*around, node), guards)
        case If(condition, then):
            yield from _reads(condition, tensor, around, guards)
            yield from _accesses(then, tensor, around, (*guards, condition))
        case Block(items):
            for item in items:
                yield from _accesses(item, tensor, around, guards)
        case Allocate(_, body) | Call(_, body):
            yield from _accesses(body, tensor, around, guards)
        case Store():
            for root in (*node.indices, node.value):
                yield from _reads(root, tensor, around, guards)
            if node.tensor == tensor:
                yield _Access(node.indices, around, guards, True, True)


def _reads(
    node: Expr, tensor: str, around: tuple[For, ...], guards: tuple[Expr, ...], certain: bool = True
) -> Iterator[_Access]:
    if isinstance(node, Load) and node.tensor == tensor:
        yield _Access(node.indices, around, guards, False, certain)
    # Of a choice, and of "and" and "or", not every part is evaluated.
    lazy = isinstance(node, Select) or (isinstance(node, Binary) and node.op in ("and", "or"))
    for child in children(node):
        yield from _reads(child, tensor, around, guards, certain and not lazy)


def _leading(accesses: list[_Access], loop: str, tensor: Tensor) -> list[_Access]:
    """One access of those that differ by constants alone along the axes in which the loop moves, or
    by less than a cache line along the last one: the one that is furthest ahead.
    """
    per_line = _per_line(tensor)
    chosen: dict[object, _Access] = {}
    for access in accesses:
        forms = [linear(index) for index in access.indices]
        places = [
            None
            if form.factor(loop)
            else form.constant // (per_line if axis == len(forms) - 1 else 1)
            for axis, form in enumerate(forms)
        ]
        terms = tuple(frozenset(form.terms) for form in forms)
        names = tuple(each.var for each in access.loops)
        key = (terms, tuple(places), names, access.guards, access.is_write)
        other = chosen.get(key)
        if other is None or _constants(other) < _constants(access):
            chosen[key] = access
    return list(chosen.values())


def _constants(access: _Access) -> list[int]:
    return [linear(index).constant for index in access.indices]


def _per_line(tensor: Tensor) -> int:
    return LINE_BYTES // ITEM_BYTES[tensor.dtype]


def _ask(
    access: _Access, tensor: Tensor, loop: For, distance: int, locality: int, taken: set[str]
) -> Stmt:
    """The prefetches for one access, one a cache line where its elements lie side by side."""
    per_line = _per_line(tensor)
    ahead = simplify(Binary("add", Var(loop.var), whole(distance)))
    values: dict[str, Expr] = {loop.var: ahead}
    needed = _needed(access)
    guards = _guards(access)
    certain = access.is_certain and len(guards) == len(access.guards)
    along = next((each for each in reversed(needed) if _is_contiguous(each, access, needed)), None)
    around: list[For] = []
    for each in needed:
        name = copied_name(each.var, "ahead", taken)
        taken.add(name)
        count, index = simplify(substitute(each.extent, values)), Var(name)
        values[each.var] = index
        if each is along:
            lines = Binary("add", count, whole(per_line - 1))
            count = simplify(Binary("floordiv", lines, whole(per_line)))
            values[each.var] = simplify(Binary("mul", index, whole(per_line)))
        around.append(For(name, count, Block(())))
    indices = [simplify(substitute(index, values)) for index in access.indices]
    if not certain:
        sizes = zip(indices, tensor.shape, strict=True)
        indices = [_inside(index, size) for index, size in sizes]
    body: Stmt = Prefetch(tensor.name, tuple(indices), access.is_write, locality)
    if along is None and linear(access.indices[-1]).factor(loop.var) == 1:
        # The loop itself runs along the line: once a line is enough.
        first = Binary("eq", Binary("mod", Var(loop.var), whole(per_line)), whole(0))
        body = If(first, body)
    for guard in reversed(guards):
        body = If(simplify(substitute(guard, values)), body)
    for each in reversed(around):
        body = replace(each, body=body)
    return body


def _needed(access: _Access) -> list[For]:
    """The loops inside that the element depends on, and those that these depend on."""
    roots: list[Expr] = list(access.indices)
    needed: list[For] = []
    for each in reversed(access.loops):
        if any(mentions(root, each.var) for root in roots):
            needed.insert(0, each)
            roots.append(each.extent)
    return needed


def _is_contiguous(loop: For, access: _Access, needed: list[For]) -> bool:
    """Whether the elements of a loop's iterations lie side by side."""
    *others, last = access.indices
    form = linear(last)
    return (
        form.factor(loop.var) == 1
        and not form.hidden(loop.var)
        and not any(mentions(index, loop.var) for index in others)
        and not any(mentions(each.extent, loop.var) for each in needed)
    )


def _inside(index: Expr, size: Expr) -> Expr:
    last = simplify(Binary("sub", size, whole(1)))
    if isinstance(index, Const) and isinstance(size, Const) and 0 <= index.value < size.value:
        return index
    return simplify(Binary("max", whole(0), Binary("min", index, last)))
