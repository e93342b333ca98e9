"""The table of the analytic GPU models against the measured landscapes: shared-memory rule, ranks,
what a search that follows them would find, split-K. Prints each row with its target and whether it
is met.

    python benchmarks/gpu_model.py [--only GROUP]…

Groups: rule, calibrated, held_out, split. `calibrated` has the two landscapes that the Hopper
model's constants were fitted to, `held_out` the two that judge it; their targets are its own, and
`h100-lecture` is printed beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import time
from collections.abc import Iterator

import numpy as np
from table import Row, print_groups

from kernelwright.env.landscape.open import locate, open_landscape
from kernelwright.env.landscape.ranking import rank, tabulate
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.prior import predicted_log2

Shape = tuple[int, int, int]
CALIBRATED: tuple[Shape, ...] = ((4096, 4096, 4096), (16, 14336, 4096))
HELD_OUT: tuple[Shape, ...] = ((2048, 14336, 4096), (512, 512, 16384))
LECTURE, HOPPER = "h100-lecture", "h200"


def _problem(shape: Shape, *, split_k: bool = False) -> tuple[object, KnobSpace]:
    problem = gemm_gpu(m=shape[0], n=shape[1], k=shape[2], split_k=split_k)
    return problem, KnobSpace(problem.knobs)


def _recorded(shape: Shape, space: KnobSpace) -> tuple[np.ndarray, np.ndarray]:
    """Median ns by flat index, NaN where nothing ran; and which combinations were recorded."""
    table = tabulate(open_landscape(locate("h200_gemm_{}x{}x{}".format(*shape))))
    names = list(table.columns)
    rows = zip(*(table.columns[name].tolist() for name in names), strict=True)
    index = [space.index_of(dict(zip(names, row, strict=True))) for row in rows]
    ns, known = np.full(space.combinations, np.nan), np.zeros(space.combinations, bool)
    ns[index], known[index] = table.ns, True
    return ns, known


def rule() -> Iterator[Row]:
    wrong = total = 0
    for shape in (*CALIBRATED, *HELD_OUT):
        problem, space = _problem(shape)
        ns, known = _recorded(shape, space)
        launches = predicted_log2(problem, HOPPER, space).launches
        wrong += int((launches != np.isfinite(ns))[known].sum())
        total += int(known.sum())
    yield f"{HOPPER}: what exceeds shared memory, errors", "0", f"{wrong} of {total:,}", wrong == 0


def _ranks(shape: Shape, *, judged: bool) -> Iterator[Row]:
    problem, space = _problem(shape)
    ns, _ = _recorded(shape, space)
    accepted = predicted_log2(problem, LECTURE, space).launches
    for device in (LECTURE, HOPPER):
        prediction = predicted_log2(problem, device, space)
        for what, chosen in (("all", np.isfinite(ns)), ("accepted", np.isfinite(ns) & accepted)):
            index = np.flatnonzero(chosen)
            place = np.full(space.combinations, -1)
            place[index] = np.arange(len(index))
            order = place[prediction.order(index)]
            got = rank(np.exp2(prediction.log2_s[index]), order, ns[index])
            strict = judged and device == HOPPER and what == "all"
            name = f"{device}, {shape[0]}x{shape[1]}x{shape[2]}, {len(index):,} configurations"
            yield (
                f"{name}: Spearman",
                "at least 0.91" if strict else "printed",
                f"{got.spearman:.3f}",
                got.spearman >= 0.91 if strict else None,
            )
            yield (
                f"{name}: first-ranked / best (ties at random: median, worst)",
                "at most 1.05" if strict else "printed",
                f"{got.first:.3f} ({got.first_by_chance:.3f}, {got.first_at_worst:.3f})",
                got.first <= 1.05 if strict else None,
            )
            found = f"{got.best_of_10:.3f}, {got.best_of_50:.3f}"
            yield f"{name}: best of the first 10, 50 / best", "printed", found, None


def calibrated() -> Iterator[Row]:
    for shape in CALIBRATED:
        yield from _ranks(shape, judged=False)


def held_out() -> Iterator[Row]:
    for shape in HELD_OUT:
        yield from _ranks(shape, judged=True)


def split() -> Iterator[Row]:
    """What the knob split_k is worth by the model, beside cuBLAS and the best configuration
    measured without it.
    """
    for shape in (*CALIBRATED, *HELD_OUT):
        landscape = open_landscape(locate("h200_gemm_{}x{}x{}".format(*shape)))
        measured = min(e.true_ns for e in landscape.entries if e.error is None)
        library_ns = float(np.median(landscape.library_ns))
        library = measured / library_ns
        problem, space = _problem(shape, split_k=True)
        began = time.perf_counter()
        prediction = predicted_log2(problem, HOPPER, space)
        seconds = time.perf_counter() - began
        whole = space.columns["split_k"] == 1
        gain = 2 ** (prediction.log2[whole].min() - prediction.log2.min())
        best = space.candidate(int(prediction.order(np.flatnonzero(prediction.launches))[0])).knobs
        name = "{}x{}x{}".format(*shape)
        absolute = f"{1e6 * 2 ** prediction.log2.min():.1f} us"
        got = f"{gain:.2f}, {absolute} with {' '.join(f'{k}={v}' for k, v in best.items())}"
        strict = shape == (512, 512, 16384)
        # Half way in logarithms from nothing gained to cuBLAS, and as far beyond.
        passed = library**0.5 <= gain <= library**1.5
        cublas = f"cuBLAS {library:.2f}, {library_ns / 1e3:.1f} us"
        about = f"about {cublas}" if strict else f"printed; {cublas}"
        yield f"{HOPPER}, {name}: split_k faster by", about, got, passed if strict else None
    what = f"{HOPPER}: {space.combinations:,} combinations, rules included"
    yield what, "printed", f"{1e3 * seconds:.0f} ms", None


if __name__ == "__main__":
    print_groups(
        {"rule": rule, "calibrated": calibrated, "held_out": held_out, "split": split}, __doc__
    )
