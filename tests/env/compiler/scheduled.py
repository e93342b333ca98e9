"""Small procedures that schedules are drawn for."""

from __future__ import annotations

from functools import cache

from kernelwright.env.compiler import tensor as te


@cache
def product(m=8, n=32, k=8):
    a, b = te.placeholder("A", (m, k)), te.placeholder("B", (k, n))
    q = te.reduce_axis("k", k)
    c = te.compute(
        "C", (m, n), lambda i, j: te.reduce_sum(a[i, q.value] * b[q.value, j], q), [a, b]
    )
    return te.lower("matmul", [c])


@cache
def softmax(m=4, n=16):
    x, k, q = te.placeholder("x", (m, n)), te.reduce_axis("k", n), te.reduce_axis("q", n)
    top = te.compute("top", (m,), lambda i: te.reduce_max(x[i, k.value], k), [x])
    e = te.compute("e", (m, n), lambda i, j: te.exp(x[i, j] - top[i]), [x, top])
    s = te.compute("s", (m,), lambda i: te.reduce_sum(e[i, q.value], q), [e])
    return te.lower("softmax", [te.compute("y", (m, n), lambda i, j: e[i, j] / s[i], [e, s])])


@cache
def conv():
    x, f = te.placeholder("x", (2, 6, 18)), te.placeholder("f", (4, 2, 3, 3))
    c, r, s = (te.reduce_axis(name, size) for name, size in (("c", 2), ("r", 3), ("s", 3)))
    y = te.compute(
        "y",
        (4, 4, 16),
        lambda o, i, j: te.reduce_sum(
            x[c.value, i + r.value, j + s.value] * f[o, c.value, r.value, s.value], [c, r, s]
        ),
        [x, f],
    )
    return te.lower("conv", [y])


@cache
def transpose():
    x = te.placeholder("x", (13, 24))
    return te.lower("transpose", [te.compute("y", (24, 13), lambda i, j: x[j, i], [x])])


PROCEDURES = {"product": product, "softmax": softmax, "conv": conv, "transpose": transpose}
