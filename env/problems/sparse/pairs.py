"""Two sparse matrices of which it is fixed how many places both have, and how many one of them: so
their sum and their product have as many elements in every draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.sparse.levels.base import Whole
from kernelwright.env.options import OptionError
from kernelwright.env.problems.definition import FLOATS
from kernelwright.env.problems.sparse.build import matrix_draw
from kernelwright.env.problems.sparse.copies import FullError
from kernelwright.env.problems.sparse.operand import ATTEMPTS, Operand, operand
from kernelwright.env.types import Arrays, TensorSpec

# Both are there in the same format or in different ones: what can be merged in order.
MERGED = ("csr", "dcsr", "coo")


@dataclass(frozen=True, slots=True)
class Pair:
    """Matrices A and B with a union of ``nnz`` places, ``shared`` of them in both; the others are
    A's and B's in turns.
    """

    a: Operand
    b: Operand
    shared: int
    draw: Callable[[np.random.Generator], tuple[Whole, Whole]]

    def inputs(self, rng: np.random.Generator) -> Arrays:
        """Standard normal elements at places that are drawn until all copies have room.

        Raises:
            ValueError: if they never have.
        """
        for _ in range(ATTEMPTS):
            out: Arrays = {}
            try:
                for each, places in zip((self.a, self.b), self.draw(rng), strict=True):
                    values = np.asarray(rng.standard_normal(places.shape[1], FLOATS[each.dtype]))
                    out |= each.arrays(places, values)
            except FullError as error:
                why = str(error)
            else:
                return out
        raise ValueError(f"A, B: expected room for one of {ATTEMPTS} draws, found {why}")

    def joined(self, arrays: Arrays) -> tuple[Whole, Whole, NDArray[np.float64], NDArray[np.bool_]]:
        """Rows and columns of the union in order, the values of A and B there (2 × places, 0 where
        there is none), and which are there.
        """
        cols = self.a.shape[1]
        keys, values = [], []
        for each in (self.a, self.b):
            (row, col), found = each.elements(arrays)
            keys.append(row * cols + col)
            values.append(found)
        union = np.unique(np.concatenate(keys))
        out = np.zeros((2, union.size))
        there = np.zeros((2, union.size), np.bool_)
        for line, (own, found) in enumerate(zip(keys, values, strict=True)):
            place = np.searchsorted(union, own)
            out[line, place] = found
            there[line, place] = True
        row, col = np.divmod(union, cols)
        return row, col, out, there


def pair(
    kind: str, rows: int, cols: int, nnz: int, dtype: str, formats: list[str] | str | None
) -> Pair:
    """The matrices; one place in four is shared, at least one.

    Raises:
        OptionError: if there are not so many places.
    """
    if nnz < 3:
        raise OptionError("nnz", "at least 3: of A, of B and of both", str(nnz))
    union = matrix_draw(kind, rows, cols, nnz)
    shared = max(nnz // 4, 1)
    only_a = (nnz - shared) // 2

    def draw(rng: np.random.Generator) -> tuple[Whole, Whole]:
        places = union(rng)
        owner = np.zeros(nnz, np.int8)
        order = rng.permutation(nnz)
        owner[order[:only_a]] = 1
        owner[order[only_a : nnz - shared]] = 2
        return places[:, owner != 2], places[:, owner != 1]

    a = operand("A", (rows, cols), dtype, lambda rng: draw(rng)[0], MERGED, formats)
    b = operand("B", (rows, cols), dtype, lambda rng: draw(rng)[1], MERGED, formats)
    return Pair(a, b, shared, draw)


def csr_tensors(name: str, nnz: str | int, dtype: str) -> tuple[TensorSpec, ...]:
    """The arrays of a result in CSR."""
    return (
        TensorSpec(f"{name}2_pos", ("rows + 1",), "int32", "output"),
        TensorSpec(f"{name}2_crd", (nnz,), "int32", "output"),
        TensorSpec(f"{name}_vals", (nnz,), dtype, "output"),
    )


def csr_result(
    name: str, rows: int, room: int, row: Whole, col: Whole, values: NDArray[np.float64]
) -> Arrays:
    """A result in CSR from its elements in order, whole numbers in float64 as all is; what lies
    behind the last is zero.
    """
    pos = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=rows))))
    more = room - row.size
    return {
        f"{name}2_pos": pos.astype(np.float64),
        f"{name}2_crd": np.concatenate((col.astype(np.float64), np.zeros(more))),
        f"{name}_vals": np.concatenate((values, np.zeros(more))),
    }
