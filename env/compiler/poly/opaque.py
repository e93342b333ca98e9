"""Where accesses meet whose indices read memory that nobody writes: ``y[crd[e], r]``.

Such a term is a function of the loop variables in it, of which nothing is known but that: two
iterations that agree in those variables read one number, others may read any two (uninterpreted
functions; Pugh and Wonnacott, Nonlinear Array Dependence Analysis, 1994). Two accesses with one
such term meet where some numbers, one for each of the two, make their indices equal, and are one
number where its arguments are equal (Ackermann's reduction). Terms that are written differently
stay unrelated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import islpy as isl

from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, Load, Var, substitute, walk
from kernelwright.env.compiler.poly.model import Access, Instance, Model, affine_text, isl_name
from kernelwright.env.compiler.poly.sums import cancelled


def is_opaque(access: Access, changing: Collection[str]) -> bool:
    """Whether an index has a term that is a function of loop variables and not affine; terms that
    read ``changing`` tensors are none.
    """
    return any(True for index in access[2] for _ in _terms(index, changing))


def meetings(
    model: Model, firsts: Sequence[Access], seconds: Sequence[Access], changing: Collection[str]
) -> isl.UnionMap:
    """Pairs of instances of which the first's access in ``firsts`` and the second's in ``seconds``
    may touch one element.
    """
    texts = dict.fromkeys(
        _meeting(first, second, changing)
        for first in firsts
        for second in seconds
        if first[1] == second[1]
    )
    pairs = isl.UnionMap(f"{model.parameters}{{ {'; '.join(texts)} }}")
    return pairs.intersect_domain(model.domain).intersect_range(model.domain)


def _meeting(first: Access, second: Access, changing: Collection[str]) -> str:
    """When two accesses of one tensor meet, in isl's words."""
    both = (*first[2], *second[2])
    terms = list(dict.fromkeys(term for index in both for term in _terms(index, changing)))
    sides = []
    for side, (instance, tensor, indices) in (("x", first), ("y", second)):
        # isl's names of no extents have such primes in front of them.
        own = {var: Var(f"{side}{k}'") for k, var in enumerate(instance.variables)}
        read = {term: Var(f"{side}_read{k}'") for k, term in enumerate(terms)}
        values: dict[str, Expr] = {**own}
        named = [affine_text(substitute(_named(i, read), values)) for i in indices]
        private = dict(instance.private).get(tensor, ())
        sides.append((own, read, [*(isl_name(own[var].name) for var in private), *named]))
    (x, x_read, places), (y, y_read, others) = sides
    held = [f"{a} = {b}" for a, b in zip(places, others, strict=True) if None not in (a, b)]
    for term in terms:
        names = [node.name for node in walk(term) if isinstance(node, Var)]
        arguments = [name for name in dict.fromkeys(names) if name in x or name in y]
        if all(name in x and name in y for name in arguments):
            apart = [f"{_text(x[name])} != {_text(y[name])}" for name in arguments]
            held.append(
                f"({' or '.join([f'{_text(x_read[term])} = {_text(y_read[term])}', *apart])})"
            )
    unknown = ", ".join(_text(var) for var in (*x_read.values(), *y_read.values()))
    begin, end = _tuple(first[0], x), _tuple(second[0], y)
    return f"{begin} -> {end} : exists ({unknown} : {' and '.join(held) or 'true'})"


def _text(var: Var) -> str:
    return isl_name(var.name)


def _tuple(instance: Instance, own: dict[str, Var]) -> str:
    return f"{instance.name}[{', '.join(map(_text, own.values()))}]"


def _terms(node: Expr, changing: Collection[str]) -> Iterator[Expr]:
    """The terms of a whole number that are not affine, in one spelling."""
    parts = _affine_parts(node)
    if parts is not None:
        for part in parts:
            yield from _terms(part, changing)
    elif not any(isinstance(part, Load) and part.tensor in changing for part in walk(node)):
        yield cancelled(node)


def _named(node: Expr, names: dict[Expr, Var]) -> Expr:
    """A whole number with variables in the place of its terms."""
    parts = _affine_parts(node)
    if parts is None:
        return names.get(cancelled(node), node)
    if not parts:
        return node
    assert isinstance(node, Binary)
    left, right = (
        _named(part, names) if part in parts else part for part in (node.left, node.right)
    )
    return Binary(node.op, left, right)


def _affine_parts(node: Expr) -> tuple[Expr, ...] | None:
    """The operands of what is affine where they are; None for what is not."""
    match node:
        case Const(_, "int64") | Var():
            return ()
        case Binary("add" | "sub" | "min" | "max", left, right):
            return left, right
        case Binary("mul", Const(_, "int64"), part) | Binary("mul", part, Const(_, "int64")):
            return (part,)
        case Binary("floordiv" | "mod", left, Const(value, "int64")) if int(value) > 0:
            return (left,)
    return None
