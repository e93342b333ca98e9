"""A matrix multiplication that copies tiles to memory of a block, as its loops run in order."""

from __future__ import annotations

from programs import add, f32, mul, tensor

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    For,
    If,
    Load,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole

ALL = ("copied", "used")


def shared_matmul(m: int, n: int, k: int, tile: int, barriers: tuple[str, ...]) -> Procedure:
    """C = A B in tiles of ``tile``; a tile of A and of B is copied, then used.

    ``barriers`` says where there are any: after what is ``copied``, and after what is ``used``.
    """
    v = {
        name: Var(name)
        for name in ["bi", "bj", "ko", "ci", "cj", "di", "dj", "ti", "tj", "ki", "si", "sj"]
    }
    rows = {name: add(mul(v["bi"], whole(tile)), v[name]) for name in ("ci", "ti", "si")}
    columns = {name: add(mul(v["bj"], whole(tile)), v[name]) for name in ("dj", "tj", "sj")}
    depth = {name: add(mul(v["ko"], whole(tile)), v[name]) for name in ("cj", "di", "ki")}

    def less(index, extent):
        return Binary("lt", index, whole(extent))

    def under(body: Stmt, *names: str) -> Stmt:
        for name in reversed(names):
            body = For(name, whole(tile), body)
        return body

    def guarded(body: Stmt, *conditions) -> Stmt:
        for condition in reversed(conditions):
            body = If(condition, body)
        return body

    copy_a = Store("S", (v["ci"], v["cj"]), Load("A", (rows["ci"], depth["cj"])))
    copy_a = under(guarded(copy_a, less(rows["ci"], m), less(depth["cj"], k)), "ci", "cj")
    copy_b = Store("T", (v["di"], v["dj"]), Load("B", (depth["di"], columns["dj"])))
    copy_b = under(guarded(copy_b, less(depth["di"], k), less(columns["dj"], n)), "di", "dj")
    product = mul(Load("S", (v["ti"], v["ki"])), Load("T", (v["ki"], v["tj"])))
    use = Store("C", (rows["ti"], columns["tj"]), product, "add")
    inside = (less(rows["ti"], m), less(columns["tj"], n), less(depth["ki"], k))
    use = under(guarded(use, *inside), "ti", "tj", "ki")
    start = Store("C", (rows["si"], columns["sj"]), f32(0.0))
    start = under(guarded(start, less(rows["si"], m), less(columns["sj"], n)), "si", "sj")
    steps = [copy_a, copy_b]
    if "copied" in barriers:
        steps.append(Barrier())
    steps.append(use)
    if "used" in barriers:
        steps.append(Barrier())
    count = [whole(-(-size // tile)) for size in (m, n, k)]
    body: Stmt = Block((start, For("ko", count[2], Block(tuple(steps)))))
    for name in ("T", "S"):
        body = Allocate(Tensor(name, (whole(tile), whole(tile)), "float32", scope="shared"), body)
    nest = For("bi", count[0], For("bj", count[1], body))
    tensors = (tensor("A", m, k), tensor("B", k, n), tensor("C", m, n, role="output"))
    return Procedure("matmul", (), tensors, nest)


BLOCKS = "bind('bi', 'block.y')\nbind('bj', 'block.x')\n"
THREADS = "".join(
    f"bind('{loop}', 'thread.{level}')\n"
    for loops, level in ((("ci", "di", "ti", "si"), "y"), (("cj", "dj", "tj", "sj"), "x"))
    for loop in loops
)
