"""Loops of sparse matrices: extents and places that are read from memory, and choices by them."""

from __future__ import annotations

import numpy as np
import pytest
from programs import add, mul, tensor

from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    Const,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Select,
    Store,
    Tensor,
    Unary,
    Var,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure, lower
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import BuildError, find_toolchain
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace

I, P, K = Var("i"), Var("p"), Var("k")  # noqa: E741
ZERO = Const(0.0, "float64")
EXACT = ("-O1", "-march=native", "-ffp-contract=off")
# Empty, of one, shorter than a block, a block, longer; and one that ends before it begins.
LENGTHS = (0, 1, 3, 8, 9, 16, 29, 0, -2, 5)

try:
    TOOLCHAIN = find_toolchain()
except BuildError:
    TOOLCHAIN = None
needs_cc = pytest.mark.skipif(TOOLCHAIN is None, reason="needs a C compiler: gcc, clang or ziglang")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def stored(name, place):
    return Cast("int64", Load(name, (place,)))


def length(row):
    return Binary("sub", stored("pos", add(row, whole(1))), stored("pos", row))


PLACE = add(stored("pos", I), P)
LISTS = (
    Tensor("pos", (add(Var("n"), whole(1)),), "int32", "input"),
    Tensor("crd", (Var("nnz"),), "int32", "input"),
    Tensor("vals", (Var("nnz"),), "float64", "input"),
)


def spmv():
    term = mul(Load("vals", (PLACE,)), Load("x", (stored("crd", PLACE),)))
    row = For("p", length(I), Store("y", (I,), term, "add"))
    tensors = (
        *LISTS,
        Tensor("x", (Var("m"),), "float64", "input"),
        Tensor("y", (Var("n"),), "float64", "output"),
    )
    body = For("i", Var("n"), Block((Store("y", (I,), ZERO), row)))
    return verify(Procedure("spmv", ("n", "m", "nnz"), tensors, body))


def sampled(k=32):
    """A product of two matrices where a third has elements; each is summed in a temporary."""
    at = (whole(0),)
    term = mul(Load("X", (I, K)), Load("Y", (stored("crd", PLACE), K)))
    out = Store("o", (PLACE,), mul(Load("vals", (PLACE,)), Load("s", at)))
    steps = (Store("s", at, ZERO), For("k", whole(k), Store("s", at, term, "add")), out)
    row = For("p", length(I), Allocate(Tensor("s", (whole(1),), "float64"), Block(steps)))
    start = For("q", Var("nnz"), Store("o", (Var("q"),), ZERO))
    tensors = (
        *LISTS,
        Tensor("X", (Var("n"), whole(k)), "float64", "input"),
        Tensor("Y", (Var("m"), whole(k)), "float64", "input"),
        Tensor("o", (Var("nnz"),), "float64", "output"),
    )
    body = Block((start, For("i", Var("n"), row)))
    return verify(Procedure("sddmm", ("n", "m", "nnz"), tensors, body))


def inputs(procedure, lengths=LENGTHS, m=40):
    """Whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(0)
    pos = np.cumsum([2, *lengths]).astype(np.int32)
    nnz = int(pos.max())
    extents = {"n": len(lengths), "m": m, "nnz": nnz}
    shapes = {"x": (m,), "X": (len(lengths), 32), "Y": (m, 32), "vals": (nnz,)}
    given = {"pos": pos, "crd": rng.integers(0, m, nnz).astype(np.int32)}
    wanted = [t.name for t in procedure.tensors if t.role == "input" and t.name in shapes]
    return given | {n: rng.integers(-9, 9, shapes[n]).astype(float) for n in wanted}, extents


LANES = """
cache_write("y", "i", "register")
split("p", 8, "", "", "partition")
rfactor("pi", "P", True)
set_scope("P", "register")
"""
SCHEDULES = [
    "split('p', 4)",
    "split('p', 5, '', '', 'partition')",
    "unroll('p', 4)",
    "split('p', 8)\npartition('po')\nsplit('pi_tail', 2, '', '', 'partition')",
    "split('p', 8)\nrfactor('pi', 'P', True)\nvectorize('pi')\nvectorize('pi_start')",
    "split('p', 4)\nrfactor('pi', 'P', True)\nunroll('pi')",
    LANES + "vectorize('pi')\nvectorize('pi_start')\nunroll('pi_final')",
    LANES + "unroll('pi')\nunroll('pi_start')\nunroll('pi_final')",
    LANES + "split('pi', 4)\nunroll('pio')\nvectorize('pii')\nsplit('pi_start', 4)\n"
    "unroll('pi_starto')\nvectorize('pi_starti')\nunroll('pi_final')",
    LANES + "vectorize('pi')\nvectorize('pi_start')\nunroll('pi_final')\nparallel('i')",
]


@needs_cc
@pytest.mark.parametrize("text", SCHEDULES)
def test_a_row_in_blocks_is_the_row(text, cache):
    procedure = spmv()
    given, extents = inputs(procedure)
    wanted = interpret(procedure, given, extents)["y"]
    scheduled = apply_trace(procedure, parse_trace(text))
    np.testing.assert_array_equal(interpret(scheduled, given, extents)["y"], wanted)
    kernel = compile_procedure(procedure, parse_trace(text), cache=cache, flags=EXACT)
    np.testing.assert_array_equal(kernel(given, extents)["y"], wanted)


@needs_cc
def test_a_sum_inside_a_row_is_factored(cache):
    text = """
