"""A part of a product into a workspace (Kjolstad et al., CGO 2019, section 5: the where statement).

    forall j: forall k: forall r: M(i,r) += T(i,j,k) * C(j,r) * D(k,r)

with ``T(i,j,k) * D(k,r)`` precomputed over r inside j:

    forall j: where w: forall k: forall r: w(r) += T(i,j,k) * D(k,r)
              do:      forall r: M(i,r) += w(r) * C(j,r)

The factors that are left out of the inner sum are multiplied once for all k. Sums and products are
grouped otherwise then, so floating-point results may round differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelwright.env.compiler.sparse.concrete import (
    Assign,
    Concrete,
    Forall,
    InOrder,
    Where,
)
from kernelwright.env.compiler.sparse.format import Diagonal
from kernelwright.env.compiler.sparse.notation import Access, Expression, Mul, accesses, variables
from kernelwright.env.compiler.sparse.parse import print_expression
from kernelwright.env.compiler.sparse.pattern import is_appended
from kernelwright.env.compiler.sparse.program import Program, SparseError, Workspace


def precomputed(
    program: Program, var: str, part: Expression, indices: Sequence[str], name: str
) -> Program:
    """The program with a part of a product in a dense workspace over ``indices``, made inside
    forall ``var`` (outside of all, if that is empty).

    Raises:
        SparseError: if there is no such forall or product, a summed index is left outside of the
            part, or an index of the workspace is none of the part's.
    """

    def visit(node: Concrete) -> Concrete:
        match node:
            case Forall(here, body) if here == var:
                return Forall(here, _split(program, body, part, tuple(indices), name))
            case Forall(here, body):
                return Forall(here, visit(body))
            case InOrder(body):
                return InOrder(tuple(map(visit, body)))
            case Where(consumer, producer, workspace):
                return Where(visit(consumer), visit(producer), workspace)
            case Assign():
                return node

    if not var:
        concrete = _split(program, program.concrete, part, tuple(indices), name)
    elif (found := _foralls(program.concrete, var)) == 1:
        concrete = visit(program.concrete)
    else:
        raise SparseError(f"precompute: expected one forall {var}, found {found or 'none'}")
    spaces = (*program.workspaces, Workspace(name, tuple(indices)))
    return replace(program, concrete=concrete, workspaces=spaces)


def _foralls(node: Concrete, var: str) -> int:
    """How many foralls a statement has over one variable."""
    match node:
        case Assign():
            return 0
        case Forall(here, body):
            return (here == var) + _foralls(body, var)
        case InOrder(body):
            return sum(_foralls(each, var) for each in body)
        case Where(consumer, producer, _):
            return _foralls(consumer, var) + _foralls(producer, var)


def _split(
    program: Program, body: Concrete, part: Expression, indices: tuple[str, ...], name: str
) -> Concrete:
    """The body as a consumer of the workspace and its producer."""
    path: list[str] = []
    node = body
    while isinstance(node, Forall):
        path.append(node.var)
        node = node.body
    text = print_expression(part)
    if not isinstance(node, Assign):
        several = "several" if isinstance(node, InOrder) else "a workspace"
        raise SparseError(f"precompute: expected one assignment under the foralls, found {several}")
    rest = factors_of(node.expression)
    for factor in factors_of(part):
        if factor not in rest:
            raise SparseError(
                f"precompute: expected a part of the product {print_expression(node.expression)}, "
                f"found {text}"
            )
        rest.remove(factor)
    inner = set(_loops(program, part))
    kept = {loop for index in indices for loop in program.loops(index)}
    left = {loop for factor in rest for loop in _loops(program, factor)}
    left |= set(program.access_loops(node.target))
    for place, index in enumerate(indices):
        if index not in variables(part):
            raise SparseError(f"precompute: expected indices of {text}, found {index}")
        if index in indices[:place]:
            raise SparseError(f"precompute: expected every index once, found {index} again")
    outer = sorted(kept.difference(path))
    if outer:
        raise SparseError(
            f"precompute: expected foralls inside for the indices of the workspace, found that of "
            f"{', '.join(outer)} outside"
        )
    for access in accesses(part):
        if program.workspace(access.tensor) is None:
            levels = program.format(access.tensor).levels
            if any(isinstance(dimension, Diagonal) for _, dimension in levels):
                raise SparseError(
                    f"precompute: expected factors that are not stored by diagonals, found "
                    f"{access.tensor}"
                )
    target = program.assignment.target
    if is_appended(program):
        # A dense workspace has every coordinate, and so would what is stored.
        for loop in program.access_loops(target):
            if loop in kept:
                raise SparseError(
                    f"precompute: expected indices by which {target.tensor} is not stored, since "
                    f"it would get every coordinate, found {loop}"
                )
    summed = [loop for loop in path if loop in inner and loop not in kept]
    for loop in summed:
        if loop in left:
            raise SparseError(
                f"precompute: expected {loop}, which is in {text} and in the rest of the product, "
                "among the indices of the workspace or outside of its forall, found it inside and "
                "not among them"
            )
    workspace: Expression = Access(name, indices)
    consumer: Concrete = Assign(
        node.target, product_of([workspace, *rest]), accumulate=node.accumulate
    )
    for loop in reversed([loop for loop in path if loop in left | kept]):
        consumer = Forall(loop, consumer)
    producer: Concrete = Assign(Access(name, indices), part, accumulate=bool(summed))
    for loop in reversed([loop for loop in path if loop in inner]):
        producer = Forall(loop, producer)
    return Where(consumer, producer, name)


def _loops(program: Program, node: Expression) -> list[str]:
    out: list[str] = []
    for access in accesses(node):
        out += program.access_loops(access)
    return out


def factors_of(node: Expression) -> list[Expression]:
    """What is multiplied, from left to right."""
    if isinstance(node, Mul):
        return [*factors_of(node.left), *factors_of(node.right)]
    return [node]


def product_of(factors: Sequence[Expression]) -> Expression:
    """The product of factors, of which there is one at least."""
    out = factors[0]
    for factor in factors[1:]:
        out = Mul(out, factor)
    return out
