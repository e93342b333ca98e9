"""Impostors: outputs that nobody needs to compute, or that somebody computed once before.

A problem that lets one pass has no teeth, and no kernel can be judged on it (evaluators have been
beaten by zeros under an absolute tolerance, and by the mean of a result that hardly varies). So a
judge looks at them before it judges anything, and refuses the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.types import Arrays, Problem
from kernelwright.evaluators.cpu.check import Answers

Array = NDArray[Any]
# The share of a result that the impostor which stops early leaves out; one element at least.
_UNDONE = 0.01


def impostors(
    problem: Problem, inputs: Arrays, reference: Arrays, previous: Arrays | None = None
) -> dict[str, Arrays]:
    """Outputs by the impostor's name, in the dtypes that the problem declares.

    Left out are those that are made of the reference and equal it, as the mean of a single element
    does: they are the answer.

    Args:
        problem: what should have been computed.
        inputs: for which inputs.
        reference: the answer to them, in float64 or whole numbers.
        previous: the answer to other inputs, of the same shapes.
    """
    given = {
        "zeros": {name: np.zeros_like(array) for name, array in reference.items()},
        "ones": {name: np.ones_like(array) for name, array in reference.items()},
    }
    for name, array in inputs.items():
        copies = {key: _copied(array, wanted.shape) for key, wanted in reference.items()}
        given[f"input {name}"] = copies
    if previous is not None:
        given["previous output"] = dict(previous)
    derived = {
        "mean": _each(reference, lambda a: _mean(a, None)),
        "last elements zero": _each(reference, _unfinished),
        "shifted by one": _each(reference, lambda a: np.roll(a.ravel(), 1).reshape(a.shape)),
        "sign changed": _each(reference, lambda a: ~a if a.dtype == np.bool_ else -a),
    }
    for axis in range(2 if any(array.ndim == 2 for array in reference.values()) else 0):
        derived[f"mean along axis {axis}"] = _each(reference, partial(_mean, axis=axis))
    dtypes = {spec.name: spec.dtype for spec in problem.tensors if spec.role == "output"}
    wanted = _typed(reference, dtypes)
    out = {name: _typed(outputs, dtypes) for name, outputs in given.items()}
    for name, outputs in derived.items():
        typed = _typed(outputs, dtypes)
        if not all(np.array_equal(typed[key], wanted[key], equal_nan=True) for key in wanted):
            out[name] = typed
    return out


def passing_impostors(
    problem: Problem, draws: Iterable[Arrays], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[str, ...]:
    """The impostors that are within the error model on every one of some inputs, by name.

    A problem with any is to be refused. A copy of the answer to the call before needs two draws.

    Args:
        problem: whose reference and error model are examined.
        draws: inputs, as a judge would draw them.
        shapes: of the outputs, by name.

    Raises:
        ProblemError: if a part of the problem raises or does not fit.
    """
    passing: dict[str, bool] = {}
    previous: Arrays | None = None
    for arrays in draws:
        answers = Answers(problem, arrays, shapes)
        reference = answers.reference
        with np.errstate(all="ignore"):
            found = impostors(problem, arrays, reference, previous)
        for name, outputs in found.items():
            if passing.get(name, True):
                passing[name] = answers.compare(outputs) <= problem.error_model.bound
        previous = reference
    return tuple(name for name, passes in passing.items() if passes)


def _copied(array: Array, shape: tuple[int, ...]) -> Array:
    """The array as a result of this shape: itself, its beginning, or itself again and again."""
    size = int(np.prod(shape, dtype=np.int64))
    return np.resize(array.ravel(), size).reshape(shape)


def _each(arrays: Arrays, change: Callable[[Array], Array]) -> Arrays:
    return {name: change(array) for name, array in arrays.items()}


def _mean(array: Array, axis: int | None) -> Array:
    """The mean in place of every element; along an axis that the array has, if one is given."""
    along = axis if axis is None or axis < array.ndim else None
    out: Array = np.broadcast_to(array.mean(axis=along, keepdims=True), array.shape).copy()
    return out


def _unfinished(array: Array) -> Array:
    """The last of the elements are zero."""
    out = array.copy()
    out.reshape(-1)[out.size - max(1, int(out.size * _UNDONE)) :] = 0
    return out


def _typed(arrays: Mapping[str, Array], dtypes: Mapping[str, str]) -> Arrays:
    with np.errstate(all="ignore"):
        return {name: np.asarray(arrays[name]).astype(dtypes[name]) for name in dtypes}
