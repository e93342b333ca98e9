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
from kernelwright.env.compiler.sparse.named import as_format, parse_format
from kernelwright.env.compiler.sparse.storage import SparseTensor, pack


def from_scipy(
    matrix: Any, form: Format | str | None = None, duplicates: str | None = None
) -> SparseTensor:
    """A matrix of scipy.sparse (any kind) in a format; without one, in the format of its own kind
    (CSR, CSC, COO, BSR, DIA; CSR for others).

    Elements may come in any order; the same coordinates twice, which SciPy means as a sum, are
    refused unless ``duplicates`` says what to do (see `pack`). CSR and CSC that are in order and
    have the dtype of indices are shared, not copied.

    Raises:
        StorageError: see `pack`, and arrays that are no tensor of their format.
    """
    if not hasattr(matrix, "format"):
        raise StorageError(
            f"expected a matrix of scipy.sparse, found {type(matrix).__name__}; from_dense takes "
            "arrays"
        )
    if matrix.ndim != 2:
        raise StorageError(f"expected a matrix of two modes, found {matrix.ndim}")
    form = _own_format(matrix) if form is None else as_format(form, 2)
    row = {"csr": 0, "csc": 1}.get(matrix.format)
    if row is None:
        listed = matrix.tocoo()
        coordinates = np.array([listed.row, listed.col], np.int64)
        return pack(form, listed.shape, coordinates, listed.data, duplicates)
    # SciPy's own conversions believe the arrays: they are checked first.
    arrays = {2: {"pos": matrix.indptr, "crd": matrix.indices}}
    plain = compressed_rows(row, form.index_dtype)
    if form == plain and _is_in_order(matrix):
        return SparseTensor.checked(plain, matrix.shape, arrays, matrix.data)
    dtype = "int64" if matrix.indices.dtype.itemsize > 4 else "int32"
    levels = ((Dense(), Mode(row)), (Compressed(ordered=False, unique=False), Mode(1 - row)))
    loose = SparseTensor.checked(Format(levels, dtype), matrix.shape, arrays, matrix.data)
    return pack(form, loose.shape, *loose.coordinates_and_values(), duplicates)


def _own_format(matrix: Any) -> Format:
    text = matrix.format if matrix.format in ("csr", "csc", "coo", "dia") else "csr"
    if matrix.format == "bsr":
        rows, columns = matrix.blocksize
        text = f"bcsr({rows},{columns})"
    return parse_format(text)


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
    """Whether the elements of each row (column) ascend and are distinct: SciPy's own flag can be
    out of date, and its test believes the arrays.
    """
    pos, crd = np.asarray(matrix.indptr), np.asarray(matrix.indices)
    if crd.size < 2:
        return True
    descends = np.diff(crd) <= 0
    starts = pos[1:-1]
    inside = starts[(starts > 0) & (starts < crd.size)]
    descends[inside - 1] = False
    return not descends.any()
