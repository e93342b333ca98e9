"""One K step of a Triton-style GEMM kernel on a Hopper SM: what a block asks of each part of the
SM, and how long the step takes where several blocks share it. Everything is in clocks of an SM.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelwright.env.compiler.machine.device import HopperDevice
from kernelwright.env.compiler.machine.hopper_block import (
    ITEMSIZE,
    VECTOR_BYTES,
    WARP,
    Column,
    Knobs,
    warp_grid,
)

LINE_BYTES = 128
# What can bound a step, in the order of the parts that `shared_step` gives.
BOUNDS = ("tensor", "shared", "issue", "l2", "hbm", "spill", "latency")


@dataclass(frozen=True, slots=True)
class Step:
    """What one K step of one block asks for, and the clocks until its copies arrive.

    ``hbm`` is of all of HBM, so it is shared by the whole device; ``own_spill`` is what the block
    itself waits for its spilled words, ``spill`` the part of the SM's bandwidth that they take.
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


def block_step(
    device: HopperDevice, m: int, knobs: Knobs, spilled: Column, hbm_bytes: Column
) -> Step:
    """The step of one block that keeps ``spilled`` words a thread in local memory and reads
    ``hbm_bytes`` from HBM.
    """
    tensor, shared, instructions = _compute(device, knobs)
    spill, own_spill = _spill(device, knobs, spilled)
    hbm_clock = device.hbm_bytes_per_s * device.hbm_efficiency / device.clock_hz
    # Without a pipeline copies pass through registers: what those left hold, trip after trip.
    words = VECTOR_BYTES // 4 * knobs.vectors
    left = device.registers_per_thread - knobs.accumulators - WARP
    trips = np.where(knobs.stages == 1, np.maximum(1, words / np.maximum(left, WARP)), 1.0)
    return Step(
        tensor=tensor,
        shared=shared,
        issue=_issue(device, knobs, instructions),
        l2=_requests(device, m, knobs),
        hbm=hbm_bytes / hbm_clock,
        spill=spill,
        own_spill=own_spill,
        latency=device.latency_s * device.clock_hz * trips,
    )


def _compute(device: HopperDevice, knobs: Knobs) -> tuple[Column, Column, Column]:
    """Tensor Core time; shared memory's, reads of operands and the copies that fill it; and the
    instructions of single warps: mma, and loads of their operands.
    """
    along_m, along_n = warp_grid(knobs)
    # Single warps: each at least one 16 x 8 result, however small the tile.
    rows, cols = np.maximum(knobs.bm / along_m, 16), np.maximum(knobs.bn / along_n, 8)
    mma = knobs.warps * rows * cols * knobs.bk / (16 * 8 * 16)
    loads = knobs.warps * (rows + cols) * knobs.bk * ITEMSIZE / LINE_BYTES
    single = mma * device.mma_clocks / device.schedulers_per_sm
    flops_clock = device.peak_flops / device.sms / device.clock_hz
    grouped = 2 * knobs.bm * knobs.bn * knobs.bk / flops_clock
    # Every wgmma reads 64 x 16 of A and 16 x (a group's columns) of B.
    wgmma = np.maximum(knobs.bm / 64, 1) * along_n * knobs.bk / 16
    reads = wgmma * 16 * (64 + knobs.bn / along_n) * ITEMSIZE / LINE_BYTES
    return (
        np.where(knobs.wgmma, grouped, single),
        np.where(knobs.wgmma, reads, loads) + knobs.step_bytes / LINE_BYTES,
        np.where(knobs.wgmma, 0.0, mma + loads),
    )


def _issue(device: HopperDevice, knobs: Knobs, instructions: Column) -> Column:
    """Issue slots: copies with their addresses and masks, at least one a warp and operand; a
    constant a warp for the pipeline's barrier and waits; and ``instructions``.
    """
    pipelined = knobs.stages > 1
    of_warp = VECTOR_BYTES // ITEMSIZE * WARP
    copies = np.maximum(knobs.bm * knobs.bk / of_warp, knobs.warps)
    copies = copies + np.maximum(knobs.bn * knobs.bk / of_warp, knobs.warps)
    slots = copies * (device.copy_clocks + np.where(pipelined, 0.0, device.staging_clocks))
    slots = slots + np.where(pipelined, device.warp_clocks * knobs.warps, 0.0) + instructions
    return slots / device.schedulers_per_sm


def _requests(device: HopperDevice, m: int, knobs: Knobs) -> Column:
    """The SM's port to L2: a request for every row of up to a line, or the bytes.

    Rows of A beyond M are rows asked for again, of which all blocks want the same. What
    neighbouring blocks ask for together is served once: rows of A where a group is one tile row,
    else columns of B.
    """
    lines_a = np.ceil(knobs.bk * ITEMSIZE / LINE_BYTES)
    lines_b = np.ceil(knobs.bn * ITEMSIZE / LINE_BYTES)
    requests = device.request_clocks * (knobs.bm * lines_a + knobs.bk * lines_b)
    requests = requests + device.repeat_clocks * np.maximum(0, knobs.bm - m) * lines_a
    port = norm(device.overlap, requests, knobs.step_bytes / device.l2_bytes_per_clock)
    one_row = np.minimum(knobs.group_m, np.ceil(m / knobs.bm)) == 1
    together = np.where(one_row, knobs.bm, knobs.bn) / (knobs.bm + knobs.bn)
    return port * (1 - device.neighbour_share * together)


def _spill(device: HopperDevice, knobs: Knobs, spilled: Column) -> tuple[Column, Column]:
    """Bandwidth that spilled words take, and the block's own wait for them. A warp's word is a
    line, stored and loaded in every step; the accumulators of warpgroups are too many for L1 and
    pass at the speed of L2.
    """
    moved = spilled * knobs.warps * 2 * LINE_BYTES
    group = moved / device.l2_bytes_per_clock
    return (
        np.where(knobs.wgmma, group, moved / device.shared_bytes_per_clock),
        np.where(knobs.wgmma, group, spilled * device.spill_clocks),
    )


def shared_step(
    device: HopperDevice, knobs: Knobs, step: Step, resident: Column, at_once: Column
) -> tuple[list[Column], Column]:
    """The parts of a K step (in the order of `BOUNDS`) of an SM that holds ``resident`` blocks
    while ``at_once`` run on the whole device; and the step that they make.

    Without a pipeline a block waits for its copies, then computes. With S stages the copies of
    S - 1 steps are under way (Little's law), and computing goes on meanwhile.
    """
    p = device.overlap
    # Fewer warps than schedulers leave some idle; warpgroups use all four.
    used = np.minimum(1.0, knobs.warps * resident / device.schedulers_per_sm)
    alone = np.minimum(1.0, knobs.warps / device.schedulers_per_sm)
    hbm = step.hbm * np.minimum(at_once, device.sms * resident)
    tensor = resident * step.tensor / np.where(knobs.wgmma, 1.0, used)
    shared, issue, l2 = resident * step.shared, resident * step.issue / used, resident * step.l2
    arrival = step.latency + norm(p, step.l2, step.hbm * np.minimum(at_once, device.sms))
    own = norm(p, step.tensor / alone, step.shared, step.issue / alone)
    waits = np.where(knobs.stages == 1, arrival + own, arrival / np.maximum(1, knobs.stages - 1))
    latency = waits + device.sync_clocks
    busy = norm(p, tensor, shared, issue, l2, hbm) + resident * step.spill
    spill = np.maximum(resident * step.spill, step.own_spill)
    parts = [tensor, shared, issue, l2, hbm, spill, latency]
    return parts, norm(p, busy, latency + step.own_spill)
