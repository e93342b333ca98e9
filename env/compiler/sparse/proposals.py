"""What one may try of the front end's directives, by a program alone: well formed, but proved by
nobody; the directive itself says whether it is legal.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, permutations

from kernelwright.env.compiler.sparse.concrete import Assign, Concrete, Forall, InOrder, Where
from kernelwright.env.compiler.sparse.named import format_text
from kernelwright.env.compiler.sparse.notation import accesses, variables
from kernelwright.env.compiler.sparse.order import check_order, loop_variables
from kernelwright.env.compiler.sparse.parse import print_expression
from kernelwright.env.compiler.sparse.precompute import factors_of, product_of
from kernelwright.env.compiler.sparse.program import Program, SparseError
from kernelwright.env.types import Directive

BLOCKS = (64, 512, 4096)
PARTS = (2, 4, 8, 16, 64)
# Of more loops there are more orders than anybody tries.
MOST_ORDERED = 5


@lru_cache(maxsize=256)
def proposals(program: Program) -> tuple[Directive, ...]:
    """The directives that might follow, in a fixed order: formats, orders, workspaces, parts of
    products, blocks of coordinates, parts of stored elements.
    """
    return (
        *_storages(program),
        *_orders(program),
        *_workspaces(program),
        *dict.fromkeys(_precomputes(program, program.concrete, ())),
        *_splits(program),
    )


def _storages(program: Program) -> Iterator[Directive]:
    for tensor, offered in program.choices:
        for form, _ in offered:
            if form != program.format(tensor):
                yield Directive("storage", tensor, (format_text(form),))


def _orders(program: Program) -> Iterator[Directive]:
    names = loop_variables(program)
    if not 1 < len(names) <= MOST_ORDERED:
        return
    for order in permutations(names):
        try:
            check_order(program, order)
        except SparseError:
            continue
        if list(order) != _visited(program.concrete):
            yield Directive("order", order[0], order[1:])


def _visited(node: Concrete) -> list[str]:
    """The loops of a statement that is one nest, in order; of another, those outside."""
    out = []
    while isinstance(node, Forall | Where):
        if isinstance(node, Forall):
            out.append(node.var)
        node = node.body if isinstance(node, Forall) else node.producer
    return out


def _workspaces(program: Program) -> Iterator[Directive]:
    target = program.assignment.target
    levels = len(program.format(target.tensor).levels)
    if levels and not program.is_plain(target.tensor) and not program.shares(target):
        yield Directive("workspace", program.loop(target, levels - 1))


def _precomputes(program: Program, node: Concrete, path: tuple[str, ...]) -> Iterator[Directive]:
    """Parts of products that are summed inside of a loop, over the indices that the rest needs."""
    match node:
        case Forall(var, body):
            yield from _precomputes(program, body, (*path, var))
        case InOrder(body):
            for each in body:
                yield from _precomputes(program, each, path)
        case Where(consumer, producer, _):
            yield from _precomputes(program, producer, path)
            yield from _precomputes(program, consumer, path)
        case Assign(target, expression, True):
            factors = factors_of(expression)
            for count in range(1, len(factors) + 1):
                for chosen in combinations(range(len(factors)), count):
                    part = product_of([factors[n] for n in chosen])
                    rest = [factors[n] for n in range(len(factors)) if n not in chosen]
                    read = [access for each in rest for access in accesses(each)]
                    left = {loop for a in (target, *read) for loop in program.access_loops(a)}
                    own = {loop for a in accesses(part) for loop in program.access_loops(a)}
                    for depth in range(len(path) + 1):
                        inside = own.intersection(path[depth:])
                        if inside <= left:
                            continue
                        kept = [
                            index
                            for index in variables(part)
                            if any(loop in inside & left for loop in program.loops(index))
                        ]
                        outer = path[depth - 1] if depth else ""
                        yield Directive("precompute", outer, (print_expression(part), *kept))
        case Assign():
            pass


def _splits(program: Program) -> Iterator[Directive]:
    cut = dict(program.blocks_of)
    for loop in loop_variables(program):
        if loop not in cut:
            for size in BLOCKS:
                yield Directive("split_coordinates", loop, (size,))
    if program.balanced is None:
        for tensor in dict.fromkeys(access.tensor for access in program.accesses[1:]):
            if not program.is_plain(tensor):
                for parts in PARTS:
                    yield Directive("split_nonzeros", tensor, (parts,))
