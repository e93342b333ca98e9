"""Procedures for the tests of loop directives: in place and out of place, with guards, choices and
temporaries, and extents that are known only when they are called.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from programs import add, f32, mul, tensor
from test_schedule import PROGRAMS

from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    For,
    If,
    Load,
    Procedure,
    Select,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.ir.verify import verify

I, J, K, T = Var("i"), Var("j"), Var("k"), Var("t")  # noqa: E741


def filled(name, rows, columns, rest, extents=()):
    """A procedure that first copies ``x`` to ``name``, and then does ``rest`` in place."""
    p, q = Var("p"), Var("q")
    copy = For("p", rows, For("q", columns, Store(name, (p, q), Load("x", (p, q)))))
    tensors = (
        Tensor("x", (rows, columns), "float32", "input"),
        Tensor(name, (rows, columns), "float32", "output"),
    )
    return verify(Procedure("f", extents, tensors, Block((copy, rest))))


def seidel(steps=3, size=5):
    i1, j1 = add(I, whole(1)), add(J, whole(1))
    around = [
        Load("A", p) for p in ((I, j1), (i1, J), (i1, add(J, whole(2))), (add(I, whole(2)), j1))
    ]
    store = Store("A", (i1, j1), mul(add(*around), f32(0.25)))
    nest = For("t", whole(steps), For("i", whole(size), For("j", whole(size), store)))
    return filled("A", whole(size + 2), whole(size + 2), nest)


def shift_down(n=7, m=5, distance=1):
    """Row i of A is row i + distance of A, in place."""
    store = Store("A", (I, J), mul(Load("A", (add(I, whole(distance)), J)), f32(2.0)))
    nest = For("i", whole(n - distance), For("j", whole(m), store))
    return filled("A", whole(n), whole(m), nest)


def two_rows(n="n", m="m"):
    """Two statements a row: one writes y, the other reads it and its upper neighbour."""
    n, m = (Var(s) if isinstance(s, str) else whole(s) for s in (n, m))
    first = For("j", m, Store("y", (I, J), mul(Load("x", (I, J)), f32(2.0))))
    above = Load("y", (Binary("max", Binary("sub", I, whole(1)), whole(0)), K))
    second = For("k", m, Store("z", (I, K), add(Load("y", (I, K)), above)))
    extents = tuple(e.name for e in (n, m) if isinstance(e, Var))
    tensors = (
        Tensor("x", (n, m), "float32", "input"),
        Tensor("y", (n, m), "float32", "output"),
        Tensor("z", (n, m), "float32", "output"),
    )
    return verify(Procedure("f", extents, tensors, For("i", n, Block((first, second)))))


def row_buffer(n="n", m=6, guard=True):
    """A temporary of one row, filled and used in each iteration, under a guard."""
    n = Var(n) if isinstance(n, str) else whole(n)
    load = For("a", whole(m), Store("t", (Var("a"),), Load("x", (I, Var("a")))))
    use = For("b", whole(m), Store("y", (I, Var("b")), mul(Load("t", (Var("b"),)), f32(3.0))))
    body = Allocate(Tensor("t", (whole(m),), "float32"), Block((load, use)))
    inner = If(Binary("lt", I, whole(5)), body) if guard else body
    last = For("c", whole(m), Store("y", (I, Var("c")), f32(1.0)))
    nest = For("i", n, Block((last, inner)) if guard else body)
    extents = (n.name,) if isinstance(n, Var) else ()
    tensors = (
        Tensor("x", (n, whole(m)), "float32", "input"),
        Tensor("y", (n, whole(m)), "float32", "output"),
    )
    return verify(Procedure("f", extents, tensors, nest))


def boundary(n="n"):
    """The sum of three neighbours, 0 outside."""
    n = Var(n) if isinstance(n, str) else whole(n)
    inside = Binary(
        "and",
        Binary("ge", Binary("sub", I, whole(1)), whole(0)),
        Binary("lt", add(I, whole(1)), n),
    )
    three = add(*(Load("x", (simplify(add(I, whole(d))),)) for d in (-1, 0, 1)))
    extents = (n.name,) if isinstance(n, Var) else ()
    tensors = (Tensor("x", (n,), "float32", "input"), Tensor("y", (n,), "float32", "output"))
    nest = For("i", n, Store("y", (I,), Select(inside, three, f32(0.0))))
    return verify(Procedure("f", extents, tensors, nest))


def chain(n=10):
    """Two temporaries after one another, then an output."""
    n = Var(n) if isinstance(n, str) else whole(n)
    extents = (n.name,) if isinstance(n, Var) else ()
    one = For("i", n, Store("t", (I,), f32(1.5)))
    two = For("j", n, Store("u", (J,), mul(Load("t", (J,)), f32(2.0))))
    three = For("k", n, Store("y", (K,), add(Load("u", (K,)), Load("x", (K,)))))
    body = Block((one, two, three))
    for name in ("u", "t"):
        body = Allocate(Tensor(name, (n,), "float32"), body)
    tensors = (Tensor("x", (n,), "float32", "input"), Tensor("y", (n,), "float32", "output"))
    return verify(Procedure("f", extents, tensors, body))


def prefix_sum(n=9):
    """A scan: every element is the one before plus an input."""
    start = Store("y", (whole(0),), Load("x", (whole(0),)))
    step = add(Load("y", (I,)), Load("x", (add(I, whole(1)),)))
    nest = For("i", whole(n - 1), Store("y", (add(I, whole(1)),), step))
    tensors = (tensor("x", n), tensor("y", n, role="output"))
    return verify(Procedure("f", (), tensors, Block((start, nest))))


def gathered(n=7):
    """Indices that are read from memory."""
    index = Load("p", (I,))
    body = For("j", whole(3), Store("y", (I, J), Load("x", (index, J))))
    tensors = (
        tensor("x", n, 3),
        tensor("p", n, dtype="int64"),
        tensor("y", n, 3, role="output"),
    )
    return verify(Procedure("f", (), tensors, For("i", whole(n), body)))


def upsampled(n=6):
    """Twice as many elements, each between two old ones; outside is as the border."""
    old = Binary("floordiv", I, whole(2))
    beside = Binary("sub", old, whole(1))
    beside = add(beside, mul(Binary("mod", I, whole(2)), whole(2)))
    near, far = (
        Load("x", (Binary("min", Binary("max", at, whole(0)), whole(n - 1)),))
        for at in (old, beside)
    )
    nest = For("i", whole(2 * n), Store("y", (I,), add(near, far)))
    tensors = (tensor("x", n), tensor("y", 2 * n, role="output"))
    return verify(Procedure("f", (), tensors, nest))


LOOP_PROGRAMS = {
    **{name: verify(procedure) for name, procedure in PROGRAMS.items()},
    "seidel": seidel(),
    "shift_down": shift_down(),
    "two_rows": two_rows(),
    "row_buffer": row_buffer(),
    "plain_buffer": row_buffer(guard=False),
    "boundary": boundary(),
    "chain": chain(),
    "chain_n": chain("n"),
    "prefix_sum": prefix_sum(),
    "gathered": gathered(),
    "upsampled": upsampled(),
}


def sizes(procedure, values):
    """Some values for each extent."""
    for given in product(values, repeat=len(procedure.extents)):
        yield dict(zip(procedure.extents, given, strict=True))


def arrays(procedure, extents, seed=0):
    """Inputs of small whole numbers, so that sums are exact."""
    rng = np.random.default_rng(seed)
    out = {}
    for each in procedure.tensors:
        if each.role == "input":
            shape = [evaluated(size, extents) for size in each.shape]
            top = shape[0] if each.dtype == "int64" else 8
            out[each.name] = rng.integers(0, max(top, 1), shape).astype(each.dtype)
    return out


def evaluated(size, extents):
    if isinstance(size, Const):
        return int(size.value)
    if isinstance(size, Var):
        return extents[size.name]
    raise AssertionError(size)


def assert_same(before, after, values=(0, 1, 2, 5, 11)):
    """Both procedures compute the same, to the bit, at all sizes."""
    for extents in sizes(before, values):
        inputs = arrays(before, extents)
        wanted = interpret(before, inputs, extents)
        got = interpret(verify(after), inputs, extents)
        for name, array in wanted.items():
            np.testing.assert_array_equal(got[name], array, err_msg=f"{name} at {extents}")
