"""A sparse matrix times a vector, the matrix in compressed sparse rows (CSR): row i holds
``vals[pos[i]:pos[i+1]]`` in the columns ``crd[pos[i]:pos[i+1]]``, ascending and distinct.

Drawn matrices have rows of very different length, and about one row in eight is empty. The error
bound is that of an inner product of a row's terms: min(n, 4 √n) u of |A||x|; an empty row is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Cast,
    Const,
    Expr,
    For,
    Load,
    Stmt,
    Store,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.options import OptionError
from kernelwright.env.problems.definition import FLOATS, fixed_extents, plain_c
from kernelwright.env.problems.rounding import SUMMATION, floats, growth, unit
from kernelwright.env.problems.shapes import Extent, compulsory_bytes, least, workload
from kernelwright.env.types import (
    STRESSES,
    Arrays,
    ErrorModel,
    Library,
    Problem,
    TensorSpec,
    Workload,
)

EMPTY_ROWS = 1 / 8
Whole = NDArray[np.int64]


def spmv(
    *,
    rows: Extent = 1 << 14,
    cols: Extent = 1 << 14,
    nnz: Extent = 1 << 18,
    dtype: Literal["float32", "float64"] = "float32",
) -> Problem:
    """y[i] = Σ_p vals[p] x[crd[p]] over pos[i] ≤ p < pos[i + 1]."""
    room, most = least(rows) * least(cols), nnz if isinstance(nnz, int) else nnz.high
    if most > room:
        ranged = any(not isinstance(extent, int) for extent in (rows, cols))
        what = "the least rows x cols" if ranged else "rows x cols"
        raise OptionError("nnz", f"at most {what} = {room}", str(most))
    tensors = (
        TensorSpec("pos", ("rows + 1",), "int32", "input"),
        TensorSpec("crd", ("nnz",), "int32", "input"),
        TensorSpec("vals", ("nnz",), dtype, "input"),
        TensorSpec("x", ("cols",), dtype, "input"),
        TensorSpec("y", ("rows",), dtype, "output"),
    )

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        extents = workload.fixed
        lengths = _row_lengths(extents["rows"], extents["cols"], extents["nnz"], rng)
        return {
            "pos": np.concatenate(([0], np.cumsum(lengths))).astype(np.int32),
            "crd": _columns(lengths, extents["cols"], rng).astype(np.int32),
            "vals": rng.standard_normal(extents["nnz"], FLOATS[dtype]),
            "x": rng.standard_normal(extents["cols"], FLOATS[dtype]),
        }

    def body(extents: Mapping[str, int]) -> Stmt:
        return _body(extents, dtype)

    return Problem(
        name="spmv",
        version=1,
        tensors=tensors,
        workloads=(workload(rows=rows, cols=cols, nnz=nnz),),
        error_model=ErrorModel(unit(dtype), f"{SUMMATION} and 3.1 by row, times |A||x|"),
        reference=_reference,
        inputs=inputs,
        flops=lambda workload: 2 * workload.fixed["nnz"],
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template"),
        magnitude=_magnitude,
        definition=fixed_extents("spmv", tensors, body),
        plain_c=plain_c("spmv", dtype),
        library=Library("SciPy", "kernelwright.env.problems.library:spmv", "scipy"),
        stress=STRESSES,
        exact_on_integers=True,
    )


def _body(extents: Mapping[str, int], dtype: str) -> Stmt:
    def stored(tensor: str, place: Expr) -> Expr:
        return Cast("int64", Load(tensor, (place,)))

    i, first = Var("i"), stored("pos", Var("i"))
    place = Binary("add", first, Var("p"))
    length = Binary("sub", stored("pos", Binary("add", i, whole(1))), first)
    term = Binary("mul", Load("vals", (place,)), Load("x", (stored("crd", place),)))
    row = For("p", length, Store("y", (i,), term, "add"))
    return For("i", whole(extents["rows"]), Block((Store("y", (i,), Const(0.0, dtype)), row)))


def _row_lengths(rows: int, cols: int, nnz: int, rng: np.random.Generator) -> Whole:
    """Exponentially distributed lengths, some zero, none longer than a row, that sum to ``nnz``."""
    if nnz > rows * cols:
        raise ValueError(f"spmv: expected nnz of at most {rows} x {cols}, found {nnz}")
    weights = rng.exponential(size=rows) * (rng.random(rows) >= EMPTY_ROWS)
    if not weights.any():
        weights[:] = 1
    lengths: Whole = np.zeros(rows, np.int64)
    while missing := nnz - int(lengths.sum()):
        # What no longer fits a row goes to the rows with room, the more the more they have.
        lengths = np.minimum(lengths + rng.multinomial(missing, weights / weights.sum()), cols)
        weights = (cols - lengths).astype(np.float64)
    return lengths


def _columns(lengths: Whole, cols: int, rng: np.random.Generator) -> Whole:
    """Ascending distinct columns: each row is cut into as many parts as it has elements, and one
    column is drawn from each.
    """
    length = np.repeat(lengths, lengths)
    place = np.arange(length.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    low, high = place * cols // length, (place + 1) * cols // length
    return rng.integers(low, high)


def _row_sums(pos: Whole, terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over rows; an empty one is 0, where ``np.add.reduceat`` would give an element."""
    row = np.repeat(np.arange(pos.size - 1), np.diff(pos))
    out: NDArray[np.float64] = np.bincount(row, terms, pos.size - 1).astype(np.float64)
    return out


def _reference(arrays: Arrays) -> Arrays:
    given, pos, crd = floats(arrays), arrays["pos"].astype(np.int64), arrays["crd"]
    return {"y": _row_sums(pos, given["vals"] * given["x"][crd.astype(np.int64)])}


def _magnitude(arrays: Arrays) -> Arrays:
    given, pos, crd = floats(arrays), arrays["pos"].astype(np.int64), arrays["crd"]
    terms = abs(given["vals"]) * abs(given["x"])[crd.astype(np.int64)]
    return {"y": growth(np.diff(pos).astype(np.float64)) * _row_sums(pos, terms)}
