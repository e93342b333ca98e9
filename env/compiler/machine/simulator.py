"""The cache simulator: streams of addresses through set-associative caches, in C (``cache.c``).

A stream is an array of addresses, or a C function that makes them (`run_stream`), which needs no
memory for them. Every level counts compulsory, capacity and conflict misses apart, for each tensor,
reads and writes apart. Of what real caches do it leaves out prefetching, other replacement than the
least recently used, and hashed sets; a fully associative level stands for the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import cffi
import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.machine.hierarchy import (
    Cache,
    CacheReport,
    Counts,
    LevelReport,
    Stream,
    check_caches,
)
from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.call import float_environment
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain

SOURCE = Path(__file__).with_name("cache.c")
# So that a line's number, doubled and increased, is a 64-bit word.
MAX_ADDRESS = 1 << 62
_COUNTERS = 4
_DECLARATIONS = """
void *kw_open(int count, const uint64_t *geometry, int tensors);
void kw_close(void *cache);
int kw_read(const void *cache, int k, int tensors, uint64_t *out);
void kw_replay(void *cache, const uint64_t *addresses, const uint8_t *writes,
               const int32_t *tensors, int64_t count);
"""
_STREAM = """
void kw_stream(void *caches, const uint64_t *bases, void *const *data, const int64_t *extents);
"""


class SimulationError(CompilerError):
    """A stream that cannot be simulated: addresses out of range, or no memory."""


@lru_cache(maxsize=64)
def _load(stream: str) -> tuple[Any, Any]:
    """The simulator as a library, with a function that makes a stream compiled into it."""
    text = SOURCE.read_text() + stream
    library = BuildCache(cache_folder()).build(text, find_toolchain(), DEFAULT_FLAGS).library
    ffi = cffi.FFI()
    ffi.cdef(_DECLARATIONS + (_STREAM if stream else ""))
    with float_environment():
        return ffi, ffi.dlopen(str(library))


class _Run:
    """Caches in C while one stream goes through them."""

    def __init__(self, stream: str, caches: Sequence[Cache], names: Sequence[str]) -> None:
        self._caches, self._names = check_caches(caches), tuple(names)
        self.ffi, self.library = _load(stream)
        geometry = [(c.sets, c.ways, c.line_bytes.bit_length() - 1) for c in self._caches]
        words = self.ffi.new("uint64_t[]", [number for level in geometry for number in level])
        self.cache = self.library.kw_open(len(self._caches), words, len(self._names))
        if self.cache == self.ffi.NULL:
            raise SimulationError("expected memory for the caches, found none")

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.kw_close(self.cache)

    def report(self) -> CacheReport:
        return CacheReport(tuple(self._level(k) for k in range(len(self._caches))))

    def _level(self, k: int) -> LevelReport:
        tensors = len(self._names)
        out = self.ffi.new("uint64_t[]", 2 * _COUNTERS * tensors + 1)
        if not self.library.kw_read(self.cache, k, tensors, out):
            raise SimulationError("expected memory for all lines touched, found too little")
        streams = []
        for number, name in enumerate(self._names):
            for writes in (False, True):
                at = _COUNTERS * (2 * number + writes)
                counts = Counts(*(int(out[at + i]) for i in range(_COUNTERS)))
                streams.append(Stream(name, writes, counts))
        return LevelReport(self._caches[k], tuple(streams), int(out[2 * _COUNTERS * tensors]))


def simulate(
    caches: Sequence[Cache],
    addresses: NDArray[np.integer],
    writes: NDArray[np.bool_] | None = None,
    tensors: NDArray[np.integer] | None = None,
    names: Sequence[str] = ("all",),
) -> CacheReport:
    """What caches, cold at first, see of a stream of accesses, each to the line at its address.

    Args:
        caches: the levels, from the core outwards.
        addresses: in bytes, one an access, shape (n,), int64 or uint64.
        writes: which of them write, shape (n,); none unless given.
        tensors: the place in ``names`` of what each accesses, shape (n,); the first unless given.
        names: what the accesses are counted for.

    Raises:
        ValueError: if the caches cannot be simulated, or an array has another shape or dtype.
        SimulationError: if an address or a tensor's place is out of range, or memory runs out.
        BuildError: if there is no C compiler.
    """
    if addresses.ndim != 1 or addresses.dtype not in (np.dtype("int64"), np.dtype("uint64")):
        found = f"{addresses.dtype}{list(addresses.shape)}"
        raise ValueError(f"addresses: expected int64[n] or uint64[n], found {found}")
    for what, array in (("writes", writes), ("tensors", tensors)):
        if array is not None and array.shape != addresses.shape:
            expected = f"the addresses' shape {list(addresses.shape)}"
            raise ValueError(f"{what}: expected {expected}, found {list(array.shape)}")
    if not names:
        raise ValueError("names: expected at least one, found none")
    _check_range("an address", addresses, MAX_ADDRESS)
    if tensors is not None:
        _check_range("a tensor's place", tensors, len(names))
    with _Run("", caches, names) as run:
        ffi = run.ffi
        where = np.ascontiguousarray(addresses).view(np.uint64)
        kinds = None if writes is None else np.ascontiguousarray(writes, np.bool_).view(np.uint8)
        of = None if tensors is None else np.ascontiguousarray(tensors, np.int32)
        run.library.kw_replay(
            run.cache,
            ffi.cast("uint64_t *", where.ctypes.data),
            ffi.NULL if kinds is None else ffi.cast("uint8_t *", kinds.ctypes.data),
            ffi.NULL if of is None else ffi.cast("int32_t *", of.ctypes.data),
            len(where),
        )
        return run.report()


def _check_range(what: str, values: NDArray[np.integer], limit: int) -> None:
    if len(values) and not 0 <= int(values.min()) <= int(values.max()) < limit:
        wrong = int(values.min()) if int(values.min()) < 0 else int(values.max())
        raise SimulationError(f"expected {what} of 0 to {limit - 1}, found {wrong}")


def run_stream(
    text: str,
    caches: Sequence[Cache],
    names: Sequence[str],
    bases: Sequence[int],
    data: Sequence[NDArray[Any]] = (),
    extents: Sequence[int] = (),
) -> CacheReport:
    """What caches, cold at first, see of the accesses that a C function makes.

    Args:
        text: C that defines ``kw_stream(caches, bases, data, extents)``, which calls
            ``kw_touch(caches, address, tensor, write)`` for each access; ``codegen.addresses``
            writes it.
        caches: the levels, from the core outwards.
        names: the tensors that accesses are counted for, by their numbers.
        bases: the address of the first element of each, in bytes.
        data: the arrays whose values the function reads, in the order in which it numbers them.
        extents: the values of its extents.

    Raises:
        ValueError: if the caches cannot be simulated.
        SimulationError: if memory runs out.
        BuildError: if there is no C compiler, or it refuses the text.
    """
    with _Run(text, caches, names) as run:
        ffi = run.ffi
        pointers = [ffi.cast("void *", array.ctypes.data) for array in data]
        run.library.kw_stream(
            run.cache,
            ffi.new("uint64_t[]", [*bases] or [0]),
            ffi.new("void *[]", pointers or [ffi.NULL]),
            ffi.new("int64_t[]", [*extents] or [0]),
        )
        return run.report()
