"""Shapes rounded up to buckets, and arrays padded to them where that leaves answers as they are.

Padding means zeros behind the elements of the inputs and the outputs cut back to their size. Which
extents may be rounded up so is asked of the problem's own reference, on small random inputs, one
extent at a time and all together; and never where an input holds whole numbers, which may be
indices or members of a count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from kernelwright.configs.binding import Array
from kernelwright.configs.errors import ConfigError, nearest
from kernelwright.env.problems.shapes import shape_of
from kernelwright.env.types import Problem

POWERS, EXACT = "powers", "exact"
Rule: TypeAlias = str | Sequence[int]
Make = Callable[..., Problem]
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
# Small extents of which no two are alike, how far they are padded, and how often that is tried.
_SMALL, _MORE, _DRAWS = (5, 6, 7, 9, 11), (1, 3), 2


class Buckets:
    """How extents are rounded up.

    Args:
        names: the extents that are.
        rules: ``powers`` of two, ``exact``, a list of sizes, or one of these for each extent by
            name.

    Raises:
        ConfigError: if a rule is none of these.
    """

    def __init__(self, names: Sequence[str], rules: Rule | Mapping[str, Rule]) -> None:
        each = dict(rules) if isinstance(rules, Mapping) else dict.fromkeys(names, rules)
        for name in each:
            if name not in names:
                expected = f"extents of the key ({', '.join(names)})"
                raise _error("buckets", expected, repr(name), nearest(name, names))
        self._rules = {name: _checked(name, each.get(name, POWERS)) for name in names}

    def of(self, extents: Mapping[str, int]) -> dict[str, int] | None:
        """The bucket of these extents; None if one is beyond the largest that is listed. An extent
        that no rule is for stays as it is.
        """
        out = {}
        for name, size in extents.items():
            rounded = _rounded(size, self._rules.get(name, EXACT))
            if rounded is None:
                return None
            out[name] = rounded
        return out


def _checked(name: str, rule: Rule) -> str | tuple[int, ...]:
    expected = f"{POWERS}, {EXACT} or sizes in ascending order"
    if isinstance(rule, str):
        if rule not in (POWERS, EXACT):
            raise _error(f"buckets.{name}", expected, repr(rule), nearest(rule, (POWERS, EXACT)))
        return rule
    sizes = tuple(rule)
    whole = all(isinstance(size, int) and not isinstance(size, bool) for size in sizes)
    if not (sizes and whole and sizes[0] > 0 and list(sizes) == sorted(set(sizes))):
        raise _error(f"buckets.{name}", expected, repr(rule))
    return sizes


def _rounded(size: int, rule: str | tuple[int, ...]) -> int | None:
    if rule == POWERS:
        return 1 << max(0, size - 1).bit_length()
    if rule == EXACT:
        return size
    return next((each for each in rule if isinstance(each, int) and each >= size), None)


def _error(path: str, expected: str, found: str, near: str | None = None) -> ConfigError:
    return ConfigError("autotune", None, path, expected, found, near)


def shapes_of(problem: Problem, role: str, extents: Mapping[str, int]) -> Shapes:
    """The shapes of a problem's inputs or outputs for these extents, by name."""
    return {t.name: shape_of(t, extents) for t in problem.tensors if t.role == role}


def padded(arrays: Mapping[str, Array], shapes: Shapes) -> dict[str, Array]:
    """Inputs with zeros behind them, up to these shapes."""
    out = {}
    for name, shape in shapes.items():
        array = arrays[name]
        out[name] = array
        if array.shape != shape:
            out[name] = np.zeros(shape, array.dtype)
            out[name][tuple(map(slice, array.shape))] = array
    return out


def cropped(outputs: Mapping[str, Array], shapes: Shapes) -> dict[str, Array]:
    """Outputs cut back to these shapes."""
    return {name: outputs[name][tuple(map(slice, shape))] for name, shape in shapes.items()}


def paddable(make: Make, names: Sequence[str]) -> frozenset[str]:
    """The extents that may be rounded up by padding.

    Args:
        make: the problem, called with extents by name.
        names: the extents that are asked about.
    """
    rng = np.random.default_rng(0)
    alone = [name for name in names if _holds(make, names, (name,), rng)]
    return frozenset(alone) if alone and _holds(make, names, alone, rng) else frozenset()


def _holds(
    make: Make, names: Sequence[str], grown: Sequence[str], rng: np.random.Generator
) -> bool:
    small = {name: _SMALL[place % len(_SMALL)] for place, name in enumerate(names)}
    try:
        return all(
            _agrees(make, small, {n: s + more if n in grown else s for n, s in small.items()}, rng)
            for more in _MORE
            for _ in range(_DRAWS)
        )
    except Exception:  # noqa: BLE001 - whatever a stranger's reference says of such shapes, it is no
        return False


def _agrees(
    make: Make, small: Mapping[str, int], large: Mapping[str, int], rng: np.random.Generator
) -> bool:
    problem, bigger = make(**small), make(**large)
    given = problem.inputs(problem.workloads[0], rng)
    if any(array.dtype.kind != "f" for array in given.values()):
        return False
    extents, more = problem.workloads[0].fixed, bigger.workloads[0].fixed
    wanted = problem.reference(given)
    outputs = bigger.reference(padded(given, shapes_of(bigger, "input", more)))
    found = cropped(outputs, shapes_of(problem, "output", extents))
    return all(
        found[name].shape == array.shape and np.allclose(found[name], array, rtol=1e-9, atol=1e-12)
        for name, array in wanted.items()
    )
