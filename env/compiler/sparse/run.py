"""Running a statement on tensors: arguments from operands, and the target from what comes back.

A sparse target's size is found in one of two ways. ``count`` runs the loops twice, first only to
count; ``grow`` starts from a guess with guarded writes and runs again if it was too small. What is
assembled once can be computed again and again: `assemble` makes the levels alone, `compute` the
values of levels that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import Procedure, Var
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.format import Format, Mode
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.notation import Assignment, accesses, extents
from kernelwright.env.compiler.sparse.parse import parse
from kernelwright.env.compiler.sparse.program import DTYPES, Program, SparseError
from kernelwright.env.compiler.sparse.storage import SparseTensor

Operand: TypeAlias = SparseTensor | NDArray[Any]
Runner: TypeAlias = Callable[
    [Procedure, Mapping[str, NDArray[Any]], Mapping[str, int]], Mapping[str, NDArray[Any]]
]
WAYS = ("count", "grow")


def evaluate(
    statement: str | Assignment,
    operands: Mapping[str, Operand],
    target: str | Format | None = None,
    *,
    structure: str | None = None,
    order: tuple[str, ...] | None = None,
    way: str = "count",
    guess: int = 16,
    runner: Runner = interpret,
    change: Callable[[Program], Program] = lambda found: found,
) -> Operand:
    """The target of a statement: a `SparseTensor`, or an array if its format is dense, as it is if
    none is given. With ``structure`` the target has the format and the levels of that operand.

    ``change`` rewrites the program before it is lowered, ``guess`` is how many positions of a level
    ``grow`` starts from.

    Raises:
        SparseError: if an operand is missing, or the statement cannot be lowered.
        NotationError: if sizes disagree.
    """
    if way not in WAYS:
        raise SparseError(f"way: expected {' or '.join(WAYS)}, found {way!r}")
    if guess < 0:
        raise SparseError(f"guess: expected a number of at least 0, found {guess}")
    if structure is not None and target is not None:
        raise SparseError(
            f"target: expected none beside the structure of {structure}, found {target}; convert "
            "the result"
        )
    wanted = "dense" if target is None else target
    made, arguments, values = _prepared(statement, operands, wanted, structure, order, change)
    name = made.assignment.target.tensor
    shape = _shape(made, values)
    if made.is_plain(name):
        out = runner(lower(made), arguments, _used(made, values))[name]
        return np.transpose(out, np.argsort(_modes(made, name)))
    if structure is not None:
        like = operands[structure]
        assert isinstance(like, SparseTensor)
        found = runner(lower(made), arguments, _used(made, values))[f"{name}_vals"]
        return SparseTensor(like.format, like.shape, like.arrays, found)
    return _assembled(made, arguments, values, shape, way, guess, runner)


def assemble(
    statement: str | Assignment,
    operands: Mapping[str, Operand],
    target: str | Format,
    *,
    order: tuple[str, ...] | None = None,
    runner: Runner = interpret,
    change: Callable[[Program], Program] = lambda found: found,
) -> SparseTensor:
    """The target's levels, with zeros for values: what `compute` fills.

    Raises:
        SparseError: as `evaluate`; or if the target's format is dense.
    """

    def levels_only(made: Program) -> Program:
        return replace(change(made), assembly="assemble")

    found = evaluate(statement, operands, target, order=order, runner=runner, change=levels_only)
    if not isinstance(found, SparseTensor):
        raise SparseError(f"assemble: expected a sparse target, found {target}")
    return found


def compute(
    statement: str | Assignment,
    operands: Mapping[str, Operand],
    levels: SparseTensor,
    *,
    order: tuple[str, ...] | None = None,
    runner: Runner = interpret,
    change: Callable[[Program], Program] = lambda found: found,
) -> SparseTensor:
    """The target on levels that were assembled before, for operands with the same structure.

    Raises:
        SparseError: as `evaluate`; or if the operands give the target other levels.
    """

    def values_only(made: Program) -> Program:
        return replace(change(made), assembly="compute")

    made, arguments, values = _prepared(
        statement, operands, levels.format, None, order, values_only
    )
    name = made.assignment.target.tensor
    if made.is_plain(name):
        raise SparseError(f"compute: expected a sparse target, found {levels.format.words}")
    if _shape(made, values) != levels.shape:
        raise SparseError(
            f"compute: expected levels of shape {_shape(made, values)}, found {levels.shape}"
        )
    own = {k: v for k, v in levels.arguments(name).items() if k != f"{name}_vals"}
    values |= {f"{k[:-4]}_size": array.size for k, array in own.items() if k.endswith("_crd")}
    out = runner(lower(made), {**arguments, **own}, _used(made, values))
    if wrong := int(out[f"{name}_wrong"][0]):
        raise SparseError(
            f"compute: expected operands that give {name} the levels that were assembled, found "
            f"{wrong} positions that differ"
        )
    return SparseTensor(levels.format, levels.shape, levels.arrays, out[f"{name}_vals"])


def _prepared(
    statement: str | Assignment,
    operands: Mapping[str, Operand],
    target: str | Format,
    structure: str | None,
    order: tuple[str, ...] | None,
    change: Callable[[Program], Program],
) -> tuple[Program, dict[str, NDArray[Any]], dict[str, int]]:
    """The program, the operands' arrays, and the sizes of indices and levels."""
    assignment = parse(statement) if isinstance(statement, str) else statement
    name = assignment.target.tensor
    _check_operands(assignment, operands, structure)
    shapes = {name: tuple(operand.shape) for name, operand in operands.items()}
    formats: dict[str, str | Format] = {
        name: operand.format
        for name, operand in operands.items()
        if isinstance(operand, SparseTensor)
    }
    if structure is None:
        formats[name] = target
    sizes = extents(assignment, shapes)
    made = change(
        program(assignment, formats, order=order, structure=structure, dtype=_dtype(operands))
    )
    values = {f"{v}_size": n for v, n in sizes.items()}
    arguments: dict[str, NDArray[Any]] = {}
    for tensor, operand in operands.items():
        arguments |= _arrays(made, tensor, operand, values)
    return made, arguments, values