split("k", 8)
rfactor("ki", "P", True)
vectorize("ki")
vectorize("ki_start")
set_scope("P", "register")
set_scope("s", "register")
unroll("ki_final")
"""
    procedure = sampled()
    given, extents = inputs(procedure, [max(0, length) for length in LENGTHS])
    wanted = interpret(procedure, given, extents)["o"]
    kernel = compile_procedure(procedure, parse_trace(text), cache=cache, flags=EXACT)
    np.testing.assert_array_equal(kernel(given, extents)["o"], wanted)


def test_a_block_of_a_row_has_no_guard():
    text = print_procedure(apply_trace(spmv(), parse_trace("split('p', 8, '', '', 'partition')")))
    count = "int64(pos[i + 1]) - int64(pos[i])"
    assert f"for po in ({count}) // 8:\n        for pi in 8:\n          y[i] +=" in text
    assert f"for pi_tail in {count} - ({count}) // 8 * 8:\n        y[i] +=" in text


@needs_cc
@pytest.mark.parametrize("machine", ["-march=native", "-mno-avx512f"])
def test_places_from_memory_are_gathered(machine, cache):
    trace = parse_trace(LANES + "vectorize('pi')\nvectorize('pi_start')\nunroll('pi_final')")
    procedure = spmv()
    source = lower(procedure, trace).source
    at = "*(const i32x8 *)(crd + ((int64_t)pos[i]) + po * 8)"
    assert f"* kw_gather_f64x8(x, {at});" in source
    given, extents = inputs(procedure)
    kernel = compile_procedure(procedure, trace, cache=cache, flags=(*EXACT, machine))
    np.testing.assert_array_equal(
        kernel(given, extents)["y"], interpret(procedure, given, extents)["y"]
    )


def gathering(*, dtype="float64", places="int32", lanes=8, stride=1):
    at = Cast("int64", Load("at", (mul(I, whole(stride)),)))
    tensors = (
        tensor("at", lanes * stride, dtype=places),
        tensor("x", 99, dtype=dtype),
        tensor("y", lanes, dtype=dtype, role="output"),
    )
    body = For("i", whole(lanes), Store("y", (I,), Load("x", (at,))), LoopKind.VECTORIZED)
    return verify(Procedure("f", (), tensors, body))


@needs_cc
@pytest.mark.parametrize(
    "change", [{"dtype": "float32"}, {"places": "uint16"}, {"lanes": 4}, {"stride": 2}]
)
def test_other_places_are_read_lane_by_lane(change, cache):
    procedure = gathering(**change)
    assert "kw_gather_f64x8" in generate(gathering())
    assert "gather" not in generate(procedure)
    lanes, stride = change.get("lanes", 8), change.get("stride", 1)
    dtypes = {t.name: t.dtype for t in procedure.tensors}
    given = {
        "at": (np.arange(lanes * stride) * 7 % 99).astype(dtypes["at"]),
        "x": np.arange(99).astype(dtypes["x"]),
    }
    kernel = compile_procedure(procedure, cache=cache)
    np.testing.assert_array_equal(kernel(given)["y"], given["x"][given["at"][::stride]])


PREFETCHED = """for p in int64(pos[i + 1]) - int64(pos[i]):
      if p + 4 < int64(pos[i + 1]) - int64(pos[i]):
        for k_ahead in 4:
          prefetch Y[int64(crd[int64(pos[i]) + p + 4]), k_ahead * 8]"""


@needs_cc
def test_rows_at_places_from_memory_are_asked_for_ahead(cache):
    procedure, text = sampled(), "prefetch('Y', 'p', 4)"
    assert PREFETCHED in print_procedure(apply_trace(procedure, parse_trace(text)))
    given, extents = inputs(procedure, [max(0, length) for length in LENGTHS])
    kernel = compile_procedure(procedure, parse_trace(text), cache=cache, flags=EXACT)
    wanted = interpret(procedure, given, extents)["o"]
    np.testing.assert_array_equal(kernel(given, extents)["o"], wanted)


def test_an_extent_that_may_change_is_not_known_ahead():
    """What the first iteration counts, the second may go beyond the end with."""
    tensors = (
        tensor("n", 3, dtype="int64", role="output"),
        tensor("x", 8),
        tensor("y", 8, role="output"),
    )
    count = Load("n", (I,))
    row = For("j", count, Store("y", (Var("j"),), Load("x", (add(I, Var("j")),))))
    later = If(Binary("lt", I, whole(2)), Store("n", (add(I, whole(1)),), whole(1)))
    start = (
        For("q", whole(3), Store("n", (Var("q"),), whole(99))),
        For("r", whole(8), Store("y", (Var("r"),), Const(0.0, "float32"))),
        Store("n", (whole(0),), whole(1)),
    )
    body = Block((*start, For("i", whole(3), Block((row, later)))))
    procedure = verify(Procedure("f", (), tensors, body))
    assert interpret(procedure, {"x": np.zeros(8, np.float32)})["n"].tolist() == [1, 1, 1]
    with pytest.raises(ScheduleError, match="to touch elements of x known ahead, found none"):
        apply_trace(procedure, parse_trace("prefetch('x', 'i', 1)"))


def growing(body):
    """``n[0]`` iterations, which the loop may change."""
    tensors = (tensor("n", 1, dtype="int64", role="output"), tensor("y", 9, role="output"))
    start = (
        Store("n", (whole(0),), whole(4)),
        For("q", whole(9), Store("y", (Var("q"),), Const(0.0, "float32"))),
    )
    loop = For("i", Load("n", (whole(0),)), body)
    return verify(Procedure("f", (), tensors, Block((*start, loop))))


@pytest.mark.parametrize(
    "text", ["split('i', 2)", "split('i', 2, '', '', 'partition')", "unroll('i', 2)"]
)
def test_an_extent_that_the_loop_changes_is_not_read_again(text):
    one = Const(1.0, "float32")
    longer = If(Binary("eq", I, whole(3)), Store("n", (whole(0),), whole(6)))
    changing = growing(Block((Store("y", (I,), one), longer)))
    with pytest.raises(ScheduleError, match="the extent of i reads n, and would be read at"):
        apply_trace(changing, parse_trace(text))
    same = growing(Store("y", (I,), one))
    after = interpret(apply_trace(same, parse_trace(text)), {})
    assert after["y"].tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0]


def test_a_guard_of_other_numbers_is_not_known():
    """No float that is compared is a whole number: there are NaNs."""
    kept = Binary("lt", Load("a", (I,)), Load("b", (I,)))
    update = For("k", whole(4), Store("y", (I,), Load("x", (K,)), "add"))
    start = For("q", whole(3), Store("y", (Var("q"),), Const(2, "int32")))
    for dtype in ("float32", "int32", "int64"):
        tensors = (
            tensor("x", 4, dtype="int32"),
            *(tensor(name, 3, dtype=dtype) for name in "ab"),
            tensor("y", 3, dtype="int32", role="output"),
        )
        body = Block((start, For("i", whole(3), For("l", whole(2), If(kept, update)))))
        procedure = verify(Procedure("f", (), tensors, body))
        if dtype == "int64":
            apply_trace(procedure, parse_trace("rfactor('k', 'P')"))
            continue
        with pytest.raises(ScheduleError, match="expected affine loops, guards and indices"):
            apply_trace(procedure, parse_trace("rfactor('k', 'P')"))


def test_partial_results_under_what_the_update_changes_are_refused():
    """How many terms an element has is read where the elements are."""
    count = Cast("int64", Load("y", (whole(0),)))
    update = Store("y", (I,), Load("x", (K,)), "add")
    nest = For("i", whole(4), For("k", count, For("l", whole(4), update)))
    tensors = (tensor("x", 9, dtype="int32"), tensor("y", 4, dtype="int32", role="output"))
    start = For("q", whole(4), Store("y", (Var("q"),), Const(2, "int32")))
    procedure = verify(Procedure("f", (), tensors, Block((start, nest))))
    with pytest.raises(ScheduleError, match="the update of y reads y"):
        apply_trace(procedure, parse_trace("rfactor('l', 'P')"))


@needs_cc
@pytest.mark.parametrize("divisor", [1, 2, 8, 6])
def test_quotients_are_rounded_down(divisor, cache):
    value = Load("x", (I,))
    quotient, rest = (Binary(op, value, whole(divisor)) for op in ("floordiv", "mod"))
    tensors = (
        tensor("x", 9, dtype="int64"),
        tensor("q", 9, dtype="int64", role="output"),
        tensor("r", 9, dtype="int64", role="output"),
    )
    body = For("i", whole(9), Block((Store("q", (I,), quotient), Store("r", (I,), rest))))
    procedure = verify(Procedure("f", (), tensors, body))
    least = np.iinfo(np.int64).min
    given = {"x": np.array([least, least + 1, -9, -8, -1, 0, 7, 8, 2**62])}
    found = compile_procedure(procedure, cache=cache)(given)
    np.testing.assert_array_equal(found["q"], given["x"] // divisor)
    np.testing.assert_array_equal(found["r"], given["x"] % divisor)


def merging(dtype="float64", other=None):
    """The element of the lesser of two places, or the sum of both where they are one."""
    names = {"a": "int32", "b": "int32", "u": dtype, "w": dtype}
    a, b, u, w = (Load(f"{name}0", (whole(0),)) for name in names)
    less, more = Binary("lt", a, b), Binary("lt", b, a)
    last = mul(u, w) if other is None else other
    chosen = Select(less, u, Select(more, w, last))
    body = Block(
        (
            *(Store(f"{name}0", (whole(0),), Load(name, (I,))) for name in names),
            Store("y", (I,), chosen),
        )
    )
    for name, kind in names.items():
        body = Allocate(Tensor(f"{name}0", (whole(1),), kind, scope="register"), body)
    tensors = (
        *(tensor(name, 9, dtype=kind) for name, kind in names.items()),
        tensor("y", 9, dtype=dtype, role="output"),
    )
    return verify(Procedure("f", (), tensors, For("i", whole(9), body)))


@needs_cc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_choice_by_numbers_that_are_read_has_no_branch(dtype, cache):
    procedure = merging(dtype)
    a, b = "kw_a0_0", "kw_b0_0"
    inner = f"kw_select_{dtype}({b} < {a}, kw_w0_0, kw_u0_0 * kw_w0_0)"
    assert f"y[i] = kw_select_{dtype}({a} < {b}, kw_u0_0, {inner});" in generate(procedure)
    numbers = np.array([np.inf, np.nan, -0.0, 0.0, 1.5, -np.inf, 3, -4, 1e-310])
    given = {
        "a": np.array([1, 2, 3, 4, 5, 6, 7, 8, 9], np.int32),
        "b": np.array([2, 2, 2, 4, 4, 7, -7, 8, 9], np.int32),
        "u": numbers.astype(dtype),
        "w": numbers[::-1].astype(dtype),
    }
    wanted = interpret(procedure, given)["y"]
    found = compile_procedure(procedure, cache=cache)(given)["y"]
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize(
    "other",
    [
        Load("u", (Cast("int64", Load("a0", (whole(0),))),)),
        Unary("exp", Load("u0", (whole(0),))),
        Select(
            Binary("lt", Load("u", (Cast("int64", Load("a0", (whole(0),))),)), ZERO), ZERO, ZERO
        ),
    ],
)
def test_what_may_not_be_computed_or_costs_much_is_chosen_first(other):
    """An element may be outside the tensor where it is not asked for."""
    assert "kw_select" not in generate(merging(other=other))
