"""The analytic model of a Triton-style GEMM on a Hopper GPU, vectorised over configurations, with
the breakdown of every estimate.

C = A·B, fp16 with fp32 accumulation, ``m x k`` and ``k x n`` row-major; a block computes a
``bm x bn`` tile in K steps of ``bk``; ``split_k`` blocks share a tile's K steps. Steps:

1. a block's resources (`hopper_block`), hence how many blocks an SM holds;
2. rounds: the busiest SM runs its blocks a full SM at a time, the last round with those left;
3. what one K step of one block asks of an SM: Tensor Core, shared memory, issue slots, requests to
   L2, its share of HBM, and moves of spilled registers;
4. Little's law: a step is not shorter than the latency of its copies, and the time they take to
   arrive, over the steps in flight;
5. the step of a full SM is the p-norm of these, which is a little above the largest: resources are
   used side by side, but not perfectly; a round takes its K steps and a constant a tile;
6. HBM: no run is shorter than its traffic; a launch;
7. with ``split_k``, a second kernel that adds up the fp32 partial results.

How the constants were calibrated, and what the model gets wrong: ``docs/gpu-model.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.machine.device import HopperDevice
from kernelwright.env.compiler.machine.hopper_block import (
    ITEMSIZE,
    VECTOR_BYTES,
    WARP,
    Column,
    Knobs,
    occupancy,
    read_knobs,
    registers,
    shared_bytes,
    warp_grid,
)

LINE_BYTES = 128
PARTIAL_BYTES = 4  # fp32
BOUNDS = ("tensor", "shared", "issue", "l2", "hbm", "spill", "latency")


@dataclass(frozen=True, slots=True)
class HopperEstimate:
    """Estimated times in seconds and what they are made of, one row a configuration.

    ``tensor_s`` to ``latency_s`` are of one K step of an SM that holds ``resident`` blocks, and
    ``step_s`` is the step that they make.
    """

    registers: Column
    spilled_words: Column
    shared_bytes: Column
    occupancy: Column
    tiles: Column
    blocks: Column
    resident: Column
    rounds: Column
    k_steps: Column
    padding: Column
    tensor_s: Column
    shared_s: Column
    issue_s: Column
    l2_s: Column
    hbm_step_s: Column
    spill_s: Column
    latency_s: Column
    step_s: Column
    sm_s: Column
    hbm_bytes: Column
    hbm_s: Column
    reduce_s: Column
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


@dataclass(frozen=True, slots=True)
class _Step:
    """What one K step of one block asks of an SM, in clocks, and the clocks until its copies
    arrive.
    """

    tensor: Column
    shared: Column
    issue: Column
    l2: Column
    hbm: Column
    spill: Column
    own_spill: Column
    latency: Column


def norm(power: float, *parts: Column) -> Column:
    """The p-norm: at least the largest part, at most their sum."""
    largest = np.maximum(np.maximum.reduce(parts), 1e-300)
    out: Column = largest * sum((part / largest) ** power for part in parts) ** (1 / power)
    return out


def estimate_hopper(
    device: HopperDevice, m: int, n: int, k: int, columns: Mapping[str, NDArray[np.generic]]
) -> HopperEstimate:
    """Estimate every configuration in ``columns`` (arrays ``bm bn bk warps stages group_m`` of one
    length, and ``split_k`` where K is split).
    """
    knobs = read_knobs(columns)
    used, spilled = registers(device, knobs)
    shared = shared_bytes(knobs)
    fits = occupancy(device, knobs, used, shared)
    tiles = np.ceil(m / knobs.bm) * np.ceil(n / knobs.bn)
    blocks = tiles * knobs.split_k
    k_steps = np.ceil(np.ceil(k / knobs.bk) / knobs.split_k)
    share = np.ceil(blocks / device.sms)
    resident = np.minimum(fits, share)
    traffic = _traffic(device, (m, n, k), knobs, tiles, device.sms * resident)
    step = _step(device, m, n, knobs, spilled, traffic / (blocks * k_steps))

    full = np.floor(share / resident)
    rest = share - full * resident
    at_once = np.minimum(blocks, device.sms * resident)
    parts, step_clocks = _resident(device, knobs, step, resident, at_once)
    left = np.maximum(1.0, blocks - device.sms * resident * full)
    _, rest_clocks = _resident(device, knobs, step, np.maximum(rest, 1), left)
    tile = device.tile_s * device.clock_hz + knobs.accumulators * device.accumulator_clocks
    last = np.where(rest > 0, k_steps * rest_clocks + tile, 0.0)
    sm = (full * (k_steps * step_clocks + tile) + last) / device.clock_hz

    traffic = traffic + _result_bytes(device, m, n, knobs)
    hbm = traffic / (device.hbm_bytes_per_s * device.hbm_efficiency)
    reduce_s = _reduce(device, m, n, knobs)
    # A latency-bound step's other parts are all small, so the largest part names the bound.
    bound = np.argmax(np.stack(parts), axis=0)
    seconds = [part / device.clock_hz for part in parts]
    return HopperEstimate(
        registers=used,
        spilled_words=spilled,
        shared_bytes=shared,
        occupancy=fits,
        tiles=tiles,
        blocks=blocks,
        resident=resident,
        rounds=full + (rest > 0),
        k_steps=k_steps,
        padding=blocks * knobs.bm * knobs.bn * k_steps * knobs.bk / (float(m) * n * k),
        tensor_s=seconds[0],
        shared_s=seconds[1],
        issue_s=seconds[2],
        l2_s=seconds[3],
        hbm_step_s=seconds[4],
        spill_s=seconds[5],
        latency_s=seconds[6],
        step_s=step_clocks / device.clock_hz,
        sm_s=sm,
        hbm_bytes=traffic,
        hbm_s=hbm,
        reduce_s=reduce_s,
        time_s=norm(2 * device.overlap, sm, hbm) + device.launch_s + reduce_s,
        bound=np.where(hbm > sm, BOUNDS.index("hbm"), bound),
    )


def _step(
    device: HopperDevice, m: int, n: int, knobs: Knobs, spilled: Column, hbm_bytes: Column
) -> _Step:
    """Step 3, for one block; ``hbm_bytes`` are those of one K step of one block."""
    along_m, along_n = warp_grid(knobs)
    warps, single = knobs.warps, knobs.stages == 1
    # Single warps: each at least one 16 x 8 result, however small the tile.
    warp_m, warp_n = np.maximum(knobs.bm / along_m, 16), np.maximum(knobs.bn / along_n, 8)
    mma = warps * warp_m * warp_n * knobs.bk / (16 * 8 * 16)
    loads = warps * (warp_m + warp_n) * knobs.bk * ITEMSIZE / LINE_BYTES
    flops = 2 * knobs.bm * knobs.bn * knobs.bk
    peak = device.peak_flops / device.sms / device.clock_hz
    tensor = np.where(
        knobs.wgmma, flops / peak, mma * device.mma_clocks / device.schedulers_per_sm
    )
    # wgmma reads 64 x 16 of A and 16 x (bn a group) of B from shared memory for every instruction.
    groups = np.maximum(knobs.bm / 64, 1) * along_n * knobs.bk / 16
    operands = np.where(
        knobs.wgmma, groups * 16 * (64 + knobs.bn / along_n) * ITEMSIZE / LINE_BYTES, loads
    )
    vector_warp = VECTOR_BYTES // ITEMSIZE * WARP
    copies = sum(np.maximum(rows * knobs.bk / vector_warp, warps) for rows in (knobs.bm, knobs.bn))
    issue = copies * (device.copy_clocks + np.where(single, device.staging_clocks, 0.0))
    issue = issue + np.where(knobs.wgmma, 0.0, mma + loads)
    issue = issue + np.where(single, 0.0, device.warp_clocks * warps)
    lines_a = np.ceil(knobs.bk * ITEMSIZE / LINE_BYTES)
    lines_b = np.ceil(knobs.bn * ITEMSIZE / LINE_BYTES)
    requests = device.request_clocks * (knobs.bm * lines_a + knobs.bk * lines_b)
    requests = requests + device.repeat_clocks * np.maximum(0, knobs.bm - m) * lines_a
    ported = norm(device.overlap, requests, knobs.step_bytes / device.l2_bytes_per_clock)
    # Neighbouring blocks ask for the same rows of A in one group row, else for the same columns of B.
    same = np.where(np.minimum(knobs.group_m, np.ceil(m / knobs.bm)) == 1, knobs.bm, knobs.bn)
    ported = ported * (1 - device.neighbour_share * same / (knobs.bm + knobs.bn))
    # A word of a warp is a line, stored and loaded once a step; accumulators of warpgroups are too
    # many for L1, so they pass at the speed of L2.
    lines = spilled * warps
    group_spill = lines * 2 * LINE_BYTES / device.l2_bytes_per_clock
    spill = np.where(
        knobs.wgmma, group_spill, lines * 2 * LINE_BYTES / device.shared_bytes_per_clock
    )
    own_spill = np.where(knobs.wgmma, group_spill, spilled * device.spill_clocks)
    hbm = device.hbm_bytes_per_s * device.hbm_efficiency / device.clock_hz
    trips = np.maximum(1, _trips(device, knobs))
    return _Step(
        tensor=tensor,
        shared=operands + knobs.step_bytes / LINE_BYTES,
        issue=issue / device.schedulers_per_sm,
        l2=ported,
        hbm=hbm_bytes / hbm,
        spill=spill,
        own_spill=own_spill,
        latency=device.latency_s * device.clock_hz * np.where(single, trips, 1.0),
    )


def _trips(device: HopperDevice, knobs: Knobs) -> Column:
    """Without a pipeline copies pass through registers: what those left hold, one trip after
    another.
    """
    words = VECTOR_BYTES // 4 * knobs.vectors
    left = device.registers_per_thread - knobs.accumulators - WARP
    return words / np.maximum(left, WARP)


def _resident(
    device: HopperDevice, knobs: Knobs, step: _Step, resident: Column, at_once: Column
) -> tuple[list[Column], Column]:
    """Steps 4 and 5: the parts of a K step (in the order of `BOUNDS`) of an SM that holds
    ``resident`` blocks while ``at_once`` run on the whole device, and the step, in clocks.
    """
    p, stages = device.overlap, knobs.stages
    busy_schedulers = np.minimum(1.0, knobs.warps * resident / device.schedulers_per_sm)
    alone = np.minimum(1.0, knobs.warps / device.schedulers_per_sm)
    hbm = step.hbm * np.minimum(at_once, device.sms * resident)
    tensor = resident * step.tensor / np.where(knobs.wgmma, 1.0, busy_schedulers)
    issue = resident * step.issue / busy_schedulers
    arrive = norm(p, step.l2, step.hbm * np.minimum(at_once, device.sms))
    own = norm(p, step.tensor / alone, step.shared, step.issue / alone)
    waiting = np.where(
        stages == 1,
        step.latency + arrive + own,
        (step.latency + arrive) / np.maximum(1, stages - 1),
    )
    latency = waiting + step.own_spill + device.sync_clocks
    spill = resident * step.spill
    parts = [tensor, resident * step.shared, issue, resident * step.l2, hbm, spill, latency]
    moved = norm(p, parts[3], hbm)
    busy = norm(p, tensor, parts[1], issue, moved) + spill
    return parts, norm(p, busy, latency)


def _traffic(
    device: HopperDevice, shape: tuple[int, int, int], knobs: Knobs, tiles: Column, slots: Column
) -> Column:
    """Bytes of operands read from HBM: once if both fit L2, else once for every wave of
    ``slots`` blocks that needs them, and at least once.
    """
    m, n, k = shape
    rows_of_tiles, cols_of_tiles = np.ceil(m / knobs.bm), np.ceil(n / knobs.bn)
    once = float((m * k + k * n) * ITEMSIZE)
    if once <= device.l2_bytes:
        return np.full_like(tiles, once)
    # Slices of K run one after another, so a wave lies within one unless it holds several.
    in_flight = np.minimum(slots, tiles * knobs.split_k)
    slices = np.maximum(1.0, in_flight / tiles)
    plane = np.minimum(in_flight, tiles)
    group = np.minimum(knobs.group_m, rows_of_tiles)
    rows = np.minimum(rows_of_tiles, group * np.ceil(plane / (group * cols_of_tiles)))
    cols = np.minimum(cols_of_tiles, np.ceil(plane / group))
    depth = k / knobs.split_k * slices
    waves = np.ceil(tiles * knobs.split_k / in_flight)
    return np.maximum(once, waves * (rows * knobs.bm + cols * knobs.bn) * depth * ITEMSIZE)


def _partial_bytes(m: int, n: int, knobs: Knobs) -> Column:
    """Bytes of fp32 partial results; 0 where K is not split."""
    return np.where(knobs.split_k > 1, knobs.split_k * float(m) * n * PARTIAL_BYTES, 0.0)


def _result_bytes(device: HopperDevice, m: int, n: int, knobs: Knobs) -> Column:
    """Bytes that the first kernel writes to HBM: the result, or the partial results that exceed
    L2.
    """
    partial = _partial_bytes(m, n, knobs)
    beyond = np.where(partial > device.l2_bytes, partial, 0.0)
    return np.where(knobs.split_k > 1, beyond, float(ITEMSIZE * m) * n)


def _reduce(device: HopperDevice, m: int, n: int, knobs: Knobs) -> Column:
    """Step 7: a launch that reads the partial results, from L2 where they fit, and writes the
    result.
    """
    partial, result = _partial_bytes(m, n, knobs), float(ITEMSIZE * m) * n
    beyond = np.where(partial > device.l2_bytes, partial, 0.0)
    l2 = (partial + result) / (device.l2_bytes_per_clock * device.clock_hz * device.sms)
    hbm = (beyond + result) / (device.hbm_bytes_per_s * device.hbm_efficiency)
    seconds = device.launch_s + device.latency_s + norm(device.overlap, l2, hbm)
    return np.where(knobs.split_k > 1, seconds, 0.0)
