"""Cache misses of scheduled procedures: the address stream of a loop nest through simulated caches.

schedule    the directives, each proved legal or refused
addresses   the procedure as C that makes the addresses of its accesses (``codegen.addresses``)
simulate    that stream through a hierarchy of caches (``machine.simulator``)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.codegen.addresses import address_stream
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import Const, Expr, Procedure, Tensor, substitute
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.machine.hierarchy import Cache, CacheReport
from kernelwright.env.compiler.machine.simulator import MAX_ADDRESS, run_stream
from kernelwright.env.compiler.schedule.memo import cached_apply
from kernelwright.env.types import Directive

# Where arrays begin that are given no address: C's own are aligned like this.
ALIGNMENT = 64


class MissesError(CompilerError):
    """A procedure whose misses cannot be counted: an extent, an address or an input is missing or
    does not fit.
    """


def cache_misses(
    procedure: Procedure,
    trace: Sequence[Directive] = (),
    *,
    caches: Sequence[Cache],
    extents: Mapping[str, int] | None = None,
    bases: Mapping[str, int] | None = None,
    element_bytes: Mapping[str, int] | None = None,
    inputs: Mapping[str, NDArray[Any]] | None = None,
) -> CacheReport:
    """What caches, cold at first, see of a procedure after its schedule, on one thread.

    Args:
        procedure: what runs.
        trace: its schedule.
        caches: the levels, from the core outwards.
        extents: the values of the procedure's extents.
        bases: addresses in bytes of the tensors' first elements, of all or of none. Without, they
            lie one after the other from 0, arguments first in declared order, then temporaries in
            program order, each at a multiple of `ALIGNMENT`.
        element_bytes: sizes of elements by tensor, where they are not those of the dtypes.
        inputs: values of those inputs that decide what is accessed; trusted, as C trusts them.

    Raises:
        VerifyError: if the procedure is not well formed.
        ScheduleError: at the first directive that may not be applied.
        CodegenError: if a name is C's own, or threads wait for one another.
        MissesError: if an extent, an address or an input is missing or does not fit.
        ValueError: if the caches cannot be simulated, or an element's size is none.
        BuildError: if there is no C compiler.
    """
    final = cached_apply(verify(procedure), trace)
    values = _extents(final, extents or {})
    stream = address_stream(final, element_bytes)
    shapes = {t.name: _shape(t, values) for t in stream.tensors}
    sizes = dict(zip(shapes, stream.element_bytes, strict=True))
    line = min(cache.line_bytes for cache in caches) if caches else ALIGNMENT
    for name, size in sizes.items():
        if size > line:
            raise MissesError(f"{name}: expected elements no longer than a line of {line} bytes")
    places = _contiguous(shapes, sizes) if bases is None else _given(bases, sizes)
    for name, place in places.items():
        end = place + prod(shapes[name]) * sizes[name]
        if place < 0 or end > MAX_ADDRESS:
            raise MissesError(f"{name}: expected addresses of 0 to {MAX_ADDRESS}, found {place}")
    data = [_values(name, final, shapes[name], inputs or {}) for name in stream.inputs]
    return run_stream(
        stream.text,
        caches,
        tuple(shapes),
        [places[name] for name in shapes],
        data,
        [values[name] for name in final.extents],
    )


def _extents(procedure: Procedure, given: Mapping[str, int]) -> dict[str, int]:
    if set(given) != set(procedure.extents):
        expected = list(procedure.extents)
        raise MissesError(f"expected extents {expected}, found {sorted(given)}")
    for name, value in given.items():
        if not isinstance(value, int | np.integer) or not 0 <= value < 2**31:
            raise MissesError(f"extent {name}: expected a whole number, found {value!r}")
    return {name: int(value) for name, value in given.items()}


def _shape(tensor: Tensor, extents: Mapping[str, int]) -> tuple[int, ...]:
    values: dict[str, Expr] = {name: whole(value) for name, value in extents.items()}
    sizes = [simplify(substitute(extent, values)) for extent in tensor.shape]
    assert all(isinstance(size, Const) for size in sizes)  # verified: they depend on extents alone
    return tuple(max(0, int(size.value)) for size in sizes if isinstance(size, Const))


def _contiguous(shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int]) -> dict[str, int]:
    rooms = [-(-prod(shapes[n]) * sizes[n] // ALIGNMENT) * ALIGNMENT for n in shapes]
    return dict(zip(shapes, accumulate([0, *rooms[:-1]]), strict=True))


def _given(bases: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, int]:
    if set(bases) != set(sizes):
        raise MissesError(f"bases: expected one for each of {list(sizes)}, found {sorted(bases)}")
    for name, base in bases.items():
        if not isinstance(base, int | np.integer) or isinstance(base, bool) or base % sizes[name]:
            expected = f"a multiple of an element's {sizes[name]} bytes"
            raise MissesError(f"{name}: expected {expected} as its address, found {base}")
    return dict(bases)


def _values(
    name: str, procedure: Procedure, shape: tuple[int, ...], inputs: Mapping[str, NDArray[Any]]
) -> NDArray[Any]:
    if name not in inputs:
        raise MissesError(f"{name}: expected its values, which decide what is accessed, found none")
    (dtype,) = (t.dtype for t in procedure.tensors if t.name == name)
    array = inputs[name]
    if array.shape != shape or array.dtype != dtype:
        found = f"{array.dtype}{list(array.shape)}"
        raise MissesError(f"{name}: expected {dtype}{list(shape)}, found {found}")
    return np.ascontiguousarray(array)


@dataclass(frozen=True, slots=True)
class MissRow:
    """The misses of one order in the first cache, by cause."""

    order: str
    accesses: int
    misses: int
    compulsory: int
    capacity: int
    conflict: int


def miss_table(
    orders: Mapping[str, tuple[Procedure, Sequence[Directive]]],
    cache: Cache,
    extents: Mapping[str, int] | None = None,
) -> tuple[MissRow, ...]:
    """The misses of several orders of a computation, as data for a table or a plot.

    Args:
        orders: procedures with their schedules, by name.
        cache: the one level that they run in front of.
        extents: the values of the procedures' extents, as `cache_misses` takes them.

    Raises:
        CompilerError: as `cache_misses` does.
    """
    rows = []
    for name, (procedure, trace) in orders.items():
        total = cache_misses(procedure, trace, caches=[cache], extents=extents).first.total
        causes = (total.compulsory, total.capacity, total.conflict)
        rows.append(MissRow(name, total.accesses, total.misses, *causes))
    return tuple(rows)
