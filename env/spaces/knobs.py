"""The knob space: named discrete values, rules with reasons, and the moves that searchers make in
it.

A configuration is a vector of levels (positions in each knob's values) and, over the full product
in row-major order, one flat index. Everything that is asked often (validity, features, columns of
values) is computed once for the whole product, so a space has at most `MAX_PRODUCT` combinations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.protocols import Violation
from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.types import Candidate, Knob, Language, Scalar

MAX_PRODUCT = 10_000_000
Draw = Callable[[], float]


class EmptySpaceError(ValueError):
    """A space in which no configuration satisfies the constraints."""


class KnobSpace:
    """Discrete knobs under constraints.

    Args:
        knobs: the choices; a step goes one position up or down in a knob's values.
        constraints: rules over knob names; a configuration is valid when all hold.
        members: flat indices of the only configurations that exist (a recorded landscape), or None
            for all.
        members_reason: what is said of a configuration that is not a member.
        default: the values of the space's default configuration.

    Raises:
        EmptySpaceError: if nothing is valid.
        ValueError: if the product exceeds `MAX_PRODUCT`, a name stands twice or the default is not
            in the space.
        ExpressionError: if a constraint names what does not exist.
    """

    language = Language.KNOBS
    can_sample = True

    def __init__(
        self,
        knobs: Sequence[Knob],
        constraints: Sequence[Constraint] = (),
        *,
        members: NDArray[np.int64] | None = None,
        members_reason: str = "not a member of this space",
        default: Sequence[tuple[str, Scalar]] | None = None,
    ) -> None:
        self.knobs = tuple(knobs)
        self.constraints = tuple(constraints)
        self.names = tuple(knob.name for knob in self.knobs)
        if len(set(self.names)) != len(self.names) or not self.names:
            raise ValueError(f"expected distinct knob names, found {self.names}")
        self.shape = tuple(len(knob.values) for knob in self.knobs)
        self.combinations = math.prod(self.shape)
        if self.combinations > MAX_PRODUCT:
            raise ValueError(
                f"expected at most {MAX_PRODUCT:,} combinations, found {self.combinations:,}"
            )
        for constraint in self.constraints:
            constraint.check_names(frozenset(self.names))
        self._strides = tuple(math.prod(self.shape[i + 1 :]) for i in range(len(self.shape)))
        self._position = [
            {(type(value), value): level for level, value in enumerate(knob.values)}
            for knob in self.knobs
        ]
        self._movable = tuple(i for i, size in enumerate(self.shape) if size > 1)
        self._by_name = dict(zip(self.names, range(len(self.names)), strict=True))
        self._members_reason = members_reason
        self.is_member = np.ones(self.combinations, dtype=bool)
        if members is not None:
            self.is_member[:] = False
            self.is_member[members] = True
        self.is_valid = self.is_member.copy()
        for constraint in self.constraints:
            self.is_valid &= constraint.holds(self.columns)
        self.valid: NDArray[np.int64] = np.flatnonzero(self.is_valid)
        if not len(self.valid):
            raise EmptySpaceError("no configuration satisfies the constraints")
        # A bytes object answers "is this one valid" several times faster than a NumPy scalar look-
        # up.
        self._valid_bytes = self.is_valid.tobytes()
        self._candidates: dict[int, Candidate] = {}
        self.default: Candidate | None = None
        if default is not None:
            self.default = Candidate(Language.KNOBS, tuple(default))
            broken = self.check(self.default)
            if broken:
                raise ValueError(f"default {self.default}: {broken[0].reason}")

    @property
    def is_listed(self) -> bool:
        """Whether all valid configurations are known; a larger space is drawn from."""
        return True

    # Configurations, levels and indices

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """Levels of every combination, shape (combinations, knobs)."""
        grid = np.unravel_index(np.arange(self.combinations), self.shape)
        return np.stack(grid, axis=1).astype(np.int32)

    @cached_property
    def columns(self) -> dict[str, NDArray[np.generic]]:
        """Values of every combination by knob name."""
        return {
            knob.name: np.array(knob.values)[self.levels[:, i]] for i, knob in enumerate(self.knobs)
        }

    def flat(self, levels: Sequence[int]) -> int:
        """The flat index of a vector of levels."""
        return sum(level * stride for level, stride in zip(levels, self._strides, strict=True))

    def unflat(self, index: int) -> list[int]:
        """The levels of a flat index."""
        out = []
        for stride in self._strides:
            level, index = divmod(index, stride)
            out.append(level)
        return out

    def candidate(self, index: int) -> Candidate:
        """The candidate at a flat index (one object for each index)."""
        found = self._candidates.get(index)
        if found is None:
            levels = self.unflat(index)
            pairs = tuple(
                (knob.name, knob.values[level])
                for knob, level in zip(self.knobs, levels, strict=True)
            )
            found = self._candidates[index] = Candidate(Language.KNOBS, pairs)
        return found

    def index(self, candidate: Candidate) -> int:
        """The flat index of a candidate, valid or not.

        Raises:
            ValueError: if it names other knobs or a value that no knob has; the message lists what
                exists.
        """
        if candidate.language is not Language.KNOBS:
            raise ValueError(f"expected a knobs candidate, found {candidate.language}")
        return self.index_of(candidate.knobs)

    def index_of(self, values: Mapping[str, Scalar]) -> int:
        """`index` of knob values by name."""
        violations, index = self._locate(values)
        if violations:
            raise ValueError(violations[0].reason)
        return index

    def _locate(self, values: Mapping[str, Scalar]) -> tuple[list[Violation], int]:
        index, listed = 0, ", ".join(self.names)
        found = [
            Violation("unknown_knob", f"unknown knob {name!r}; known: {listed}")
            for name in values
            if name not in self._by_name
        ]
        for i, knob in enumerate(self.knobs):
            if knob.name not in values:
                found.append(Violation("missing_knob", f"knob {knob.name!r} has no value"))
                continue
            value = values[knob.name]
            level = self._position[i].get((type(value), value))
            if level is None:
                known = ", ".join(map(str, knob.values))
                reason = f"{knob.name}={value!r}: expected one of {known}"
                found.append(Violation("knob_value", reason))
                continue
            index += level * self._strides[i]
        return found, index

    # The Space protocol

    def check(self, candidate: Candidate) -> tuple[Violation, ...]:
        """Every rule that the candidate breaks; empty if it is in the space."""
        if candidate.language is not Language.KNOBS:
            return (
                Violation("language", f"expected a knobs candidate, found {candidate.language}"),
            )
        violations, index = self._locate(candidate.knobs)
        if violations:
            return tuple(violations)
        if self._valid_bytes[index]:
            return ()
        return self.violations(index)

    def violations(self, index: int) -> tuple[Violation, ...]:
        """Every rule that the configuration at a flat index breaks."""
        out = []
        if not self.is_member[index]:
            out.append(Violation("not_a_member", self._members_reason))
        row = {name: column[index : index + 1] for name, column in self.columns.items()}
        values = self.candidate(index).knobs
        out += [c.explain(values) for c in self.constraints if not c.holds(row)[0]]
        return tuple(out)

    def contains_index(self, index: int) -> bool:
        """Whether the configuration at a flat index is valid."""
        return bool(self._valid_bytes[index])

    def canonical(self, candidate: Candidate) -> Candidate:
        """The candidate itself: a knob candidate's payload is already sorted by name."""
        return self.candidate(self.index(candidate))

    def sample(self, rng: np.random.Generator) -> Candidate:
        """A valid candidate, each equally likely."""
        return self.candidate(int(self.valid[rng.integers(len(self.valid))]))

    def neighbours(self, candidate: Candidate) -> tuple[Candidate, ...]:
        """The valid candidates with one knob one step away: down before up, in knob order."""
        return tuple(self.candidate(i) for i in self.neighbour_indices(self.index(candidate)))

    def neighbour_indices(self, index: int) -> list[int]:
        """Flat indices of the valid neighbours of a configuration."""
        out = []
        for level, stride, size in zip(self.unflat(index), self._strides, self.shape, strict=True):
            if level > 0 and self._valid_bytes[index - stride]:
                out.append(index - stride)
            if level < size - 1 and self._valid_bytes[index + stride]:
                out.append(index + stride)
        return out

    def mutate(
        self, candidate: Candidate, rng: np.random.Generator, steps: int = 1
    ) -> Candidate | None:
        """``steps`` different knobs moved one step each, or None if the draw leaves the space."""
        index = self.mutate_index(self.index(candidate), rng.random, steps)
        return None if index is None else self.candidate(index)

    def mutate_index(self, index: int, draw: Draw, steps: int = 1) -> int | None:
        """`mutate` on flat indices; ``draw`` gives uniform variates in [0, 1)."""
        levels = self.unflat(index)
        movable = list(self._movable)
        for _ in range(min(steps, len(movable))):
            knob = movable.pop(int(draw() * len(movable)))
            up = levels[knob] == 0 or (levels[knob] < self.shape[knob] - 1 and draw() < 0.5)
            index += self._strides[knob] if up else -self._strides[knob]
        return index if self._valid_bytes[index] else None

    def crossover(
        self, left: Candidate, right: Candidate, rng: np.random.Generator
    ) -> Candidate | None:
        """Each knob from either parent with equal chance, or None if the mixture is not valid."""
        index = self.crossover_index(self.index(left), self.index(right), rng.random)
        return None if index is None else self.candidate(index)

    def crossover_index(self, left: int, right: int, draw: Draw) -> int | None:
        """`crossover` on flat indices; ``draw`` gives uniform variates in [0, 1)."""
        bits = int(draw() * (1 << len(self.shape)))
        index = 0
        for stride in self._strides:
            a, left = divmod(left, stride)
            b, right = divmod(right, stride)
            index += (a if bits & 1 else b) * stride
            bits >>= 1
        return index if self._valid_bytes[index] else None

    def features(self, candidate: Candidate) -> NDArray[np.float64]:
        """`feature_table`'s row of a candidate."""
        row: NDArray[np.float64] = self.feature_table[self.index(candidate)]
        return row

    @cached_property
    def feature_table(self) -> NDArray[np.float64]:
        """Features of every combination: log2 of each knob, then all pairwise products, squares
        included.

        A knob whose values are not all positive numbers counts by its level instead of its
        logarithm.
        """
        base = []
        for i, knob in enumerate(self.knobs):
            numeric = all(isinstance(v, int | float) and v > 0 for v in knob.values)
            scale = (
                np.log2(np.array(knob.values, dtype=float)) if numeric else np.arange(self.shape[i])
            )
            base.append(scale[self.levels[:, i]].astype(np.float64))
        products = [base[i] * base[j] for i in range(len(base)) for j in range(i, len(base))]
        return np.stack([*base, *products], axis=1)


class TemplateSpace(KnobSpace):
    """A C file of one's own with its macros as knobs; a step is as in any space of knobs."""
