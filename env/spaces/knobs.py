"""The knob space: named discrete values, rules with reasons, and the moves that searchers make in
it.

A configuration is a vector of levels (positions in each knob's values) and, over the full product
in row-major order, one flat index. Where the valid configurations can be enumerated they are, and
everything that is asked often is computed once; a larger space is sampled and checked one
configuration at a time (`env.spaces.enumeration`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.protocols import Violation
from kernelwright.env.spaces.enumeration import (
    Component,
    columns_of,
    components,
    constants_hold,
    drawn,
    satisfied,
)
from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.types import Candidate, Knob, Language, Scalar, knob_key, knob_text

# Products up to this size have tables of all combinations, and so many valid ones are listed.
MAX_PRODUCT = 10_000_000
MAX_INDEX = 2**62
# Coins in one uniform variate: a double has no more.
DRAWN_BITS = 53
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
        ValueError: if there are more than 2^62 combinations, a name stands twice or the default is
            not in the space.
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
        if self.combinations > MAX_INDEX:
            raise ValueError(f"expected at most 2^62 combinations, found {self.combinations:,}")
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
        self._members = None if members is None else np.unique(members)
        self._components: list[Component] = []
        self._listed: NDArray[np.int64] | None = self._enumerate()
        # Bytes answer "is this one valid" several times faster than a NumPy scalar look-up.
        self._bits: bytes | None = None
        if self._listed is not None and self.combinations <= MAX_PRODUCT:
            self._bits = self.is_valid.tobytes()
        self._candidates: dict[int, Candidate] = {}
        self.default: Candidate | None = None
        if default is not None:
            self.default = Candidate(Language.KNOBS, tuple(default))
            broken = self.check(self.default)
            if broken:
                raise ValueError(f"default {self.default}: {broken[0].reason}")

    def _enumerate(self) -> NDArray[np.int64] | None:
        """Flat indices of all valid configurations in ascending order; None if there are too many
        to list.

        Raises:
            EmptySpaceError: if there is none.
        """
        if self._members is not None:
            places, levels = range(len(self.knobs)), self.levels_of(self._members)
            valid = self._members[satisfied(self.knobs, places, levels, self.constraints)]
        else:
            self._components = components(self.knobs, self.constraints)
            counts = [len(c.levels) for c in self._components if c.levels is not None]
            if 0 in counts or not constants_hold(self.knobs, self.constraints):
                raise EmptySpaceError("no configuration satisfies the constraints")
            if len(counts) < len(self._components) or math.prod(counts) > MAX_PRODUCT:
                return None
            valid = np.zeros(1, dtype=np.int64)
            for component in self._components:
                assert component.levels is not None
                strides = np.array([self._strides[place] for place in component.places])
                own = component.levels.astype(np.int64) @ strides
                valid = (valid[:, None] + own[None]).reshape(-1)
            valid = np.sort(valid)
        if not len(valid):
            raise EmptySpaceError("no configuration satisfies the constraints")
        return valid

    @property
    def is_listed(self) -> bool:
        """Whether all valid configurations are known; a larger space is drawn from."""
        return self._listed is not None

    @property
    def valid(self) -> NDArray[np.int64]:
        """Flat indices of the valid configurations, in ascending order.

        Raises:
            ValueError: if there are too many to list.
        """
        if self._listed is None:
            raise ValueError(
                f"expected a space that can be listed, found one with too many valid "
                f"configurations among {self.combinations:,}"
            )
        return self._listed

    @cached_property
    def is_member(self) -> NDArray[np.bool_]:
        """Which combinations are members."""
        out = np.full(self._product(), self._members is None)
        if self._members is not None:
            out[self._members] = True
        return out

    @cached_property
    def is_valid(self) -> NDArray[np.bool_]:
        """Which combinations are valid."""
        out = np.zeros(self._product(), dtype=bool)
        out[self.valid] = True
        return out

    def _product(self) -> int:
        """How many combinations there are, if tables of all can be had.

        Raises:
            ValueError: if there are more than `MAX_PRODUCT`.
        """
        if self.combinations > MAX_PRODUCT:
            raise ValueError(
                f"expected at most {MAX_PRODUCT:,} combinations, found {self.combinations:,}"
            )
        return self.combinations

    # Configurations, levels and indices

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """Levels of every combination, shape (combinations, knobs)."""
        return self.levels_of(np.arange(self._product()))

    def levels_of(self, indices: NDArray[np.int64]) -> NDArray[np.int32]:
        """Levels of some configurations, shape (configurations, knobs)."""
        # One knob at a time: NumPy's own `unravel_index` knows no more than 64 axes.
        out = np.empty((len(indices), len(self.shape)), dtype=np.int32)
        for place, (stride, size) in enumerate(zip(self._strides, self.shape, strict=True)):
            out[:, place] = indices // stride % size
        return out

    def indices_of(self, levels: NDArray[np.integer]) -> NDArray[np.int64]:
        """Flat indices of levels of shape (configurations, knobs): `levels_of` backwards."""
        out: NDArray[np.int64] = levels.astype(np.int64) @ np.array(self._strides, dtype=np.int64)
        return out

    @cached_property
    def columns(self) -> dict[str, NDArray[np.generic]]:
        """Values of every combination by knob name."""
        return self.columns_of(np.arange(self._product()))

    def columns_of(self, indices: NDArray[np.int64]) -> dict[str, NDArray[np.generic]]:
        """Values of some configurations by knob name."""
        return columns_of(self.knobs, range(len(self.knobs)), self.levels_of(indices))

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
            if not 0 <= index < self.combinations:
                raise IndexError(f"expected an index below {self.combinations:,}, found {index}")
            pairs, texts = [], []
            for stride, size, own in self._sorted_parts:
                pair, text = own[index // stride % size]
                pairs.append(pair)
                texts.append(text)
            found = self._candidates[index] = Candidate.canonical(tuple(pairs), knob_key(texts))
        return found

    @cached_property
    def _sorted_parts(self) -> list[tuple[int, int, list[tuple[tuple[str, Scalar], str]]]]:
        """By knob in the order of names: stride, size, and for each level the payload's pair with
        its part of the key's text.
        """
        order = sorted(range(len(self.knobs)), key=lambda i: self.names[i])
        return [
            (
                self._strides[i],
                self.shape[i],
                [
                    ((self.names[i], value), knob_text(self.names[i], value))
                    for value in self.knobs[i].values
                ],
            )
            for i in order
        ]

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
        if self._listed is not None and self.contains_index(index):
            return ()
        return self.violations(index)

    def violations(self, index: int) -> tuple[Violation, ...]:
        """Every rule that the configuration at a flat index breaks."""
        out = []
        if self._members is not None:
            place = int(np.searchsorted(self._members, index))
            if place == len(self._members) or int(self._members[place]) != index:
                out.append(Violation("not_a_member", self._members_reason))
        row = self.columns_of(np.array([index]))
        values = self.candidate(index).knobs
        out += [c.explain(values) for c in self.constraints if not c.holds(row)[0]]
        return tuple(out)

    def contains_index(self, index: int) -> bool:
        """Whether the configuration at a flat index is valid."""
        if self._bits is not None:
            return self._bits[index] == 1
        if self._listed is None:
            return not self.violations(index)
        place = int(np.searchsorted(self._listed, index))
        return place < len(self._listed) and int(self._listed[place]) == index

    def canonical(self, candidate: Candidate) -> Candidate:
        """The candidate itself: a knob candidate's payload is already sorted by name."""
        return self.candidate(self.index(candidate))

    def sample(self, rng: np.random.Generator) -> Candidate:
        """A valid candidate, each equally likely; nearly so in a space that is not listed."""
        return self.candidate(self.sample_index(rng))

    def sample_index(self, rng: np.random.Generator) -> int:
        """The flat index of a valid configuration, each equally likely; nearly so in a space that
        is not listed (`env.spaces.enumeration`).

        Raises:
            ValueError: if the space is not listed and valid configurations are too rare to find.
        """
        if self._listed is not None:
            return int(self._listed[rng.integers(len(self._listed))])
        index = 0
        for component in self._components:
            levels = drawn(self.knobs, component, rng)
            for place, level in zip(component.places, levels.tolist(), strict=True):
                index += level * self._strides[place]
        return index

    def neighbours(self, candidate: Candidate) -> tuple[Candidate, ...]:
        """The valid candidates with one knob one step away: down before up, in knob order."""
        return tuple(self.candidate(i) for i in self.neighbour_indices(self.index(candidate)))

    def neighbour_indices(self, index: int) -> list[int]:
        """Flat indices of the valid neighbours of a configuration."""
        out = []
        for level, stride, size in zip(self.unflat(index), self._strides, self.shape, strict=True):
            if level > 0 and self.contains_index(index - stride):
                out.append(index - stride)
            if level < size - 1 and self.contains_index(index + stride):
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
        return index if self.contains_index(index) else None

    def crossover(
        self, left: Candidate, right: Candidate, rng: np.random.Generator
    ) -> Candidate | None:
        """Each knob from either parent with equal chance, or None if the mixture is not valid."""
        index = self.crossover_index(self.index(left), self.index(right), rng.random)
        return None if index is None else self.candidate(index)

    def crossover_index(self, left: int, right: int, draw: Draw) -> int | None:
        """`crossover` on flat indices; ``draw`` gives uniform variates in [0, 1)."""
        index = bits = 0
        for place, stride in enumerate(self._strides):
            if place % DRAWN_BITS == 0:
                bits = int(draw() * (1 << min(DRAWN_BITS, len(self.shape) - place)))
            a, left = divmod(left, stride)
            b, right = divmod(right, stride)
            index += (a if bits & 1 else b) * stride
            bits >>= 1
        return index if self.contains_index(index) else None

    def features(self, candidate: Candidate) -> NDArray[np.float64]:
        """`feature_rows` of a candidate."""
        row: NDArray[np.float64] = self.feature_rows(np.array([self.index(candidate)]))[0]
        return row

    @cached_property
    def feature_table(self) -> NDArray[np.float64]:
        """`feature_rows` of every combination."""
        return self.feature_rows(np.arange(self._product()))

    def feature_rows(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Features of some configurations: log2 of each knob, then all pairwise products, squares
        included.

        A knob whose values are not all positive numbers counts by its level instead of its
        logarithm.
        """
        levels = self.levels_of(indices)
        base = [scale[levels[:, i]] for i, scale in enumerate(self._scales)]
        products = [base[i] * base[j] for i in range(len(base)) for j in range(i, len(base))]
        return np.stack([*base, *products], axis=1)

    @cached_property
    def _scales(self) -> list[NDArray[np.float64]]:
        """By knob the number that each level counts as."""
        out = []
        for knob in self.knobs:
            numeric = all(isinstance(v, int | float) and v > 0 for v in knob.values)
            values = np.array(knob.values, dtype=float) if numeric else None
            scale = np.arange(len(knob.values)) if values is None else np.log2(values)
            out.append(scale.astype(np.float64))
        return out


def is_listed(space: object) -> TypeGuard[KnobSpace]:
    """Whether this is a knob space whose valid configurations are known."""
    return isinstance(space, KnobSpace) and space.is_listed


class TemplateSpace(KnobSpace):
    """A C file of one's own with its macros as knobs; a step is as in any space of knobs."""
