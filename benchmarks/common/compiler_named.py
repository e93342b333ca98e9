"""Rows of the compiler's table: generated code of the schedules of a blur and of four 3x3 boxes
against the same schedules written by hand (``blur_schedules.c``), on one thread.

Each round calls both arms of every schedule, in turns first; the ratio is the median over rounds of
generated time by hand-written time: 1 is equal, 1.1 a tenth slower. Times are CPU times.
Results are compared first.
"""

from __future__ import annotations

import ctypes
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cffi
import numpy as np
from table import Row

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.pipeline import lower
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.call import aligned
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.compiler.schedule.trace import parse_trace

HAND = Path(__file__).parents[1] / "blur_schedules.c"
SIZE, ROUNDS, WITHIN = 2048, 31, 1.10
LANES = 16
# From <malloc.h>.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# The tolerance of sums that the compiler may contract in one arm and not in the other.
TOLERANCE = 1e-5


def blur(size: int) -> Procedure:
    """Three columns, then three rows."""
    x = te.placeholder("image", (size + 2, size + 2))
    a = te.compute(
        "a", (size + 2, size), lambda i, j: (x[i, j] + x[i, j + 1] + x[i, j + 2]) * (1 / 3), [x]
    )
    b = te.compute(
        "b", (size, size), lambda y, x: (a[y, x] + a[y + 1, x] + a[y + 2, x]) * (1 / 3), [a]
    )
    return te.lower("blur", [b])


def box4(size: int) -> Procedure:
    """Four boxes of three by three."""
    x = te.placeholder("image", (size + 8, size + 8))
    a = te.compute("a", (size + 6, size + 6), lambda ay, ax: _nine(x, ay, ax), [x])
    b = te.compute("b", (size + 4, size + 4), lambda by, bx: _nine(a, by, bx), [a])
    c = te.compute("c", (size + 2, size + 2), lambda cy, cx: _nine(b, cy, cx), [b])
    d = te.compute("d", (size, size), lambda y, x: _nine(c, y, x), [c])
    return te.lower("box4", [d])


def _nine(image: te.Stage | te.Placeholder, y: te.Value, x: te.Value) -> te.Value:
    places = [image[y + i, x + j] for i in range(3) for j in range(3)]
    out = places[0]
    for place in places[1:]:
        out = out + place
    return out * (1 / 9)


def _vector(*loops: str, tail: str = "guard") -> str:
    return "".join(
        f"split({loop!r}, {LANES}, '', '', {tail!r})\nvectorize({loop + 'i'!r})\n" for loop in loops
    )


def _at(stages: tuple[str, ...], loop: str) -> str:
    return "".join(f"compute_at({stage!r}, {loop!r})\n" for stage in stages)


def _sliding(stages: tuple[str, ...], at: str, store: str | None) -> str:
    """Windows of all stages, the first stage's first: what a later one needs must be there."""
    out = _at(stages, at)
    for stage in reversed(stages):
        out += f"store_root({stage!r})\n" if store is None else f"store_at({stage!r}, {store!r})\n"
    return out + "".join(f"fold_storage({stage!r}, 0)\n" for stage in stages)


def _schedules(name: str, stages: tuple[str, ...], columns: tuple[str, ...]) -> dict[str, str]:
    """Traces by name: ``stages`` from the last to the first, with the loops over their columns."""
    first = tuple(f"{column}_first" for column in columns)
    return {
        f"{name}_root": _vector(*columns, "x"),
        f"{name}_tiles": "tile('y', 'x', 64, 64)\n"
        + _at(stages, "xo")
        + _vector(*columns, "xi", tail="partition"),
        f"{name}_strips_8": "split('y', 8)\n" + _at(stages, "yo") + _vector(*columns, "x"),
        f"{name}_strips_32": "split('y', 32)\n" + _at(stages, "yo") + _vector(*columns, "x"),
        f"{name}_sliding": _sliding(stages, "y", None) + _vector(*columns, *first, "x"),
        f"{name}_strips_sliding": "split('y', 32)\n"
        + _sliding(stages, "yi", "yo")
        + _vector(*columns, *first, "x"),
    }


