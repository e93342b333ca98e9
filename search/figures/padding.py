"""H3: a tile of 160 does not divide 8192, and the padding it costs."""

from __future__ import annotations

import numpy as np

from kernelwright.env.compiler.machine.device import load_device
from kernelwright.env.compiler.machine.gpu_gemm import estimate_gemm
from kernelwright.search.figures.table import Figure, exact


def padding() -> list[Figure]:
    """Figure H3, from the model's own account of tiles and padding."""
    tile, size = 160, 8192
    knobs = {"bm": tile, "bn": 128, "bk": 32, "warps": 8, "stages": 3, "group_m": 8}
    columns = {name: np.array([value]) for name, value in knobs.items()}
    estimate = estimate_gemm(load_device("h100-lecture"), size, size, size, columns)
    rows = estimate.tiles[0] * tile * 128 / size
    got = f"{rows:.0f}, {100 * (estimate.padding[0] - 1):.2f}%"
    return [exact("H3", "tile 160 on 8192: padded to, waste", "8320, 1.56%", got)]
