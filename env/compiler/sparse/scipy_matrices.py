"""Matrices of scipy.sparse in and out."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.env.compiler.sparse.format import (
    Diagonal,
    Format,
    Inner,
    Mode,
    Outer,
)
from kernelwright.env.compiler.sparse.levels.base import StorageError
from kernelwright.env.compiler.sparse.levels.compressed import Compressed
from kernelwright.env.compiler.sparse.levels.dense import Dense
from kernelwright.env.compiler.sparse.storage import SparseTensor, pack


def from_scipy(matrix: Any, form: Format, duplicates: str | None = None) -> SparseTensor:
    """A matrix of scipy.sparse (any kind) in a format. Elements come in any order; the same
    coordinates twice, which SciPy means as a sum, are refused unless ``duplicates`` says what to do
    (see `pack`). Rows of CSR that are in order are shared, not copied, if the dtypes agree.

    Raises:
        StorageError: see `pack`, and arrays that are no tensor of their format.
    """
    if matrix.ndim != 2:
        raise StorageError(f"expected a matrix of two modes, found {matrix.ndim}")
    mode = {"csr": 0, "csc": 1}.get(matrix.format)
    if mode is not None:
        plain = compressed_rows(mode, form.index_dtype)
        if _is_in_order(matrix):
            arrays = {2: {"pos": matrix.indptr, "crd": matrix.indices}}
            tensor = SparseTensor.checked(plain, matrix.shape, arrays, matrix.data)
            return tensor if form == plain else tensor.convert(form, duplicates)
    listed = matrix.tocoo()
    coordinates = np.array([listed.row, listed.col], np.int64)
    return pack(form, listed.shape, coordinates, listed.data, duplicates)


def compressed_rows(row: int, index_dtype: str) -> Format:
    """CSR (0) and CSC (1)."""
    levels = ((Dense(), Mode(row)), (Compressed(), Mode(1 - row)))
    return Format(levels, index_dtype)


def to_scipy(tensor: SparseTensor) -> Any:
    """A matrix as SciPy's sparse array of the same kind (CSR, CSC, BSR, DIA); of other formats, a
    coordinate list. CSR and CSC share their arrays.

    Raises:
        StorageError: if the tensor has not two modes.
    """
    from scipy import sparse

    form, shape = tensor.format, tensor.shape
    if form.order != 2:
        raise StorageError(f"expected a matrix of two modes, found {form.order}")
    for row, kind in ((0, sparse.csr_array), (1, sparse.csc_array)):
        if form == compressed_rows(row, form.index_dtype):
            own = tensor.arrays[2]
            return kind((tensor.values, own["crd"], own["pos"]), shape=shape)
    coordinates, values = tensor.coordinates_and_values()
    listed = sparse.coo_array((values, tuple(coordinates)), shape=shape)
    match [dimension for _, dimension in form.levels]:
        case [Outer(0, rows), Outer(1, columns), Inner(), Inner()] if not (
            shape[0] % rows or shape[1] % columns
        ):
            return listed.tobsr((rows, columns))
        case [Diagonal(0, 1), Mode(0), Mode(1)]:
            return listed.todia()
    return listed


def _is_in_order(matrix: Any) -> bool:
    """Whether the elements of each row (column) ascend and are distinct. SciPy's own flags can be
    out of date, and its check reads what the arrays say: look at the arrays themselves.
    """
    pos, crd = np.asarray(matrix.indptr), np.asarray(matrix.indices)
    if crd.size < 2:
        return True
    descends = np.diff(crd) <= 0
    starts = pos[1:-1]
    inside = starts[(starts > 0) & (starts < crd.size)]
    descends[inside - 1] = False
    return not descends.any()
