"""Comparing outputs with the reference, by the problem's error model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import ProblemError
from kernelwright.env.types import Arrays, Problem
from kernelwright.evaluators.cpu.memory import Arena

# The inverse of a magnitude of 0: nothing but the exact value is allowed there.
_FORBIDDING = 1e300


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an output is not the answer: a class code and what was seen."""

    code: str
    evidence: str
    error: float | None


class Answers:
    """The reference's outputs for one set of inputs, with what their error is measured in.

    The reference is computed here, in a process that never loads a candidate.
    """

    def __init__(
        self,
        problem: Problem,
        inputs: Arrays,
        shapes: Mapping[str, tuple[int, ...]],
        *,
        exact: bool = False,
    ) -> None:
        self._model = problem.error_model
        self._reference = _expected(problem, inputs, shapes)
        self._inverse: dict[str, NDArray[np.float64]] = {}
        self._exact = exact or self._model.bound == 0
        # Where the answer is no finite number, nothing else is right.
        self._odd = {n: ~np.isfinite(a) for n, a in self._reference.items() if a.dtype.kind == "f"}
        self._odd = {name: odd for name, odd in self._odd.items() if odd.any()}
        if problem.magnitude is not None and not self._exact:
            for name, scale in _magnitudes(problem, inputs, self._reference).items():
                with np.errstate(divide="ignore", invalid="ignore"):
                    inverse = np.array(np.minimum(1 / scale, _FORBIDDING))
                if name in self._odd:
                    inverse[self._odd[name]] = 0.0
                self._inverse[name] = inverse
        self._room = {n: np.empty(a.shape, np.float64) for n, a in self._reference.items()}

    def check(self, arena: Arena) -> tuple[Fault | None, float]:
        """What is wrong with the outputs in an arena, and their largest error in units of the error
        model.
        """
        damage = arena.damaged()
        if damage is not None:
            return Fault("out_of_bounds", f"wrote into the {damage}", None), 0.0
        worst = 0.0
        for name, reference in self._reference.items():
            output = arena.views[name]
            error = self._error(name, output, reference)
            # The pattern of what was never written is a NaN itself.
            odd = self._odd.get(name)
            if odd is not None and (arena.poisoned(name) & odd).any():
                error = np.inf
            if not error <= self._model.bound:
                return self._fault(arena, name, output, reference, error), error
            worst = max(worst, error)
        return None, worst

    def _error(
        self, name: str, output: NDArray[np.generic], reference: NDArray[np.generic]
    ) -> float:
        if output.dtype == np.bool_:
            # Any byte but 0 and 1 is no answer, though NumPy takes it for True.
            same = np.array_equal(output.view(np.uint8), reference.astype(np.uint8))
            return 0.0 if same else np.inf
        if self._exact:
            same = np.array_equal(output, reference, equal_nan=output.dtype.kind == "f")
            return 0.0 if same else np.inf
        room, odd = self._room[name], self._odd.get(name)
        with np.errstate(all="ignore"):
            np.subtract(output, reference, out=room, dtype=np.float64, casting="unsafe")
            if odd is not None:
                if not np.array_equal(output[odd], reference[odd], equal_nan=True):
                    return np.inf
                room[odd] = 0.0
            if name in self._inverse:
                np.abs(room, out=room)
                np.multiply(room, self._inverse[name], out=room)
                return float(room.max(initial=0.0))
            norm = float(np.linalg.norm(reference if odd is None else reference[~odd]))
            distance = float(np.linalg.norm(room))
        if not (np.isfinite(norm) and np.isfinite(distance)):
            return np.inf
        return distance / norm if norm else (0.0 if distance == 0 else np.inf)

    def _wrong(
        self, name: str, output: NDArray[np.generic], reference: NDArray[np.generic]
    ) -> NDArray[np.bool_]:
        """Which elements are off; where only the norm says that some are, the worst of them."""
        odd = self._odd.get(name, np.zeros(output.shape, bool))
        same = (output == reference) | ((output != output) & (reference != reference))
        wrong: NDArray[np.bool_]
        if output.dtype == np.bool_:
            wrong = output.view(np.uint8) != reference.astype(np.uint8)
        elif self._exact:
            wrong = ~same
        elif name in self._inverse:
            wrong = (self._room[name] > self._model.bound) | (odd & ~same)
        else:
            room = np.abs(self._room[name])
            wrong = (odd & ~same) if (odd & ~same).any() else room == np.nanmax(room)
        return wrong if wrong.any() else ~same

    def _fault(
        self,
        arena: Arena,
        name: str,
        output: NDArray[np.generic],
        reference: NDArray[np.generic],
        error: float,
    ) -> Fault:
        poisoned = arena.poisoned(name)
        if poisoned.any():
            place = tuple(int(i) for i in np.argwhere(poisoned)[0])
            evidence = f"{int(poisoned.sum()):,} of {output.size:,} elements of {name} were never "
            return Fault("unwritten", f"{evidence}written, the first at {_at(place)}", None)
        if output.dtype.kind == "f":
            odd = ~np.isfinite(output) & np.isfinite(reference)
            if odd.any():
                place = tuple(int(i) for i in np.argwhere(odd)[0])
                found = output[place]
                evidence = (
                    f"{name}{_at(place)} is {found}, {int(odd.sum()):,} elements are not finite"
                )
                return Fault("not_finite", evidence, None)
        wrong = self._wrong(name, output, reference)
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        count = f"{int(wrong.sum()):,} of {output.size:,} elements are off; "
        shown = f"{name}{_at(place)} is {output[place]}, expected {reference[place]}"
        limit = "" if self._exact else f" (error {error:.3g}, at most {self._model.bound:.3g})"
        whole = "" if self._exact or name in self._inverse else "in the norm; "
        known = error if np.isfinite(error) else None
        return Fault("wrong_value", f"{whole or count}{shown}{limit}", known)


