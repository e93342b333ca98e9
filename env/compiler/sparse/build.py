"""Programs from what a user writes: a statement, formats by name, sizes.

Without an order of the loops, one that follows the formats is chosen; where a sparse target would
be appended to inside a summed loop, the row is gathered in a workspace (Gustavson's algorithm).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelwright.env.compiler.ir.nodes import Const, Expr, Var
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.sparse.concrete import (
    Assign,
    Concrete,
    Forall,
    InOrder,
    Where,
    concretize,
)
from kernelwright.env.compiler.sparse.format import Format
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.notation import Access, Assignment, access_text
from kernelwright.env.compiler.sparse.order import (
    append_conflict,
    check_order,
    default_order,
)
from kernelwright.env.compiler.sparse.parse import check, parse
from kernelwright.env.compiler.sparse.program import (
    Program,
    SparseError,
    Workspace,
    symbolic,
)


def program(
    statement: str | Assignment,
    formats: Mapping[str, str | Format],
    *,
    sizes: Mapping[str, int] | None = None,
    counts: Mapping[str, int] | None = None,
    dtype: str = "float64",
    order: Sequence[str] | None = None,
    structure: str | None = None,
    name: str = "kernel",
) -> Program:
    """A program, ready to be lowered.

    Tensors without a format are dense. ``sizes`` are those of index variables and ``counts`` the
    numbers of positions by level (``A2``); what is not given is an extent of the kernel:
    ``i_size``, ``A2_size``. ``structure`` names an operand whose levels the target shares.

    Raises:
        NotationError, FormatError: if text is wrong.
        SparseError: if formats do not go together with one another or with the order.
    """
    assignment = parse(statement) if isinstance(statement, str) else statement
    check(assignment)
    bare = _bare(assignment, formats, sizes or {}, counts or {}, dtype, structure, name)
    return ordered(bare, order)


def ordered(bare: Program, order: Sequence[str] | None = None) -> Program:
    """The program with its foralls in an order, or in the one that follows its formats.

    Raises:
        SparseError: if there is none, or the formats want another.
    """
    chosen = tuple(order) if order is not None else default_order(bare)
    check_order(bare, chosen)
    concrete = concretize(bare.assignment, chosen, bare.access_loops)
    out = replace(bare, concrete=concrete, workspaces=())
    if order is None and (conflict := append_conflict(out, chosen)):
        return gathered(out, conflict[1])
    return out


def restored(made: Program, tensor: str, form: Format) -> Program:
    """The program with a tensor stored in another format, its loops in the order that follows.

    Raises:
        SparseError: if the loops were changed already, or the formats do not go together.
    """
    plain = ordered(made)
    if plain.concrete != made.concrete:
        raise SparseError("expected formats to be chosen before the loops are changed")
    formats = {**dict(made.formats), tensor: form}
    if made.structure == tensor:
        formats[made.assignment.target.tensor] = form
    if dict(made.choices).get(tensor) is not None:
        return ordered(replace(made, formats=tuple(formats.items())))
    fixed = {name: n.value for name, n in (*made.sizes, *made.counts) if isinstance(n, Const)}
    sizes = {name: int(fixed[name]) for name, _ in made.sizes if name in fixed}
    counts = {
        level: int(fixed[level])
        for level, _ in made.counts
        if level in fixed and level.rstrip("0123456789") != tensor
    }
    bare = _bare(made.assignment, formats, sizes, counts, made.dtype, made.structure, made.name)
    return ordered(bare)


def gathered(made: Program, var: str) -> Program:
    """The program with the target gathered over one variable in a workspace that keeps a list of
    what is in use.

    Raises:
        SparseError: if the target has no such index, or one that is not its last.
    """
    target = made.assignment.target
    levels = made.format(target.tensor).levels
    loops = [made.loop(target, number) for number in range(len(levels))]
    if not loops or loops[-1] != var or made.loops(var) != (var,):
        last = loops[-1] if loops else "none"
        raise SparseError(
            f"workspace: expected the last index by which {access_text(target)} is stored "
            f"({last}), not blocked, found {var}"
        )
    taken = {name for name, _ in made.formats} | {each.name for each in made.workspaces}
    name = next(n for n in ("w", *(f"w{k}" for k in range(2, 99))) if n not in taken)
    space = Workspace(name, (var,), listed=True)
    outer = loops[:-1]
    inner = Access(name, (var,))

    def gather(node: Concrete, left: frozenset[str]) -> Concrete:
        if left:
            if not isinstance(node, Forall) or node.var not in left:
                found = f"forall {node.var}" if isinstance(node, Forall) else "several statements"
                raise SparseError(
                    f"workspace: expected forall {' and '.join(sorted(left))} outside of what is "
                    f"gathered over {var}, found {found}"
                )
            return Forall(node.var, gather(node.body, left - {node.var}))
        consumer = Forall(var, Assign(target, inner, accumulate=False))
        return Where(consumer, _redirected(node, inner), name)

    concrete = gather(made.concrete, frozenset(outer))
    return replace(made, concrete=concrete, workspaces=(*made.workspaces, space))


def _redirected(node: Concrete, target: Access) -> Concrete:
    """The statement with another target, which is added to."""
    match node:
        case Assign(_, expression, _):
            return Assign(target, expression, accumulate=True)
        case Forall(var, body):
            return Forall(var, _redirected(body, target))
        case InOrder(body):
            return InOrder(tuple(_redirected(each, target) for each in body))
        case Where(consumer, producer, workspace):
            return Where(_redirected(consumer, target), producer, workspace)


def _bare(
    assignment: Assignment,
    formats: Mapping[str, str | Format],
    sizes: Mapping[str, int],
    counts: Mapping[str, int],
    dtype: str,
    structure: str | None,
    name: str,
) -> Program:
    """A program without an order."""
    empty = Assign(assignment.target, assignment.expression, accumulate=False)
    found = Program(name, assignment, (), (), (), (), dtype, empty, structure=structure)
    accesses = found.accesses
    known = {access.tensor: len(access.indices) for access in accesses}
    for tensor in formats:
        if tensor not in known:
            raise SparseError(f"formats: expected some of {', '.join(known)}, found {tensor}")
    chosen = {}
    for tensor, order in known.items():
        given = formats.get(tensor, "dense")
        if structure is not None and tensor == assignment.target.tensor:
            given = formats.get(structure, "dense")
        if not order and given == "dense":
            given = Format(())
        chosen[tensor] = given if isinstance(given, Format) else parse_format(given, order)
        if chosen[tensor].order != order:
            raise SparseError(
                f"{tensor}: expected a format of {order} modes, found {chosen[tensor].words}"
            )
    variables = dict.fromkeys(index for access in accesses for index in access.indices)
    measures: dict[str, Expr] = {
        v: whole(sizes[v]) if v in sizes else Var(f"{v}_size") for v in variables
    }
    free = [f"{v}_size" for v in variables if v not in sizes]
    found = replace(found, formats=tuple(chosen.items()), sizes=tuple(measures.items()))
    numbers: dict[str, Expr] = {}
    for access in accesses:
        if found.is_plain(access.tensor) or found.shares(access):
            continue
        for number, (kind, _) in enumerate(chosen[access.tensor].levels):
            level = f"{access.tensor}{number + 1}"
            if kind.positions(found.site(access, number)) is None:
                numbers[level] = whole(counts[level]) if level in counts else symbolic(level)
    free += [f"{level}_size" for level in numbers if level not in counts]
    return replace(found, counts=tuple(numbers.items()), extents=tuple(dict.fromkeys(free)))
