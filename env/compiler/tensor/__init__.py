"""The tensor front end: what is computed, in TVM's words (``placeholder``, ``compute``,
``reduce_axis``; Chen et al., OSDI 2018).

A stage is a pure function of its indices over other stages and inputs; `lower` turns stages into
LoopIR, one nest after the other, and directives then say how they run.
"""

from __future__ import annotations

from kernelwright.env.compiler.tensor.expression import (
    TensorError,
    Value,
    absolute,
    cast,
    constant,
    erf,
    exp,
    floor,
    log,
    maximum,
    minimum,
    select,
    sqrt,
    tanh,
)
from kernelwright.env.compiler.tensor.lower import lower
from kernelwright.env.compiler.tensor.stage import (
    Placeholder,
    Reduction,
    Stage,
    compute,
    extent,
    placeholder,
    reduce_axis,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
)

__all__ = [
    "Placeholder",
    "Reduction",
    "Stage",
    "TensorError",
    "Value",
    "absolute",
    "cast",
    "compute",
    "constant",
    "erf",
    "exp",
    "extent",
    "floor",
    "log",
    "lower",
    "maximum",
    "minimum",
    "placeholder",
    "reduce_axis",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "select",
    "sqrt",
    "tanh",
]
