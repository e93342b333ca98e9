"""A library's function as a Python callable on NumPy arrays, in this process.

For the compiler's own users and its tests. Judges do not call candidates like this: what a
candidate does to this process is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import cffi
import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.errors import CompilerError

C_TYPES = {
    "bool": "uint8_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "float16": "_Float16",
    "float32": "float",
    "float64": "double",
}


_LOADED: list[Any] = []


class CallError(CompilerError):
    """Arguments that do not fit the function."""


Size: TypeAlias = int | str | Callable[[Mapping[str, int]], int]


@dataclass(frozen=True, slots=True)
class Argument:
    """An array argument: its name, shape (numbers, extent names, or functions of the extents),
    dtype, whether it is an input, and whether an input's elements are to ascend.
    """

    name: str
    shape: tuple[Size, ...]
    dtype: str
    is_input: bool
    ascends: bool = False


@cache
def _environments() -> tuple[Any, Any]:
    """The C library's functions that read and write a thread's floating-point environment."""
    ffi = cffi.FFI()
    ffi.cdef("int fegetenv(void *); int fesetenv(const void *);")
    # Where Python itself is linked with libm, as nearly everywhere, no name is needed.
    for name in (None, "libm.so.6"):
        try:
            library: Any = ffi.dlopen(name)
            return ffi, (library.fegetenv, library.fesetenv)
        except (AttributeError, OSError):
            continue
    raise CallError("expected fegetenv and fesetenv in the C library, found none")


@contextmanager
def float_environment() -> Iterator[None]:
    """Give the thread its floating-point environment back at the end.

    A library that was linked with -ffast-math has the processor flush subnormal numbers to zero
    from the moment it is loaded, in all that the thread does afterwards (gcc's crtfastmath.o); a
    kernel may do so itself, or change the rounding.
    """
    ffi, (read, write) = _environments()
    # Large enough for every fenv_t.
    saved = ffi.new("char[256]")
    read(saved)
    try:
        yield
    finally:
        write(saved)


class Kernel:
    """A compiled function: inputs, then outputs, in declared order, then extents as ``int64_t``.

    Loading and calling it leave the thread's floating-point environment as it was.

    Raises:
        CallError: if C has no type for an argument.
    """

    def __init__(
        self, library: Path, entry: str, arguments: tuple[Argument, ...], extents: tuple[str, ...]
    ) -> None:
        self.arguments, self.extents = arguments, extents
        self._ffi = cffi.FFI()
        # cffi has no word for _Float16; behind a pointer only the size counts.
        declared = prototype(entry, arguments, extents).replace("_Float16", "uint16_t")
        self._ffi.cdef(f"{declared};")
        with float_environment():
            self._library = self._ffi.dlopen(str(library))
        # Never unloaded: a library's OpenMP threads outlive the call and would run unmapped code.
        _LOADED.append(self._library)
        self._function = getattr(self._library, entry)

    def __call__(
        self, inputs: Mapping[str, NDArray[Any]], extents: Mapping[str, int] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Run the kernel on 64-byte aligned copies; returns fresh outputs by name.

        Raises:
            CallError: if an input is missing, masked or has another shape or dtype, or descends
                where it must not; or if an extent is missing.
        """
        given = dict(extents or {})
        if set(given) != set(self.extents):
            raise CallError(f"expected extents {list(self.extents)}, found {sorted(given)}")
        for name, value in given.items():
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or not 0 <= value < 2**31:
                raise CallError(f"extent {name}: expected 0 <= size < 2^31, found {value!r}")
        arrays: dict[str, NDArray[Any]] = {}
        for argument in self.arguments:
            shape = _shape(argument, given)
            try:
                arrays[argument.name] = aligned(shape, argument.dtype)
            except (MemoryError, ValueError) as error:
                raise CallError(f"{argument.name}: no memory for {list(shape)}: {error}") from None
            if argument.is_input:
                arrays[argument.name][...] = _fitting(argument, shape, inputs)
        pointers = [self._ffi.cast("void *", arrays[a.name].ctypes.data) for a in self.arguments]
        with float_environment():
            self._function(*pointers, *(int(given[e]) for e in self.extents))
        return {a.name: arrays[a.name] for a in self.arguments if not a.is_input}


def _shape(argument: Argument, extents: Mapping[str, int]) -> tuple[int, ...]:
    for entry in argument.shape:
        if isinstance(entry, str) and entry not in extents:
            known = ", ".join(extents) or "none"
            raise CallError(
                f"{argument.name}: expected sizes that are numbers or the extents {known}, "
                f"found {entry!r}"
            )
    return tuple(_size(entry, extents) for entry in argument.shape)


def _size(entry: Size, extents: Mapping[str, int]) -> int:
    if isinstance(entry, str):
        return extents[entry]
    return entry if isinstance(entry, int) else entry(extents)


def _fitting(
    argument: Argument, shape: tuple[int, ...], inputs: Mapping[str, NDArray[Any]]
) -> NDArray[Any]:
    if argument.name not in inputs:
        raise CallError(f"expected an array for input {argument.name}, found none")
    array = inputs[argument.name]
    if isinstance(array, np.ma.MaskedArray):
        # Its mask would be lost, and what lies below the mask computed with.
        raise CallError(f"{argument.name}: expected an array without a mask, found a MaskedArray")
    if array.shape != shape or array.dtype != argument.dtype:
        expected, found = f"{argument.dtype}{list(shape)}", f"{array.dtype}{list(array.shape)}"
        raise CallError(f"{argument.name}: expected {expected}, found {found}")
    # Next to the copy that is made of it, the comparison costs nothing.
    descent = first_descent(array) if argument.ascends else None
    if descent is not None:
        raise CallError(f"{argument.name}: expected elements that ascend, found less at {descent}")
    return array


def first_descent(array: NDArray[Any]) -> int | None:
    """Where an element of a vector is less than the one before, None if none is."""
    lesser = np.flatnonzero(array[1:] < array[:-1])
    return int(lesser[0]) + 1 if lesser.size else None


def prototype(entry: str, arguments: tuple[Argument, ...], extents: tuple[str, ...]) -> str:
    """The C prototype of a kernel, without its semicolon.

    Raises:
        CallError: if C has no type for an argument.
    """
    for argument in arguments:
        if argument.dtype not in C_TYPES:
            known = ", ".join(C_TYPES)
            raise CallError(
                f"{argument.name}: expected one of {known}, which C has, found {argument.dtype}"
            )
    parts = [
        f"{'const ' if a.is_input else ''}{C_TYPES[a.dtype]} *restrict {a.name}" for a in arguments
    ]
    return f"void {entry}({', '.join([*parts, *(f'int64_t {e}' for e in extents)])})"


def aligned(shape: tuple[int, ...], dtype: str, alignment: int = 64) -> NDArray[Any]:
    """An uninitialised array whose data starts at a multiple of ``alignment`` bytes."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    raw = np.empty(size + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + size].view(dtype).reshape(shape)
