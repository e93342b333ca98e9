"""Directives of the sparse front end: they rewrite the statement before its loops are made.

Each takes the `Program` that a procedure was lowered from and gives the procedure that it is
lowered to then. What a loop directive can do (splitting a loop over positions, unrolling, vectors,
threads over rows) is done to the loops afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError, did_you_mean
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.sparse.build import (
    gathered,
    new_workspace,
    ordered,
    restored,
)
from kernelwright.env.compiler.sparse.format import Format, FormatError
from kernelwright.env.compiler.sparse.levels.base import StorageError
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.named import format_text, parse_format
from kernelwright.env.compiler.sparse.notation import NotationError
from kernelwright.env.compiler.sparse.order import append_conflict, loop_variables
from kernelwright.env.compiler.sparse.parse import parse_expression
from kernelwright.env.compiler.sparse.pattern import check_gathered_pattern, check_order_pattern
from kernelwright.env.compiler.sparse.precompute import precomputed
from kernelwright.env.compiler.sparse.program import Program, SparseError


def storage(program: Program, tensor: str, form: str) -> Procedure:
    """Read a tensor from its copy in another format; the loops follow the formats anew.

    Before::

        for i in n:
          for j in A2_pos[i + 1] - A2_pos[i]:
            y[i] += A_vals[A2_pos[i] + j] * x[A2_crd[A2_pos[i] + j]]

    After ``storage("A", "dia")``::

        for A_diagonal in A1_pos[1] - A1_pos[0]:
          for i in …:
            y[start + i] += A_vals[A_diagonal * n + start + i] * x[…]

    Raises:
        ScheduleError: if the statement has no such tensor or no copy of it in the format, loops
            were already ordered, or the formats do not go together.
    """
    return _made("storage", lambda: restored(program, tensor, stored_format(program, tensor, form)))


def order(program: Program, var: str, *others: str) -> Procedure:
    """Visit coordinates in another order of the loop variables, outermost first.

    Before::

        for i in n:
          for j in m:
            for k in K2_pos[i + 1] - K2_pos[i]: …

    After ``order("i", "k", "j")``::

        for i in n:
          for k in K2_pos[i + 1] - K2_pos[i]:
            for j in m: …

    A sparse result that would be appended to inside a summed loop is gathered in a workspace, as
    without the directive.

    Raises:
        ScheduleError: if a variable is missing, a format wants another order, or there are
            workspaces already that were asked for.
    """

    def make() -> Program:
        _check_texts("loops", (var, *others))
        # What is gathered without a directive is not in the way.
        if program.workspaces and ordered(program).concrete != program.concrete:
            names = ", ".join(each.name for each in program.workspaces)
            raise SparseError(f"expected the order before any workspace, found {names}")
        made = ordered(program, (var, *others))
        conflict = append_conflict(made, (var, *others))
        made = made if conflict is None else gathered(made, conflict[1])
        check_order_pattern(program, made)
        return made

    return _made("order", make)


def workspace(program: Program, var: str) -> Procedure:
    """Gather a row of a sparse result in a dense workspace over ``var``, which remembers what is in
    use, and append it from there in order (Gustavson 1978).

    Before::

        append to C in the order of the loops

    After ``workspace("j")``::

        for k …: for j …: w[j] += …
        for j in list of w: append w[j] to C

    Raises:
        ScheduleError: if the result is not stored by ``var`` last, or its other loops are not
            outermost.
    """

    def make() -> Program:
        made = gathered(program, var)
        check_gathered_pattern(program, var)
        return made

    return _made("workspace", make)


def precompute(program: Program, var: str, part: str, *indices: str) -> Procedure:
    """Make a part of a product inside the loop over ``var`` first, in a dense workspace over
    ``indices``. Sums are grouped otherwise then.

    Before::

        for j …: for k …: for r …: M[i, r] += T[…] * C[j, r] * D[k, r]

    After ``precompute("j", "T(i,j,k) * D(k,r)", "r")``::

        for j …:
          for k …: for r …: w[r] += T[…] * D[k, r]
          for r …: M[i, r] += w[r] * C[j, r]

    Raises:
        ScheduleError: if there is no such loop or product, or the sum does not split so.
    """

    def make() -> Program:
        _check_texts("a part and indices", (part, *indices))
        return precomputed(program, var, parse_expression(part), indices, new_workspace(program))

    return _made("precompute", make)


def split_coordinates(program: Program, var: str, size: int) -> Procedure:
    """Visit a loop in blocks of ``size`` coordinates, however many of them are stored.

    Before::

        for j in A2_pos[i + 1] - A2_pos[i]: …

    After ``split_coordinates("j", 64)``::

        for jb in ceil(m / 64):
          while the position's coordinate is below (jb + 1) * 64: …

    Raises:
        ScheduleError: if the loop merges several operands, or the size is not positive.
    """

    def make() -> Program:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise SparseError(f"expected a size of at least 1, found {size!r}")
        cut = {name for name, _ in program.blocks_of}
        left = [name for name in loop_variables(program) if name not in cut]
        if var not in left:
            known = ", ".join(left) or "none is left"
            raise SparseError(f"expected a loop that is not split yet ({known}), found {var}")
        return replace(program, blocks_of=(*program.blocks_of, (var, size)))

    return _made("split_coordinates", make)


def split_nonzeros(program: Program, tensor: str, parts: int) -> Procedure:
    """Cut the stored elements of a matrix into ``parts`` of equal length, whatever rows they are
    in, so that threads have the same work (Merrill and Garland, Merge-Based Parallel Sparse
    Matrix-Vector Multiplication, SC 2016). What a part adds to the row that it begins in is kept
    apart and added afterwards; the sum of a row is grouped otherwise then.

    Before::

        for i in n:
          for j in A2_pos[i + 1] - A2_pos[i]:
            y[i] += …

    After ``split_nonzeros("A", 8)``, of which ``parallel("part")`` runs the parts at once::

        for part in 8:
          the row of its first element, by bisection
          carry[part] += …    until that row ends
          y[row] += …         row by row, until the part ends
        for part in 8:
          y[first_row[part]] += carry[part]

    Raises:
        ScheduleError: if the tensor is not stored by rows (dense, then compressed), these are not
            the outermost loops, the result is sparse, or it is not indexed by the row.
    """

    def make() -> Program:
        if isinstance(parts, bool) or not isinstance(parts, int) or not 1 <= parts <= 4096:
            raise SparseError(f"expected 1 to 4096 parts, found {parts!r}")
        if program.balanced is not None:
            known, into = program.balanced
            raise SparseError(f"expected elements in one part, found those of {known} in {into}")
        return replace(program, balanced=(tensor, parts))

    return _made("split_nonzeros", make)


def stored_format(program: Program, tensor: str, text: str) -> Format:
    """A format from its text, if the tensor is there in it.

    Raises:
        SparseError: listing the tensors or formats that there are.
    """
    names = [name for name, _ in program.formats]
    if tensor not in names:
        hint = did_you_mean(tensor, names)
        raise SparseError(f"expected one of {', '.join(names)}, found {tensor!r}{hint}")
    _check_texts("a format", (text,))
    form = parse_format(text, program.format(tensor).order)
    choices = dict(program.choices).get(tensor)
    if choices is None and program.interface is not None:
        known = ", ".join(name for name, _ in program.choices) or "none"
        raise SparseError(f"expected a tensor with copies ({known}), found {tensor}")
    if choices is not None and form not in [choice for choice, _ in choices]:
        known = ", ".join(format_text(choice) for choice, _ in choices)
        raise SparseError(f"{tensor}: expected one of {known}, found {format_text(form)}")
    return form


def _check_texts(what: str, found: Sequence[object]) -> None:
    """Refuse arguments that are no text.

    Raises:
        SparseError: with the first of them.
    """
    for each in found:
        if not isinstance(each, str):
            raise SparseError(f"expected {what} as text, found {each!r}")


def _made(op: str, make: Callable[[], Program]) -> Procedure:
    """The procedure of a program, errors as those of a directive."""
    try:
        return lower(make())
    except (SparseError, NotationError, FormatError, StorageError) as error:
        raise ScheduleError(op, str(error).removeprefix(f"{op}: ")) from None
