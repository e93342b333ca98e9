"""Section A: the GEMM schedule space of the lecture, its rules and its landscape on the analytic
model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.machine.device import LectureDevice, load_device
from kernelwright.env.compiler.machine.gpu_gemm import Estimate, estimate_gemm
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Scalar, knob_candidate
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.search.figures.table import Figure, between, exact

DEVICE = "h100-lecture"
# Three prefill shapes and a decode shape of a 4096-wide model; the first is the landscape's.
SQUARE, UP, DOWN = (4096, 4096, 4096), (4096, 14336, 4096), (4096, 4096, 14336)
DECODE = (16, 4096, 4096)


def model_space(shape: tuple[int, int, int] = SQUARE) -> tuple[GpuModel, KnobSpace]:
    """The noise-free model of a shape, and the configurations that can be launched."""
    m, n, k = shape
    problem = gemm_gpu(m=m, n=n, k=k)
    model = GpuModel(problem, device=DEVICE)
    return model, KnobSpace(problem.knobs, model.constraints, default=problem.unscheduled)


def times(shape: tuple[int, int, int]) -> tuple[KnobSpace, NDArray[np.float64]]:
    """Seconds of every combination; infinite where it cannot be launched."""
    _, space = model_space(shape)
    estimate = estimate_gemm(load_device(DEVICE), *shape, space.columns)
    return space, np.where(space.is_valid, estimate.time_s, np.inf)


def gemm_space() -> list[Figure]:
    """Figures A1 to A17."""
    return [*_rules(), *_landscape(), *_around_the_best(), *_shapes()]


def _one(shape: tuple[int, int, int], **knobs: int) -> Estimate:
    """The model's estimate of one configuration."""
    columns = {name: np.array([value]) for name, value in knobs.items()}
    return estimate_gemm(load_device(DEVICE), *shape, columns)


def _rules() -> list[Figure]:
    model, space = model_space()
    broken = [int((~rule.holds(space.columns)).sum()) for rule in model.constraints]
    share = f"{100 * len(space.valid) / space.combinations:.0f}%"
    big = {"bm": 256, "bn": 128, "warps": 8, "stages": 4, "group_m": 8}
    shared = [_one(SQUARE, **big, bk=bk).shared_bytes[0] for bk in (64, 128)]
    assert isinstance(model.device, LectureDevice)
    base = model.device.base_registers
    four, eight = (
        _one(SQUARE, **{**big, "warps": warps}, bk=64).registers[0] - base for warps in (4, 8)
    )
    return [
        exact("A1", "combinations", "6000", str(space.combinations)),
        exact("A2", "feasible", "3744 (62%)", f"{len(space.valid)} ({share})"),
        exact("A3", "more than 255 registers a thread", "1200", str(broken[0])),
        exact("A4", "warp tile below one mma", "900", str(broken[1])),
        exact("A5", "shared memory above 227 KiB", "384", str(broken[2])),
        exact("A6", "sum of the three counts (not exclusive)", "2484", str(sum(broken))),
        exact(
            "A7",
            "exercise 7: shared memory of 256x128 in 4 stages, BK 64 and 128",
            "196,608 B, 384 KiB",
            f"{shared[0]:,.0f} B, {shared[1] / 1024:.0f} KiB",
        ),
        exact(
            "A8",
            "exercise 8: accumulators of 256x128 with 4 and 8 warps",
            "256; 128 + 40 = 168",
            f"{four:.0f}; {eight:.0f} + {base} = {eight + base:.0f}",
        ),
    ]


def _landscape() -> list[Figure]:
    space, time = times(SQUARE)
    m, n, k = SQUARE
    best = int(time.argmin())
    knobs = space.candidate(best).knobs
    tflops = 2 * m * n * k / time[best] / 1e12
    tile = f"{knobs['bm']}x{knobs['bn']}, {knobs['warps']} warps"
    accepted = "890 to 905 TFLOP/s, 256x128, 8 warps"
    valid = time[space.valid]
    return [
        Figure(
            "A9",
            "best at 4096^3",
            accepted,
            f"{tflops:.1f} TFLOP/s, {tile}",
            890 <= tflops <= 905 and tile == "256x128, 8 warps",
        ),
        exact("A10", "within 5% of the best", "15", str(int((time <= 1.05 * time[best]).sum()))),
        between("A11", "within 2x of the best", 330, 345, int((time <= 2 * time[best]).sum()), 0),
        between("A12", "median / best", 5.1, 5.3, float(np.median(valid) / time[best])),
    ]


def _around_the_best() -> list[Figure]:
    space, time = times(SQUARE)
    best = int(time.argmin())
    start = space.candidate(best).knobs

    def slower(**change: Scalar) -> float:
        return float(time[space.index(knob_candidate({**start, **change}))] / time[best])

    stages = [slower(bk=32, stages=count) for count in (1, 2, 3, 4, 5)]
    smaller = {"BM 128": slower(bm=128), "BM 64": slower(bm=64)}
    smaller |= {"BN 64": slower(bn=64), "BN 32": slower(bn=32)}
    # Fewer warps, or rows below one mma a warp, break a launch rule: their time is infinite.
    start_fails = [slower(bm=bm) for bm in (16, 32)] + [slower(warps=w) for w in (1, 2, 4)]
    return [
        Figure(
            "A13",
            "1, 4, 5 stages against the best",
            "3.6 to 3.75, 1.00, 1.00",
            f"{stages[0]:.2f}, {stages[3]:.2f}, {stages[4]:.2f}",
            3.6 <= stages[0] <= 3.75 and f"{stages[3]:.2f}" == f"{stages[4]:.2f}" == "1.00",
        ),
        Figure(
            "A14",
            "one and two sizes smaller",
            "1.4 to 3.3",
            ", ".join(f"{name}: {ratio:.2f}" for name, ratio in smaller.items()),
            all(1.4 <= ratio <= 3.3 for ratio in smaller.values()),
        ),
        exact(
            "A15",
            "BM 16 or 32, or fewer than 8 warps, cannot start",
            "yes",
            "yes" if np.isinf(start_fails).all() else "no",
        ),
    ]


def _shapes() -> list[Figure]:
    tied: set[int] | None = None
    for shape in (SQUARE, UP, DOWN):
        _, time = times(shape)
        optima = set(np.flatnonzero(time <= time.min() * (1 + 1e-12)).tolist())
        tied = optima if tied is None else tied & optima
    assert tied is not None
    _, decode = times(DECODE)
    ratio = min((float(decode[i] / decode.min()) for i in sorted(tied)), default=float("nan"))
    return [
        Figure(
            "A16",
            "the same optimum on the first three shapes",
            "a common tied optimum",
            f"{len(tied)} common tied optima" if tied else "none",
            bool(tied),
        ),
        between("A17", "that optimum on decode", 2.8, 3.0, ratio),
    ]
