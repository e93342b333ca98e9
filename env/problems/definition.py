"""What the problems' modules share to say what they compute: LoopIR with fixed extents, plain C
text, and inputs drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.nodes import Procedure, Stmt, Tensor
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.runtime.call import C_TYPES
from kernelwright.env.problems.shapes import shape_of
from kernelwright.env.types import Arrays, TensorSpec, Workload

FLOATS: dict[str, type[np.float32] | type[np.float64]] = {
    "float32": np.float32,
    "float64": np.float64,
}
Inputs: TypeAlias = Callable[[Workload, np.random.Generator], Arrays]
C_DIR = Path(__file__).parent / "c"


def fixed_extents(
    name: str, tensors: Sequence[TensorSpec], body: Callable[[Mapping[str, int]], Stmt]
) -> Callable[[Workload], Procedure]:
    """A problem's ``definition``: the procedure over its tensors, in declared order, whose body is
    made for a workload's extents.

    It raises a ValueError for a workload with a range: directives need to know the numbers.
    """

    def definition(workload: Workload) -> Procedure:
        extents = workload.fixed
        arguments = tuple(
            Tensor(spec.name, tuple(map(whole, shape_of(spec, extents))), spec.dtype, spec.role)
            for spec in tensors
        )
        return verify(Procedure(name, tuple(extents), arguments, body(extents)))

    return definition


def plain_c(name: str, dtype: str = "float32") -> str:
    """The plain loops of a problem; ``TYPE`` in the file stands for the type of its elements.

    Raises:
        ValueError: if C has no such type.
    """
    if dtype not in C_TYPES:
        raise ValueError(f"{name}: expected one of {', '.join(C_TYPES)}, found {dtype}")
    return (C_DIR / f"{name}.c").read_text().replace("TYPE", C_TYPES[dtype])


def normal_inputs(
    tensors: Sequence[TensorSpec],
) -> Inputs:
    """A problem's ``inputs``: standard normal elements, tensor by tensor in declared order.

    Raises:
        ValueError: if an input is no float that C has.
    """
    for spec in tensors:
        if spec.role == "input" and spec.dtype not in FLOATS:
            known = " or ".join(FLOATS)
            raise ValueError(f"{spec.name}: expected {known}, found {spec.dtype}")

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        extents = workload.fixed
        return {
            spec.name: rng.standard_normal(shape_of(spec, extents), FLOATS[spec.dtype])
            for spec in tensors
            if spec.role == "input"
        }

    return inputs


def bright_inputs(tensors: Sequence[TensorSpec], most: float = 1.0) -> Inputs:
    """A problem's ``inputs``: images with brightness from 0 to ``most``, float32."""

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return {
            spec.name: np.float32(most) * rng.random(shape_of(spec, workload.fixed), np.float32)
            for spec in tensors
            if spec.role == "input"
        }

    return inputs


def with_hidden_extent(problem: str, extent: str, value: int, words: str, inputs: Inputs) -> Inputs:
    """A problem's ``inputs`` where no array shows an extent: of a workload with another value of it
    they raise a ValueError, ``"jacobi1d: expected 64 steps, found 63"``.
    """

    def checked(workload: Workload, rng: np.random.Generator) -> Arrays:
        found = workload.fixed[extent]
        if found != value:
            raise ValueError(f"{problem}: expected {value} {words}, found {found}")
        return inputs(workload, rng)

    return checked


def kinds_of_rows(rows: int, kinds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Which of a number of kinds each row is, in turns from a random one on; as a column."""
    out: NDArray[np.int64] = (np.arange(rows) + rng.integers(kinds))[:, None] % kinds
    return out
