"""The analytic model of a tiled GEMM on a GPU, vectorised over configurations, with the breakdown
of every estimate.

C = A·B with ``m x k`` and ``k x n`` operands of ``itemsize`` bytes; a block computes a ``bm x bn``
tile of C in K steps of ``bk`` with ``warps`` warps and ``stages`` stages of asynchronous copies;
blocks are ordered in groups of ``group_m`` tile rows. Steps:

1. resources: registers a thread (accumulators plus a constant), and how many blocks an SM holds
(occupancy);
2. tiles of the output (padding waste is in the ceilings) and blocks resident on one SM;
3. per K step: Tensor Core time, shared-memory reads by the warps, L2 traffic; the SM is busy for
the longest of them;
4. Little's law: latency is hidden by the stages in flight;
5. waves: a tail wave costs a whole wave;
6. HBM: traffic of a wave of tiles if the operands do not fit L2, and Little's law again for the
bytes in flight;
7. the longer of SM and HBM time, plus the launch.

The form of steps 3 to 5 and the constants under ``fitted`` in the device table were chosen so that
the published figures of the lecture's landscape hold; on real landscapes the model is a strong
prior for large problems and a weak one for decode shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.machine.device import Device, LectureDevice

Column = NDArray[np.float64]
BOUNDS = ("tensor", "shared", "l2", "latency", "hbm")


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated times in seconds and what they are made of, one row a configuration."""

    registers: Column
    shared_bytes: Column
    occupancy: Column
    tiles: Column
    resident: Column
    waves: Column
    k_steps: Column
    padding: Column
    mma_s: Column
    shared_s: Column
    l2_s: Column
    busy_s: Column
    step_s: Column
    sm_s: Column
    hbm_bytes: Column
    hbm_s: Column
    time_s: Column
    bound: NDArray[np.int64]

    def row(self, i: int) -> dict[str, float | str]:
        """One configuration's breakdown; ``bound`` says what limits it."""
        out: dict[str, float | str] = {
            item.name: float(getattr(self, item.name)[i])
            for item in fields(self)
            if item.name != "bound"
        }
        out["bound"] = BOUNDS[int(self.bound[i])]
        return out


def warp_grid(warps: NDArray[np.generic]) -> tuple[Column, Column]:
    """Warps along M and N: 1x1, 1x2, 2x2, 4x2, whatever the tile."""
    count = warps.astype(np.float64)
    along_m = np.where(count >= 8, 4.0, np.where(count >= 4, 2.0, 1.0))
    return along_m, count / along_m


def estimate_gemm(
    device: Device,
    m: int,
    n: int,
    k: int,
    columns: Mapping[str, NDArray[np.generic]],
    itemsize: int = 2,
) -> Estimate:
    """Estimate every configuration in ``columns`` (arrays ``bm bn bk warps stages group_m`` of one
    length).

    Raises:
        TypeError: if ``device`` is of another model.
    """
    if not isinstance(device, LectureDevice):
        raise TypeError(f"expected a device of the lecture's model, found {device.name}")
    bm, bn, bk, warps, stages = (
        columns[name].astype(np.float64) for name in ("bm", "bn", "bk", "warps", "stages")
    )
    sms, clock = device.sms, device.clock_hz
    grid_m, grid_n = warp_grid(columns["warps"])
    stage_bytes = (bm + bn) * bk * itemsize

    registers = bm * bn / (32 * warps) + device.base_registers
    shared = stages * stage_bytes
    occupancy = np.minimum(
        np.floor(device.registers_per_sm / (registers * 32 * warps)),
        np.floor(device.shared_per_sm / (shared + device.shared_reserved_per_block)),
    )
    occupancy = np.minimum(occupancy, np.floor(device.warps_per_sm / warps))
    occupancy = np.clip(occupancy, 1, device.blocks_per_sm)

    rows_of_tiles, cols_of_tiles, k_steps = np.ceil(m / bm), np.ceil(n / bn), np.ceil(k / bk)
    tiles = rows_of_tiles * cols_of_tiles
    resident = np.minimum(occupancy, np.ceil(tiles / sms))
    padding = tiles * bm * bn * k_steps * bk / (float(m) * n * k)

    mma = 2 * bm * bn * bk / (device.peak_flops / sms) / device.tensor_efficiency
    operand_reads = warps * (bm / grid_m + bn / grid_n) * bk * itemsize
    shared_time = operand_reads / (device.shared_bytes_per_clock * clock)
    l2 = stage_bytes / (device.l2_bytes_per_s / sms)
    tensor = resident * mma / np.minimum(1.0, warps * resident / device.schedulers_per_sm)
    busy = np.maximum(tensor, np.maximum(resident * shared_time, resident * l2))
    hidden = np.maximum(busy, device.latency_s / np.maximum(stages - 1, 1))
    step = np.where(stages == 1, busy + device.latency_s, hidden)
    waves = np.ceil(tiles / (sms * resident))
    sm = waves * k_steps * step

    traffic, hbm = _memory(device, (m, n, k), itemsize, columns, tiles, sms * resident)

    latency_bound = step > busy
    limits = np.stack([tensor, resident * shared_time, resident * l2])
    bound = np.where(latency_bound, 3, np.argmax(limits, axis=0))
    bound = np.where(hbm > sm, 4, bound)
    return Estimate(
        registers=registers,
        shared_bytes=shared,
        occupancy=occupancy,
        tiles=tiles,
        resident=resident,
        waves=waves,
        k_steps=k_steps,
        padding=padding,
        mma_s=mma,
        shared_s=shared_time,
        l2_s=l2,
        busy_s=busy,
        step_s=step,
        sm_s=sm,
        hbm_bytes=traffic,
        hbm_s=hbm,
        time_s=np.maximum(sm, hbm) + device.launch_s,
        bound=bound,
    )


def _memory(
    device: LectureDevice,
    shape: tuple[int, int, int],
    itemsize: int,
    columns: Mapping[str, NDArray[np.generic]],
    tiles: Column,
    at_once: Column,
) -> tuple[Column, Column]:
    """Step 6: bytes moved from and to HBM with ``at_once`` blocks resident, and the seconds it
    takes.
    """
    m, n, k = shape
    bm, bn, bk, stages, group = (
        columns[name].astype(np.float64) for name in ("bm", "bn", "bk", "stages", "group_m")
    )
    rows_of_tiles, cols_of_tiles = np.ceil(m / bm), np.ceil(n / bn)
    in_flight = np.minimum(at_once, tiles)
    group = np.minimum(group, rows_of_tiles)
    wave_rows = np.minimum(rows_of_tiles, group * np.ceil(in_flight / (group * cols_of_tiles)))
    wave_cols = np.minimum(cols_of_tiles, np.ceil(in_flight / group))
    once = float((m * k + k * n) * itemsize)
    per_wave = (wave_rows * bm + wave_cols * bn) * k * itemsize
    operands = np.maximum(once, np.ceil(tiles / in_flight) * per_wave)
    if once <= device.l2_bytes:
        operands = np.full_like(operands, once)
    traffic = operands + itemsize * float(m) * n
    bandwidth = device.hbm_bytes_per_s
    flight_bytes = in_flight * np.maximum(stages - 1, 1) * (bm + bn) * bk * itemsize
    hbm = traffic / bandwidth * np.maximum(1.0, bandwidth * device.latency_s / flight_bytes)
    return traffic, hbm