SCHEDULES = {
    **_schedules("blur", ("a",), ("j",)),
    "blur_inline": "compute_inline('a')\n" + _vector("x"),
    "box4_inline": "".join(f"compute_inline({stage!r})\n" for stage in "abc") + _vector("x"),
    **_schedules("box4", ("c", "b", "a"), ("cx", "bx", "ax")),
}


@dataclass(frozen=True, slots=True)
class Arms:
    """A schedule's two functions on one set of arrays."""

    hand: Callable[[], None]
    generated: Callable[[], None]


def arms(name: str, size: int, cache: BuildCache, peer: Path) -> Arms:
    """Both functions of a schedule, after a look at their results.

    Raises:
        SystemExit: if they differ.
    """
    procedure = (blur if name.startswith("blur") else box4)(size)
    lowered = lower(procedure, parse_trace(SCHEDULES[name]))
    library = cache.build(lowered.source, find_toolchain(None), DEFAULT_FLAGS).library
    ffi = cffi.FFI()
    ffi.cdef(f"void {procedure.name}(float *, float *);")
    ffi.cdef(f"void {name}(float *, float *, float *, int64_t, int64_t);")
    mine, hand = ffi.dlopen(str(library)), ffi.dlopen(str(peer))
    border = 2 if name.startswith("blur") else 8
    image = aligned((size + border, size + border), "float32")
    image[...] = np.random.default_rng(0).random(image.shape, np.float32)
    outputs = [aligned((size, size), "float32") for _ in range(2)]
    scratch = aligned((3 * (size + 8) * (size + 8),), "float32")
    scratch[...] = 0
    source, room, *results = (
        ffi.cast("float *", array.ctypes.data) for array in (image, scratch, *outputs)
    )
    kept = (image, scratch, outputs, ffi)

    def by_hand() -> None:
        getattr(hand, name)(source, results[0], room, size, size)

    def generated() -> None:
        assert kept
        getattr(mine, procedure.name)(source, results[1])

    by_hand()
    generated()
    worst = float(np.abs(outputs[0] - outputs[1]).max())
    if worst > TOLERANCE:
        raise SystemExit(f"{name}: expected equal results, found a difference of {worst}")
    return Arms(by_hand, generated)


def keep_memory() -> None:
    """Have the C library keep what kernels give back: the hand-written arms get their scratch
    memory from their caller once, and new pages in every call would be what is measured.
    """
    library = ctypes.CDLL(None)
    library.mallopt(M_TRIM_THRESHOLD, 1 << 30)
    library.mallopt(M_MMAP_THRESHOLD, 1 << 25)


def seconds(function: Callable[[], None]) -> float:
    """The CPU time of one call."""
    start = time.thread_time()
    function()
    return time.thread_time() - start


def named() -> Iterator[Row]:
    """A row for each pipeline: every schedule against itself written by hand."""
    keep_memory()
    with tempfile.TemporaryDirectory() as folder:
        cache = BuildCache(Path(folder))
        peer = cache.build(HAND.read_text(), find_toolchain(None), DEFAULT_FLAGS).library
        pairs = {name: arms(name, SIZE, cache, peer) for name in SCHEDULES}
        times: dict[str, list[float]] = {name: [] for name in pairs}
        for number in range(ROUNDS):
            for name, both in pairs.items():
                order = (both.hand, both.generated)
                measured = [seconds(f) for f in (order if number % 2 == 0 else order[::-1])]
                hand, mine = measured if number % 2 == 0 else measured[::-1]
                times[name].append(mine / hand)
    for pipeline in ("blur", "box4"):
        ratios = {
            name.removeprefix(f"{pipeline}_"): statistics.median(each)
            for name, each in times.items()
            if name.startswith(pipeline)
        }
        shown = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
        yield (
            f"{pipeline} {SIZE}², one thread: generated over hand-written time, same schedule",
            f"<= {WITHIN:.2f}",
            shown,
            max(ratios.values()) <= WITHIN,
        )


GROUPS = {"named": named}
