"""Programs from what a user writes: a statement, formats by name, sizes.

Without an order of the loops, one that follows the formats is chosen; where a sparse target would
be appended to inside a summed loop, the row is gathered in a workspace (Gustavson's algorithm).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count

from kernelwright.env.compiler.ir.nodes import Const, Expr, Var
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.sparse.concrete import (
    Assign,
    Concrete,
    Forall,
    InOrder,
    Where,
    assigns,
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
from kernelwright.env.compiler.sparse.pattern import (
    check_format_pattern,
    check_values_alike,
)
from kernelwright.env.compiler.sparse.program import (
    DTYPES,
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
    concrete = concretize(
        bare.assignment, chosen, bare.access_loops, lambda access: not bare.is_plain(access.tensor)
    )
    out = replace(bare, concrete=concrete, workspaces=())
    if order is None and (conflict := append_conflict(out, chosen)):
        return gathered(out, conflict[1])
    target = bare.assignment.target
    is_assembled = not bare.is_plain(target.tensor) and not bare.shares(target)
    if order is None and is_assembled and len(assigns(concrete)) > 1 and _in_turns(out):
        return gathered(out, chosen[-1])
    return out


def _in_turns(made: Program) -> bool:
    """Whether the innermost loop is one of several, since it would merge too many operands."""
    node = made.concrete
    while isinstance(node, Forall):
        node = node.body
    if not isinstance(node, InOrder):
        return False
    loops = [each.var for each in node.body if isinstance(each, Forall)]
    return len(loops) > len(set(loops))


def restored(made: Program, tensor: str, form: Format) -> Program:
    """The program with a tensor stored in another format, its loops in the order that follows.

    Raises:
        SparseError: if the loops were changed already, the result shares the tensor's levels and
            would be stored otherwise, or the formats do not go together.
    """
    is_plan_of_formats = ordered(made).concrete == made.concrete
    if not is_plan_of_formats or made.balanced is not None or made.blocks_of:
        raise SparseError("expected formats to be chosen before the loops are changed")
    target = made.assignment.target.tensor
    if made.structure is not None and tensor == target:
        raise SparseError(f"{tensor} shares the levels of {made.structure}: choose its format")
    check_format_pattern(made, tensor, form)
    formats = {**dict(made.formats), tensor: form}
    if made.structure == tensor:
        formats[target] = form
    if made.choices or made.interface is not None:
        if made.structure == tensor:
            check_values_alike(made, tensor, form)
        return ordered(replace(made, formats=tuple(formats.items())))
    sizes = {name: int(n.value) for name, n in made.sizes if isinstance(n, Const)}
    own = {f"{tensor}{number + 1}" for number in range(len(made.format(tensor).levels))}
    counts = {
        level: int(n.value) for level, n in made.counts if isinstance(n, Const) and level not in own
    }
    bare = _bare(made.assignment, formats, sizes, counts, made.dtype, made.structure, made.name)
    return replace(ordered(bare), assembly=made.assembly)


def new_workspace(made: Program) -> str:
    """A name for a workspace that nothing of the program has: ``w``, ``w2``, ``w3``."""
    taken = {made.name, *made.extents, *(each.name for each in made.workspaces)}
    taken |= {name for name, _ in (*made.formats, *made.sizes)}
    taken |= {tensor.name for tensor in made.interface or made.arguments()}
    numbered = (f"w{number}" if number > 1 else "w" for number in count(1))
    return next(name for name in numbered if name not in taken)


def gathered(made: Program, var: str) -> Program:
    """The program with the target gathered over one variable in a workspace that keeps a list of
    what is in use.

    Raises:
        SparseError: if the target has no such index, or one that is not its last.
    """
    target = made.assignment.target
    levels = made.format(target.tensor).levels
    loops = [made.loop(target, number) for number in range(len(levels))]
    is_whole = made.loops(var) == (var,) and var in target.indices
    if not loops or loops[-1] != var or not is_whole:
        last = loops[-1] if loops else "none"
        raise SparseError(
            f"workspace: expected the last index by which {access_text(target)} is stored "
            f"({last}), not blocked, found {var}"
        )
    gathered_in = [each.target.tensor for each in assigns(made.concrete)]
    for known in made.workspaces:
        if known.listed and known.name in gathered_in:
            raise SparseError(
                f"workspace: expected a result that is not gathered yet, found {known.name}"
            )
    name = new_workspace(made)
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
    sizes = _whole("sizes", sizes, variables)
    if dtype not in DTYPES:
        raise SparseError(f"dtype: expected {' or '.join(DTYPES)}, found {dtype!r}")
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
                numbers[level] = symbolic(level)
    for level in numbers:
        if level in measures:
            raise SparseError(
                f"{level}: expected another name of the index, found that of a level, by which its "
                "size is named"
            )
    stated = _whole("counts", counts, numbers)
    numbers |= {level: whole(number) for level, number in stated.items()}
    free += [f"{level}_size" for level in numbers if level not in counts]
    return replace(found, counts=tuple(numbers.items()), extents=tuple(dict.fromkeys(free)))


def _whole(what: str, given: Mapping[str, int], known: Iterable[str]) -> dict[str, int]:
    """Numbers of at least 0 by known names, as Python's own.

    Raises:
        SparseError: for another name or number.
    """
    names, out = list(known), {}
    for name, number in given.items():
        if name not in names:
            listed = ", ".join(names) or "none"
            raise SparseError(f"{what}: expected some of {listed}, found {name}")
        try:
            out[name] = operator.index(number)
        except TypeError:
            raise SparseError(f"{what}: {name}: expected a number, found {number!r}") from None
        if out[name] < 0:
            raise SparseError(f"{what}: {name}: expected at least 0, found {number}")
    return out
