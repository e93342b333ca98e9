"""The tensor front end: what is computed, in TVM's words (``placeholder``, ``compute``,
``reduce_axis``; Chen et al., OSDI 2018) and in Halide's (``Func``, ``Var``, ``RDom``; Ragan-Kelley
et al., PLDI 2013), side by side in one pipeline.

A stage is a pure function of its indices over other stages and inputs, on a shape that is given; a
function is one over unbounded integer space, computed as far as it is read. `lower` turns both into
LoopIR, one nest after the other, and directives then say how they run.
"""

from __future__ import annotations

from kernelwright.env.compiler.poly.demand import Box
from kernelwright.env.compiler.tensor.boundary import (
    constant_exterior,
    mirror_image,
    mirror_interior,
    repeat_edge,
    repeat_image,
)
from kernelwright.env.compiler.tensor.domain import RDom, Var, extent, reduce_axis
from kernelwright.env.compiler.tensor.expression import TensorError, Value, constant
from kernelwright.env.compiler.tensor.func import Func, Realization
from kernelwright.env.compiler.tensor.functions import (
    absolute,
    cast,
    ceil,
    clamp,
    cos,
    erf,
    exp,
    floor,
    log,
    maximum,
    minimum,
    power,
    rounded,
    select,
    sin,
    sqrt,
    tanh,
    trunc,
)
from kernelwright.env.compiler.tensor.lower import lower, regions
from kernelwright.env.compiler.tensor.reduction import (
    Reduction,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from kernelwright.env.compiler.tensor.stage import (
    ImageParam,
    Placeholder,
    Stage,
    compute,
    placeholder,
)

__all__ = [
    "Box",
    "Func",
    "ImageParam",
    "Placeholder",
    "RDom",
    "Realization",
    "Reduction",
    "Stage",
    "TensorError",
    "Value",
    "Var",
    "absolute",
    "cast",
    "ceil",
    "clamp",
    "compute",
    "constant",
    "constant_exterior",
    "cos",
    "erf",
    "exp",
    "extent",
    "floor",
    "log",
    "lower",
    "maximum",
    "minimum",
    "mirror_image",
    "mirror_interior",
    "placeholder",
    "power",
    "reduce_axis",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "regions",
    "repeat_edge",
    "repeat_image",
    "rounded",
    "select",
    "sin",
    "sqrt",
    "tanh",
    "trunc",
]
