"""A sparse operand of a problem: how its elements are drawn, and the formats that it is there in.

The first format is the one that a reference reads and that a schedule starts from. Elements are
drawn again until every copy has room for them (`copies`): with the room that there is, seldom.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.sparse.format import Format
from kernelwright.env.compiler.sparse.levels.base import Whole
from kernelwright.env.compiler.sparse.storage import SparseTensor
from kernelwright.env.options import OptionError
from kernelwright.env.problems.definition import FLOATS
from kernelwright.env.problems.sparse.copies import Copy, FullError, copy_of, prefixes
from kernelwright.env.types import Arrays, TensorSpec

ATTEMPTS = 64
# A copy that is larger than so many times the first one is only made where it is asked for.
LARGEST = 8
# The draw that capacities are made from.
SEED = 20171025

Draw: TypeAlias = Callable[[np.random.Generator], Whole]
Elements: TypeAlias = tuple[Whole, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor in all of its formats."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    copies: tuple[Copy, ...]

    @property
    def first(self) -> Copy:
        """The copy that counts."""
        return self.copies[0]

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """The arrays of all copies."""
        return tuple(spec for copy in self.copies for spec in copy.tensors)

    @property
    def choices(self) -> tuple[str, tuple[tuple[Format, str], ...]]:
        """Its formats and what their arrays are named after."""
        return self.name, tuple((copy.form, copy.prefix) for copy in self.copies)

    @property
    def counts(self) -> dict[str, int]:
        """The capacities of levels, by name (``A_csr2``)."""
        return {level: count for copy in self.copies for level, count in copy.counts}

    @property
    def used_bytes(self) -> int:
        """What the smallest copy needs."""
        return min(copy.used_bytes for copy in self.copies)

    @property
    def followers(self) -> tuple[str, ...]:
        """The arrays of values that hold what those of the first copy do."""
        return tuple(copy.tensors[-1].name for copy in self.copies[1:])

    def arrays(self, coordinates: Whole, values: NDArray[np.generic]) -> Arrays:
        """The elements in all formats.

        Raises:
            FullError: if a copy has no room for them.
        """
        return {
            name: array
            for copy in self.copies
            for name, array in copy.arrays(coordinates, values).items()
        }

    def inputs(self, draw: Draw, rng: np.random.Generator) -> Arrays:
        """Standard normal elements at places that are drawn until all copies have room.

        Raises:
            ValueError: if they never have.
        """
        for _ in range(ATTEMPTS):
            coordinates = draw(rng)
            values = np.asarray(rng.standard_normal(coordinates.shape[1], FLOATS[self.dtype]))
            try:
                return self.arrays(coordinates, values)
            except FullError as error:
                why = str(error)
        raise ValueError(f"{self.name}: expected room for one of {ATTEMPTS} draws, found {why}")

    def elements(self, arrays: Arrays) -> Elements:
        """The coordinates and the values, in float64, of the first copy, in its order."""
        coordinates, values = self._stored(arrays)
        return coordinates, values.astype(np.float64)

    def _stored(self, arrays: Arrays) -> tuple[Whole, NDArray[np.generic]]:
        prefix, form, above = self.first.prefix, self.first.packed, 1
        levels = {}
        pairs = zip(form.levels, form.extents(self.shape), strict=True)
        for number, ((kind, _), extent) in enumerate(pairs, start=1):
            start = f"{prefix}{number}_"
            names = [spec.name for spec in self.first.tensors if spec.name.startswith(start)]
            own = {name.removeprefix(start): arrays[name] for name in names}
            if "pos" in own:
                own["pos"] = own["pos"][: above + 1]
            above = kind.check(own, above, extent)
            levels[number] = own
        values = arrays[f"{prefix}_vals"]
        return SparseTensor.checked(form, self.shape, levels, values).coordinates_and_values()

    def agreed(self, arrays: Arrays) -> Arrays:
        """The arrays with all copies after the first one."""
        if len(self.copies) == 1:
            return arrays
        own = self.arrays(*self._stored(arrays))
        for spec in self.first.tensors:
            own.pop(spec.name)
        return {name: own.get(name, array) for name, array in arrays.items()}


def operand(
    name: str,
    shape: tuple[int, ...],
    dtype: str,
    draw: Draw,
    formats: tuple[str, ...],
    asked: list[str] | str | None = None,
    *,
    varies: bool = True,
) -> Operand:
    """An operand in its formats: the first of them, and those that are asked for; without a wish,
    those that are not much larger than the first (`LARGEST`). ``varies`` says that draws differ in
    how many positions they need.

    Raises:
        OptionError: if one that is asked for is not offered, or cannot hold the elements.
    """
    coordinates = draw(np.random.default_rng(SEED))
    wanted = [asked] if isinstance(asked, str) else asked
    if wanted is not None:
        chosen = tuple(dict.fromkeys((formats[0], *("".join(text.split()) for text in wanted))))
    else:
        chosen = formats
    names = prefixes(name, chosen)
    pairs = zip(chosen, names, strict=True)
    made = [
        copy_of(text, prefix, shape, coordinates, dtype, varies=varies) for text, prefix in pairs
    ]
    if wanted is None:
        most = LARGEST * made[0].capacity_bytes
        made = [copy for copy in made if copy.capacity_bytes <= most]
    return Operand(name, shape, dtype, tuple(made))


def offered_only(formats: tuple[str, ...], asked: list[str] | str | None) -> None:
    """Refuse a format that a problem cannot have its operand in.

    Raises:
        OptionError: naming it and those that it can.
    """
    for text in [asked] if isinstance(asked, str) else asked or ():
        if "".join(text.split()) not in formats:
            raise OptionError("formats", f"some of {', '.join(formats)}", text)
