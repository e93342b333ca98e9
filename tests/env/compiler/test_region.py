from __future__ import annotations

import itertools
import random

import pytest
from programs import add, elementwise, f32, matmul, mul, tensor

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
    Var,
    children,
    loops,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import tensors_by_name
from kernelwright.env.compiler.ir.simplify import TRUE, whole
from kernelwright.env.compiler.poly.context import context_of
from kernelwright.env.compiler.poly.region import region
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace

I, J = Var("i"), Var("j")  # noqa: E741

_OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}


def value(node, known):
    match node:
        case Const(number, _):
            return number
        case Var(name):
            return known[name]
        case Binary(op, left, right):
            return _OPERATIONS[op](value(left, known), value(right, known))
        case Select(condition, then, other):
            return value(then if value(condition, known) else other, known)
    raise AssertionError(node)


def reads_of(node, known, found):
    if isinstance(node, Load):
        found.append((node.tensor, "read", tuple(value(i, known) for i in node.indices)))
    if isinstance(node, Select):
        reads_of(node.condition, known, found)
        reads_of(node.then if value(node.condition, known) else node.other, known, found)
        return
    for child in children(node):
        reads_of(child, known, found)


def run(node, known, loop, here, seen):
    """By iteration of ``loop`` (its variables in ``here``), what is touched."""
    match node:
        case Store(name, indices, stored, reduce):
            found = seen.setdefault(tuple(sorted(here.items())), []) if here is not None else []
            reads_of(stored, known, found)
            place = tuple(value(i, known) for i in indices)
            found += [(name, "read", place)] if reduce else []
            found.append((name, "write", place))
        case For(var, extent, body, _):
            for i in range(value(extent, known)):
                inside = {**known, var: i}
                if var == loop:
                    seen.setdefault(tuple(sorted(inside.items())), [])
                run(body, inside, loop, inside if var == loop else here, seen)
        case If(condition, then):
            if value(condition, known):
                run(then, known, loop, here, seen)
        case Block(items):
            for item in items:
                run(item, known, loop, here, seen)
        case Allocate(_, body):
            run(body, known, loop, here, seen)


def check(procedure, extents=None, *, exact=True):
    """Every region of a procedure, for every loop, against what really is touched."""
    extents = extents or {}
    compared = 0
    for loop in (None, *(each.var for each in loops(procedure))):
        seen = {}
        start = dict(extents) if loop is None else None
        if loop is None:
            seen[tuple(sorted(extents.items()))] = []
        run(procedure.body, dict(extents), loop, start, seen)
        for name, declared in tensors_by_name(procedure).items():
            for kind in ("read", "write"):
                box = region(procedure, loop, name, reads=kind == "read", writes=kind == "write")
                for known, touched in seen.items():
                    places = [p for t, k, p in touched if (t, k) == (name, kind)]
                    if box is None:
                        assert not places
                        continue
                    compared += 1
                    compare(box, places, dict(known), extents, declared, exact=exact)
    return compared


def compare(box, places, known, extents, declared, *, exact):
    text = f"{box} with {known}"
    sizes = [value(axis.extent, known) for axis in box.axes] if places else []
    if not places:
        empty = value(box.condition, known) is False
        assert not exact or empty or any(value(a.extent, known) <= 0 for a in box.axes), text
        return
    assert value(box.condition, known), text
    for axis, interval in enumerate(box.axes):
        low = min(p[axis] for p in places)
        high = max(p[axis] for p in places)
        start, size = value(interval.low, known), sizes[axis]
        most = value(interval.most, extents)
        assert start <= low, text
        assert high < start + size <= start + most, text
        assert start >= 0, text
        assert start + size <= value(declared.shape[axis], extents), text
        if exact and interval.reason is None:
            assert (start, size) == (low, high - low + 1), text


def stencil(n=34, m=36):
    """Two rows of a blur: a over x across, b over a down."""
    across = [Load("x", (I, add(J, whole(d)))) for d in (0, 1, 2)]
    p, q = Var("p"), Var("q")
    down = [Load("a", (add(p, whole(d)), q)) for d in (0, 1, 2)]
    first = For("i", whole(n + 2), For("j", whole(m), Store("a", (I, J), add(*across))))
    second = For("p", whole(n), For("q", whole(m), Store("b", (p, q), add(*down))))
    body = Allocate(tensor("a", n + 2, m, role="temporary"), Block((first, second)))
    tensors = (tensor("x", n + 2, m + 2), tensor("b", n, m, role="output"))
    return Procedure("blur", (), tensors, body)


def scheduled(procedure, trace):
    return apply_trace(procedure, parse_trace(trace))


