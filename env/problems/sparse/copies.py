"""One tensor in several formats. Each copy has arrays of its own, named after the format
(``A_csr2_crd``), whose sizes are fixed although blocks, rows in use and widths vary with where the
elements are: they are *capacities*, what one draw needs and some room beyond it. What lies behind
the last position is a tensor of the format still: positions repeat the last one, coordinates and
values are zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import Const, Expr
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.sparse.format import Format, Mode
from kernelwright.env.compiler.sparse.levels.base import Site, Whole
from kernelwright.env.compiler.sparse.levels.hashed import Hashed
from kernelwright.env.compiler.sparse.levels.padded import Padded
from kernelwright.env.compiler.sparse.named import format_text, parse_format
from kernelwright.env.compiler.sparse.storage import pack
from kernelwright.env.options import OptionError
from kernelwright.env.types import Arrays, TensorSpec


class FullError(Exception):
    """Elements for which a copy has no room."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A tensor in one format.

    ``form`` is what the compiler is told, in ``packed`` the widths are numbers. ``counts`` are the
    capacities of levels whose storage decides how many positions they have, ``tensors`` its arrays.
    ``used_bytes`` is what the draw needs that the capacities were made from, ``capacity_bytes`` is
    all.
    """

    form: Format
    packed: Format
    prefix: str
    shape: tuple[int, ...]
    counts: tuple[tuple[str, int], ...]
    tensors: tuple[TensorSpec, ...]
    used_bytes: int

    @property
    def text(self) -> str:
        """The format as it is written."""
        return format_text(self.form)

    @property
    def capacity_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(_elements(spec) * np.dtype(spec.dtype).itemsize for spec in self.tensors)

    def arrays(self, coordinates: Whole, values: NDArray[np.generic]) -> Arrays:
        """The elements in this format.

        Raises:
            FullError: if they need more than there is.
        """
        try:
            tensor = pack(self.packed, self.shape, coordinates, values)
        except CompilerError as error:
            raise FullError(str(error)) from None
        own = tensor.arguments(self.prefix)
        if _is_plain(self.form):
            modes = [d.mode for _, d in self.form.levels if isinstance(d, Mode)]
            return {self.prefix: tensor.values.reshape([self.shape[mode] for mode in modes])}
        return {
            spec.name: _padded(own[spec.name], _elements(spec), spec.name) for spec in self.tensors
        }


def copy_of(
    text: str,
    prefix: str,
    shape: tuple[int, ...],
    coordinates: Whole,
    dtype: str,
    *,
    varies: bool = True,
) -> Copy:
    """The copy in a format that has room for these elements, and for some more where other draws
    vary in how many positions they need.

    Raises:
        OptionError: if the format is none, or cannot hold them.
    """
    try:
        form = parse_format(text, len(shape))
        if any(isinstance(kind, Hashed) for kind, _ in form.levels):
            raise OptionError("formats", "levels whose size follows from elements", text)
        return _copy(form, prefix, shape, coordinates, dtype, varies)
    except CompilerError as error:
        raise OptionError("formats", f"a format that holds {prefix}", str(error)) from None


def _copy(
    form: Format,
    prefix: str,
    shape: tuple[int, ...],
    coordinates: Whole,
    dtype: str,
    varies: bool,
) -> Copy:
    split = form.split(shape, coordinates)
    order = np.lexsort(split[::-1])
    split = [level[order] for level in split]
    elements = coordinates.shape[1]
    parents, used, room = np.zeros(elements, np.int64), 1, 1
    levels, counts, tensors, used_bytes = [], [], [], 0
    pairs = zip(form.levels, form.extents(shape), strict=True)
    for number, ((kind, dimension), extent) in enumerate(pairs, start=1):
        packed = kind.pack(parents, split[number - 1], used, extent, form.index_dtype)
        used_bytes += sum(array.nbytes for array in packed.arrays.values())
        site = Site(prefix, number, whole(extent), whole(room), whole(0), form.index_dtype)
        decided = kind.positions(site)
        if decided is None:
            if isinstance(kind, Padded):
                width = max(packed.positions // max(used, 1), 1)
                # What is padded is computed with: little of it, if it is drawn again at times.
                width = min(width + width // 32 + 1, extent) if varies else width
                kind, room = replace(kind, width=width), room * width
            else:
                most = min(elements, room * extent) if kind.unique else elements
                more = packed.positions // 8 + 8 if varies else 0
                room = min(packed.positions + more, most)
            counts.append((f"{prefix}{number}", room))
            site = replace(site, positions=whole(room))
        else:
            room = _number(decided)
        tensors += [
            TensorSpec(site.name(array.name), (_number(array.size),), array.dtype, "input")
            for array in kind.arrays(site)
        ]
        levels.append((kind, dimension))
        parents, used = packed.places, packed.positions
    itemsize = np.dtype(dtype).itemsize
    if _is_plain(form):
        modes = tuple(shape[d.mode] for _, d in form.levels if isinstance(d, Mode))
        tensors = [TensorSpec(prefix, modes, dtype, "input")]
    else:
        tensors.append(TensorSpec(f"{prefix}_vals", (room,), dtype, "input"))
    packs = Format(tuple(levels), form.index_dtype)
    return Copy(
        form, packs, prefix, shape, tuple(counts), tuple(tensors), used_bytes + used * itemsize
    )


def prefixes(tensor: str, texts: Sequence[str]) -> tuple[str, ...]:
    """What the arrays of the copies of a tensor are named after: ``A_csr``; where two formats have
    one name, their parameters too, ``A_bcsr_4_4_``.

    Raises:
        OptionError: a format twice, or one that has no name.
    """
    out = []
    for text in texts:
        name, _, rest = text.replace(" ", "").partition("(")
        if not name.isidentifier() or "(" in rest:
            raise OptionError("formats", "a format by name, as csr or bcsr(4,4)", repr(text))
        again = sum(other.partition("(")[0].strip() == name for other in texts) > 1
        numbers = rest.rstrip(")").replace(",", "_")
        out.append(f"{tensor}_{name}_{numbers}_" if again and numbers else f"{tensor}_{name}")
    if len(set(out)) < len(out):
        raise OptionError("formats", "every format once", ", ".join(texts))
    return tuple(out)


def _is_plain(form: Format) -> bool:
    return all(kind.full and isinstance(dimension, Mode) for kind, dimension in form.levels)


def _padded(array: NDArray[np.generic], size: int, name: str) -> NDArray[np.generic]:
    if array.size > size:
        raise FullError(f"{name}: expected at most {size} elements, found {array.size}")
    more = size - array.size
    if not more:
        return array
    last = array[-1:] if name.endswith("_pos") else np.zeros(1, array.dtype)
    return np.concatenate((array, np.repeat(last, more)))


def _elements(spec: TensorSpec) -> int:
    return math.prod(int(size) for size in spec.shape)


def _number(size: Expr) -> int:
    found = simplify(size)
    assert isinstance(found, Const)
    return int(found.value)
