"""Compiled sparse kernels on arrays that stay where they are: no copies, no checks per call.

    lowered = pipeline.lower(sparse.lower(program), trace)
    call = bind(lowered, {**stored_arguments("A", matrix), "x": x})
    call()
    call["y"]

Arrays that the kernel cannot use as they are (another dtype, not contiguous, not at a multiple of
64 bytes) are copied once, when they are bound. Outputs that are not given are made and filled with
NaN (with -1 where they are whole numbers), so that a kernel that forgets an element is seen.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cffi
import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelwright.env.compiler.codegen.c import arguments
from kernelwright.env.compiler.pipeline import Lowered
from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.call import Argument, aligned, prototype
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain

Array = NDArray[Any]
ALIGNMENT = 64


class BoundCall:
    """A compiled function with its arguments; ``arrays`` holds all of them by name."""

    def __init__(self, function: Any, arrays: dict[str, Array], words: tuple[Any, ...]) -> None:
        self._function, self._words = function, words
        self.arrays = arrays

    def __call__(self) -> None:
        self._function(*self._words)

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]


def bind(
    lowered: Lowered,
    arrays: Mapping[str, Array],
    extents: Mapping[str, int] | None = None,
    *,
    flags: Sequence[str] = DEFAULT_FLAGS,
) -> BoundCall:
    """A compiled procedure on arrays by name.

    Raises:
        ValueError: if an input or an extent is missing or superfluous, or has another shape.
    """
    procedure, given = lowered.procedure, dict(extents or {})
    known = arguments(procedure)
    if set(given) != set(procedure.extents):
        raise ValueError(f"expected extents {list(procedure.extents)}, found {sorted(given)}")
    if stray := sorted(set(arrays) - {argument.name for argument in known}):
        raise ValueError(f"expected {', '.join(a.name for a in known)}, found {stray[0]}")
    kept = {argument.name: _placed(argument, arrays.get(argument.name), given) for argument in known}
    build = BuildCache(cache_folder()).build(lowered.source, find_toolchain(), flags)
    ffi = cffi.FFI()
    ffi.cdef(f"{prototype(procedure.name, known, procedure.extents)};")
    library = ffi.dlopen(str(build.library))
    pointers = [ffi.cast("void *", array.ctypes.data) for array in kept.values()]
    words = (*pointers, *(int(given[name]) for name in procedure.extents))
    call = BoundCall(getattr(library, procedure.name), kept, words)
    _LOADED.append(library)
    return call


# Libraries stay loaded as long as the script runs.
_LOADED: list[Any] = []


def _placed(argument: Argument, array: Array | None, extents: Mapping[str, int]) -> Array:
    shape = tuple(
        extents[n] if isinstance(n, str) else n if isinstance(n, int) else n(extents)
        for n in argument.shape
    )
    if array is None:
        if argument.is_input:
            raise ValueError(f"expected an array for input {argument.name}, found none")
        out = aligned(shape, argument.dtype, ALIGNMENT)
        out.fill(np.nan if out.dtype.kind == "f" else -1)
        return out
    if array.shape != shape:
        raise ValueError(f"{argument.name}: expected {list(shape)}, found {list(array.shape)}")
    as_is = array.dtype == argument.dtype and array.flags.c_contiguous
    if as_is and (array.ctypes.data % ALIGNMENT == 0 or not array.size):
        return array
    out = aligned(shape, argument.dtype, ALIGNMENT)
    out[...] = array
    return out


def at_alignment(array: Array) -> Array:
    """A copy of an array whose data starts at a multiple of 64 bytes."""
    out = aligned(array.shape, str(array.dtype), ALIGNMENT)
    out[...] = array
    return out


def even_rows(rows: int, columns: int, density: float, seed: int = 0) -> scipy.sparse.csr_matrix:
    """A matrix with as many nonzeros in every row, in random columns, in ascending order."""
    rng = np.random.default_rng(seed)
    each = max(1, round(columns * density))
    found = np.empty((rows, each), np.int32)
    for row in range(rows):
        found[row] = rng.choice(columns, each, replace=False, shuffle=False)
    found.sort(axis=1)
    starts = (np.arange(rows + 1, dtype=np.int64) * each).astype(np.int32)
    values = rng.standard_normal(rows * each)
    return scipy.sparse.csr_matrix((values, found.ravel(), starts), shape=(rows, columns))


def csr_arguments(tensor: str, matrix: scipy.sparse.csr_matrix) -> dict[str, Array]:
    """The arrays of a matrix in compressed rows by the names that kernels give them."""
    return {
        f"{tensor}2_pos": matrix.indptr,
        f"{tensor}2_crd": matrix.indices,
        f"{tensor}_vals": matrix.data,
    }


def race(
    calls: Mapping[str, Callable[[], object]], *, rounds: int = 5, round_s: float = 0.02
) -> dict[str, list[float]]:
    """Seconds a call of each, a figure a round: interleaved, of the processor time of this thread."""
    repeats = {}
    for name, call in calls.items():
        call()
        began = time.thread_time()
        call()
        spent = time.thread_time() - began
        repeats[name] = max(1, min(2000, int(round_s / max(spent, 1e-7))))
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.thread_time_ns()
            for _ in range(repeats[name]):
                call()
            found[name].append((time.thread_time_ns() - began) / repeats[name] * 1e-9)
    return found


def paired(found: Mapping[str, Sequence[float]], name: str, base: str) -> float:
    """How many times faster than ``base`` a call is: the median over rounds."""
    pairs = zip(found[name], found[base], strict=True)
    return statistics.median(other / own for own, other in pairs)
