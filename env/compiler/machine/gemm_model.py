"""Which analytic model estimates a GEMM on a device: the one its table belongs to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.machine.device import Device, HopperDevice
from kernelwright.env.compiler.machine.gpu_gemm import Estimate, estimate_gemm
from kernelwright.env.compiler.machine.hopper_gemm import HopperEstimate, estimate_hopper


def estimate_on(
    device: Device,
    shape: tuple[int, int, int],
    columns: Mapping[str, NDArray[np.generic]],
    itemsize: int = 2,
) -> Estimate | HopperEstimate:
    """Estimate every configuration in ``columns`` for an m x n x k GEMM.

    Raises:
        ValueError: if the model has no operands of ``itemsize`` bytes, or no knob of ``columns``.
    """
    if isinstance(device, HopperDevice):
        if itemsize != 2:
            raise ValueError(f"expected operands of 2 bytes, found {itemsize}")
        return estimate_hopper(device, *shape, columns)
    if "split_k" in columns:
        raise ValueError(f"expected no knob split_k on {device.name}, whose model has none")
    return estimate_gemm(device, *shape, columns, itemsize)
