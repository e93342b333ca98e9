"""Statements × formats of every operand × formats of the target, by the interpreter and against
dense arithmetic; and which of them are refused, by reason.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from sparse.statements import outcome, random_array, stored

from kernelwright.env.compiler.sparse.notation import accesses
from kernelwright.env.compiler.sparse.parse import parse

MATRICES = (
    "dense",
    "csr",
    "csc",
    "dcsr",
    "coo",
    "bcsr(2,3)",
    "ell",
    "dia",
    "hash",
    "nm(2,4)",
    "compressed(i) dense(j)",
)
FEW = ("dense", "csr", "csc", "coo", "ell", "hash")
VECTORS = ("dense", "sv:int64", "hash")
CUBES = (
    "dense",
    "csf",
    "csf(2,0,1)",
    "coo3",
    "dense(i) compressed(j) compressed(k)",
    "compressed(i) dense(j) compressed(k)",
    "dense(i) compressed(nonunique)(j) singleton(k)",
)
TARGETS = ("dense", "csr", "csc", "dcsr", "coo", "bcsr(2,3)", "compressed(i) dense(j)")
SCALAR = ("dense",)
SHAPES = (dict(i=5, j=6, k=4), dict(i=1, j=0, k=3), dict(i=0, j=1, k=2), dict(i=3, j=3, k=1))

# A statement, the formats of its operands, and those of its target.
STATEMENTS = {
    "y(i) = A(i,j) * x(j)": (dict(A=MATRICES, x=VECTORS), VECTORS),
    "y(j) = A(i,j) * x(i)": (dict(A=MATRICES, x=VECTORS), VECTORS),
    "y(i) = A(i,j) * x(j) + b(i)": (dict(A=MATRICES, x=("dense", "sv"), b=VECTORS), ("dense", "sv")),
    "y(i) = 2 * A(i,j) * x(j) - c * b(i)": (dict(A=FEW, x=VECTORS, b=VECTORS, c=SCALAR), ("dense",)),
    "s = A(i,j) * B(i,j)": (dict(A=MATRICES, B=MATRICES), SCALAR),
    "s = x(i) * z(i)": (dict(x=VECTORS, z=VECTORS), SCALAR),
    "s = x(i) - z(j) + 3": (dict(x=VECTORS, z=VECTORS), SCALAR),
    "s = A(i,j)": (dict(A=MATRICES), SCALAR),
    "C(i,j) = A(i,j)": (dict(A=MATRICES), MATRICES),
    "C(i,j) = A(j,i)": (dict(A=MATRICES), MATRICES),
    "C(i,j) = A(i,j) + B(i,j)": (dict(A=MATRICES, B=MATRICES), TARGETS),
    "C(i,j) = A(i,j) * B(i,j)": (dict(A=MATRICES, B=MATRICES), TARGETS),
    "C(i,j) = A(i,j) - B(j,i)": (dict(A=FEW, B=FEW), TARGETS),
    "C(i,k) = A(i,j) * B(j,k)": (dict(A=MATRICES, B=MATRICES), TARGETS),
    "C(i,k) = A(i,j) * A(j,k)": (dict(A=MATRICES), TARGETS),
    "C(i,k) = A(i,j) * A(k,j)": (dict(A=MATRICES), TARGETS),
    "C(i,j) = A(i,j) * X(i,k) * Y(k,j)": (
        dict(A=MATRICES, X=("dense", "csr"), Y=("dense", "csc")),
        TARGETS,
    ),
    "C(i,j) = A(i,j) + B(i,j) + D(i,j)": (dict(A=FEW, B=FEW, D=FEW), ("dense", "csr", "coo")),
    "C(i,j) = A(i,j) * B(i,j) * D(i,j)": (dict(A=FEW, B=FEW, D=FEW), ("dense", "csr", "dcsr")),
    "C(i,j) = (A(i,j) + B(i,j)) * D(i,j) - 2 * A(i,j)": (
        dict(A=FEW, B=FEW, D=FEW),
        ("dense", "csr", "csc"),
    ),
    "C(i,j) = A(i,j) * x(j) + B(i,j) * z(i)": (
        dict(A=FEW, B=FEW, x=("dense", "sv"), z=VECTORS),
        ("dense", "dcsr"),
    ),
    "C(i,j) = A(i,j) + b(i)": (dict(A=MATRICES, b=VECTORS), TARGETS),
    "C(i,j) = x(i) * z(j)": (dict(x=VECTORS, z=VECTORS), TARGETS),
    "C(i,j) = -(A(i,j) - (B(i,j) - 1))": (dict(A=FEW, B=FEW), TARGETS),
    "C(i,j) = 0 * A(i,j)": (dict(A=MATRICES), TARGETS),
    "C(i,j) = A(i,k) * B(k,j) + D(i,j)": (dict(A=FEW, B=FEW, D=FEW), ("dense", "csr", "dcsr")),
    "s = c * T(i,j,k)": (dict(T=CUBES, c=SCALAR), SCALAR),
    "C(i,j) = T(i,j,k) * x(k)": (dict(T=CUBES, x=VECTORS), TARGETS),
    "C(j,k) = T(i,j,k) * x(i)": (dict(T=CUBES, x=VECTORS), ("dense", "csr", "coo")),
    "U(i,j,r) = T(i,j,k) * X(k,r)": (
        dict(T=CUBES, X=("dense", "csr", "csc")),
        ("dense", "csf", "coo3", "compressed(i) dense(j) compressed(k)"),
    ),
    "C(i,r) = T(i,j,k) * X(j,r) * Y(k,r)": (
        dict(T=CUBES, X=("dense", "csr", "coo"), Y=("dense", "csr")),
        ("dense", "csr"),
    ),
    "U(i,j,k) = T(i,j,k) + V(i,j,k)": (
        dict(T=CUBES, V=CUBES),
        ("dense", "csf", "coo3", "compressed(i) dense(j) compressed(k)"),
    ),
    "U(k,i,j) = T(i,j,k)": (dict(T=CUBES), CUBES),
}


def cases(statement):
    """Operands in all formats, with the format of the target and a way to size it."""
    formats, targets = STATEMENTS[statement]
    for chosen in product(*formats.values()):
        for target in targets:
            yield dict(zip(formats, chosen, strict=True)), target


def make(statement, formats, seed, shapes=SHAPES):
    """Arrays of the operands, and the operands in their formats."""
    rng = np.random.default_rng(seed)
    sizes = {**shapes[seed % len(shapes)], "r": 2}
    assignment = parse(statement)
    if len({a.tensor for a in accesses(assignment.expression)}) < len(
        set(accesses(assignment.expression))
    ):
        sizes = dict.fromkeys(sizes, (4, 0, 1)[seed % 3])
    arrays, operands = {}, {}
    for access in dict.fromkeys(accesses(assignment.expression)):
        form = formats[access.tensor]
        shape = tuple(sizes[index] for index in access.indices)
        if access.tensor in arrays:
            continue
        density = (0.4, 0.9, 0.0, 0.2)[(seed // 7) % 4]
        arrays[access.tensor] = random_array(rng, shape, form, density)
        operands[access.tensor] = stored(form, arrays[access.tensor], zeros=seed % 2, rng=rng)
    return arrays, operands


def tally(statement, rounds=1, part=None):
    """How many combinations are right, and how many are refused for each reason."""
    found = Counter()
    rng = np.random.default_rng(0)
    every = list(cases(statement))
    if part is not None and len(every) > part:
        every = [every[at] for at in sorted(rng.choice(len(every), part, replace=False))]
    for seed in range(rounds):
        for at, (formats, target) in enumerate(every):
            arrays, operands = make(statement, formats, seed + at % 29)
            way = ("count", "grow")[(seed + at) % 2]
            why, _ = outcome(statement, operands, arrays, target, way=way, guess=(seed + at) % 3)
            found[why or "right"] += 1
    return dict(sorted(found.items()))
