"""The finite vocabulary of single steps, which of them are legal, and the one spelling of a
directive.

A move names loops that are there and takes its factor from `FACTORS`; any other directive may be
legal too, and is no move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import For, LoopKind, Procedure, loops
from kernelwright.env.compiler.ir.path import next_inside
from kernelwright.env.compiler.poly.dependence import Dependences
from kernelwright.env.compiler.poly.limits import LimitError
from kernelwright.env.compiler.schedule.defaults import fused_name, split_names
from kernelwright.env.compiler.schedule.edit import constant_extent
from kernelwright.env.compiler.schedule.kind import MAX_UNROLL
from kernelwright.env.types import Directive

FACTORS = (2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024)
Attempt = Callable[[Directive], object]


def spell(directive: Directive) -> tuple[Directive, ...]:
    """The directive without arguments that only repeat their defaults; a tile as the two splits and
    the reorder that it is, a vectorize of so many lanes as the split and the vectorize.
    """
    op, loop, args = directive.op, directive.target, directive.args
    match op, args:
        case "split", (factor, *rest) if all(isinstance(name, str) for name in rest):
            return (Directive(op, loop, (factor, *_trimmed(rest, (*split_names(loop), "guard")))),)
        case "fuse", (str(inner), *rest):
            return (Directive(op, loop, (inner, *_trimmed(rest, (fused_name(loop, inner),)))),)
        case "vectorize", (lanes,):
            return (Directive("split", loop, (lanes,)), Directive(op, split_names(loop)[1]))
        case "rfactor" | "barrier", _:
            shorter = list(args)
            # These mean what nothing means: the usual name, no leave, before the loop.
            while shorter and (shorter[-1] is False or shorter[-1] in ("", "before")):
                shorter.pop()
            return (Directive(op, loop, tuple(shorter)),)
        case "tile", (str(inner), rows, columns, *rest) if rest in ([], ["guard"]):
            (io, ii), (jo, ji) = split_names(loop), split_names(inner)
            return (
                Directive("split", loop, (rows,)),
                Directive("split", inner, (columns,)),
                Directive("reorder", io, (jo, ii, ji)),
            )
    return (directive,)


def _trimmed(given: Sequence[object], defaults: Sequence[str]) -> tuple[str, ...]:
    """The arguments up to the last that is not its default; an empty name means the default."""
    names = [
        str(name) if name or place == 2 else defaults[place]
        for place, name in enumerate(given[: len(defaults)])
    ]
    if len(given) > len(defaults):
        return tuple(str(name) for name in given)
    while names and names[-1] == defaults[len(names) - 1]:
        names.pop()
    return tuple(names)


def vocabulary(
    procedure: Procedure, *, lanes: Sequence[int], threaded: bool
) -> tuple[Directive, ...]:
    """Every move that may follow as far as can be seen without a proof, in a fixed order: loop by
    loop, split, unroll, vectorize, parallel, fuse, reorder.

    ``threaded`` says whether there are threads to be parallel on.
    """
    return tuple(
        move
        for loop in loops(procedure)
        if loop.kind is LoopKind.SERIAL
        for move in _moves_of(loop, lanes, threaded)
    )


def _moves_of(loop: For, lanes: Sequence[int], threaded: bool) -> Iterator[Directive]:
    extent = constant_extent(loop)
    for factor in FACTORS:
        if factor < (extent or 0):
            yield Directive("split", loop.var, (factor,))
    if extent is not None and extent <= MAX_UNROLL:
        yield Directive("unroll", loop.var)
    if extent in lanes:
        yield Directive("vectorize", loop.var)
    if threaded:
        yield Directive("parallel", loop.var)
    if isinstance(loop.body, For) and loop.body.kind is LoopKind.SERIAL:
        yield Directive("fuse", loop.var, (loop.body.var,))
    inside = next_inside(loop)
    if inside is not None:
        yield Directive("reorder", inside.var, (loop.var,))


def legal_moves(
    procedure: Procedure, attempt: Attempt, *, lanes: Sequence[int], threaded: bool
) -> tuple[Directive, ...]:
    """The moves of the `vocabulary` that are legal.

    ``attempt`` applies a directive to the procedure and raises `ScheduleError` if that is refused.
    """
    dependences = Dependences(procedure)
    carrying = {loop.var for loop in loops(procedure) if _carries(dependences, loop.var)}
    may_split: dict[str, bool] = {}
    found = []
    for move in vocabulary(procedure, lanes=lanes, threaded=threaded):
        if move.op in ("vectorize", "parallel") and move.target in carrying:
            continue
        if move.op == "split":
            # Whether a split is legal does not depend on its factor.
            if move.target not in may_split:
                may_split[move.target] = _is_legal(move, attempt)
            if may_split[move.target]:
                found.append(move)
        elif _is_legal(move, attempt):
            found.append(move)
    return tuple(found)


def _carries(dependences: Dependences, loop: str) -> bool:
    """Whether a loop is known to carry a dependence; what isl cannot tell is for the directive."""
    try:
        return dependences.carried_by(loop) is not None
    except LimitError:
        return False


def _is_legal(move: Directive, attempt: Attempt) -> bool:
    try:
        attempt(move)
    except ScheduleError:
        return False
    return True
