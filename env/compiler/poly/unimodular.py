"""All unimodular maps with small entries, and which of them a nest's distances allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.poly.affine_map import AffineMap
from kernelwright.env.compiler.poly.nest import NestError

# 3 x 3 with entries in [-2, 2]; a batch of matrices is held at a time.
MAX_MATRICES = 5**9
BATCH = 1 << 16


@dataclass(frozen=True, slots=True)
class Classified:
    """Unimodular maps by what they allow.

    ``legal``: all distances stay lexicographically positive. ``tilable``: and have no negative
    component. ``inner_parallel``: and the outermost loop carries all, so that the others may run in
    any order.
    """

    all: tuple[AffineMap, ...]
    legal: tuple[AffineMap, ...]
    tilable: tuple[AffineMap, ...]
    inner_parallel: tuple[AffineMap, ...]


@lru_cache(maxsize=8)
def unimodular_maps(depth: int, reach: int) -> tuple[AffineMap, ...]:
    """Every unimodular map of ``depth`` loops with entries from -reach to reach, in lexicographic
    order of the entries.

    Raises:
        ValueError: if there are more than `MAX_MATRICES` matrices to try.
    """
    return tuple(
        AffineMap(tuple(tuple(int(entry) for entry in row) for row in matrix))
        for matrix in _matrices(depth, reach)
    )


def classify(vectors: Sequence[Sequence[int]], reach: int) -> Classified:
    """The unimodular maps with entries from -reach to reach, by what they allow for a nest of these
    distance vectors.

    Raises:
        NestError: if there are no vectors, or their lengths differ.
        ValueError: if there are too many matrices to try.
    """
    if len({len(vector) for vector in vectors}) != 1 or not len(vectors[0]):
        raise NestError(f"expected distance vectors of one length, found {vectors}")
    distances = np.array(vectors, np.int64)
    maps = unimodular_maps(distances.shape[1], reach)
    matrices = np.array([map_.rows for map_ in maps], np.int64)
    # By map, then vector, then component.
    moved = np.einsum("mij,vj->mvi", matrices, distances)
    nonzero = moved != 0
    leading = np.take_along_axis(moved, nonzero.argmax(axis=2)[..., None], axis=2)[..., 0]
    legal = (leading > 0).all(axis=1)
    tilable = legal & (moved >= 0).all(axis=(1, 2))
    inner = legal & (moved[:, :, 0] > 0).all(axis=1)

    chosen = [tuple(maps[i] for i in np.flatnonzero(mask)) for mask in (legal, tilable, inner)]
    return Classified(maps, *chosen)


def _matrices(depth: int, reach: int) -> NDArray[np.int64]:
    base, count = 2 * reach + 1, depth * depth
    if depth < 1 or reach < 1 or base**count > MAX_MATRICES:
        raise ValueError(
            f"expected at most {MAX_MATRICES} matrices, found {base**count} "
            f"of {depth} x {depth} entries from -{reach} to {reach}"
        )
    found = []
    weights = base ** np.arange(count - 1, -1, -1, dtype=np.int64)
    for start in range(0, base**count, BATCH):
        numbers = np.arange(start, min(start + BATCH, base**count), dtype=np.int64)
        entries = numbers[:, None] // weights % base - reach
        matrices = entries.reshape(-1, depth, depth)
        # Entries are small, so rounding gives the exact determinant.
        determinants = np.rint(np.linalg.det(matrices)).astype(np.int64)
        found.append(matrices[np.abs(determinants) == 1])
    return np.concatenate(found)
