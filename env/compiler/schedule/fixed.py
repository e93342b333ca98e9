"""Numbers that are read from memory and that a statement leaves alone, as variables: how many
elements a row of a sparse matrix has, while the row is gone through.

isl knows nothing of memory. With such a number in a variable it knows what follows from its being
one number, whatever that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Cast,
    Expr,
    For,
    Load,
    Procedure,
    Stmt,
    Var,
    children,
    map_statements,
    rebuild,
    statements,
    walk,
)
from kernelwright.env.compiler.ir.queries import tensors_by_name, writes
from kernelwright.env.compiler.schedule.edit import no_loads, taken_names


def no_changing_loads(op: str, loop: For) -> None:
    """Refuse to evaluate the extent of a loop again where an iteration may have changed it.

    Raises:
        ScheduleError: if it reads a tensor that the loop writes.
    """
    for part in walk(loop.extent):
        if isinstance(part, Load) and writes(loop.body, part.tensor):
            no_loads(op, f"the extent of {loop.var}", part)


def fixed_numbers(roots: Iterable[Expr], node: Stmt, procedure: Procedure) -> dict[Expr, Var]:
    """A variable for every whole number in extents, indices and guards that is read from memory and
    is one and the same all the while that a statement runs.
    """
    own = {each.var for each in statements(node) if isinstance(each, For)}
    taken = taken_names(procedure) | own
    dtypes = {name: tensor.dtype for name, tensor in tensors_by_name(procedure).items()}
    found = dict.fromkeys(
        part
        for root in roots
        for part in _read(root)
        if _is_whole(part, dtypes) and _is_fixed(part, node, own)
    )
    free = (name for i in count() if (name := f"read{i}") not in taken)
    return {part: Var(name) for part, name in zip(found, free, strict=False)}


def _read(node: Expr) -> Iterator[Expr]:
    """The operands of arithmetic that read memory."""
    if isinstance(node, Binary):
        yield from _read(node.left)
        yield from _read(node.right)
    elif any(isinstance(part, Load) for part in walk(node)):
        yield node


def _is_whole(read: Expr, dtypes: Mapping[str, str]) -> bool:
    """Whether a number is an ``int64``, as isl's are: floats have a NaN, others wrap around."""
    match read:
        case Cast("int64", _):
            return True
        case Load(tensor, _):
            return dtypes.get(tensor) == "int64"
    return False


def _is_fixed(read: Expr, node: Stmt, own: set[str]) -> bool:
    return not any(
        (isinstance(part, Load) and writes(node, part.tensor))
        or (isinstance(part, Var) and part.name in own)
        for part in walk(read)
    )


def replaced(node: Stmt, values: Mapping[Expr, Expr]) -> Stmt:
    """A statement with some expressions in the place of others."""
    return map_statements(node, lambda each: put(each, values))


def put(node: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """An expression with some expressions in the place of others."""
    if node in values:
        return values[node]
    below = children(node)
    new = tuple(put(child, values) for child in below)
    changed = any(a is not b for a, b in zip(new, below, strict=True))
    return rebuild(node, new) if changed else node