def _magnitudes(
    problem: Problem, inputs: Arrays, reference: Mapping[str, NDArray[np.generic]]
) -> dict[str, NDArray[np.float64]]:
    """What errors are measured in, an array of its own for each output.

    Raises:
        ProblemError: if the problem's magnitude raises, or is of other outputs or shapes.
    """
    where = f"{problem.name}: magnitude"
    assert problem.magnitude is not None
    try:
        found = problem.magnitude(inputs)
        if set(found) != set(reference):
            raise ValueError(f"expected outputs {sorted(reference)}, found {sorted(found)}")
        return {
            name: np.array(np.broadcast_to(np.asarray(found[name], np.float64), array.shape))
            for name, array in reference.items()
        }
    except Exception as error:
        raise ProblemError(f"{where}: {type(error).__name__}: {error}") from error


def _expected(
    problem: Problem, inputs: Arrays, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, NDArray[np.generic]]:
    """The reference's outputs.

    Raises:
        ProblemError: if it raises, or gives other outputs than the problem declares.
    """
    where = f"{problem.name}: reference"
    try:
        found = problem.reference(inputs)
    except Exception as error:
        raise ProblemError(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(found, Mapping) or set(found) != set(shapes):
        names = sorted(found) if isinstance(found, Mapping) else type(found).__name__
        raise ProblemError(f"{where}: expected outputs {sorted(shapes)}, found {names}")
    out = {}
    for name, shape in shapes.items():
        array = np.asarray(found[name])
        if array.shape != shape or array.dtype.kind not in "fiub":
            expected = f"expected numbers of shape {list(shape)}"
            kind = f"{array.dtype}{list(array.shape)}"
            raise ProblemError(f"{where}: output {name}: {expected}, found {kind}")
        # Errors are computed in float64, so that no norm of them overflows in a narrower dtype.
        out[name] = array.astype(np.float64) if array.dtype.kind == "f" else array
    return out


def _at(place: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, place))}]"
