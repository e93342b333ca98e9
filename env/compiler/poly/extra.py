"""What goes wrong, or not, when a guard is taken away: iterations run that did not run before.

They are harmless if they touch nothing outside a tensor, and write only what no other iteration
reads; or if all they do is add a product of zeros. (That they read nothing undefined is for
`definedness` to say.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from kernelwright.env.compiler.ir.dtypes import FLOATS
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    Load,
    Procedure,
    Store,
    walk,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.poly.model import affine_text
from kernelwright.env.compiler.poly.sample import coordinates, iteration_text
from kernelwright.env.compiler.poly.timed import Access, elements


@dataclass(frozen=True, slots=True)
class Harm:
    """Why the new iterations are not harmless, and one of them."""

    reason: str
    iteration: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        where = f" in iteration {iteration_text(self.iteration)}" if self.iteration else ""
        return self.reason + where


def harm(old: Sequence[Access], new: Sequence[Access], procedure: Procedure) -> Harm | None:
    """What new iterations do wrong, if ``new`` are the accesses of a procedure and ``old`` those of
    the same with a guard more, which reads nothing; None if nothing.
    """
    pairs = tuple(zip(old, new, strict=True))
    for was, now in pairs:
        if was.conditions != now.conditions:
            found = _of_access(was, now, pairs, procedure)
            if found is not None:
                return found
    return None


def _of_access(
    was: Access, now: Access, pairs: Sequence[tuple[Access, Access]], procedure: Procedure
) -> Harm | None:
    element = f"{now.tensor.name}[{', '.join(map(print_expr, now.indices))}]"
    if any(affine_text(part) is None for part in (*now.indices, *now.tensor.shape)):
        return Harm(f"{element} is not affine")
    extra = _extra(was, now, procedure)
    if extra is None:
        return Harm(f"a condition around {element} is not affine")
    if extra.is_empty():
        return None
    inside = elements(now, procedure, len(now.loops), exact=False, inside=True)
    assert inside is not None
    far = extra.subtract(inside)
    if not far.is_empty():
        return Harm(f"{element} would be outside {now.tensor.name}", _point(far, now))
    if not now.is_write or now.store is None:
        return None
    fault = _fault(now.store, now)
    if fault is not None:
        return Harm(fault)
    kept = _kept(extra, now, pairs, procedure)
    if kept is None and now.tensor.role == "temporary":
        return None
    if _adds_zero(now.store, pairs, procedure):
        return None
    if now.tensor.role != "temporary":
        return Harm(f"{element} of an {now.tensor.role} would be written", _point(extra, now))
    assert kept is not None
    return Harm(f"{element} would be written, and is read elsewhere", _point(kept, now))


def _extra(was: Access, now: Access, procedure: Procedure) -> isl.Map | None:
    """New iteration → element; None if that is not known."""
    count = len(now.loops)
    more = elements(now, procedure, count, exact=False)
    less = elements(was, procedure, count, exact=True)
    assert more is not None
    return None if less is None else more.subtract(less)


def _kept(
    extra: isl.Map, now: Access, pairs: Sequence[tuple[Access, Access]], procedure: Procedure
) -> isl.Map | None:
    """New iterations that write what an old one reads."""
    for was, _ in pairs:
        if was.tensor.name == now.tensor.name and not was.is_write:
            read = elements(was, procedure, len(was.loops), exact=False, inside=True)
            assert read is not None
            meet = extra.intersect_range(read.range())
            if not meet.is_empty():
                return meet
    return None


def _fault(store: Store, access: Access) -> str | None:
    """What may go wrong in computing a value from anything."""
    if access.tensor.dtype not in FLOATS:
        return f"{store.tensor} has whole numbers, which may overflow"
    for node in walk(store.value):
        if isinstance(node, Cast) and node.dtype not in FLOATS:
            return f"{print_expr(node)} may not hold what is in the padding"
        if isinstance(node, Binary) and node.op in ("floordiv", "mod"):
            return f"{print_expr(node)} may divide by zero"
    return None


def _adds_zero(store: Store, pairs: Sequence[tuple[Access, Access]], procedure: Procedure) -> bool:
    """Whether all that the new iterations of a store do is add zeros: the element, or both factors,
    lie where nothing but zeros is ever written.
    """
    if store.reduce != "add":
        return False
    match store.value:
        case Binary("mul", Load() as left, Load() as right):
            loads: tuple[Expr, ...] = (left, right)
        case Load() as alone:
            loads = (alone,)
        case _:
            return False
    return all(_is_zero(load, store, pairs, procedure) for load in loads)


def _is_zero(
    load: Expr, store: Store, pairs: Sequence[tuple[Access, Access]], procedure: Procedure
) -> bool:
    assert isinstance(load, Load)
    reads = [
        (was, now)
        for was, now in pairs
        if not now.is_write
        and now.store is store
        and (now.tensor.name, now.indices) == (load.tensor, load.indices)
    ]
    if not reads or reads[0][1].tensor.role == "input":
        return False
    extra = _extra(*reads[0], procedure)
    if extra is None:
        return False
    for was, now in pairs:
        if now.tensor.name != load.tensor or not now.is_write or now.store is None:
            continue
        value = now.store.value
        if isinstance(value, Const) and value.value == 0 and now.store.reduce is None:
            continue
        written = elements(was, procedure, len(was.loops), exact=False, inside=True)
        assert written is not None
        if not extra.intersect_range(written.range()).is_empty():
            return False
    return True


def _point(found: isl.Map, access: Access) -> tuple[tuple[str, int], ...]:
    values = coordinates(found.domain().sample_point())
    return tuple(zip((loop.var for loop in access.loops), values, strict=True))
