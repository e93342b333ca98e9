"""Nests whose dependences are known from the literature, for the tests of the polyhedral room."""

from __future__ import annotations

from programs import add, f32, mul, tensor

from kernelwright.env.compiler.ir.nodes import Binary, Block, For, Load, Procedure, Store, Var
from kernelwright.env.compiler.ir.simplify import whole

I, J, T = Var("i"), Var("j"), Var("t")  # noqa: E741


def filled(name, shape, nest, role="output", inputs=()):
    """A nest over a tensor that starts as the input ``start``."""
    places = tuple(Var(f"p{k}") for k in range(len(shape)))
    fill = Store(name, places, Load("start", places))
    for place, size in reversed(list(zip(places, shape, strict=True))):
        fill = For(place.name, whole(size), fill)
    tensors = (tensor("start", *shape), *inputs, tensor(name, *shape, role=role))
    return Procedure("stencil", (), tensors, Block((fill, nest)))


def jacobi_expanded(steps=5, size=9):
    """A row for every time step: A[t + 1, i + 1] from its three neighbours at t."""
    before = [Load("A", (T, add(I, whole(d)))) for d in (0, 1, 2)]
    store = Store("A", (add(T, whole(1)), add(I, whole(1))), mul(add(*before), f32(0.25)))
    nest = For("t", whole(steps), For("i", whole(size), store))
    return filled("A", (steps + 1, size + 2), nest)


def jacobi_two_rows(steps=5, size=9):
    """Two rows in turn: A[(t + 1) % 2, i + 1] from A[t % 2]."""

    def row(t):
        return Binary("mod", t, whole(2))

    before = [Load("A", (row(T), add(I, whole(d)))) for d in (0, 1, 2)]
    store = Store("A", (row(add(T, whole(1))), add(I, whole(1))), mul(add(*before), f32(0.25)))
    nest = For("t", whole(steps), For("i", whole(size), store))
    return filled("A", (2, size + 2), nest)


def gauss_seidel(steps=4, size=6):
    """The five-point sweep in two dimensions, in place, in time."""
    i1, j1 = add(I, whole(1)), add(J, whole(1))
    places = ((I, j1), (i1, J), (i1, add(J, whole(2))), (add(I, whole(2)), j1))
    around = [Load("A", place) for place in places]
    store = Store("A", (i1, j1), mul(add(*around), f32(0.25)))
    nest = For("t", whole(steps), For("i", whole(size), For("j", whole(size), store)))
    return filled("A", (size + 2, size + 2), nest)


def one_sweep(rows=5, columns=7):
    """One in-place sweep, without time."""
    i1, j1 = add(I, whole(1)), add(J, whole(1))
    places = ((I, j1), (i1, J), (i1, add(J, whole(2))), (add(I, whole(2)), j1))
    around = [Load("A", place) for place in places]
    store = Store("A", (i1, j1), mul(add(*around), f32(0.25)))
    return filled(
        "A", (rows + 2, columns + 2), For("i", whole(rows), For("j", whole(columns), store))
    )
