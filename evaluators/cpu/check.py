"""Comparing outputs with the reference, by the problem's error model.

Answers say where an output is off and by how much, never what would have been right: what a
proposer is told of hidden inputs it could use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import ProblemError
from kernelwright.env.types import Arrays, Problem, Workload

# The inverse of a magnitude of 0: nothing but the exact value is allowed there.
_FORBIDDING = 1e300
Unwritten = Callable[[str], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an output is not the answer: a class code and what was seen."""

    code: str
    evidence: str
    error: float | None


class Answers:
    """The reference's outputs for one set of inputs, with what their error is measured in.

    The reference is computed here, in a process that never loads a candidate. Where a result lies
    below the normal numbers, an operation may err by the least of them (Higham, Accuracy and
    Stability of Numerical Algorithms, 2nd ed., 2002, section 2.1), so every element may be off by
    that, times the operations that it takes.

    Args:
        problem: with its reference and error model.
        inputs: the values.
        shapes: of the outputs, by name.
        exact: whether nothing but the reference's values is right.
        workload: says how many operations an element takes; one, unless given.

    Raises:
        ProblemError: if a part of the problem raises or does not fit.
    """

    def __init__(
        self,
        problem: Problem,
        inputs: Arrays,
        shapes: Mapping[str, tuple[int, ...]],
        *,
        exact: bool = False,
        workload: Workload | None = None,
    ) -> None:
        self._model = problem.error_model
        self._reference = _expected(problem, inputs, shapes)
        self._inverse: dict[str, NDArray[np.float64]] = {}
        self._exact = exact or self._model.bound == 0
        # Where the answer is no finite number, nothing else is right.
        self._odd = {n: ~np.isfinite(a) for n, a in self._reference.items() if a.dtype.kind == "f"}
        self._odd = {name: odd for name, odd in self._odd.items() if odd.any()}
        if self._odd and not problem.non_finite:
            what = "expected finite answers (or Problem.non_finite), found NaN or infinity"
            raise ProblemError(f"{problem.name}: reference: {next(iter(self._odd))}: {what}")
        if problem.magnitude is not None and not self._exact:
            tiny = _least(problem, shapes, workload)
            for name, scale in _magnitudes(problem, inputs, self._reference).items():
                with np.errstate(divide="ignore", invalid="ignore"):
                    scale += tiny[name]
                    inverse = np.array(np.minimum(1 / scale, _FORBIDDING))
                if name in self._odd:
                    inverse[self._odd[name]] = 0.0
                self._inverse[name] = inverse
        self._room = {n: np.empty(a.shape, np.float64) for n, a in self._reference.items()}

    @property
    def reference(self) -> Arrays:
        """The answers, in float64 or whole numbers."""
        return dict(self._reference)

    def compare(self, outputs: Mapping[str, NDArray[np.generic]]) -> float:
        """The largest error in units of the error model; infinite where a value must be exact and
        is not.
        """
        return max(
            (self._error(name, outputs[name], ref) for name, ref in self._reference.items()),
            default=0.0,
        )

    def check(
        self, outputs: Mapping[str, NDArray[np.generic]], unwritten: Unwritten
    ) -> tuple[Fault | None, float]:
        """What is wrong with outputs, and their largest error in units of the error model.

        Args:
            outputs: by name.
            unwritten: which elements of an output still hold what was there before.
        """
        worst = 0.0
        for name, reference in self._reference.items():
            output = outputs[name]
            error = self._error(name, output, reference)
            # The pattern of what was never written is a NaN itself.
            odd = self._odd.get(name)
            if odd is not None and (unwritten(name) & odd).any():
                error = np.inf
            if not error <= self._model.bound:
                return self._fault(unwritten(name), name, output, reference, error), error
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
        unwritten: NDArray[np.bool_],
        name: str,
        output: NDArray[np.generic],
        reference: NDArray[np.generic],
        error: float,
    ) -> Fault:
        fault = _plain_fault(unwritten, name, output, np.isfinite(reference))
        if fault is not None:
            return fault
        wrong = self._wrong(name, output, reference)
        count = f"{int(wrong.sum()):,} of {output.size:,} elements are off, "
        known = error if np.isfinite(error) else None
        limit = "" if known is None else _limit(error, self._model.bound)
        if self._exact:
            limit = " (the answer is exact in every order of the operations)"
        whole = self._exact or name in self._inverse
        first = f"the first at {name}{_at(_first(wrong))}"
        in_norm = f"{name} is off in the norm, {first.replace('first', 'worst')}{limit}"
        evidence = f"{count}{first}{limit}" if whole else in_norm
        return Fault("wrong_value", evidence, known)