def test_a_tile_of_a_stencil():
    tiled = scheduled(stencil(128, 128), "tile('p', 'q', 64, 32)")
    assert str(region(tiled, "qo", "a")) == "a[po * 64 +: 66, qo * 32 +: 32]"
    assert str(region(tiled, "po", "a")) == "a[po * 64 +: 66, 0 +: 128]"
    assert str(region(tiled, "pi", "a")) == "a[po * 64 + pi +: 3, qo * 32 +: 32]"
    assert str(region(tiled, None, "a")) == "a[0 +: 130, 0 +: 128]"


def test_the_last_tile_ends_where_its_guard_says():
    tiled = scheduled(stencil(34, 36), "tile('p', 'q', 8, 16)")
    box = region(tiled, "qo", "a")
    assert str(box) == "a[po * 8 +: min(10, 36 - po * 8), qo * 16 +: min(16, 36 - qo * 16)]"
    assert [axis.constant for axis in box.axes] == [10, 16]


def test_of_every_tensor():
    after = scheduled(stencil(32, 32), "split('p', 8)")
    found = {}
    for name in tensors_by_name(after):
        read = region(after, "po", name, writes=False)
        written = region(after, "po", name, reads=False)
        found[name] = str(read), str(written)
    assert found == {
        "x": ("None", "None"),
        "b": ("None", "b[po * 8 +: 8, 0 +: 32]"),
        "a": ("a[po * 8 +: 10, 0 +: 32]", "None"),
    }


TRACES = [
    "",
    "split('p', 8)",
    "tile('p', 'q', 4, 5)",
    "tile('i', 'j', 3, 4)",
    "fuse('p', 'q')\nsplit('p_q', 7)",
    "split('p', 6)\nsplit('pi', 4)",
    "reorder('q', 'p')\nsplit('q', 4)",
]


@pytest.mark.parametrize("trace", TRACES)
def test_schedules_of_a_stencil_against_brute_force(trace):
    # Fused loops have no affine box, so only what is covered is checked there.
    assert check(scheduled(stencil(9, 11), trace))


@pytest.mark.parametrize("trace", ["", "tile('i', 'j', 4, 4)", "split('k', 3)\nreorder('ko', 'i')"])
def test_schedules_of_a_matmul_against_brute_force(trace):
    assert check(scheduled(matmul(5, 6, 7), trace))


def test_extents_by_name():
    def nest(rows, columns):
        return For("i", rows, For("j", columns, Store("y", (I, J), Load("x", (J, I)))))

    procedure = Procedure(
        "f",
        ("m", "n"),
        (tensor("x", "n", "m"), tensor("y", "m", "n", role="output")),
        nest(Var("m"), Var("n")),
    )
    tiled = scheduled(procedure, "tile('i', 'j', 4, 8)")
    box = region(tiled, "jo", "x")
    assert str(box) == "x[jo * 8 +: min(8, n - jo * 8), io * 4 +: min(4, m - io * 4)]"
    assert [axis.constant for axis in box.axes] == [8, 4]
    whole_box = region(tiled, None, "x")
    assert [print_expr(axis.most) for axis in whole_box.axes] == ["n", "m"]
    for m, n in itertools.product((0, 1, 4, 6), (0, 3, 8, 9)):
        check(tiled, {"m": m, "n": n})


def resampling(kind, n=13):
    index = {
        "down": mul(I, whole(2)),
        "up": Binary("floordiv", I, whole(2)),
        "clamp": Binary("min", Binary("max", Binary("sub", I, whole(2)), whole(0)), whole(7)),
        "wrap": Binary("mod", add(I, whole(3)), whole(5)),
        "mirror": Binary("sub", whole(12), I),
    }[kind]
    tensors = (tensor("x", 32), tensor("y", n, role="output"))
    return Procedure("f", (), tensors, For("i", whole(n), Store("y", (I,), Load("x", (index,)))))


@pytest.mark.parametrize("kind", ["down", "up", "clamp", "wrap", "mirror"])
@pytest.mark.parametrize("trace", ["", "split('i', 4)", "split('i', 5)\nsplit('ii', 2)"])
def test_indices_against_brute_force(kind, trace):
    assert check(scheduled(resampling(kind), trace))


def test_resampled_tiles_read_well():
    assert str(region(scheduled(resampling("down", 16), "split('i', 4)"), "io", "x")) == (
        "x[io * 8 +: 7]"
    )
    assert str(region(scheduled(resampling("up", 16), "split('i', 4)"), "io", "x")) == (
        "x[io * 2 +: 2]"
    )


