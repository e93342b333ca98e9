"""SciPy's kernels for the sparse problems, over the arrays of the first copies without a copy.

Each function takes input and output arrays by name and writes the outputs (see
`kernelwright.env.problems.library`). SciPy leaves out sums that happen to be zero and appends in no
order; results are brought into order, and those that are left out are put back, as the problems
store them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def _csr(inputs: Arrays, prefix: str, shape: tuple[int, int]) -> Any:
    parts = inputs[f"{prefix}_vals"], inputs[f"{prefix}2_crd"], inputs[f"{prefix}2_pos"]
    return import_module("scipy.sparse").csr_array(parts, shape=shape, copy=False)


def spmv(inputs: Arrays, outputs: Arrays) -> None:
    """A CSR matrix times a vector."""
    shape = (outputs["y"].size, inputs["x"].size)
    outputs["y"][...] = _csr(inputs, "A_csr", shape) @ inputs["x"]


def spmm(inputs: Arrays, outputs: Arrays) -> None:
    """A CSR matrix times a dense one."""
    shape = (outputs["C"].shape[0], inputs["B"].shape[0])
    outputs["C"][...] = _csr(inputs, "A_csr", shape) @ inputs["B"]


def _columns(inputs: Arrays, prefix: str) -> int:
    return int(inputs[f"{prefix}2_crd"].max(initial=-1)) + 1


def _pair(inputs: Arrays) -> tuple[Any, Any]:
    rows = inputs["A_csr2_pos"].size - 1
    cols = max(_columns(inputs, "A_csr"), _columns(inputs, "B_csr"))
    return _csr(inputs, "A_csr", (rows, cols)), _csr(inputs, "B_csr", (rows, cols))


def _written(outputs: Arrays, found: Any) -> None:
    size = found.indices.size
    outputs["C2_pos"][...] = found.indptr
    for name, values in (("C2_crd", found.indices), ("C_vals", found.data)):
        outputs[name][:size] = values
        outputs[name][size:] = 0


def _with(values: Any, pattern: Any) -> Any:
    """The values at all places of a pattern, zeros too."""
    if values.nnz == pattern.nnz:
        return values
    pattern.data[:] = 0
    rows = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
    keys = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr)) * pattern.shape[1]
    place = np.searchsorted(keys + pattern.indices, rows * values.shape[1] + values.indices)
    pattern.data[place] = values.data
    return pattern


def _ones(matrix: Any) -> Any:
    kind = type(matrix)
    return kind((np.ones_like(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)


def spadd(inputs: Arrays, outputs: Arrays) -> None:
    """CSR + CSR."""
    a, b = _pair(inputs)
    found = a + b
    if found.nnz < outputs["C_vals"].size:
        found = _with(found, _ones(a) + _ones(b))
    _written(outputs, found)


def sparse_mul(inputs: Arrays, outputs: Arrays) -> None:
    """CSR times CSR, element by element."""
    a, b = _pair(inputs)
    found = a.multiply(b).tocsr()
    if found.nnz < outputs["C_vals"].size:
        found = _with(found, _ones(a).multiply(_ones(b)).tocsr())
    _written(outputs, found)


def spgemm(inputs: Arrays, outputs: Arrays) -> None:
    """CSR times CSR; the columns of each row sorted."""
    inner = inputs["B_csr2_pos"].size - 1
    a = _csr(inputs, "A_csr", (inputs["A_csr2_pos"].size - 1, inner))
    b = _csr(inputs, "B_csr", (inner, max(_columns(inputs, "B_csr"), 1)))
    found = a @ b
    # SciPy has room for all places and cuts off what sums that are zero left, as a view of the
    # whole unless that is more than half.
    whole = found.data if found.data.base is None else found.data.base
    is_short = whole.size > found.nnz or 2 * found.nnz < outputs["C_vals"].size
    found.sort_indices()
    if is_short:
        pattern = _ones(a) @ _ones(b)
        pattern.sort_indices()
        found = _with(found, pattern)
    _written(outputs, found)


def moe_matmul(inputs: Arrays, outputs: Arrays) -> None:
    """Blocks in compressed rows times the experts' weights, one below the other."""
    tokens, (rows, _) = outputs["y"].shape[0], inputs["W"].shape
    blocks = inputs["A_bcsr2_crd"].size
    block = tokens // blocks
    data = inputs["A_bcsr_vals"].reshape(blocks, block, -1)
    parts = data, inputs["A_bcsr2_crd"], inputs["A_bcsr2_pos"]
    matrix = import_module("scipy.sparse").bsr_array(parts, shape=(tokens, rows), copy=False)
    outputs["y"][...] = matrix @ inputs["W"]