class ProjectedAnswers:
    """Answers to a large output without the whole of it: its products with secret random signs, and
    some secret rows in full.

    With signs v that are independent of the errors e of a row, |Σ v e| exceeds λ ‖e‖ with
    probability at most 2 exp(-λ²/2) (Hoeffding, Probability inequalities for sums of bounded random
    variables, JASA 58, 1963, theorem 2); and ‖e‖ is at most the norm of the row's error bounds.

    Args:
        problem: with a ``projection``; its other outputs are not checked, so it has none.
        inputs: the values.
        shapes: of the outputs, by name.
        rng: draws signs and rows; nobody knows it before the output is there.
        workload: as of `Answers`.

    Raises:
        ProblemError: if a part of the problem raises or does not fit.
    """

    def __init__(
        self,
        problem: Problem,
        inputs: Arrays,
        shapes: Mapping[str, tuple[int, ...]],
        rng: np.random.Generator,
        workload: Workload,
    ) -> None:
        assert problem.projection is not None
        self._model, self._by = problem.error_model, problem.projection
        (self._name,) = shapes
        rows, columns = shapes[self._name]
        self._signs = rng.choice((-1.0, 1.0), (columns, SIGNS))
        self._rows = rng.choice(rows, min(rows, ROWS), replace=False)
        tiny = _least(problem, shapes, workload)[self._name]
        try:
            self._product = self._by.product(inputs, self._signs)
            self._some, scale = self._by.rows(inputs, self._rows)
            norms = self._by.row_norms(inputs) + tiny * math.sqrt(columns)
        except Exception as error:
            what = f"{problem.name}: projection: {type(error).__name__}: {error}"
            raise ProblemError(what) from error
        with np.errstate(divide="ignore"):
            self._inverse_rows = np.minimum(1 / (scale + tiny), _FORBIDDING)
            self._inverse_norms = np.minimum(1 / (DEVIATIONS * norms), _FORBIDDING)[:, None]

    def check(
        self, outputs: Mapping[str, NDArray[np.generic]], unwritten: Unwritten
    ) -> tuple[Fault | None, float]:
        """As of `Answers`."""
        output = outputs[self._name]
        with np.errstate(all="ignore"):
            off = abs(output.astype(np.float64) @ self._signs - self._product)
            off *= self._inverse_norms
            some = abs(output[self._rows].astype(np.float64) - self._some) * self._inverse_rows
        error = max(float(off.max(initial=0)), float(some.max(initial=0)))
        if error <= self._model.bound:
            return None, error
        fault = _plain_fault(unwritten(self._name), self._name, output, np.True_)
        if fault is not None:
            return fault, error
        wrong = ~(off <= self._model.bound).all(axis=1)
        wrong[self._rows[~(some <= self._model.bound).all(axis=1)]] = True
        known = error if np.isfinite(error) else None
        limit = "" if known is None else _limit(error, self._model.bound)
        rows = f"{int(wrong.sum()):,} of {len(wrong):,} rows of {self._name} are off, the first is "
        return Fault("wrong_value", f"{rows}{self._name}{_at(_first(wrong))}{limit}", known), error


# Of a projection: how many vectors of signs, how many rows in full, and λ of the bound, which
# honest outputs exceed once in 10^11 elements.
SIGNS, ROWS, DEVIATIONS = 4, 8, 7.2


def _limit(error: float, bound: float) -> str:
    return f" (error {error:.3g} of what it is measured in, at most {bound:.3g})"


def _plain_fault(
    unwritten: NDArray[np.bool_],
    name: str,
    output: NDArray[np.generic],
    finite: NDArray[np.bool_] | np.bool_,
) -> Fault | None:
    """What is wrong with an output whatever its values should be."""
    if unwritten.any():
        evidence = f"{int(unwritten.sum()):,} of {output.size:,} elements of {name} were never "
        evidence += (
            f"written, the first at {_at(_first(unwritten))}; or added to, and outputs hold "
        )
        return Fault("unwritten", f"{evidence}nothing when a call starts", None)
    if output.dtype.kind != "f":
        return None
    odd = ~np.isfinite(output) & finite
    if not odd.any():
        return None
    place = _first(odd)
    evidence = f"{name}{_at(place)} is {output[place]}, {int(odd.sum()):,} elements are not finite"
    return Fault("not_finite", evidence, None)


def _least(
    problem: Problem, shapes: Mapping[str, tuple[int, ...]], workload: Workload | None
) -> dict[str, float]:
    """By output, what an element may be off in units of the error model for being subnormal."""
    elements = max(1, sum(math.prod(shape) for shape in shapes.values()))
    each = 1.0 if workload is None else max(1.0, problem.flops(workload) / elements)
    kinds = {spec.name: np.dtype(spec.dtype) for spec in problem.tensors}
    bound = problem.error_model.bound
    return {
        name: each * float(np.finfo(kinds[name]).tiny) / bound
        if kinds[name].kind == "f" and bound
        else 0.0
        for name in shapes
    }


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


def _first(where: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(where)[0])


def _at(place: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, place))}]"
