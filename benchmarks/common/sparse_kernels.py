"""Sparse kernels for benchmarks: a statement and a schedule, compiled and called without copies."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kernelwright.env.compiler.codegen.c import arguments
from kernelwright.env.compiler.ir.nodes import Const, Procedure
from kernelwright.env.compiler.pipeline import lower as generate
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.call import aligned
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.compiler.schedule.trace import parse_trace
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.format import Format
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.storage import SparseTensor


@cache
def build_cache() -> BuildCache:
    """One cache of libraries for a run."""
    return BuildCache(Path(tempfile.mkdtemp()))


def csr_matrix(rows: int, columns: int, density: float, seed: int = 0) -> sp.csr_matrix:
    """A matrix with the same number of nonzeros in every row, in random sorted columns."""
    rng = np.random.default_rng(seed)
    count = max(1, round(columns * density))
    if columns <= 8192:
        picked = [np.sort(rng.choice(columns, count, replace=False)) for _ in range(rows)]
        found = np.concatenate(picked)
    else:
        # One column from each of as many parts of a row: sorted and distinct.
        low = np.arange(count) * columns // count
        high = (np.arange(count) + 1) * columns // count
        found = rng.integers(low, high, (rows, count)).ravel()
    pos = np.arange(rows + 1) * count
    values = rng.standard_normal(rows * count)
    return sp.csr_matrix(
        (aligned_copy(values), aligned_copy(found.astype(np.int32)), pos.astype(np.int32)),
        shape=(rows, columns),
    )


def aligned_copy(array: NDArray[Any]) -> NDArray[Any]:
    """The same elements from a multiple of 64 bytes on."""
    out = aligned(array.shape, str(array.dtype))
    out[...] = array
    return out


@dataclass(frozen=True, slots=True)
class Call:
    """A kernel with its arrays. ``run`` writes the same outputs each time, ``fresh`` new ones."""

    run: Callable[[], None]
    fresh: Callable[[], None]
    outputs: Mapping[str, NDArray[Any]]

    def __call__(self) -> Mapping[str, NDArray[Any]]:
        self.run()
        return self.outputs


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled procedure with sizes in numbers."""

    procedure: Procedure
    function: Any

    def call(self, **operands: Any) -> Call:
        """The kernel on operands: SciPy's CSR matrices, tensors in their formats, arrays."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, operand in operands.items():
            if isinstance(operand, SparseTensor):
                arrays |= operand.arguments(name)
            elif isinstance(operand, np.ndarray):
                arrays[name] = operand
            else:
                arrays |= {
                    f"{name}2_pos": operand.indptr,
                    f"{name}2_crd": operand.indices,
                    f"{name}_vals": operand.data,
                }
        shapes: dict[str, tuple[tuple[int, ...], str]] = {}
        for tensor in self.procedure.tensors:
            shape = tuple(int(n.value) for n in tensor.shape if isinstance(n, Const))
            assert len(shape) == len(tensor.shape), f"{tensor.name}: a size that is no number"
            if tensor.role == "output":
                shapes[tensor.name] = shape, tensor.dtype
            else:
                given = arrays[tensor.name]
                assert (given.shape, str(given.dtype)) == (shape, tensor.dtype), tensor.name
        outputs = {name: aligned(shape, dtype) for name, (shape, dtype) in shapes.items()}
        every = {**arrays, **outputs}
        order = [tensor.name for tensor in self.procedure.tensors]
        function = self.function
        fixed = [ctypes.c_void_p(every[name].ctypes.data) for name in order]

        def run(kept: Mapping[str, NDArray[Any]] = every) -> None:
            # The pointers are into these.
            assert kept is not None
            function(*fixed)

        def fresh() -> None:
            new = {name: np.empty(shape, dtype) for name, (shape, dtype) in shapes.items()}
            function(*(ctypes.c_void_p({**arrays, **new}[name].ctypes.data) for name in order))

        return Call(run, fresh, outputs)


def kernel(
    statement: str,
    stored: Mapping[str, Any],
    sizes: Mapping[str, int],
    trace: str,
    *,
    structure: str | None = None,
    counts: Mapping[str, int] | None = None,
) -> Kernel:
    """A kernel for operands of these formats (None: an assembled CSR result) and sizes."""
    formats: dict[str, str | Format] = {}
    numbers = dict(counts or {})
    for name, operand in stored.items():
        if isinstance(operand, SparseTensor):
            formats[name] = operand.format
            own = operand.arguments(name)
            numbers |= {key[:-4]: array.size for key, array in own.items() if key.endswith("_crd")}
        else:
            formats[name] = parse_format("csr")
            if operand is not None:
                numbers[f"{name}2"] = operand.nnz
    known = dict(program(statement, formats, structure=structure).counts)
    numbers = {level: count for level, count in numbers.items() if level in known}
    made = program(statement, formats, sizes=sizes, counts=numbers, structure=structure)
    return compiled(lower(made), trace)


def compiled(procedure: Procedure, trace: str) -> Kernel:
    """A procedure after a schedule, ready to be called."""
    lowered = generate(procedure, parse_trace(trace))
    build = build_cache().build(lowered.source, find_toolchain(None), DEFAULT_FLAGS)
    function = getattr(ctypes.CDLL(str(build.library)), lowered.procedure.name)
    function.restype = None
    assert arguments(lowered.procedure)
    return Kernel(lowered.procedure, function)
