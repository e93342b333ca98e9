"""Every access of a procedure: where it stands, when it runs and what it touches.

Beside `model`, which has the stores and what they depend on, this has every read by itself, under
the conditions under which it is evaluated: only the chosen side of a choice is, and a guard reads
even where it does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from typing import TypeAlias

import islpy as isl

from kernelwright.env.compiler.ir.accesses import evaluated_loads
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Call,
    Expr,
    For,
    If,
    Procedure,
    Stmt,
    Store,
    Tensor,
    While,
)
from kernelwright.env.compiler.ir.whiles import Numbers, as_loop
from kernelwright.env.compiler.poly.model import (
    Position,
    affine_text,
    condition_text,
    isl_name,
    mattering,
)


@dataclass(frozen=True, slots=True)
class Access:
    """One access, and the store that it is part of, if it is.

    ``own`` are the loops around the allocation of a temporary, of which every iteration has its
    own; ``position`` is the place in program order.
    """

    tensor: Tensor
    own: tuple[str, ...]
    indices: tuple[Expr, ...]
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]
    position: Position
    is_write: bool
    store: Store | None = None


# Tensors in scope, with the loops around their allocation.
Known: TypeAlias = Mapping[str, tuple[Tensor, tuple[str, ...]]]


def accesses_of(procedure: Procedure) -> tuple[Access, ...]:
    """Every access of a procedure, in program order."""
    known: Known = {t.name: (t, ()) for t in procedure.tensors}
    return tuple(_timed(procedure.body, (), (), (0,), known, count()))


def elements(
    access: Access, procedure: Procedure, count: int, *, exact: bool, inside: bool = False
) -> isl.Map | None:
    """The elements that an access touches, by the outermost ``count`` of its loops; None if they
    are to be exact and are not.

    With ``inside``, those inside the tensor alone, which are all that a legal program touches. A
    temporary has the loops around its allocation in front of its own indices.
    """
    if domain_text(access, exact=exact) is None:
        return None
    # A loop inside that nothing depends on and that always runs only costs isl a variable.
    roots = (*access.indices, *access.conditions)
    kept = mattering(access.loops[count:], roots)
    access = replace(access, loops=(*access.loops[:count], *kept))
    domain = domain_text(access, exact=exact)
    texts = [affine_text(index) for index in access.indices]
    sizes = [affine_text(size) for size in access.tensor.shape]
    own = [isl_name(name) for name in access.own]
    axes = [f"e{axis}" for axis in range(len(own) + len(texts))]
    held = [str(domain), *(f"{axis} = {name}" for axis, name in zip(axes, own, strict=False))]
    for axis, text, size in zip(axes[len(own) :], texts, sizes, strict=True):
        held += [] if text is None else [f"{axis} = {text}"]
        held += [f"0 <= {axis}"] if inside else []
        held += [f"{axis} < {size}"] if inside and size is not None else []
    names = [isl_name(loop.var) for loop in access.loops]
    inner = ", ".join(names[count:])
    text = " and ".join(held)
    quantified = f"exists {inner}: {text}" if inner else text
    return relation(procedure, f"[{', '.join(names[:count])}] -> [{', '.join(axes)}]", quantified)


def relation(procedure: Procedure, text: str, domain: str) -> isl.Map:
    """The map that a text says, on a domain; extents are never negative."""
    extents = [isl_name(extent) for extent in procedure.extents]
    held = " and ".join([*(f"0 <= {extent}" for extent in extents), f"({domain})"])
    return _read(f"[{', '.join(extents)}] -> {{ {text} : {held} }}")


# Directives ask for the same accesses again: of one procedure, and of what the next one left alone.
@lru_cache(maxsize=1024)
def _read(text: str) -> isl.Map:
    return isl.Map(text)


def variables_text(access: Access) -> str:
    """The loop variables of an access, outermost first, in isl's words."""
    return ", ".join(isl_name(loop.var) for loop in access.loops)


def domain_text(access: Access, *, exact: bool) -> str | None:
    """The instances of an access in isl's words; None if they are to be exact and are not."""
    texts = ["true"]
    for loop in access.loops:
        size = affine_text(loop.extent)
        if size is None and exact:
            return None
        texts.append(f"0 <= {isl_name(loop.var)}")
        texts += [] if size is None else [f"{isl_name(loop.var)} < {size}"]
    for condition in access.conditions:
        text = condition_text(condition)
        if text is None and exact:
            return None
        texts += [] if text is None else [f"({text})"]
    if exact and any(affine_text(index) is None for index in access.indices):
        return None
    return " and ".join(texts)


def _timed(
    node: Stmt,
    loops: tuple[For, ...],
    conditions: tuple[Expr, ...],
    position: Position,
    known: Known,
    numbers: Numbers,
) -> Iterator[Access]:
    """Every access; beside what `ir.accesses` has, its place in program order and its store."""
    of = node if isinstance(node, Store) else None

    def reads(*roots: Expr) -> Iterator[Access]:
        for root in roots:
            for load, held in evaluated_loads(root, conditions):
                tensor, own = known[load.tensor]
                place = load.indices, loops, held, position
                yield Access(tensor, own, *place, is_write=False, store=of)

    match node:
        case Store(name, indices, value, reduce):
            yield from reads(*indices, value)
            tensor, own = known[name]
            place = indices, loops, conditions, position
            if reduce is not None:
                yield Access(tensor, own, *place, is_write=False, store=of)
            yield Access(tensor, own, *place, is_write=True, store=of)
        case For(var, extent, body, _):
            yield from reads(extent)
            yield from _timed(body, (*loops, node), conditions, (*position, var, 0), known, numbers)
        case If(condition, then):
            yield from reads(condition)
            yield from _timed(then, loops, (*conditions, condition), position, known, numbers)
        case While(condition, body):
            # Every iteration reads the condition, and one more does: also that is inside the loop.
            loop = as_loop(numbers)
            loops, position = (*loops, loop), (*position, loop.var, 0)
            yield from reads(condition)
            yield from _timed(body, loops, (*conditions, condition), position, known, numbers)
        case Block(items):
            for at, item in enumerate(items):
                yield from _timed(item, loops, conditions, (*position, at), known, numbers)
        case Allocate(tensor, body):
            inside = {**known, tensor.name: (tensor, tuple(loop.var for loop in loops))}
            yield from _timed(body, loops, conditions, position, inside, numbers)
        case Call(_, body):
            yield from _timed(body, loops, conditions, position, known, numbers)