def _shape(made: Program, values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(values[f"{v}_size"] for v in made.assignment.target.indices)


def _check_operands(
    assignment: Assignment, operands: Mapping[str, Operand], structure: str | None
) -> None:
    """Exactly the operands that the statement names; the structure is that of a sparse one."""
    expected = dict.fromkeys(access.tensor for access in accesses(assignment.expression))
    for name in expected:
        if name not in operands:
            raise SparseError(f"operands: expected {', '.join(expected)}, found no {name}")
    for name in operands:
        if name not in expected:
            raise SparseError(f"operands: expected {', '.join(expected)}, found {name}, too")
    for name, operand in operands.items():
        if not isinstance(operand, SparseTensor | np.ndarray | np.generic):
            raise SparseError(
                f"{name}: expected an array or a SparseTensor, found {type(operand).__name__}; "
                "np.array makes one of numbers, from_scipy of a matrix"
            )
    if structure is not None and not isinstance(operands.get(structure), SparseTensor):
        sparse = [name for name in expected if isinstance(operands[name], SparseTensor)]
        raise SparseError(
            f"structure: expected a sparse operand ({', '.join(sparse) or 'there is none'}), "
            f"found {structure}"
        )


def _arrays(
    made: Program, tensor: str, operand: Operand, values: dict[str, int]
) -> dict[str, NDArray[Any]]:
    """An operand's arrays as the kernel names them; the positions of levels go to ``values``."""
    if not isinstance(operand, SparseTensor):
        return {tensor: np.transpose(operand, _modes(made, tensor))}
    if made.is_plain(tensor):
        return {tensor: operand.values.reshape(operand.format.extents(operand.shape))}
    own = operand.arguments(tensor)
    for level, _ in made.counts:
        if f"{level}_crd" in own:
            values[f"{level}_size"] = own[f"{level}_crd"].size
    return own


def _assembled(
    made: Program,
    arguments: Mapping[str, NDArray[Any]],
    values: dict[str, int],
    shape: tuple[int, ...],
    way: str,
    guess: int,
    runner: Runner,
) -> SparseTensor:
    name = made.assignment.target.tensor
    form = made.format(name)
    levels = [f"{name}{number}" for number in range(1, len(form.levels) + 1)]
    own = [level for level in levels if level in dict(made.counts)]
    limit = int(np.iinfo(np.dtype(form.index_dtype)).max)
    _check_capacity(form, limit, "coordinates", {"a mode": max(form.extents(shape), default=0)})
    if way == "count":
        counting = replace(made, assembly="counts", counts=_free(made, own))
        told = runner(lower(counting), arguments, _used(counting, values))[f"{name}_counts"]
        counted = _with_counts(own, name, values, told)
        _check_capacity(form, limit, "positions", {at: counted[f"{at}_size"] for at in own})
        return _exact(made, arguments, counted, shape, runner)
    _check_capacity(form, limit, "positions", dict.fromkeys(own, guess))
    tried = {**values, **{f"{level}_size": guess for level in own}}
    guarded = replace(made, assembly="guarded")
    while True:
        out = runner(lower(guarded), arguments, _used(guarded, tried))
        needed = _with_counts(own, name, tried, out[f"{name}_counts"])
        if all(needed[f"{level}_size"] <= tried[f"{level}_size"] for level in own):
            return _tensor(made, form, shape, out)
        _check_capacity(form, limit, "positions", {at: needed[f"{at}_size"] for at in own})
        tried = {
            k: min(max(2 * n, needed[k]), limit) if needed[k] > n else n for k, n in tried.items()
        }


def _check_capacity(form: Format, limit: int, what: str, sizes: Mapping[str, int]) -> None:
    """Refuse more positions or coordinates than the dtype of indices numbers."""
    for where, size in sizes.items():
        if size > limit:
            raise SparseError(
                f"{form.words}: expected at most {limit} {what} in {form.index_dtype}, found "
                f"{size} of {where}; take a format of int64"
            )


def _exact(
    made: Program,
    arguments: Mapping[str, NDArray[Any]],
    values: dict[str, int],
    shape: tuple[int, ...],
    runner: Runner,
) -> SparseTensor:
    out = runner(lower(made), arguments, _used(made, values))
    return _tensor(made, made.format(made.assignment.target.tensor), shape, out)


def _tensor(
    made: Program, form: Format, shape: tuple[int, ...], out: Mapping[str, NDArray[Any]]
) -> SparseTensor:
    """The target from a kernel's outputs, checked."""
    name = made.assignment.target.tensor
    arrays: dict[int, dict[str, NDArray[Any]]] = {}
    above = 1
    for number, ((kind, _), extent) in enumerate(
        zip(form.levels, form.extents(shape), strict=True), start=1
    ):
        prefix = f"{name}{number}_"
        own = {k[len(prefix) :]: v for k, v in out.items() if k.startswith(prefix)}
        if "pos" in own:
            own["pos"] = own["pos"][: above + 1]
            above = int(own["pos"][-1])
        elif kind.full:
            above *= extent
        arrays[number] = own
    if made.assembly == "assemble":
        return SparseTensor.checked(form, shape, arrays, np.zeros(above, made.dtype))
    return SparseTensor.checked(form, shape, arrays, out[f"{name}_vals"])


def _with_counts(
    own: list[str], name: str, values: Mapping[str, int], told: NDArray[Any]
) -> dict[str, int]:
    counts = {f"{level}_size": int(told[int(level[len(name) :]) - 1]) for level in own}
    return {**values, **counts}


def _free(made: Program, own: list[str]) -> tuple[tuple[str, Any], ...]:
    """Counts as they are, those of the target as extents that nothing needs."""
    return tuple((level, Var(f"{level}_size") if level in own else n) for level, n in made.counts)


def _used(made: Program, values: Mapping[str, int]) -> dict[str, int]:
    return {extent: values.get(extent, 0) for extent in made.extents}


def _modes(made: Program, tensor: str) -> tuple[int, ...]:
    """The modes of a dense tensor in the order of its storage."""
    levels = made.format(tensor).levels
    return tuple(dimension.mode for _, dimension in levels if isinstance(dimension, Mode))


def _dtype(operands: Mapping[str, Operand]) -> str:
    found = {
        str((o.values if isinstance(o, SparseTensor) else o).dtype): n for n, o in operands.items()
    }
    if len(found) != 1:
        listed = ", ".join(f"{dtype} ({name})" for dtype, name in found.items()) or "none"
        raise SparseError(f"expected operands of one dtype, found {listed}")
    (dtype,) = found
    if dtype not in DTYPES:
        raise SparseError(f"expected operands of {' or '.join(DTYPES)}, found {dtype}")
    return dtype
