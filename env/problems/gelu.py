"""The Gaussian error linear unit (Hendrycks and Gimpel 2016), with erf, not its tanh approximation.

The error bound: x/√2 is rounded twice (the constant and the product) and moves erf by erf'(x/√2)
|x/√2| 2u, erf adds its own few u of itself, and 1 + erf, the two products and what another order
of them needs add 4 u of the result. Far left, 1 + erf cancels and erf's own error remains, which is
why the bound is no multiple of the result.

Most elements are drawn from -6 to 6, where erf has yet to reach its limits; some lie far outside,
and some near zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import fixed_extents, plain_c
from kernelwright.env.problems.rounding import FUNCTION, floats, unit
from kernelwright.env.problems.shapes import Extent, compulsory_bytes, workload
from kernelwright.env.types import (
    STRESSES,
    Arrays,
    ErrorModel,
    Library,
    Problem,
    TensorSpec,
    Workload,
)

TENSORS = (
    TensorSpec("x", ("n",), "float32", "input"),
    TensorSpec("y", ("n",), "float32", "output"),
)
REACH = 6.0
FAR, NEAR = 30.0, 0.03


def gelu(*, n: Extent = 1 << 18) -> Problem:
    """y[i] = x[i] (1 + erf(x[i] / √2)) / 2."""
    return Problem(
        name="gelu",
        version=1,
        tensors=TENSORS,
        workloads=(workload(n=n),),
        error_model=ErrorModel(
            unit("float32"),
            "erf to 4 ulp of itself, its argument's two roundings times its derivative, and four "
            "roundings of the result: Higham 2002, section 3.1",
        ),
        reference=lambda arrays: {"y": _gelu(floats(arrays)["x"])},
        inputs=_inputs,
        flops=lambda workload: 5 * workload.fixed["n"],
        moved_bytes=compulsory_bytes(TENSORS),
        spaces=("schedule", "source", "template"),
        magnitude=_magnitude,
        definition=fixed_extents("gelu", TENSORS, _body),
        plain_c=plain_c("gelu"),
        library=Library("SciPy", "kernelwright.env.problems.library:gelu", "scipy"),
        stress=STRESSES,
    )


def _body(extents: Mapping[str, int]) -> Stmt:
    x = te.placeholder("x", (extents["n"],))
    scale = math.sqrt(0.5)
    y = te.compute("y", (extents["n"],), lambda i: x[i] * 0.5 * (te.erf(x[i] * scale) + 1.0), [x])
    return te.lower("gelu", [y]).body


def _gelu(x: NDArray[np.float64]) -> NDArray[np.float64]:
    # 1 + erf(t) = erfc(-t), which does not cancel.
    t = -x.ravel() * math.sqrt(0.5)
    tail = np.fromiter(map(math.erfc, t.tolist()), np.float64, t.size)
    return x * tail.reshape(x.shape) / 2


def _magnitude(arrays: Arrays) -> Arrays:
    x = floats(arrays)["x"]
    y, half = _gelu(x), abs(x) / 2
    # y = x/2 + x/2 erf.
    of_erf = FUNCTION * abs(y - x / 2)
    of_argument = half * 2 / math.sqrt(math.pi) * np.exp(-x * x / 2) * abs(x) * math.sqrt(0.5) * 2
    return {"y": of_erf + of_argument + 4 * abs(y)}


def _inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
    n = workload.fixed["n"]
    kind, normal = rng.integers(8, size=n), rng.standard_normal(n)
    x = np.select(
        [kind == 0, kind == 1], [FAR * normal, NEAR * normal], rng.uniform(-REACH, REACH, n)
    )
    return {"x": x.astype(np.float32)}
