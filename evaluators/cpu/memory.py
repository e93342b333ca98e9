"""What judge and candidate share: arrays in anonymous files, inputs read-only for the candidate,
outputs owned and poisoned by the judge.

Every array ends where its last page ends (up to 64 bytes), so that the first element behind it lies
in a page that the worker may not touch; what is left of the first page, and of the last cache line,
is filled with a pattern and looked at after every call. The files are written by one process at a
time: by the judge while the worker waits, by the worker during a call.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import ProblemError
from kernelwright.env.problems.shapes import shape_of
from kernelwright.env.types import Arrays, Problem, TensorSpec, Workload

PAGE = mmap.PAGESIZE
LINE = 64
# Linux's numbers; Python does not name them all.
_F_ADD_SEALS, _F_SEAL_SHRINK, _F_SEAL_GROW, _F_SEAL_FUTURE_WRITE = 1033, 2, 4, 16
# A NaN whichever way a float64 or float32 is cut out of it, and no number that comes about by
# chance.
_POISON_HIGH, _POISON_LOW = 0x7FF4_0000, 0x7FB4_0000


@dataclass(frozen=True, slots=True)
class Slot:
    """Where an array lies in its file: pages ``offset .. offset + map_bytes``, its data from
    ``lead`` on, in ``set_stride`` bytes again for the next set of inputs.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_input: bool
    offset: int
    map_bytes: int
    lead: int
    data_bytes: int
    set_stride: int


def slots_of(problem: Problem, extents: Mapping[str, int]) -> tuple[Slot, ...]:
    """The slots of a problem's tensors in the order of a kernel's arguments; inputs and outputs
    have a file each.
    """
    roles = [t for role in ("input", "output") for t in problem.tensors if t.role == role]
    sized = [(spec, shape_of(spec, extents)) for spec in roles]
    pages = [_pages(spec, shape) for spec, shape in sized]
    stride = sum(p for (spec, _), p in zip(sized, pages, strict=True) if spec.role == "input")
    at = {"input": 0, "output": 0}
    out = []
    for (spec, shape), map_bytes in zip(sized, pages, strict=True):
        data = int(np.prod(shape, dtype=np.int64)) * np.dtype(spec.dtype).itemsize
        lead = map_bytes - -(-data // LINE) * LINE
        is_input = spec.role == "input"
        slot = Slot(
            spec.name,
            spec.dtype,
            shape,
            is_input,
            at[spec.role],
            map_bytes,
            lead,
            data,
            stride if is_input else 0,
        )
        at[spec.role] += map_bytes
        out.append(slot)
    return tuple(out)


def _pages(spec: TensorSpec, shape: tuple[int, ...]) -> int:
    data = int(np.prod(shape, dtype=np.int64)) * np.dtype(spec.dtype).itemsize
    return max(1, -(-data // PAGE)) * PAGE


class Arena:
    """The shared memory of one workload of fixed extents, with ``sets`` sets of input values."""

    def __init__(self, problem: Problem, workload: Workload, values: tuple[Arrays, ...]) -> None:
        self.extents = workload.fixed
        self.slots = slots_of(problem, self.extents)
        self.sets = len(values)
        self._values = values
        # Which values lie at each of the places that a worker knows.
        self._held = list(range(len(values)))
        self._inputs = inputs = [slot for slot in self.slots if slot.is_input]
        self._outputs = [slot for slot in self.slots if not slot.is_input]
        self._inputs_map: mmap.mmap | None = None
        self.inputs_fd, self._inputs_map = _file(sum(s.map_bytes for s in inputs) * self.sets)
        self.outputs_fd, self._outputs_map = _file(sum(s.map_bytes for s in self._outputs))
        for number, arrays in enumerate(values):
            for slot in inputs:
                if slot.name not in arrays:
                    found = ", ".join(arrays) or "nothing"
                    what = f"{problem.name}: inputs: expected an array {slot.name}, found {found}"
                    raise ProblemError(what)
                array = arrays[slot.name]
                if array.shape != slot.shape or array.dtype != slot.dtype:
                    raise ProblemError(
                        f"{problem.name}: inputs: {slot.name}: expected {slot.dtype}"
                        f"{list(slot.shape)}, found {array.dtype}{list(array.shape)}"
                    )
                view(self._inputs_map, slot, number)[...] = array
        _seal(self.inputs_fd)
        self._words = np.frombuffer(self._outputs_map, np.uint64)
        self._bytes = np.frombuffer(self._outputs_map, np.uint8)
        self.views = {slot.name: view(self._outputs_map, slot, 0) for slot in self._outputs}
        self._pattern = np.uint64(0)

    def place(self, number: int, at: int) -> None:
        """Have the values ``number`` lie at the place ``at``, so that an address says nothing about
        what is found there.
        """
        if self._held[at] == number or self._inputs_map is None:
            return
        for slot in self._inputs:
            view(self._inputs_map, slot, at)[...] = self._values[number][slot.name]
        self._held[at] = number

    def poison(self, tag: int) -> None:
        """Fill every output, and what lies beside it, with a pattern of this ``tag`` (16 bits)."""
        self._pattern = np.uint64(((_POISON_HIGH | tag) << 32) | _POISON_LOW | tag)
        self._words[...] = self._pattern

    def damaged(self) -> str | None:
        """The output beside which something was written, None if nothing was."""
        pattern = np.frombuffer(self._pattern.tobytes(), np.uint8)
        for slot in self._outputs:
            first, start = slot.offset, slot.offset + slot.lead
            end, last = start + slot.data_bytes, slot.offset + slot.map_bytes
            if (self._words[first // 8 : start // 8] != self._pattern).any():
                return f"{start - first} bytes before {slot.name}"
            tail = self._bytes[end:last]
            if len(tail) and (tail != np.resize(pattern, end % 8 + len(tail))[end % 8 :]).any():
                return f"{last - end} bytes behind {slot.name}"
        return None

    def poisoned(self, name: str) -> NDArray[np.bool_]:
        """Which elements of an output still hold the pattern."""
        array = self.views[name]
        # An array starts on a cache line, so the pattern's first word is its first.
        words = array.reshape(-1).view(f"u{array.dtype.itemsize}")
        pattern = np.frombuffer(self._pattern.tobytes(), words.dtype)
        found: NDArray[np.bool_] = (words == np.resize(pattern, words.size)).reshape(array.shape)
        return found

    def close(self) -> None:
        """Give the files back; views of the outputs must not be used any more."""
        for fd in (self.inputs_fd, self.outputs_fd):
            with contextlib.suppress(OSError):
                os.close(fd)
        self.inputs_fd = self.outputs_fd = -1

    def __del__(self) -> None:
        if getattr(self, "inputs_fd", -1) >= 0:
            self.close()


def _file(size: int) -> tuple[int, mmap.mmap]:
    size = max(size, PAGE)
    fd = os.memfd_create("kernelwright", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    return fd, mmap.mmap(fd, size)


def _seal(fd: int) -> None:
    """Nobody may map this file writable from now on, where the kernel knows how to promise that."""
    fcntl.fcntl(fd, _F_ADD_SEALS, _F_SEAL_SHRINK | _F_SEAL_GROW)
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, _F_ADD_SEALS, _F_SEAL_FUTURE_WRITE)


def view(memory: mmap.mmap, slot: Slot, number: int) -> NDArray[np.generic]:
    """The array of a slot in a mapped file, of the input set ``number``."""
    start = slot.offset + number * slot.set_stride + slot.lead
    count = int(np.prod(slot.shape, dtype=np.int64))
    return np.frombuffer(memory, slot.dtype, count, start).reshape(slot.shape)
