"""Merge loops by hand: two rows of sorted coordinates, intersected and united, and coordinates that
are appended at a running position.
"""

from __future__ import annotations

import numpy as np

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    Const,
    For,
    If,
    Load,
    Procedure,
    Store,
    Tensor,
    Unary,
    Var,
    While,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify

I = Var("i")  # noqa: E741
P, Q, K = (Load(name, ()) for name in ("p", "q", "k"))
NEXT = Binary("add", I, whole(1))


def index(node):
    return Cast("int64", node)


def register(name):
    return Tensor(name, (), "int64", scope="register")


def both(a, b):
    return Binary("and", a, b)


def less(a, b):
    return Binary("lt", a, b)


def equal(a, b):
    return Binary("eq", a, b)


def here(name, place):
    return index(Load(f"{name}crd", (place,)))


def end(name):
    return index(Load(f"{name}pos", (NEXT,)))


def start(name):
    return index(Load(f"{name}pos", (I,)))


def step(body):
    """Set ``k`` to the lesser coordinate, do something, and go past it in both lists."""
    choose = Store("k", (), Binary("min", here("a", P), here("b", Q)))
    marks = [Store(f"is{n}", (), index(equal(here(n, at), K))) for n, at in (("a", P), ("b", Q))]
    moves = [Store(p, (), Load(f"is{n}", ()), "add") for n, p in (("a", "p"), ("b", "q"))]
    out = Block((choose, body, *marks, *moves))
    for name in ("isa", "isb", "k"):
        out = Allocate(register(name), out)
    return out


def rest(name, place, register_name, body):
    """What is left of one list."""
    forward = Store(register_name, (), whole(1), "add")
    return While(less(place, end(name)), Block((body, forward)))


def operands(rows):
    out = []
    for name in ("a", "b"):
        size = Var(f"n{name}")
        out += [
            Tensor(f"{name}pos", (Binary("add", rows, whole(1)),), "int32", "input"),
            Tensor(f"{name}crd", (size,), "int32", "input"),
            Tensor(f"{name}val", (size,), "float64", "input"),
        ]
    return tuple(out)


def intersection(n="n"):
    """The inner product of every two rows: a merge that ends with the first list."""
    rows = Var(n) if isinstance(n, str) else whole(n)
    value = Binary("mul", Load("aval", (P,)), Load("bval", (Q,)))
    found = If(both(equal(here("a", P), K), equal(here("b", Q), K)), Store("y", (I,), value, "add"))
    merge = While(both(less(P, end("a")), less(Q, end("b"))), step(found))
    body = Block(
        (
            Store("p", (), start("a")),
            Store("q", (), start("b")),
            Store("y", (I,), Const(0.0, "float64")),
            merge,
        )
    )
    nest = For("i", rows, Allocate(register("p"), Allocate(register("q"), body)))
    tensors = (*operands(rows), Tensor("y", (rows,), "float64", "output"))
    extents = ((n,) if isinstance(n, str) else ()) + ("na", "nb")
    return verify(Procedure("dots", extents, tensors, nest))


def union(n="n"):
    """The sum of two matrices, coordinates appended: three loops a row, and a running position."""
    rows, size = (Var(n) if isinstance(n, str) else whole(n)), Var("nc")
    at = Load("r", ())

    def append(coordinate, value):
        return Block(
            (
                Store("ccrd", (at,), Cast("int32", coordinate)),
                Store("cval", (at,), value),
                Store("r", (), whole(1), "add"),
            )
        )

    def alone(name, place):
        return append(here(name, place), Load(f"{name}val", (place,)))

    is_a, is_b = equal(here("a", P), K), equal(here("b", Q), K)
    chosen = Block(
        (
            If(both(is_a, is_b), append(K, Binary("add", Load("aval", (P,)), Load("bval", (Q,))))),
            If(both(is_a, Unary("not", is_b)), append(K, Load("aval", (P,)))),
            If(both(is_b, Unary("not", is_a)), append(K, Load("bval", (Q,)))),
        )
    )
    body = Block(
        (
            Store("p", (), start("a")),
            Store("q", (), start("b")),
            While(both(less(P, end("a")), less(Q, end("b"))), step(chosen)),
            rest("a", P, "p", alone("a", P)),
            rest("b", Q, "q", alone("b", Q)),
            Store("cpos", (NEXT,), Cast("int32", at)),
        )
    )
    nest = For("i", rows, Allocate(register("p"), Allocate(register("q"), body)))
    first = (Store("r", (), whole(0)), Store("cpos", (whole(0),), Const(0, "int32")))
    # What is left of the arrays is filled, so that outputs are defined.
    fill = While(
        less(at, size),
        append(whole(0), Const(0.0, "float64")),
    )
    tensors = (
        *operands(rows),
        Tensor("cpos", (Binary("add", rows, whole(1)),), "int32", "output"),
        Tensor("ccrd", (size,), "int32", "output"),
        Tensor("cval", (size,), "float64", "output"),
    )
    extents = ((n,) if isinstance(n, str) else ()) + ("na", "nb", "nc")
    return verify(
        Procedure("spadd", extents, tensors, Allocate(register("r"), Block((*first, nest, fill))))
    )


def rows_of(rng, n, columns=7):
    """A random matrix in rows: empty and full ones among them."""
    rows = []
    for _ in range(n):
        count = int(rng.choice([0, 0, columns, rng.integers(columns + 1)]))
        rows.append(sorted(rng.choice(columns, count, replace=False).tolist()))
    pos = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    crd = np.array([c for row in rows for c in row], np.int32)
    return {"pos": pos, "crd": crd, "val": rng.integers(1, 9, len(crd)).astype(np.float64)}


def dense(matrix, n, columns=7):
    out = np.zeros((n, columns))
    for i in range(n):
        for p in range(matrix["pos"][i], matrix["pos"][i + 1]):
            out[i, matrix["crd"][p]] = matrix["val"][p]
    return out


def inputs(rng, n):
    """Arrays, extents, and what both programs are to give."""
    a, b = rows_of(rng, n), rows_of(rng, n)
    arrays = {f"{name}{part}": m[part] for name, m in (("a", a), ("b", b)) for part in m}
    extents = {"n": n, "na": len(a["crd"]), "nb": len(b["crd"])}
    return arrays, extents, dense(a, n), dense(b, n)
