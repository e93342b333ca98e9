"""The instructions and micro-kernels that come with the compiler."""

from __future__ import annotations

_HERE = "kernelwright.env.compiler.schedule.instructions"
INSTRUCTIONS: dict[str, str] = {
    "fma_8x16_f32": f"{_HERE}.register_tile:FMA_8X16_F32",
    "fma_6x16_f32": f"{_HERE}.register_tile:FMA_6X16_F32",
    "fma_4x4_f64": f"{_HERE}.register_tile:FMA_4X4_F64",
    "dot_4_u8s8": f"{_HERE}.dot:DOT_4_U8S8",
    "engine_load": f"{_HERE}.engine:LOAD",
    "engine_zero": f"{_HERE}.engine:ZERO",
    "engine_matmul": f"{_HERE}.engine:MATMUL",
    "engine_store": f"{_HERE}.engine:STORE",
}
