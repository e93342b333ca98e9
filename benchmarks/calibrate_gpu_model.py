"""Calibrate the Hopper model's constants on two measured landscapes, and print the objective and
the constants.

    python benchmarks/calibrate_gpu_model.py [--starts N] [--seed N] [--cross]

Three fits, one after another: registers a thread, then spilled words, both to the compiler's own
counts; then times to the measured medians. The other two landscapes are not read. `--cross` also
fits the times to one landscape and judges them on the other. Needs SciPy.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls

from kernelwright.env.compiler.machine.device import HopperDevice, load_device
from kernelwright.env.compiler.machine.hopper_block import read_knobs, registers
from kernelwright.env.compiler.machine.hopper_gemm import estimate_hopper
from kernelwright.env.landscape.open import locate, open_landscape
from kernelwright.env.landscape.ranking import LandscapeTable, spearman, tabulate

SHAPES = ((4096, 4096, 4096), (16, 14336, 4096))
Shape = tuple[int, int, int]
Data = tuple[Shape, LandscapeTable]

# Where the time fit starts, and what it is drawn to: guesses from documents and from the slowest
# configurations by hand. A constant twice as large costs as much as residuals of 0.7 in one row.
START = {
    "mma_clocks": 8.0,
    "copy_clocks": 13.0,
    "staging_clocks": 36.0,
    "warp_clocks": 50.0,
    "sync_clocks": 40.0,
    "latency_s": 550e-9,
    "request_clocks": 1.6,
    "repeat_clocks": 2.0,
    "neighbour_share": 0.09,
    "spill_clocks": 22.0,
    "tile_s": 1e-6,
    "accumulator_clocks": 4.0,
    "overlap": 4.5,
}
PRIOR_SPREAD = 1.0  # natural logarithm
SOFT = 0.1  # residuals of log time above this count linearly, not squared


def read(shape: Shape) -> Data:
    """The configurations of a landscape that ran."""
    m, n, k = shape
    table = tabulate(open_landscape(locate(f"h200_gemm_{m}x{n}x{k}")))
    return shape, table.where(table.ran)


def fit_registers(device: HopperDevice, table: LandscapeTable) -> HopperDevice:
    """Linear fits of registers a thread, relative error, where nothing is spilled or cut off."""
    knobs, counted = read_knobs(table.columns), table.facts["regs"]
    free = (counted < 250) & (table.facts["spills"] == 0)
    names = ("accumulator", "base", "vector", "staged_vector")
    terms = [knobs.accumulators, np.ones_like(counted), knobs.vectors]
    found: dict[str, float] = {}
    for path, chosen, parts in (
        ("wgmma", free & knobs.wgmma, [*terms, knobs.vectors * (knobs.stages == 1)]),
        ("mma", free & ~knobs.wgmma, terms),
    ):
        weight = 1 / np.maximum(counted[chosen], 32)
        matrix = np.stack(parts, axis=1)[chosen] * weight[:, None]
        solution, residual = nnls(matrix, counted[chosen] * weight)
        rms = residual / np.sqrt(chosen.sum())
        print(f"registers, {path}: {chosen.sum()} configurations, relative rms {rms:.3f}")
        named = zip(names, solution, strict=False)
        found |= {f"{path}_{name}": three(value) for name, value in named}
    return replace(device, **found)


def fit_spills(device: HopperDevice, table: LandscapeTable) -> HopperDevice:
    """Words spilled by single warps, in square roots, robustly: some combinations without a
    pipeline spill thousands, which no formula here explains.
    """
    knobs, counted = read_knobs(table.columns), table.facts["spills"]
    chosen = ~knobs.wgmma & (table.facts["regs"] >= 100)
    names = ("spill_product", "spill_vector", "spill_accumulator", "spill_base")

    def residuals(x: NDArray[np.float64]) -> NDArray[np.float64]:
        _, words = registers(replace(device, **dict(zip(names, x, strict=True))), knobs)
        out: NDArray[np.float64] = (np.sqrt(words + 4) - np.sqrt(counted + 4))[chosen]
        return out

    start = (0.044, 3.9, 0.5, 110.0)
    fit = least_squares(residuals, start, loss="soft_l1", f_scale=2, bounds=(1e-6, np.inf))
    found = {name: three(value) for name, value in zip(names, fit.x, strict=True)}
    words = registers(replace(device, **found), knobs)[1][chosen]
    agree = np.corrcoef(words, counted[chosen])[0, 1]
    print(
        f"spills: {chosen.sum()} configurations, objective {fit.cost:.1f}, correlation {agree:.3f}"
    )
    return replace(device, **found)


def fit_times(
    device: HopperDevice, data: Sequence[Data], starts: int, seed: int
) -> tuple[HopperDevice, float]:
    """The time constants: soft least squares of log time, a row's weight falling with the square
    root of its time, with a weak prior; the best of several starts.
    """
    names = tuple(START)
    centre = np.log([START[name] for name in names])

    def made(x: NDArray[np.float64]) -> HopperDevice:
        return replace(device, **dict(zip(names, np.exp(x).tolist(), strict=True)))

    def residuals(x: NDArray[np.float64]) -> NDArray[np.float64]:
        out = [(x - centre) / PRIOR_SPREAD]
        for shape, table in data:
            ns = 1e9 * estimate_hopper(made(x), *shape, table.columns).time_s
            weight = (table.ns.min() / table.ns) ** 0.25
            out.append(np.log(ns / table.ns) * weight)
        return np.concatenate(out)

    rng = np.random.default_rng(seed)
    best: tuple[float, NDArray[np.float64]] | None = None
    for number in range(starts):
        start = centre + (0.3 * rng.standard_normal(len(centre)) if number else 0)
        fit = least_squares(residuals, start, loss="soft_l1", f_scale=SOFT, max_nfev=60)
        print(f"times, start {number}: objective {fit.cost:.3f}")
        if best is None or fit.cost < best[0]:
            best = (float(fit.cost), fit.x)
    assert best is not None
    found = {name: three(value) for name, value in zip(names, np.exp(best[1]), strict=True)}
    return replace(device, **found), best[0]


def three(value: float) -> float:
    """Three digits."""
    return float(f"{value:.3g}")


def report(device: HopperDevice, data: Sequence[Data]) -> None:
    """How the estimates of a device agree with landscapes."""
    for shape, table in data:
        ns = 1e9 * estimate_hopper(device, *shape, table.columns).time_s
        error = np.log(ns / table.ns)
        m, n, k = shape
        print(
            f"{m}x{n}x{k}: {len(ns)} configurations, Spearman {spearman(ns, table.ns):.4f}, median"
            f" estimate / time {np.exp(np.median(error)):.3f}, rms of log {error.std():.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cross", action="store_true")
    arguments = parser.parse_args()
    device = load_device("h200")
    assert isinstance(device, HopperDevice)
    data = [read(shape) for shape in SHAPES]
    # The compiler's counts are the same for every shape.
    device = fit_spills(fit_registers(device, data[0][1]), data[0][1])
    fitted, cost = fit_times(device, data, arguments.starts, arguments.seed)
    print(f"objective {cost:.3f}; constants, rounded:")
    for name in HopperDevice.__slots__:
        print(f"  {name}: {getattr(fitted, name):g}")
    report(fitted, data)
    if arguments.cross:
        for i, (shape, _) in enumerate(data):
            other, _ = fit_times(device, [data[i]], 1, arguments.seed)
            print(f"fitted to {shape} alone, on the other:")
            report(other, [data[1 - i]])


if __name__ == "__main__":
    main()
