"""Section C but its cache misses, and H4: what the polyhedral model says of the lecture's stencils,
from exact dependences, and what happens where it is not heeded.
"""

from __future__ import annotations

import islpy as isl
import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.poly.affine_map import AffineMap, identity, permutation, skew
from kernelwright.env.compiler.poly.affine_map import wavefront as wavefront_map
from kernelwright.env.compiler.poly.bands import (
    NestFacts,
    distance_vectors,
    least_skew,
    nest_facts,
)
from kernelwright.env.compiler.poly.exact import exact_dependences
from kernelwright.env.compiler.poly.forced import ForcedOrder, run_forced
from kernelwright.env.compiler.poly.nest import Nest
from kernelwright.env.compiler.poly.points import nest_points
from kernelwright.env.compiler.poly.unimodular import classify
from kernelwright.search.figures.stencils import gauss_seidel, jacobi, recurrence
from kernelwright.search.figures.table import Figure, exact

# The lecture's Jacobi: 2000 points, 200 time steps, tiles of 50 x 50 whose first begins at (0, 0).
SIZE, STEPS, TILES = 2000, 200, (50, 50)
# A loop variable counts from 0, a point of the lecture's arrays from 1.
DIRECT = AffineMap(((1, 0), (0, 1)), (1, 1))
SKEWED = AffineMap(((1, 0), (1, 1)), (1, 2))
SWEEP = 64
REACH = 2


def polyhedral() -> list[Figure]:
    """Figures C1, C4 to C7, and H4."""
    return [_enumeration(), _tiling(), _wavefront(), _reversal(), _exercises(), _steps()]


def _enumeration() -> Figure:
    vectors = distance_vectors(_distances(jacobi(16, 8), ("t", "i")))
    found = classify(vectors or (), REACH)
    return exact(
        "C1",
        "Jacobi: unimodular matrices with entries in [-2, 2]: legal, tilable (all; inner parallel)",
        "26 / 12 (104; 18)",
        f"{len(found.legal)} / {len(found.tilable)} "
        f"({len(found.all)}; {len(found.inner_parallel)})",
    )


def _tiling() -> Figure:
    program = jacobi(SIZE, STEPS)
    inputs = {"start": np.random.default_rng(0).random(SIZE)}

    def run(map_: AffineMap, tiles: tuple[int, ...] = ()) -> NDArray[np.float64]:
        out: NDArray[np.float64] = run_forced(
            program, inputs, ForcedOrder(("t", "i"), map_, tiles)
        )["A"]
        return out

    wanted = run(identity(2))
    wrong = int(np.isnan(run(DIRECT, TILES)).sum())
    same = "bit-identical" if np.array_equal(run(SKEWED, TILES), wanted) else "different"
    return exact(
        "C4",
        "Jacobi in 50 x 50 tiles: cells not computed if tiled directly; the result if skewed first",
        "371451 NaN; bit-identical",
        f"{wrong} NaN; {same}",
    )


def _wavefront() -> Figure:
    sizes = front_sizes(SWEEP)
    return exact(
        "C5",
        "Gauss-Seidel's wavefront at 64 x 64: steps, mean and largest number of parallel points",
        "127, 32.25, 64",
        f"{len(sizes)}, {sizes.mean():.2f}, {sizes.max()}",
    )


def _reversal() -> Figure:
    program = gauss_seidel(SWEEP)
    start = np.random.default_rng(0).random((SWEEP + 2, SWEEP + 2))

    def run(map_: AffineMap) -> NDArray[np.float64]:
        out: NDArray[np.float64] = run_forced(
            program, {"start": start}, ForcedOrder(("i", "j"), map_)
        )["A"]
        return out

    wanted = run(identity(2))
    inner = np.abs(run(AffineMap(((1, 0), (0, -1)))) - wanted).max()
    front = np.abs(run(AffineMap(((1, 1), (-1, 0)))) - wanted).max()
    return exact(
        "C6",
        "Gauss-Seidel: largest difference with the inner loop reversed; in the wavefront",
        "0.2695; 0.0",
        f"{inner:.4f}; {front}",
    )


def _exercises() -> Figure:
    # Exercise 4: exchange, tile directly, skew and tile. Exercise 5: the least factor.
    four = _distances(recurrence([(1, -1), (0, 1)]), ("t", "i"))
    exchanged = nest_facts(four, permutation((1, 0)))
    plain, skewed = nest_facts(four), nest_facts(four, skew(2, 0, 1, 1))
    factor = least_skew(_distances(recurrence([(1, -2), (1, 0), (1, 2)]), ("t", "i")))
    got = f"{_legal(exchanged)} swap; {_tilable(plain)}, skewed {_tilable(skewed)}; s = {factor}"
    return exact(
        "C7",
        "exercises 4 and 5: exchange, tiling and skewing; the least factor to skew by",
        "illegal swap; not tilable, skewed tilable; s = 2",
        got,
    )


def _steps() -> Figure:
    shown, right = [], []
    for size in (8, 64, 100):
        sizes = front_sizes(size)
        shown.append(f"{size}: {len(sizes)}, {sizes.mean():.2f}")
        right.append(len(sizes) == 2 * size - 1 and sizes.mean() == size * size / (2 * size - 1))
    return Figure(
        "H4",
        "exercise 6: steps of an N x N wavefront, points each",
        "2N - 1, N^2 / (2N - 1)",
        "; ".join(shown),
        all(right),
    )


def front_sizes(size: int) -> NDArray[np.int64]:
    """How many points of a size x size sweep of Gauss-Seidel lie on each wavefront."""
    map_ = wavefront_map(2)
    _, points = nest_points(gauss_seidel(size), ("i", "j"), map_)
    _, counts = np.unique(map_.times(points)[:, 0], return_counts=True)
    sizes: NDArray[np.int64] = counts
    return sizes


def _distances(program: Procedure, loops: tuple[str, ...]) -> isl.Set:
    dependences = exact_dependences(program)
    return Nest(dependences.model, loops).distances(dependences.all)


def _legal(facts: NestFacts) -> str:
    return "legal" if facts.legal else "illegal"


def _tilable(facts: NestFacts) -> str:
    return "tilable" if facts.tilable else "not tilable"
