"""What judge and candidate share: arrays in anonymous files, inputs read-only for the candidate,
outputs owned and poisoned by the judge.

An arena has slots, each with a whole set of arrays. Every array ends where its last page ends (up
to 64 bytes), so that the first element behind it lies in a page that the worker may not touch; what
is left of the first page, and of the last cache line, is filled with a pattern and looked at after
every call. Addresses are drawn by the judge and are the same in both workers of a pair. The files
are written by one process at a time: by the judge while the workers rest, by a worker during its
call.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import ProblemError
from kernelwright.env.problems.shapes import shape_of
from kernelwright.env.types import Arrays, Problem, TensorSpec, Workload
from kernelwright.evaluators.cpu.native import judge

PAGE = mmap.PAGESIZE
LINE = 64
# Linux's numbers; Python does not name them all.
_F_ADD_SEALS, _F_SEAL_SEAL, _F_SEAL_SHRINK, _F_SEAL_GROW = 1033, 1, 2, 4
_F_SEAL_WRITE, _F_SEAL_FUTURE_WRITE = 8, 16
# A NaN whichever way a float64 or float32 is cut out of it, and no number that comes about by
# chance.
_POISON_HIGH, _POISON_LOW = 0x7FF4_0000, 0x7FB4_0000
# Where the arrays may lie: below what the system gives out by itself, above programs.
_LOWEST, _HIGHEST = 0x1000_0000_0000, 0x5000_0000_0000
# Pages that may not be touched between two arrays, at least and at most.
_GUARDS = (2, 17)
# What lies beside outputs is no NaN: arithmetic on it shows.
_BESIDE_HIGH, _BESIDE_LOW = 0x3FF5_0000, 0x3FB5_0000


@dataclass(frozen=True, slots=True)
class Field:
    """An array of a slot: pages ``offset .. offset + map_bytes`` of its file's part for the slot,
    its data from ``lead`` on.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_input: bool
    offset: int
    map_bytes: int
    lead: int
    data_bytes: int


def fields_of(problem: Problem, extents: Mapping[str, int]) -> tuple[Field, ...]:
    """The fields of a problem's tensors in the order of a kernel's arguments; inputs and outputs
    have a file each.
    """
    roles = [t for role in ("input", "output") for t in problem.tensors if t.role == role]
    at = {"input": 0, "output": 0}
    out = []
    for spec in roles:
        field = _field(spec, shape_of(spec, extents), at[spec.role])
        at[spec.role] += field.map_bytes
        out.append(field)
    return tuple(out)


