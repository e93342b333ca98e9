"""What a sparse result stores. Its arrays may be as large as what is stored, so that directives
must not change it: they are refused where they might.

A loop over an index by which the result is appended stores whatever coordinate it comes to. With a
summed loop outside of it that is what some product has; with the summed loop inside, it is every
coordinate of the loop itself, also where no product follows.
"""

from __future__ import annotations

from kernelwright.env.compiler.sparse.concrete import Assign, Concrete, Forall, InOrder, Where
from kernelwright.env.compiler.sparse.format import Format, Mode
from kernelwright.env.compiler.sparse.program import Program, SparseError


def check_order_pattern(before: Program, after: Program) -> None:
    """Refuse another order of the loops that would store other elements.

    Raises:
        SparseError: with a pair of loops that changed sides.
    """
    changed = sorted(summed_inside(before) ^ summed_inside(after))
    if changed:
        kept, summed = changed[0]
        raise SparseError(
            f"expected forall {summed}, which is summed, on the same side of forall {kept} as "
            f"before, since {before.assignment.target.tensor} would store other elements, found "
            "it on the other"
        )


def check_gathered_pattern(program: Program, var: str) -> None:
    """Refuse to gather over a loop what it stores at each of its coordinates, if a product follows
    or not: only what some product has would be stored.

    Raises:
        SparseError: with the summed loop.
    """
    inside = [summed for kept, summed in sorted(summed_inside(program)) if kept == var]
    if inside:
        raise SparseError(
            f"workspace: expected forall {inside[0]}, which is summed, outside of forall {var}, "
            f"since {program.assignment.target.tensor} would store other elements, found it inside"
        )


def summed_inside(program: Program) -> frozenset[tuple[str, str]]:
    """Pairs of loops: by which a sparse result is appended, and a summed one inside of it."""
    target = program.assignment.target
    if not is_appended(program):
        return frozenset()
    levels = program.format(target.tensor).levels
    appended = {program.loop(target, n) for n, (kind, _) in enumerate(levels) if not kind.full}
    kept = set(program.access_loops(target))

    def pairs(node: Concrete, outer: frozenset[str]) -> frozenset[tuple[str, str]]:
        match node:
            case Assign():
                return frozenset()
            case Forall(var, body):
                inner = pairs(body, outer | ({var} & appended))
                return inner if var in kept else inner | {(each, var) for each in outer}
            case InOrder(body):
                return frozenset().union(*(pairs(each, outer) for each in body))
            case Where(consumer, producer, _):
                return pairs(consumer, outer) | pairs(producer, outer)

    return pairs(program.concrete, frozenset())


def is_appended(program: Program) -> bool:
    """Whether the result is sparse, and its own levels are written."""
    target = program.assignment.target
    return not program.is_plain(target.tensor) and not program.shares(target)


def check_format_pattern(program: Program, tensor: str, form: Format) -> None:
    """Refuse another format of an operand that stores zeros beside what is not zero, or leaves them
    out, under a sparse result.

    Raises:
        SparseError: with both formats.
    """
    target, now = program.assignment.target.tensor, program.format(tensor)
    if tensor != target and is_appended(program) and fills(now) != fills(form):
        which = "without" if fills(form) else "with"
        raise SparseError(
            f"expected a format {which} zeros filled in as {now.words}, since {target} would "
            f"store other elements, found {form.words}"
        )


def check_values_alike(program: Program, tensor: str, form: Format) -> None:
    """Refuse a format whose values do not come in the same places: those of a result with the
    tensor's levels, which is given, would be others.

    Raises:
        SparseError: with both formats.
    """
    now = program.format(tensor)
    if form != now and (_places(form) is None or _places(form) != _places(now)):
        raise SparseError(
            f"expected a format of {tensor} with its values in the places of {now.words}, as "
            f"{program.assignment.target.tensor} has them, found {form.words}"
        )


def _places(form: Format) -> tuple[int, ...] | None:
    """The modes in the order by which values are sorted, without any place that is not in use;
    None if there are such places, or no order.
    """
    modes = []
    for kind, dimension in form.levels:
        if not (isinstance(dimension, Mode) and kind.compact and kind.ordered):
            return None
        modes.append(dimension.mode)
    is_tight = bool(form.levels) and not form.levels[-1][0].full
    return tuple(modes) if is_tight else None


def fills(form: Format) -> bool:
    """Whether a format stores zeros that nobody gave: all places of blocks, diagonals, arrays."""
    if not form.levels:
        return False
    last = form.levels[-1][0]
    return last.full or last.computed
