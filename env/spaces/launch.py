"""What a block must satisfy to be launched, as rules of a knob space: each analytic model of a GPU
GEMM has its own.
"""

from __future__ import annotations

from kernelwright.env.compiler.machine.device import Device, HopperDevice, LectureDevice
from kernelwright.env.spaces.expressions import Constraint

# The knobs of a GPU GEMM. Only the Hopper model knows what it costs to split K.
GEMM_KNOBS = ("bm", "bn", "bk", "warps", "stages", "group_m")
SPLIT = "split_k"


def launch_rules(
    device: Device, itemsize: int = 2, split_of: int | None = None
) -> tuple[Constraint, ...]:
    """What a block must satisfy to be launched on ``device``; each rule is counted on its own.

    ``split_of`` is the extent K where the space has a knob that splits it.

    Raises:
        TypeError: if the device belongs to no model.
    """
    match device:
        case LectureDevice():
            return _lecture(device, itemsize)
        case HopperDevice():
            split = () if split_of is None else (_split(split_of),)
            return (_hopper_shared(device, itemsize), *split)
    raise TypeError(f"expected a device of a known model, found {type(device).__name__}")


def _lecture(device: LectureDevice, itemsize: int) -> tuple[Constraint, ...]:
    """Registers a thread, the warp tile against the mma instruction (16 x 8), and shared memory."""
    return (
        Constraint(
            code="registers",
            text="regs <= limit",
            reason="{bm}*{bn}/(32*{warps}) accumulators + {base} are {regs:.0f} registers "
            "a thread, at most {limit}",
            where=(("regs", "bm * bn / (32 * warps) + base"),),
            constants=(("base", device.base_registers), ("limit", device.registers_per_thread)),
        ),
        Constraint(
            code="warp_tile",
            text="tile_m >= 16 and tile_n >= 8",
            reason="a warp gets {tile_m:g} x {tile_n:g} of the {bm} x {bn} tile, "
            "less than one 16 x 8 mma",
            where=(
                ("grid_m", "4 if warps == 8 else 2 if warps == 4 else 1"),
                ("tile_m", "bm / grid_m"),
                ("tile_n", "bn * grid_m / warps"),
            ),
        ),
        Constraint(
            code="shared_memory",
            text="shared <= limit",
            reason="{stages} stages of ({bm} + {bn}) x {bk} operands take {shared} B "
            "of shared memory, at most {limit}",
            where=(("shared", "stages * (bm + bn) * bk * itemsize"),),
            constants=(("itemsize", itemsize), ("limit", device.shared_per_block)),
        ),
    )


def _hopper_shared(device: HopperDevice, itemsize: int) -> Constraint:
    """Shared memory of the operands, exact for Triton 3.6 (`hopper_block.operand_bytes`); the
    epilogue alone never exceeds it. Registers spill, so nothing else stops a block.
    """
    return Constraint(
        code="shared_memory",
        text="shared <= limit",
        reason="{a_buffers} buffers of {bm} x {bk} and {b_buffers} of {bk} x {bn} operands take "
        "{shared} B of shared memory, at most {limit}",
        where=(
            ("in_flight", "stages if warps >= 4 and bm >= 64 else stages - 1"),
            ("buffers", "1 if stages == 1 else in_flight"),
            ("least", "4 * 32 * warps"),
            ("a_buffers", "1 if bm * bk * itemsize < least else buffers"),
            ("b_buffers", "1 if bn * bk * itemsize < least else buffers"),
            ("shared", "(a_buffers * bm + b_buffers * bn) * bk * itemsize"),
        ),
        constants=(("itemsize", itemsize), ("limit", device.shared_per_block)),
    )


def _split(k: int) -> Constraint:
    """Every block has a K step."""
    return Constraint(
        code="split_k",
        text="split_k <= steps",
        reason="K = {k} has {steps} steps of {bk}, less than one for each of {split_k} blocks",
        where=(("steps", "ceil(k / bk)"),),
        constants=(("k", k),),
    )