def _field(spec: TensorSpec, shape: tuple[int, ...], offset: int) -> Field:
    data = int(np.prod(shape, dtype=np.int64)) * np.dtype(spec.dtype).itemsize
    pages = max(1, -(-data // PAGE)) * PAGE
    lead = pages - -(-data // LINE) * LINE
    return Field(spec.name, spec.dtype, shape, spec.role == "input", offset, pages, lead, data)


def see_that_they_fit(problem: Problem, fields: Iterable[Field], arrays: Arrays) -> None:
    """Refuse input values that are not what the problem's tensors say.

    Raises:
        ProblemError: if an array is missing or does not fit.
    """
    for field in fields:
        if not field.is_input:
            continue
        found = arrays.get(field.name)
        if found is None:
            names = ", ".join(arrays) or "nothing"
            what = f"expected an array {field.name}, found {names}"
            raise ProblemError(f"{problem.name}: inputs: {what}")
        if found.shape != field.shape or found.dtype != field.dtype:
            raise ProblemError(
                f"{problem.name}: inputs: {field.name}: expected {field.dtype}"
                f"{list(field.shape)}, found {found.dtype}{list(found.shape)}"
            )


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a call as they were when it was over, and the pattern that they had before."""

    arrays: Arrays
    pattern: np.uint64

    def poisoned(self, name: str) -> NDArray[np.bool_]:
        """Which elements of an output still hold the pattern."""
        array = self.arrays[name]
        # An array starts on a cache line, so the pattern's first word is its first.
        words = array.reshape(-1).view(f"u{array.dtype.itemsize}")
        pattern = np.frombuffer(self.pattern.tobytes(), words.dtype)
        found: NDArray[np.bool_] = (words == np.resize(pattern, words.size)).reshape(array.shape)
        return found


class Arena:
    """Shared memory for some slots of a workload of fixed extents.

    Args:
        problem: whose tensors these are.
        workload: its extents.
        slots: how many sets of arrays there are.
        rng: draws the addresses.

    Raises:
        OSError: if there is no memory for them.
    """

    def __init__(
        self, problem: Problem, workload: Workload, slots: int, rng: np.random.Generator
    ) -> None:
        self.extents = workload.fixed
        self.fields = fields_of(problem, self.extents)
        self.slots = slots
        self.inputs = tuple(f for f in self.fields if f.is_input)
        self.outputs = tuple(f for f in self.fields if not f.is_input)
        self._strides = {
            True: sum(f.map_bytes for f in self.inputs),
            False: sum(f.map_bytes for f in self.outputs),
        }
        self.inputs_fd = self.outputs_fd = -1
        self.inputs_fd, given = _file(self._strides[True] * slots)
        self.outputs_fd, written = _file(self._strides[False] * slots)
        _seal(self.inputs_fd)
        self._staged = mmap.mmap(-1, len(given))
        self._shown = given
        places = range(slots)
        self._values = [self._views(self._staged, slot, self.inputs) for slot in places]
        self._given = [self._views(given, slot, self.inputs) for slot in places]
        self.written = [self._views(written, slot, self.outputs) for slot in places]
        self._spans = self._output_spans()
        self._bytes = np.frombuffer(written, np.uint8)
        self._pattern = self._beside = np.uint64(0)
        self.addresses, self.base, self.reserve_bytes = self._addresses(rng)

    def _views(self, file: mmap.mmap, slot: int, fields: tuple[Field, ...]) -> Arrays:
        return {f.name: view(file, f, self.file_offset(slot, f)) for f in fields}

    def _output_spans(self) -> NDArray[np.int64]:
        """``struct kw_output`` of every output of every slot."""
        rows = []
        for slot in range(self.slots):
            for field in self.outputs:
                first = self.file_offset(slot, field)
                start = first + field.lead
                rows.append((first, start, start + field.data_bytes, first + field.map_bytes))
        return np.array(rows, np.int64).reshape(-1, 4)

    def _addresses(self, rng: np.random.Generator) -> tuple[list[list[int]], int, int]:
        """Where every array of every slot lies in a worker, and the room that all of them take."""
        base = int(rng.integers(_LOWEST // PAGE, _HIGHEST // PAGE)) * PAGE
        at, out = base, []
        for _ in range(self.slots):
            row = []
            for field in self.fields:
                at += int(rng.integers(*_GUARDS, endpoint=True)) * PAGE
                row.append(at)
                at += field.map_bytes
            out.append(row)
        return out, base, at + PAGE - base

    def file_offset(self, slot: int, field: Field) -> int:
        """Where an array's first page lies in its file."""
        return slot * self._strides[field.is_input] + field.offset

    @property
    def slot_bytes(self) -> int:
        """The size of a slot."""
        return sum(self._strides.values())

    def owner(self, address: int) -> tuple[Field, str] | None:
        """The array that an address of a worker belongs to or lies beside, and whether it is
        ``before``, ``in`` or ``behind`` its pages; None if it is none's.
        """
        for row in self.addresses:
            for field, start in zip(self.fields, row, strict=True):
                end = start + field.map_bytes
                for where, low, high in (
                    ("before", start - PAGE, start),
                    ("in", start, end),
                    ("behind", end, end + PAGE),
                ):
                    if low <= address < high:
                        return field, where
        return None

    def write(self, slot: int, arrays: Arrays) -> None:
        """Put input values into a slot, where no worker sees them yet; they fit
        (`see_that_they_fit`).
        """
        for name, view_ in self._values[slot].items():
            view_[...] = arrays[name]

    def hide(self) -> None:
        """Leave the workers no input values at all."""
        np.frombuffer(self._shown, np.uint8)[...] = 0

    def show(self) -> None:
        """Give the workers all input values that were written."""
        np.copyto(np.frombuffer(self._shown, np.uint8), np.frombuffer(self._staged, np.uint8))

    def outputs_of(self, slot: int) -> Outputs:
        """A copy of what a slot's outputs are now."""
        arrays = {name: array.copy() for name, array in self.written[slot].items()}
        return Outputs(arrays, self._pattern)

    def poison(self, tag: int) -> None:
        """Fill every output with a pattern of this ``tag`` (16 bits), and what lies beside it with
        another.
        """
        self._pattern = np.uint64(((_POISON_HIGH | tag) << 32) | _POISON_LOW | tag)
        self._beside = np.uint64(((_BESIDE_HIGH | tag) << 32) | _BESIDE_LOW | tag)
        native = judge()[1]
        native.kw_poison(*self._spans_at(), int(self._pattern), int(self._beside))

    def _spans_at(self) -> tuple[Any, Any, int]:
        """The outputs' file, where the outputs of all slots lie in it, and how many they are."""
        ffi, _ = judge()
        file = ffi.cast("unsigned char *", self._bytes.ctypes.data)
        return file, ffi.cast("struct kw_output *", self._spans.ctypes.data), len(self._spans)

    def damaged(self, written: range) -> str | None:
        """The output beside which something was written, or a slot that was not to be written; None
        if all is well.

        Args:
            written: the slots of the call.
        """
        native, each = judge()[1], len(self.outputs)
        live = (written.start * each, written.stop * each)
        patterns = (int(self._pattern), int(self._beside))
        found = int(native.kw_damage(*self._spans_at(), *live, *patterns))
        if not found:
            return None
        field = self.outputs[found // 4 % each]
        kinds = {1: f"bytes before {field.name}", 2: f"bytes behind {field.name}"}
        return kinds.get(found % 4, "outputs of another call")

    def pieces(self, slots: Iterable[int]) -> tuple[list[int], list[int]]:
        """Addresses and sizes of all arrays of some slots, in this process; for cache states."""
        arrays = [
            array
            for slot in slots
            for array in (*self._given[slot].values(), *self.written[slot].values())
        ]
        return [a.ctypes.data for a in arrays], [a.nbytes for a in arrays]

    def close(self) -> None:
        """Give the files back; views of the outputs must not be used any more."""
        for fd in (self.inputs_fd, self.outputs_fd):
            if fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self.inputs_fd = self.outputs_fd = -1

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "inputs_fd", -1) >= 0:
            self.close()


def anonymous_file(name: str, contents: bytes) -> int:
    """A descriptor of a file in memory that nobody can change any more."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(fd, "wb", closefd=False) as file:
        file.write(contents)
    seals = _F_SEAL_SEAL | _F_SEAL_SHRINK | _F_SEAL_GROW | _F_SEAL_WRITE
    fcntl.fcntl(fd, _F_ADD_SEALS, seals)
    return fd


def _file(size: int) -> tuple[int, mmap.mmap]:
    size = max(size, PAGE)
    fd = os.memfd_create("kernelwright", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size)
        return fd, mmap.mmap(fd, size)
    except BaseException:
        os.close(fd)
        raise


def _seal(fd: int) -> None:
    """Nobody may map this file writable from now on, where the kernel knows how to promise that."""
    fcntl.fcntl(fd, _F_ADD_SEALS, _F_SEAL_SHRINK | _F_SEAL_GROW)
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, _F_ADD_SEALS, _F_SEAL_FUTURE_WRITE)


def view(memory: mmap.mmap, field: Field, offset: int) -> NDArray[np.generic]:
    """The array of a field whose first page lies at an offset of a mapped file."""
    count = int(np.prod(field.shape, dtype=np.int64))
    return np.frombuffer(memory, field.dtype, count, offset + field.lead).reshape(field.shape)