def test_only_the_chosen_side_is_read():
    inside = Binary("and", Binary("le", whole(1), I), Binary("lt", I, whole(9)))
    chosen = Select(inside, Load("x", (Binary("sub", I, whole(1)),)), f32(0.0))
    tensors = (tensor("x", 20), tensor("y", 10, role="output"))
    procedure = Procedure("f", (), tensors, For("i", whole(10), Store("y", (I,), chosen)))
    assert str(region(procedure, None, "x")) == "x[0 +: 8]"
    assert check(procedure)


def test_a_condition_says_where_anything_is_touched():
    store = Store("y", (I, J), Load("x", (I,)))
    nest = For("i", whole(6), If(Binary("lt", I, whole(4)), For("j", whole(3), store)))
    tensors = (tensor("x", 6), tensor("y", 6, 3, role="output"))
    procedure = Procedure("f", (), tensors, nest)
    assert str(region(procedure, "i", "x")) == "x[i +: 1] if i <= 3"
    assert context_of(procedure, "j").conditions == (Binary("lt", I, whole(4)),)
    assert check(procedure)


def test_triangles():
    store = Store("y", (I, J), Load("x", (Binary("sub", I, J),)))
    nest = For("i", whole(7), For("j", add(I, whole(1)), store))
    tensors = (tensor("x", 7), tensor("y", 7, 7, role="output"))
    procedure = Procedure("f", (), tensors, nest)
    assert str(region(procedure, "i", "y")) == "y[i +: 1, 0 +: i + 1]"
    assert check(procedure)


def test_what_is_not_affine_covers_its_axis_and_says_so():
    tensors = (tensor("at", 8, dtype="int64"), tensor("x", 8, 5), tensor("y", 8, role="output"))
    gather = Store("y", (I,), Load("x", (Load("at", (I,)), whole(2))))
    procedure = Procedure("f", (), tensors, For("i", whole(8), gather))
    box = region(procedure, "i", "x")
    assert str(box) == "x[0 +: 8, 2 +: 1]"
    assert box.reasons == ("index at[i] of x is not affine",)
    assert str(region(procedure, "i", "at")) == "at[i +: 1]"
    counted = Store("y", (J,), Load("x", (J, whole(0))))
    ragged = For("i", whole(8), For("j", Load("at", (I,)), counted))
    box = region(Procedure("f", (), tensors, ragged), "i", "x")
    assert str(box) == "x[0 +: 8, 0 +: 1]"
    assert box.condition == TRUE


def test_reductions_read_what_they_combine_with():
    assert region(matmul(), "k", "C", writes=False) == region(matmul(), "k", "C", reads=False)
    assert region(elementwise(f32(1.0)), None, "x") is None


def test_names_that_are_not_there():
    with pytest.raises(KeyError):
        region(matmul(), "nowhere", "A")
    with pytest.raises(KeyError):
        region(matmul(), "i", "nothing")


def random_index(rng, variables):
    out = whole(rng.randrange(3))
    for name in variables:
        if rng.random() < 0.7:
            out = add(mul(Var(name), whole(rng.choice((1, 1, 1, 2, 3)))), out)
    kind = rng.randrange(8)
    if kind == 0:
        out = Binary("floordiv", out, whole(rng.choice((2, 3))))
    if kind == 1:
        out = Binary("min", out, whole(rng.randrange(2, 9)))
    if kind == 2:
        out = Binary("max", out, whole(rng.randrange(2, 9)))
    return out


def random_procedure(rng):
    names = ["i", "j", "k"][: rng.randrange(1, 4)]
    loads = [
        Load("x", (random_index(rng, names), random_index(rng, names)))
        for _ in range(rng.randrange(1, 4))
    ]
    indices = tuple(random_index(rng, names) for _ in range(2))
    body = Store("y", indices, add(*loads), rng.choice((None, "add")))
    for depth in range(len(names) - 1, -1, -1):
        if rng.random() < 0.3:
            left = random_index(rng, names[: depth + 1])
            body = If(Binary(rng.choice(("lt", "ge")), left, whole(rng.randrange(1, 6))), body)
        extent = whole(rng.randrange(1, 6))
        if depth and rng.random() < 0.3:
            extent = add(Var(names[depth - 1]), whole(rng.randrange(2)))
        body = For(names[depth], extent, body)
    tensors = (tensor("x", 99, 99), tensor("y", 99, 99, role="output"))
    return Procedure("f", (), tensors, body)


@pytest.mark.parametrize("seed", range(60))
def test_random_nests_against_brute_force(seed):
    rng = random.Random(seed)
    procedure = random_procedure(rng)
    check(procedure)
    loop = rng.choice(loops(procedure)).var
    check(scheduled(procedure, f"split('{loop}', {rng.randrange(2, 4)})"))
