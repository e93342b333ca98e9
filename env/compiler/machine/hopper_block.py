"""What one block of a Triton-style GEMM kernel takes of a Hopper SM: the path of its matrix
instructions, shared memory, registers, words spilled to local memory, and how many blocks fit.

Two paths. A tile of 64 rows or more with 4 warps or more is computed by warpgroups (wgmma), which
read both operands from shared memory and run asynchronously. Anything smaller is computed by single
warps (mma.sync), which first load their operands into registers.

Shared memory is exact: it gives the bytes that Triton 3.6 allocated, for every configuration of
the shipped landscapes (fp16, extents that 16-byte copies divide).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.machine.device import HopperDevice

Column = NDArray[np.float64]
ITEMSIZE = 2  # bytes of an operand: fp16
VECTOR_BYTES = 16
WARP = 32


@dataclass(frozen=True, slots=True)
class Knobs:
    """The columns of a set of configurations as float64."""

    bm: Column
    bn: Column
    bk: Column
    warps: Column
    stages: Column
    group_m: Column
    split_k: Column

    @property
    def threads(self) -> Column:
        """Threads in a block."""
        return WARP * self.warps

    @property
    def wgmma(self) -> NDArray[np.bool_]:
        """Whether a block's tile is computed by warpgroups."""
        out: NDArray[np.bool_] = (self.warps >= 4) & (self.bm >= 64)
        return out

    @property
    def accumulators(self) -> Column:
        """fp32 accumulators a thread."""
        return self.bm * self.bn / self.threads

    @property
    def vectors(self) -> Column:
        """16-byte copies that a thread makes in a K step."""
        return (self.bm + self.bn) * self.bk * ITEMSIZE / VECTOR_BYTES / self.threads

    @property
    def step_bytes(self) -> Column:
        """Bytes of both operands in a K step."""
        return (self.bm + self.bn) * self.bk * ITEMSIZE


def read_knobs(columns: Mapping[str, NDArray[np.generic]]) -> Knobs:
    """The knobs of arrays of one length; ``split_k`` is 1 where it is not among them."""
    values = {name: columns[name].astype(np.float64) for name in Knobs.__slots__ if name in columns}
    values.setdefault("split_k", np.ones_like(values["bm"]))
    return Knobs(**values)


def warp_grid(knobs: Knobs) -> tuple[Column, Column]:
    """Warps along M and N.

    Warpgroups: four along M, eight where the tile has two times 64 rows. Single warps: one at a
    time, along the side on which a warp has more instructions of 16 x 16 left.
    """
    along_m, along_n = np.ones_like(knobs.bm), np.ones_like(knobs.bm)
    for _ in range(3):  # at most 8 warps
        open_ = along_m * along_n < knobs.warps
        rows, cols = knobs.bm / 16 / along_m, knobs.bn / 16 / along_n
        down = open_ & (rows >= cols) & (along_m < knobs.bm / 16)
        along_m = np.where(down, 2 * along_m, along_m)
        along_n = np.where(open_ & ~down, 2 * along_n, along_n)
    groups = np.where((knobs.warps >= 8) & (knobs.bm >= 128), 8.0, 4.0)
    along_m = np.where(knobs.wgmma, groups, along_m)
    return along_m, np.where(knobs.wgmma, knobs.warps / groups, along_n)


def operand_bytes(knobs: Knobs) -> Column:
    """Shared memory of the pipelined operands.

    A pipeline of S stages keeps S - 1 steps in flight: S - 1 buffers for mma.sync, one more for
    wgmma, which still reads the step before; S = 1 has one. An operand of which a thread would copy
    under 4 bytes, the least of an asynchronous copy, is not pipelined and has one buffer.
    """
    buffers = np.where(knobs.stages == 1, 1, np.where(knobs.wgmma, knobs.stages, knobs.stages - 1))
    total = np.zeros_like(knobs.bm)
    for rows in (knobs.bm, knobs.bn):
        taken = rows * knobs.bk * ITEMSIZE
        total = total + taken * np.where(taken < 4 * knobs.threads, 1, buffers)
    return total


def epilogue_bytes(knobs: Knobs) -> Column:
    """Shared memory through which the result changes its layout, from that of the instruction to
    one that stores 16 bytes a thread.

    The whole tile passes at once, but for the rows that both layouts keep in a thread's registers:
    those pass one after another in the same memory. The instruction keeps row 8 and every row above
    the 16 of each warp; the store keeps the rows above those that one pass of the block covers. A
    result that is split over K is fp32, else it is fp16.
    """
    itemsize = np.where(knobs.split_k > 1, 4, ITEMSIZE)
    covered = VECTOR_BYTES / itemsize * knobs.threads / knobs.bn
    warps_m = np.where(knobs.wgmma, warp_grid(knobs)[0], 1)
    above = np.maximum(1.0, knobs.bm / np.maximum(covered, 16 * warps_m))
    row_8 = np.where((covered <= 8) & (knobs.bm > 8), 2, 1)
    out: Column = knobs.bm * knobs.bn * itemsize / (above * row_8)
    return out


def shared_bytes(knobs: Knobs) -> Column:
    """Bytes of shared memory a block; operands and epilogue use the same."""
    return np.maximum(operand_bytes(knobs), epilogue_bytes(knobs))


def registers(device: HopperDevice, knobs: Knobs) -> tuple[Column, Column]:
    """Registers a thread, at most what the device has and in units of 8, and the words a thread
    keeps in local memory instead.

    Warpgroups whose accumulators leave no room move all of them in every step. Single warps spill
    addresses and operands, in proportion to both the copies and the accumulators a thread has.
    """
    acc, vectors, limit = knobs.accumulators, knobs.vectors, device.registers_per_thread
    staged = np.where(knobs.stages == 1, device.wgmma_staged_vector, 0.0)
    group = device.wgmma_base + device.wgmma_accumulator * acc
    single = device.mma_base + device.mma_accumulator * acc + device.mma_vector * vectors
    wanted = np.where(knobs.wgmma, group + (device.wgmma_vector + staged) * vectors, single)
    product = vectors * (device.spill_product * acc - device.spill_vector)
    words = np.maximum(0.0, product + device.spill_accumulator * acc - device.spill_base)
    spilled = np.where(knobs.wgmma, np.where(group > limit, acc, 0.0), words)
    return np.minimum(limit, 8 * np.ceil(wanted / 8)), spilled


def occupancy(device: HopperDevice, knobs: Knobs, used: Column, shared: Column) -> Column:
    """Blocks that an SM holds at once, at least 1."""
    allocated = 8 * np.ceil(used / 8) * knobs.threads
    fits = np.minimum(
        np.floor(device.registers_per_sm / allocated),
        np.floor(device.shared_per_sm / (shared + device.shared_reserved_per_block)),
    )
    fits = np.minimum(fits, np.floor(device.warps_per_sm / knobs.warps))
    out: Column = np.clip(fits, 1, device.blocks_per_sm)
    return out
