"""Small pipelines for tests of where stages are computed and stored."""

from __future__ import annotations

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Procedure, Tensor
from kernelwright.env.compiler.ir.simplify import whole


def stage(name, shape, axes, body, reads):
    """A stage whose loops are named as ``axes`` says; ``body`` takes their values in order."""
    names = ", ".join(axes)
    function = eval(f"lambda {names}: body({names})", {"body": body})
    return te.compute(name, shape, function, reads)


def blur(rows=9, columns=11) -> Procedure:
    x = te.placeholder("x", (rows + 2, columns + 2))
    a = te.compute(
        "a", (rows + 2, columns), lambda i, j: (x[i, j] + x[i, j + 1] + x[i, j + 2]) * 0.25, [x]
    )
    b = te.compute(
        "b", (rows, columns), lambda p, q: (a[p, q] + a[p + 1, q] + a[p + 2, q]) * 0.25, [a]
    )
    return te.lower("blur", [b])


def boxes(count=3, rows=5, columns=7) -> Procedure:
    """Stages t0, t1, … with the loops y0, x0, y1, x1, …"""
    stages = [te.placeholder("x", (rows + 2 * count, columns + 2 * count))]
    for k in range(count):
        before = stages[-1]

        def nine(y, x, before=before):
            places = [before[y + i, x + j] for i in range(3) for j in range(3)]
            out = places[0]
            for place in places[1:]:
                out = out + place
            return out * 0.125

        rest = 2 * (count - 1 - k)
        shape = (rows + rest, columns + rest)
        stages.append(stage(f"t{k}", shape, (f"y{k}", f"x{k}"), nine, [before]))
    return te.lower("boxes", [stages[-1]])


def halves(n=11) -> Procedure:
    """Down by two, then up by two."""
    x = te.placeholder("x", (2 * n + 2,))
    down = te.compute("down", (n + 1,), lambda i: x[2 * i] + x[2 * i + 1], [x])
    up = te.compute("up", (2 * n,), lambda u: down[u // 2] + down[u // 2 + 1], [down])
    return te.lower("halves", [up])


def matmul_relu(m=5, n=7, k=4) -> Procedure:
    a, b = te.placeholder("A", (m, k)), te.placeholder("B", (k, n))
    over = te.reduce_axis("k", k)
    c = te.compute(
        "C", (m, n), lambda i, j: te.reduce_sum(a[i, over.value] * b[over.value, j], over), [a, b]
    )
    d = te.compute("D", (m, n), lambda p, q: te.maximum(c[p, q], 2.0), [c])
    return te.lower("matmul_relu", [d])


def softmax(rows=4, columns=6) -> Procedure:
    x = te.placeholder("x", (rows, columns))
    r, t = te.reduce_axis("r", columns), te.reduce_axis("t", columns)
    top = te.compute("top", (rows,), lambda i: te.reduce_max(x[i, r.value], r), [x])
    e = te.compute("e", (rows, columns), lambda f, g: te.exp(x[f, g] - top[f]), [x, top])
    total = te.compute("total", (rows,), lambda s: te.reduce_sum(e[s, t.value], t), [e])
    y = te.compute("y", (rows, columns), lambda p, q: e[p, q] / total[p], [e, total])
    return te.lower("softmax", [y])


def temporary(name, *shape):
    return Tensor(name, tuple(map(whole, shape)), "float32")


def tensors(given, **outputs):
    """One input, then outputs, of one axis each."""
    name, size = given
    return (
        Tensor(name, (whole(size),), "float32", "input"),
        *(Tensor(out, (whole(n),), "float32", "output") for out, n in outputs.items()),
    )
