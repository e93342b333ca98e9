"""The analytic model of a Triton-style GEMM on a Hopper GPU, vectorised over configurations, with
the breakdown of every estimate.

C = A·B, fp16 with fp32 accumulation, ``m x k`` and ``k x n`` row-major; a block computes a
``bm x bn`` tile in K steps of ``bk``; ``split_k`` blocks share a tile's K steps. Steps:

1. a block's resources (`hopper_block`), hence how many blocks an SM holds;
2. rounds: the busiest SM runs its blocks a full SM at a time, the last round with those left;
3. what one K step of one block asks of an SM (`hopper_step`): Tensor Core, shared memory, issue
   slots, requests to L2, its share of HBM, and moves of spilled registers;
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
    Column,
    Knobs,
    occupancy,
    read_knobs,
    registers,
    shared_bytes,
)
from kernelwright.env.compiler.machine.hopper_step import (
    BOUNDS,
    Step,
    block_step,
    norm,
    shared_step,
)

PARTIAL_BYTES = 4  # fp32


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
    reduction_s: Column
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
    resident = np.minimum(fits, np.ceil(blocks / device.sms))
    operands = _traffic(device, (m, n, k), knobs, tiles, device.sms * resident)
    step = block_step(device, m, knobs, spilled, operands / (blocks * k_steps))
    parts, step_clocks, rounds, sm = _rounds(device, knobs, step, (blocks, k_steps, resident))
    traffic = operands + _result_bytes(device, m, n, knobs)
    hbm = traffic / (device.hbm_bytes_per_s * device.hbm_efficiency)
    reduction = _reduction(device, m, n, knobs)
    seconds = [part / device.clock_hz for part in parts]
    largest = np.argmax(np.stack(parts), axis=0)
    return HopperEstimate(
        registers=used,
        spilled_words=spilled,
        shared_bytes=shared,
        occupancy=fits,
        tiles=tiles,
        blocks=blocks,
        resident=resident,
        rounds=rounds,
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
        reduction_s=reduction,
        time_s=norm(2 * device.overlap, sm, hbm) + device.launch_s + reduction,
        bound=np.where(hbm > sm, BOUNDS.index("hbm"), largest),
    )


def _rounds(
    device: HopperDevice, knobs: Knobs, step: Step, work: tuple[Column, Column, Column]
) -> tuple[list[Column], Column, Column, Column]:
    """Steps 2 and 5: the parts and the step, in clocks, of an SM that is full; how many rounds the
    busiest SM has, and the seconds they take. ``work`` is blocks, K steps a block, blocks an SM.
    """
    blocks, k_steps, resident = work
    share = np.ceil(blocks / device.sms)
    full = np.floor(share / resident)
    rest = share - full * resident
    parts, clocks = shared_step(
        device, knobs, step, resident, np.minimum(blocks, device.sms * resident)
    )
    left = np.maximum(1.0, blocks - device.sms * resident * full)
    _, last = shared_step(device, knobs, step, np.maximum(rest, 1), left)
    store = device.accumulator_clocks * np.where(knobs.split_k > 1, PARTIAL_BYTES / ITEMSIZE, 1.0)
    tile = device.tile_s * device.clock_hz + knobs.accumulators * store
    total = full * (k_steps * clocks + tile) + np.where(rest > 0, k_steps * last + tile, 0.0)
    return parts, clocks, full + (rest > 0), total / device.clock_hz


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
    moved = waves * (rows * knobs.bm + cols * knobs.bn) * depth * ITEMSIZE
    out: Column = np.maximum(once, moved)
    return out


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


def _reduction(device: HopperDevice, m: int, n: int, knobs: Knobs) -> Column:
    """Step 7: a launch that reads the partial results, from L2 where they fit, and writes the
    result.
    """
    partial, result = _partial_bytes(m, n, knobs), float(ITEMSIZE * m) * n
    beyond = np.where(partial > device.l2_bytes, partial, 0.0)
    l2 = (partial + result) / (device.l2_bytes_per_clock * device.clock_hz * device.sms)
    hbm = (beyond + result) / (device.hbm_bytes_per_s * device.hbm_efficiency)
    seconds = device.launch_s + device.latency_s + norm(device.overlap, l2, hbm)
    return np.where(knobs.split_k > 1, seconds, 0.0)
