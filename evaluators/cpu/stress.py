"""Inputs that an honest kernel does not mind: other scales, sums that cancel, single elements,
ramps, other orders, subnormal numbers.

A problem names the kinds that are within its domain (`Problem.stress`). Stressed inputs are mixed
in among the others and never timed. ``mixed`` has several kinds in one set, in blocks along the
first axis of an array, so that a path that is chosen by looking at a few elements is the wrong one
somewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.types import STRESSES, Arrays, Problem

Array = NDArray[Any]
SMALL, LARGE = 1e-3, 64.0
MIXED = "mixed"
# In these many terms are alike, so that roundings do not cancel.
STRUCTURED = frozenset({MIXED, "one_hot", "ramp", "cancellation", "equal", "sorted"})
# Those that need no fractions.
OF_WHOLE_NUMBERS = ("permutation", "equal", "sorted")
# Of so many elements one is subnormal; more would slow every call without showing more.
_SUBNORMAL_SHARE = 1 / 8
_BLOCKS = 6


def _small(x: Array, rng: np.random.Generator) -> Array:
    del rng
    out: Array = x * x.dtype.type(SMALL)
    return out


def _large(x: Array, rng: np.random.Generator) -> Array:
    del rng
    out: Array = x * x.dtype.type(LARGE)
    return out


def _cancellation(x: Array, rng: np.random.Generator) -> Array:
    """The second half of an axis is the negative of the first, nearly: sums along it cancel."""
    out = x.copy()
    if out.ndim:
        along = np.moveaxis(out, int(rng.integers(out.ndim)), 0)
        half = len(along) // 2
        along[half : 2 * half] = -along[:half] * x.dtype.type(1 + 2.0**-10)
    return out


def _one_hot(x: Array, rng: np.random.Generator) -> Array:
    """Along the last axis, all but one element are zero."""
    out = np.zeros_like(x)
    rows = out.reshape(-1, x.shape[-1]) if x.ndim else out.reshape(1, 1)
    place = rng.integers(rows.shape[1], size=len(rows))
    rows[np.arange(len(rows)), place] = x.dtype.type(1) + abs(x.reshape(rows.shape)[:, 0])
    return out


def _ramp(x: Array, rng: np.random.Generator) -> Array:
    """Every element differs from every other, in order."""
    low, high = sorted(rng.uniform(-2, 2, 2))
    return np.linspace(low, high, x.size).reshape(x.shape).astype(x.dtype)


def _permutation(x: Array, rng: np.random.Generator) -> Array:
    return rng.permutation(x.reshape(-1)).reshape(x.shape)


def _subnormal(x: Array, rng: np.random.Generator) -> Array:
    tiny = np.finfo(x.dtype).tiny * rng.random(x.shape, np.float32)
    chosen = rng.random(x.shape, np.float32) < _SUBNORMAL_SHARE
    return np.where(chosen, tiny, x).astype(x.dtype)


def _equal(x: Array, rng: np.random.Generator) -> Array:
    """Along the last axis all elements are equal; fractions of few digits, so that their sums are
    exact.
    """
    if not x.size:
        return x
    rows = x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)
    chosen = rows[np.arange(len(rows)), rng.integers(rows.shape[1], size=len(rows))][:, None]
    if x.dtype.kind == "f":
        chosen = np.rint(4 * np.clip(chosen, -8, 8)) / 4 + rng.choice((0, 64), chosen.shape)
    return np.broadcast_to(chosen, rows.shape).reshape(x.shape).astype(x.dtype)


def _sorted(x: Array, rng: np.random.Generator) -> Array:
    """Ascending or descending, as a whole."""
    out: Array = np.sort(x.reshape(-1))[:: rng.choice((-1, 1))].reshape(x.shape)
    return out


_MADE: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "small": _small,
    "large": _large,
    "cancellation": _cancellation,
    "one_hot": _one_hot,
    "ramp": _ramp,
    "subnormal": _subnormal,
    "permutation": _permutation,
    "equal": _equal,
    "sorted": _sorted,
}
assert tuple(_MADE) == STRESSES


def stressed(problem: Problem, arrays: Arrays, kind: str, rng: np.random.Generator) -> Arrays:
    """Input values of a kind made from drawn ones: some of the floating arrays changed, at least
    one; arrays of whole numbers only where there are no others.

    Args:
        problem: its ``stress`` has the kinds that ``mixed`` may use.
        arrays: what the problem drew.
        kind: one of `STRESSES`, or ``mixed``.
        rng: chooses.
    """
    sized = [name for name, array in arrays.items() if array.size and problem.is_own(name)]
    floating = [name for name in sized if arrays[name].dtype.kind == "f"]
    names = floating or sized
    if not names:
        return arrays
    kinds = kinds_of(problem)[1:]
    chosen = {name for name in names if rng.random() < 0.5} or {names[rng.integers(len(names))]}
    changed = {
        name: _changed(array, kind, kinds, rng) if name in chosen else array
        for name, array in arrays.items()
    }
    return problem.agreed(changed)


def _changed(x: Array, kind: str, kinds: tuple[str, ...], rng: np.random.Generator) -> Array:
    if kind != MIXED:
        return _MADE[kind](x, rng)
    out = x.copy()
    if not x.ndim:
        return out
    edges = np.unique(rng.integers(0, len(x) + 1, _BLOCKS - 1))
    for first, last in zip((0, *edges), (*edges, len(x)), strict=True):
        if last > first and rng.random() < 0.8:
            out[first:last] = _MADE[kinds[rng.integers(len(kinds))]](x[first:last], rng)
    return out


def kinds_of(problem: Problem) -> tuple[str, ...]:
    """The kinds of a problem's stressed calls."""
    floating = any(np.dtype(t.dtype).kind == "f" for t in problem.tensors if t.role == "input")
    known = STRESSES if floating else OF_WHOLE_NUMBERS
    kinds = tuple(kind for kind in problem.stress if kind in known)
    return (MIXED, *kinds) if kinds else ()
