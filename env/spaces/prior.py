"""What an analytic model says of a whole knob space beforehand: a prior for searches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.machine.device import load_device
from kernelwright.env.compiler.machine.gemm_model import estimate_on
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.launch import GEMM_KNOBS, SPLIT, launch_rules
from kernelwright.env.types import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Estimates of every combination of a space, by flat index.

    ``log2_s`` is the model's plain estimate, log2 of seconds, finite everywhere; ``launches`` says
    where the model's own rules let it run; ``shared_bytes`` and ``warps`` break ties.
    """

    log2_s: NDArray[np.float64]
    launches: NDArray[np.bool_]
    shared_bytes: NDArray[np.float64]
    warps: NDArray[np.float64]

    @property
    def log2(self) -> NDArray[np.float64]:
        """`log2_s`, infinite where the model's rules say that nothing is launched."""
        return np.where(self.launches, self.log2_s, np.inf)

    def order(self, among: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Flat indices, the fastest estimate first; of equal ones that which takes less of an SM:
        shared memory, then warps; then the lower index.
        """
        index = np.arange(len(self.log2_s)) if among is None else among
        keys = (index, self.warps[index], self.shared_bytes[index], self.log2_s[index])
        return index[np.lexsort(keys)]


def predicted_log2(problem: Problem, device: str, space: KnobSpace) -> Prediction:
    """Estimate every combination of ``space`` for a GEMM problem on a device (a table's name or
    path).

    Raises:
        ValueError: if the problem is not a GEMM of fixed extents m, n, k with a GPU's knobs, or has
            a knob that the device's model lacks.
        OptionError: if there is no such device.
    """
    table = load_device(device)
    if set(GEMM_KNOBS) - set(space.names) or set(space.names) - {*GEMM_KNOBS, SPLIT}:
        raise ValueError(
            f"expected a GEMM with knobs {' '.join(GEMM_KNOBS)}, found {' '.join(space.names)}"
        )
    extents = problem.workloads[0].fixed
    if len(problem.workloads) != 1 or set(extents) != {"m", "n", "k"}:
        raise ValueError(f"expected one workload with extents m n k, found {extents}")
    shape = (extents["m"], extents["n"], extents["k"])
    itemsize = np.dtype(problem.tensors[0].dtype).itemsize
    estimate = estimate_on(table, shape, space.columns, itemsize)
    rules = launch_rules(table, itemsize, shape[2] if SPLIT in space.names else None)
    return Prediction(
        log2_s=np.log2(estimate.time_s),
        launches=np.all([rule.holds(space.columns) for rule in rules], axis=0),
        shared_bytes=estimate.shared_bytes,
        warps=space.columns["warps"].astype(np.float64),
    )
