"""Directives that run a perfect nest in the order of an affine map, with loops generated for it:
unimodular and wavefront.
"""

from __future__ import annotations

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.poly import affine_map
from kernelwright.env.compiler.poly.affine_map import AffineMap
from kernelwright.env.compiler.schedule.edit import whole_argument
from kernelwright.env.compiler.schedule.nests import perfect_nest, run_in_order

MAX_ENTRY = 64


def unimodular(procedure: Procedure, loop: str, *others: str | int) -> Procedure:
    """Run a perfect nest in the order of a unimodular matrix: the loops from the outside in, the
    matrix row by row, and if wanted a size of tile for every new loop (Banerjee 1990; Wolf and Lam,
    IEEE TPDS 1991).

    Row k is the k-th new loop: ``unimodular("i", "j", 1, 1, 1, 0)`` runs (i + j, i). Reversals,
    permutations and skews are unimodular, and so are their products. A new loop has the name of the
    loops in its row, joined, and runs from its lower bound; tiles make two of it, as `split` does.

    Before::

        for i in 4:
          for j in 4:
            S(i, j)

    After ``unimodular("i", "j", 1, 1, 1, 0)``::

        for i_j in 7:
          for i in min(4, i_j + 1, 7 - i_j):
            S(i + max(0, i_j - 3), i_j - i - max(0, i_j - 3))

    Legal if no dependence is turned around, tiles included.

    Raises:
        ScheduleError: if the loops are no perfect nest of serial loops, the number of entries does
            not fit, the determinant is not 1 or -1, an extent is not affine, or a dependence is
            turned around; then it has the two iterations.
    """
    names, numbers = _names_and_numbers(loop, others)
    depth = len(names)
    if len(numbers) not in (depth * depth, depth * depth + depth):
        reason = (
            f"expected {depth * depth} entries for {depth} loops, or {depth} sizes of tiles more, "
            f"found {len(numbers)}"
        )
        raise ScheduleError("unimodular", reason)
    entries, tiles = numbers[: depth * depth], numbers[depth * depth :]
    if any(abs(entry) > MAX_ENTRY for entry in entries):
        reason = f"expected entries from -{MAX_ENTRY} to {MAX_ENTRY}, found {entries}"
        raise ScheduleError("unimodular", reason)
    for size in tiles:
        whole_argument("unimodular", "a size of tile", size)
    map_ = AffineMap(tuple(entries[k * depth : (k + 1) * depth] for k in range(depth)))
    if not map_.is_unimodular:
        reason = f"expected a determinant of 1 or -1, found {map_.determinant} of {map_}"
        raise ScheduleError("unimodular", reason)
    nest = perfect_nest("unimodular", procedure, names)
    return run_in_order("unimodular", procedure, nest, map_, tiles)


def _names_and_numbers(
    loop: str, others: tuple[str | int, ...]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    names, numbers = [loop], list[int]()
    for given in others:
        if isinstance(given, str) and not numbers:
            names.append(given)
        elif isinstance(given, int) and not isinstance(given, bool):
            numbers.append(given)
        else:
            reason = f"expected loops and then whole numbers, found {given!r}"
            raise ScheduleError("unimodular", reason)
    return tuple(names), tuple(numbers)


def wavefront(procedure: Procedure, loop: str, inner: str, *others: str) -> Procedure:
    """Run the points of a nest by their sum, so that those of one sum may run together: the order
    (i + j, i), and (i + j + k, i, j) for three loops (Lamport's hyperplane method, CACM 1974).

    Where every distance of a dependence has no negative component, the first loop carries all of
    them and the others are parallel.

    Before::

        for i in 4:
          for j in 4:
            S(i, j)

    After ``wavefront("i", "j")``::

        for i_j in 7:
          for i in min(4, i_j + 1, 7 - i_j):
            S(i + max(0, i_j - 3), i_j - i - max(0, i_j - 3))

    Legal if no dependence is turned around.

    Raises:
        ScheduleError: if the loops are no perfect nest of serial loops, an extent is not affine, or
            a dependence is turned around; then it has the two iterations.
    """
    names = (loop, inner, *others)
    for name in names:
        if not isinstance(name, str):
            raise ScheduleError("wavefront", f"expected loops, found {name!r}")
    nest = perfect_nest("wavefront", procedure, names)
    return run_in_order("wavefront", procedure, nest, affine_map.wavefront(len(names)))
