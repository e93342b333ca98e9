"""Temporaries in front of tensors: cache_read, cache_write, scalar_replacement, pack, pad and the
storage of temporaries.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import add, elementwise, f32, matmul, mul, tensor
from test_codegen import TOOLCHAIN, needs_cc

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Const,
    For,
    If,
    Load,
    LoopKind,
    Prefetch,
    Procedure,
    Select,
    Store,
    Tensor,
    Var,
    loops,
    statements,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure, lower
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace, print_trace
from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Directive

I, J, K = Var("i"), Var("j"), Var("k")  # noqa: E741
NO_CONTRACTION = ("-O2", "-ffp-contract=off")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def gemm(m="m", n="n", size="kk"):
    a, b = te.placeholder("A", (m, size)), te.placeholder("B", (size, n))
    k = te.reduce_axis("k", size)
    body = lambda i, j: te.reduce_sum(a[i, k.value] * b[k.value, j], k)  # noqa: E731
    return te.lower("gemm", [te.compute("C", (m, n), body, [a, b])])


def blur(m=7, n=21):
    x = te.placeholder("x", (m + 2, n + 2))
    across = lambda i, j: x[i, j] + x[i, j + 1] + x[i, j + 2]  # noqa: E731
    t = te.compute("t", (m + 2, n), across, [x])
    down = lambda i, j: t[i, j] + t[i + 1, j] + t[i + 2, j]  # noqa: E731
    return te.lower("blur", [te.compute("y", (m, n), down, [t])])


def border(n=11):
    """A stencil that reads nothing outside its input."""
    left, right = Load("x", (Binary("sub", I, whole(1)),)), Load("x", (add(I, whole(1)),))
    value = add(
        Select(Binary("gt", I, whole(0)), left, f32(0.0)),
        Select(Binary("lt", I, whole(n - 1)), right, f32(0.0)),
    )
    tensors = (tensor("x", n), tensor("y", n, role="output"))
    return verify(Procedure("border", (), tensors, For("i", whole(n), Store("y", (I,), value))))


def prefix_sum(n=9):
    """Every element is the last one and the next input: a read of what another iteration wrote."""
    before = Load("y", (Binary("sub", I, whole(1)),))
    body = Block(
        (
            Store("y", (I,), Load("x", (I,))),
            If(Binary("gt", I, whole(0)), Store("y", (I,), before, "add")),
        )
    )
    tensors = (tensor("x", n), tensor("y", n, role="output"))
    return verify(Procedure("prefix_sum", (), tensors, For("i", whole(n), body)))


def histogram(n=12, bins=5):
    tensors = (tensor("x", n, dtype="int64"), tensor("h", bins, role="output"))
    body = Block(
        (
            For("b", whole(bins), Store("h", (Var("b"),), f32(0.0))),
            For("i", whole(n), Store("h", (Load("x", (I,)),), f32(1.0), "add")),
        )
    )
    return verify(Procedure("histogram", (), tensors, body))


def triangular(n=6):
    """Rows of growing length."""
    i0, j0 = Var("i0"), Var("j0")
    start = For("i0", whole(n), For("j0", whole(n), Store("y", (i0, j0), f32(0.0))))
    update = Store("y", (I, J), mul(Load("x", (I, J)), f32(2.0)), "add")
    nest = For("i", whole(n), For("j", add(I, whole(1)), update))
    tensors = (tensor("x", n, n), tensor("y", n, n, role="output"))
    return verify(Procedure("triangular", (), tensors, Block((start, nest))))


def arrays(procedure, extents):
    rng = np.random.default_rng(0)
    out = {}
    for each in procedure.tensors:
        if each.role == "input":
            shape = [int(s.value) if isinstance(s, Const) else extents[s.name] for s in each.shape]
            # Small whole numbers, of which sums in any order are exact; bins of the histogram.
            out[each.name] = rng.integers(0, 5, shape).astype(each.dtype)
    return out


def scheduled(procedure, text):
    """The procedure after a trace, which prints, parses and goes to JSON."""
    trace = parse_trace(text)
    assert parse_trace(print_trace(trace)) == trace
    assert tuple(loads(Directive, dumps(d)) for d in trace) == trace
    return apply_trace(procedure, trace)


def check_same(cache, procedure, text, *sizes):
    """Before = after = C, for every choice of the extents."""
    after = scheduled(procedure, text)
    kernel = None
    if TOOLCHAIN is not None:
        kernel = compile_procedure(procedure, parse_trace(text), cache=cache, flags=NO_CONTRACTION)
    for extents in sizes or ({},):
        inputs = arrays(procedure, extents)
        wanted, got = interpret(procedure, inputs, extents), interpret(after, inputs, extents)
        compiled = wanted if kernel is None else kernel(inputs, extents)
        for name, values in wanted.items():
            np.testing.assert_array_equal(got[name], values, err_msg=f"{text}{extents}")
            np.testing.assert_array_equal(compiled[name], values, err_msg=f"{text}{extents}")
    return after


SIZES = (
    {"m": 5, "n": 19, "kk": 7},
    {"m": 4, "n": 16, "kk": 1},
    {"m": 3, "n": 2, "kk": 0},
    {"m": 0, "n": 3, "kk": 4},
    {"m": 9, "n": 0, "kk": 4},
)
TILE = """
split("i", 4)
split("j", 16)
split("ji", 8, "ju", "jv")
reorder("jo", "io", "k", "ii", "ju", "jv")
unroll("ii")
unroll("ju")
vectorize("jv")
"""
BLOCKS = (
    'split("i", 4)\nsplit("j", 8)\nsplit("k", 3)\nreorder("io", "jo", "ko", "ii", "ji", "ki")\n'
)
LEGAL = [
    'cache_read("A")',
    'cache_read("A", "i")\ncache_read("B", "j", "auto")\ncache_write("C", "j")',
    BLOCKS + 'cache_read("A", "io")\ncache_read("B", "jo")',
    BLOCKS + 'cache_read("B", "jo", "heap", "panel")\ncache_read("panel", "ko", "stack")',
    BLOCKS + 'cache_write("C", "jo")\ncache_write("C_write", "ko", "stack")',
    BLOCKS + 'cache_write("C", "ii")\ncache_read("B", "ki")',
    BLOCKS + 'cache_write("C", "io")\nsplit("C_write_out1", 4)\nvectorize("C_write_out1i")',
    BLOCKS + 'parallel("io")\ncache_write("C", "jo")\ncache_read("A", "jo")',
    'cache_write("C")',
    'cache_write("C", "i_start")\nparallel("i_start")',
    'pack("B", "k j -> j/8 k j%8")',
    'pack("B", "k, j -> j/8 k j%8", "", "heap", "zero")\nsplit("j", 8)',
    'pack("A", "i k -> k/6 i k%6/2 k%2")\npack("B", "k j -> j k")',
    BLOCKS + 'pack("B", "k j -> j/4 k j%4", "ko", "stack")\npack("A", "i k -> k i", "io")',
    BLOCKS + 'pack("B", "k j -> j/4 k j%4", "jo", "auto", "zero")',
    BLOCKS + 'cache_read("B", "jo")\nreorder_storage("B_read", 1, 0)\n'
    'storage_align("B_read", 0, 8, 3)',
    BLOCKS + 'cache_read("A", "io")\npack("A_read", "i k -> i/3 k i%3")',
    TILE + 'pack("B", "k j -> j/16 k j%16")\nscalar_replacement("C", "k")',
    TILE + 'scalar_replacement("B", "ii")\nscalar_replacement("A", "ju")',
    TILE + 'pack("B", "k j -> j/16 k j%16", "jo", "heap", "zero")\n'
    'vectorize("B_packed_in2")\nscalar_replacement("C", "k")\npad("C_register", 1, 16)',
    TILE + 'pack("A", "i k -> i/4 k i%4", "", "auto", "zero")\n'
    'pack("B", "k j -> j/16 k j%16", "", "auto", "zero")\n'
    'scalar_replacement("C", "k")\npad("C_register", 0, 4)',
    'split("k", 4)\npack("A", "i k -> i k/4 k%4", "", "auto", "zero")\n'
    'pack("B", "k j -> j k/4 k%4", "", "auto", "zero")\npad("A_packed", 0, 1)',
]


@pytest.mark.cc
@pytest.mark.parametrize("text", LEGAL)
def test_copies_keep_the_meaning(cache, text):
    check_same(cache, gemm(), text, *SIZES)


OTHERS = [
    (blur(), 'split("y_i", 3)\ncache_read("x", "i")\ncache_read("t", "y_io", "stack")'),
    (blur(), 'cache_read("t")\npack("t", "i j -> j/4 i j%4")\nset_scope("t_read", "heap")'),
    (blur(), 'cache_write("t", "i")\ncache_write("y", "y_i")\nstorage_align("t", 0, 16, 1)'),
    (blur(), 'cache_write("t")\nreorder_storage("t_write", 1, 0)'),
    (blur(), 'split("i", 4)\nsplit("j", 5)\nfuse("io", "ii")\ncache_read("x", "io_ii")'),
    (border(), 'split("i", 4)\ncache_read("x", "io", "stack")'),
    (border(), 'split("i", 4)\npack("x", "i -> i%3 i/3", "io")'),
    (border(), 'pack("x", "i -> i%2 i/2", "", "auto", "zero")'),
    (histogram(), 'cache_write("h")'),
    (histogram(), 'cache_read("x")\ncache_write("h", "i")'),
    (triangular(), 'cache_read("x", "i")\ncache_write("y", "i")'),
    (triangular(), 'split("j", 4)\ncache_write("y", "jo")\npack("x", "i j -> j i", "jo")'),
    (prefix_sum(), 'cache_write("y")'),
    (matmul(5, 16, 3), 'vectorize("j")\nscalar_replacement("C", "j")'),
    (matmul(5, 16, 3), 'reorder("i", "j", "k")\nscalar_replacement("C", "k")\nparallel("i")'),
]


@pytest.mark.cc
@pytest.mark.parametrize("number", range(len(OTHERS)))
def test_copies_keep_the_meaning_of_other_nests(cache, number):
    check_same(cache, *OTHERS[number])


REFUSED = [
    (gemm(), 'cache_read("Z")', "expected one of the tensors A, B, C, found 'Z'"),
    (gemm(), 'cache_read("B", "z")', "expected one of the loops"),
    (gemm(), 'cache_read("B", "k", "l1")', "expected one of auto, heap, stack"),
    (gemm(), 'cache_read("B", "k", "auto", "A")', "a free name for a tensor, found 'A'"),
    (gemm(), 'cache_read("B", "k", "auto", "int")', "a free name for a tensor, found 'int'"),
    (gemm(), 'cache_read("B", "i_start")', "expected reads of B in loop i_start, found none"),
    (gemm(), 'cache_read("C", "k")', "an iteration of k writes C too"),
    (gemm(), 'cache_read("C")', "C is written in the nest that reads it; name a loop"),
    (prefix_sum(), 'cache_read("y")', "y is written in the nest that reads it; name a loop"),
    (gemm(), 'cache_write("A", "i")', "expected writes of A in loop i, found none"),
    (gemm(), 'cache_write("C", "i", "auto", False)', "a free name for a tensor, found False"),
    (gemm(), 'fuse("i_start", "j_start", False)', "a free name for a loop, found False"),
    (gemm(), 'affine("i", False)', "a size of tile .* found False"),
    (
        elementwise(Load("x", (I,)), 0),
        'scalar_replacement("y", "i")',
        "no write of y in loop i ever runs",
    ),
    (gemm(), 'cache_write("C", "k", "l1")', "expected one of auto, heap, stack"),
    (
        prefix_sum(),
        'cache_write("y", "i")',
        r"an element before it is written \(y\[.*\] is read in iteration \(i=\d, y_write_in0=\d\)",
    ),
    (gemm(), 'scalar_replacement("C", "k_")', "expected one of the loops"),
    (gemm(), 'scalar_replacement("C", "j")', "expected a number of elements, found n of C"),
    (gemm(), 'scalar_replacement("A", "i_start")', "expected accesses of A in loop i_start"),
    (gemm(9, 300, 2), 'scalar_replacement("C", "i")', "at most 2048 elements in registers"),
    (matmul(4, 8, 4), 'vectorize("j")\ncache_read("B", "j")', "without lanes, found j vectorized"),
    (gemm(), 'pack("B", "k j")', "expected an index map like"),
    (gemm(), 'pack("B", "k j -> j k -> k")', "expected an index map like"),
    (gemm(), 'pack("B", "k k -> k")', "expected 2 different names before"),
    (gemm(), 'pack("B", "j -> j")', "expected 2 different names before"),
    (gemm(), 'pack("B", "k j -> j q")', "expected one of k, j with / and %, found 'q'"),
    (gemm(), 'pack("B", "k j -> j//2 k j%2")', "expected one of k, j with / and %"),
    (gemm(), 'pack("B", "k j -> j/0 k j%0")', "factors that divide one another, found 'j/0'"),
    (gemm(), 'pack("B", "k j -> j%6/4 k j")', "factors that divide one another, found 'j%6/4'"),
    (gemm(), 'pack("B", "k j -> j/8 k j%4")', "expected each part of j once, .* found j/8 j%4"),
    (gemm(), 'pack("B", "k j -> j/4 k j%8")', "expected each part of j once"),
    (gemm(), 'pack("B", "k j -> j k j")', "expected each part of j once"),
    (gemm(), 'pack("B", "k j -> k")', "expected each part of j once, .* found none"),
    (gemm(), 'pack("B", "k j -> j k", "", "auto", "one")', "a padding of undefined or zero"),
    (blur(), 'pack("t", "i j -> j i", "y_i")', "a temporary and changes in place"),
    (blur(), 'reorder_storage("t", 0)', "each axis from 0 to 1 of t once, found"),
    (blur(), 'reorder_storage("t", 1, 1)', "each axis from 0 to 1 of t once, found"),
    (blur(), 'reorder_storage("y", 1, 0)', "the output y, .* cache_write makes a temporary of it"),
    (blur(), 'storage_align("t", 2, 8)', "expected an axis below 2 of t, found 2"),
    (blur(), 'storage_align("t", 0, 0)', "a factor of at least 1, found 0"),
    (blur(), 'storage_align("t", 1, 8)', "the last, lie side by side"),
    (blur(), 'pack("t", "i j -> j/4 i j%4")\nstorage_align("t", 0, 16, 2)', "is never 2 modulo 16"),
    (
        gemm(),
        'pack("B", "k j -> j k")\nreorder_storage("B_packed", 1, 0)\n'
        'pack("B_packed", "k j -> k j/2 j%2")\nstorage_align("B_packed", 0, 8)',
        r"expected numbers behind axis 0 of B_packed, found \(n \+ 1\) // 2",
    ),
    (blur(), 'set_scope("t", "l1")', "expected one of auto, heap, stack"),
    (blur(), 'set_scope("x", "heap")', "the input x, whose layout callers know"),
    (gemm(), 'cache_read("B")\nset_scope("B_read", "stack")', "a shape in numbers for stack"),
    (blur(), 'bound_storage("t", 0, 8)', r"beyond 8 elements of axis 0 \(t\[.* has index 8"),
    (blur(), 'bound_storage("t", 3, 8)', "an axis below 2 of t, found 3"),
    (gemm(), 'cache_read("B")\nbound_storage("B_read", 1, 8)', "beyond 8 elements of axis 1"),
    (gemm(), 'cache_read("B")\npad("B_read", 2, 8)', "an axis below 2 of B_read, found 2"),
    (gemm(), 'cache_read("B")\npad("B_read", 0, 1)', "a multiple of 1, and no guard can go"),
    (
        gemm(5, 20, 3),
        'split("j", 8)\ncache_write("C", "jo")\npad("C_write", 1, 8)',
        r"would be outside B in iteration \(i=0, jo=2, ji=4, k=0\)",
    ),
    (
        gemm(5, 6, 7),
        'split("k", 4)\npack("A", "i k -> i k/4 k%4", "", "auto", "zero")\n'
        'pack("B", "k j -> j k/4 k%4")\npad("A_packed", 0, 1)',
        "is read in iteration .* before it is written",
    ),
    (
        gemm(5, 6, 7),
        'split("k", 4)\npack("A", "i k -> i k/4 k%4", "", "auto", "zero")\npad("A_packed", 0, 1)',
        "would be outside B in iteration",
    ),
]


@pytest.mark.parametrize(("procedure", "text", "message"), REFUSED)
def test_what_is_not_legal_is_refused_with_a_reason(procedure, text, message):
    trace = parse_trace(text)
    before = apply_trace(procedure, trace[:-1])
    with pytest.raises(ScheduleError, match=message) as caught:
        apply_trace(before, trace[-1:])
    assert caught.value.op == trace[-1].op


def half_written(n=8):
    """The second nest reads what the first wrote: every second element."""
    even = mul(I, whole(2))
    first = For("i", whole(n // 2), Store("t", (even,), Load("x", (I,))))
    second = For("j", whole(n // 2), Store("y", (J,), Load("t", (mul(J, whole(2)),))))
    temporary = Tensor("t", (whole(n),), "float32")
    tensors = (tensor("x", n // 2), tensor("y", n // 2, role="output"))
    body = Allocate(temporary, Block((first, second)))
    return verify(Procedure("half_written", (), tensors, body))


def test_a_copy_of_what_was_never_written_is_refused():
    """Each iteration reads one element, and may copy that; a copy of all would read others."""
    apply_trace(half_written(), parse_trace('cache_read("t", "j")'))
    for text in ('cache_read("t")', 'cache_write("t")'):
        with pytest.raises(ScheduleError, match="would read an element before it is") as caught:
            apply_trace(half_written(), parse_trace(text))
        assert re.fullmatch(
            r"t\w*\[t_\w+\] is read in iteration \(t_\w+=\d+\) before it is written",
            caught.value.conflict,
        )


def columns(kind):
    """Iterations that write every second element of two rows."""
    at = add(mul(J, whole(2)), I)
    nest = For("i", whole(2), For("j", whole(4), Store("y", (at,), f32(1.0))), kind)
    fill = For("p", whole(8), Store("y", (Var("p"),), f32(0.0)))
    tensors = (tensor("y", 8, role="output"),)
    return verify(Procedure("columns", (), tensors, Block((fill, nest))))


@pytest.mark.cc
def test_iterations_without_order_must_not_copy_back_the_same_elements(cache):
    """The box of an iteration has the elements of the other too, which it would put back."""
    trace = parse_trace('cache_write("y", "i")')
    with pytest.raises(ScheduleError, match="cannot be parallel") as caught:
        apply_trace(columns(LoopKind.PARALLEL), trace)
    assert "must run before" in caught.value.conflict
    check_same(cache, columns(LoopKind.SERIAL), 'cache_write("y", "i")')


def test_a_copy_stands_where_its_tensor_lives():
    inner = Block(
        (Store("t", (whole(0),), Load("x", (I,))), Store("y", (I,), Load("t", (whole(0),))))
    )
    nest = For("i", whole(4), Allocate(Tensor("t", (whole(1),), "float32"), inner))
    tensors = (tensor("x", 4), tensor("y", 4, role="output"))
    procedure = verify(Procedure("f", (), tensors, nest))
    for text in ('cache_write("t", "i")', 'scalar_replacement("t", "i")'):
        with pytest.raises(ScheduleError, match="t lives inside that place"):
            apply_trace(procedure, parse_trace(text))
    with pytest.raises(ScheduleError, match="name a loop"):
        apply_trace(procedure, parse_trace('cache_write("t")'))


@pytest.mark.cc
def test_a_temporary_may_live_beside_other_statements(cache):
    p, q = Var("p"), Var("q")
    write = For("p", whole(4), Store("t", (p,), Load("x", (p,))))
    read = For("q", whole(4), Store("y", (q,), Load("t", (q,)), "add"))
    first = For("i", whole(4), Store("y", (I,), f32(1.0)))
    nest = Block((first, Allocate(Tensor("t", (whole(4),), "float32"), Block((write, read)))))
    tensors = (tensor("x", 4), tensor("y", 4, role="output"))
    procedure = verify(Procedure("f", (), tensors, nest))
    check_same(cache, procedure, 'cache_read("t")\ncache_write("t")\ncache_write("y")')
    with pytest.raises(ScheduleError, match="y is written in the nest that reads it"):
        apply_trace(procedure, parse_trace('cache_read("y")'))


def test_what_threads_exchange_is_not_kept_from_them():
    body = Block((Store("y", (I,), Load("x", (I,))), Barrier()))
    tensors = (tensor("x", 4), tensor("y", 4, role="output"))
    procedure = verify(Procedure("f", (), tensors, For("i", whole(4), body, LoopKind.THREAD_X)))
    with pytest.raises(ScheduleError, match="threads meet at a barrier there"):
        apply_trace(procedure, parse_trace('cache_write("y", "i")'))


def test_the_operands_of_an_instruction_stay():
    body = Call("copy_one", Store("y", (I,), Load("x", (I,))))
    tensors = (tensor("x", 4), tensor("y", 4, role="output"))
    procedure = verify(Procedure("f", (), tensors, For("i", whole(4), body)))
    for text in ('cache_read("x", "i")', 'cache_write("y")', 'pack("x", "i -> i")'):
        with pytest.raises(ScheduleError, match="copy_one was matched with accesses of"):
            apply_trace(procedure, parse_trace(text))


def test_names_of_copies_are_free():
    procedure = gemm(4, 5, 6)
    text = 'cache_read("B")\nsplit("k", 2, "A_read_in1", "A_read")\n'
    after = apply_trace(procedure, parse_trace(text + 'cache_read("A", "j")'))
    found = [s.tensor.name for s in statements(after.body) if isinstance(s, Allocate)]
    assert found == ["B_read", "A_read2"]
    assert "A_read2_in1" in [loop.var for loop in loops(after)]
    other = 'split("k", 2, "ko", "A_read_in1")\n'
    after = apply_trace(procedure, parse_trace(other + 'cache_read("A", "j")'))
    assert "A_read_in12" in [loop.var for loop in loops(after)]


def test_prefetches_stay_with_the_tensor():
    hint = Prefetch("x", (I,))
    body = Block((hint, Store("y", (I,), Load("x", (I,)))))
    tensors = (tensor("x", 4), tensor("y", 4, role="output"))
    procedure = verify(Procedure("f", (), tensors, For("i", whole(4), body)))
    after = apply_trace(procedure, parse_trace('cache_read("x", "i")'))
    assert [s for s in statements(after.body) if isinstance(s, Prefetch)] == [hint]


@pytest.mark.cc
def test_register_tiles_are_variables_in_c(cache):
    text = TILE + 'scalar_replacement("C", "k")'
    procedure = gemm(8, 32, 6)
    check_same(cache, procedure, text)
    source = lower(procedure, parse_trace(text)).source
    assert re.search(r"f32x8 kw_C_register_0(, kw_C_register_\d)+;", source)
    assert "C_register[" not in source
    assert re.search(r"kw_C_register_7 \+= A\[.*\] \* \*\(const f32x8 \*\)", source)


NO_REGISTERS = [
    ('cache_write("C", "io", "register")', "moves with C_write_in0"),
    (
        'cache_read("A", "k", "register")\ncache_read("B", "jo", "register")',
        "moves with B_read_in0",
    ),
]


def test_what_registers_cannot_hold_has_no_c():
    for text, message in NO_REGISTERS:
        with pytest.raises(CodegenError, match=message):
            lower(gemm(8, 32, 6), parse_trace(TILE + text))


def wide(scope, dtype="float32", n=16, shift=0, width=8):
    """A temporary written in vectors, and read in vectors from ``shift`` on."""
    at = add(mul(Var("o"), whole(width)), Var("v"))
    write = For("v", whole(width), Store("t", (at,), Load("x", (at,))), LoopKind.VECTORIZED)
    from_there = add(I, whole(shift))
    read = For("i", whole(8), Store("y", (I,), Load("t", (from_there,))), LoopKind.VECTORIZED)
    nest = Block((For("o", whole(n // width), write, LoopKind.UNROLLED), read))
    tensors = (tensor("x", n, dtype=dtype), tensor("y", 8, dtype=dtype, role="output"))
    body = Allocate(Tensor("t", (whole(n),), dtype, scope=scope), nest)
    return verify(Procedure("wide", (), tensors, body))


@pytest.mark.cc
def test_vectors_in_registers_have_one_width_and_start_at_its_multiples(cache):
    check_same(cache, wide("register"), "")
    check_same(cache, wide("register", shift=8), "")
    check_same(cache, wide("stack", shift=1), "")
    with pytest.raises(CodegenError, match="vectors that start at multiples of 8, found i"):
        lower(wide("register", shift=1))
    with pytest.raises(CodegenError, match="vectors of one width, found 4 and 8 lanes"):
        lower(wide("register", width=4))
    with pytest.raises(CodegenError, match="a dtype with vectors, found float16"):
        lower(wide("register", dtype="float16"))


def test_the_stack_has_a_limit():
    with pytest.raises(CodegenError, match="at most 1048576 bytes on the stack, found 4000000"):
        lower(gemm(1000, 1000, 1000), parse_trace('cache_read("B", "", "stack")'))
    with pytest.raises(CodegenError, match="an unknown number"):
        generate(verify(on_stack()))


def on_stack():
    body = For("i", Var("n"), Store("t", (I,), f32(1.0)))
    out = For("j", Var("n"), Store("y", (J,), Load("t", (J,))))
    temporary = Tensor("t", (Var("n"),), "float32", scope="stack")
    nest = Allocate(temporary, Block((body, out)))
    return Procedure("on_stack", ("n",), (tensor("y", "n", role="output"),), nest)


def test_memory_is_allocated_outside_loops():
    source = lower(gemm(), parse_trace(BLOCKS + 'cache_read("B", "ko", "heap")')).source
    assert source.index("aligned_alloc") < source.index("for (int64_t io")
    assert source.count("aligned_alloc") == source.count("free(B_read)") == 1
    text = 'parallel("io")\ncache_read("B", "ko", "heap")'
    source = lower(gemm(), parse_trace(BLOCKS + text)).source
    # Each iteration of a parallel loop has its own.
    parallel, inner = source.index("for (int64_t io"), source.index("for (int64_t jo")
    assert parallel < source.index("aligned_alloc") < inner


@pytest.mark.cc
def test_extents_are_rounded_up_where_they_are_not_known(cache):
    text = 'cache_read("B")\nstorage_align("B_read", 0, 8, 1)\npad("B_read", 0, 4)'
    after = check_same(cache, gemm(), text, *SIZES)
    (buffer,) = (s.tensor for s in statements(after.body) if isinstance(s, Allocate))
    shape = print_procedure(Procedure("f", after.extents, (), Allocate(buffer, Block(()))))
    assert "float32[(kk + 3) // 4 * 4, (n + 6) // 8 * 8 + 1]" in shape


@pytest.mark.cc
def test_a_bound_that_is_proved_makes_room_on_the_stack(cache):
    nest = Block(
        (
            For("i", Binary("min", Var("n"), whole(4)), Store("t", (I,), Load("x", (I,)))),
            For("j", Var("n"), Store("y", (J,), Load("x", (J,)))),
            If(
                Binary("lt", whole(2), Var("n")),
                Store("y", (whole(2),), Load("t", (whole(2),)), "add"),
            ),
        )
    )
    tensors = (tensor("x", "n"), tensor("y", "n", role="output"))
    body = Allocate(Tensor("t", (Var("n"),), "float32"), nest)
    procedure = verify(Procedure("f", ("n",), tensors, body))
    text = 'bound_storage("t", 0, 4)\nset_scope("t", "stack")'
    check_same(cache, procedure, text, {"n": 7}, {"n": 3}, {"n": 0})
    with pytest.raises(ScheduleError, match="has index 3 in iteration"):
        apply_trace(procedure, parse_trace('bound_storage("t", 0, 3)'))


@pytest.mark.cc
def test_a_box_of_nothing_needs_no_room(cache):
    """Where n is 0 or 1, n - 2 elements are less than none."""
    at = add(I, whole(2))
    inner = For("i", Binary("sub", Var("n"), whole(2)), Store("y", (at,), Load("x", (I,)), "add"))
    fill = For("p", Var("n"), Store("y", (Var("p"),), f32(0.0)))
    nest = Block((fill, For("o", whole(3), inner)))
    tensors = (tensor("x", "n"), tensor("y", "n", role="output"))
    procedure = verify(Procedure("f", ("n",), tensors, nest))
    text = 'cache_read("x", "o")\ncache_write("y", "o")\npack("x_read", "i -> i/4 i%4")'
    after = check_same(cache, procedure, text, {"n": 7}, {"n": 2}, {"n": 1}, {"n": 0})
    assert "x_read: float32[(max(n - 2, 0) + 3) // 4, 4]" in print_procedure(after)


@pytest.mark.cc
def test_whole_tiles_are_copied_in_vectors(cache):
    """Two guards on a copy, of rows and of columns, are tested one in the other."""
    text = TILE + 'cache_write("C", "io", "stack")\nsplit("C_write_out1", 8)\n'
    text += 'vectorize("C_write_out1i")\npack("B", "k j -> j/16 k j%16", "", "auto", "zero")'
    check_same(cache, gemm(7, 29, 3), text)
    source = lower(gemm(7, 29, 3), parse_trace(text)).source
    assert re.search(r"\*\(f32x8 \*\)\(C \+ .*\) = \*\(const f32x8 \*\)\(C_write \+", source)


def test_lanes_of_registers_count_one_by_one():
    """The tail of a register tile is written lane by lane, and has its limit."""
    tail = 'scalar_replacement("C", "k")'
    assert len(lower(gemm(8, 31, 6), parse_trace(TILE + tail)).source.splitlines()) > 600
    many = TILE.replace('"i", 4', '"i", 32').replace('"j", 16', '"j", 32')
    lower(gemm(64, 64, 6), parse_trace(many + tail))
    with pytest.raises(CodegenError, match="at most 2048 statements after unrolling"):
        lower(gemm(64, 63, 6), parse_trace(many + tail))


def test_a_guard_around_a_condition_that_would_read_undefined_stays():
    """What the guard keeps from running would ask for a flag that nothing wrote."""
    p, q = Var("p"), Var("q")
    flags = For("p", whole(6), Store("t", (p,), Load("x", (p,))))
    positive = Binary("gt", Load("t", (q,)), f32(0.0))
    use = If(positive, Store("u", (q,), f32(1.0)))
    uses = For("q", whole(8), If(Binary("lt", q, whole(6)), use))
    i = Var("i")
    start = For("i", whole(6), Store("u", (i,), f32(0.0)))
    out = For("j", whole(6), Store("y", (J,), Load("u", (J,))))
    nest = Allocate(
        Tensor("t", (whole(8),), "float32"),
        Allocate(Tensor("u", (whole(8),), "float32"), Block((flags, start, uses, out))),
    )
    tensors = (tensor("x", 6), tensor("y", 6, role="output"))
    procedure = verify(Procedure("f", (), tensors, nest))
    with pytest.raises(ScheduleError, match=r"a condition around u\[q\] is not affine"):
        apply_trace(procedure, parse_trace('pad("u", 0, 8)'))


MOVES = [
    'cache_read("{t}", "{l}")',
    'cache_read("{t}", "{l}", "stack")',
    'cache_write("{t}", "{l}")',
    'scalar_replacement("{t}", "{l}")',
    'pack("{t}", "i j -> j/4 i j%4", "{l}", "auto", "zero")',
    'pack("{t}", "i j -> i/2 j i%2")',
    'reorder_storage("{t}", 1, 0)',
    'storage_align("{t}", 0, 8, 3)',
    'pad("{t}", 1, 4)',
    'pad("{t}", 0, 2)',
    'split("{l}", 4)',
    'reorder("{l}", "{m}")',
    'vectorize("{l}")',
    'unroll("{l}")',
    'parallel("{l}")',
]


def random_trace(procedure, seed, length=7):
    """A legal trace, by trying."""
    rng, lines = np.random.default_rng(seed), []
    for _ in range(length * 3):
        names = [loop.var for loop in loops(procedure)]
        tensors = [t.name for t in procedure.tensors]
        tensors += [s.tensor.name for s in statements(procedure.body) if isinstance(s, Allocate)]
        move = MOVES[rng.integers(len(MOVES))].format(
            t=rng.choice(tensors), l=rng.choice(names), m=rng.choice(names)
        )
        try:
            procedure = apply_trace(procedure, parse_trace(move))
        except ScheduleError:
            continue
        lines.append(move)
        if len(lines) == length:
            break
    return "\n".join(lines), procedure


NESTS = {"gemm": gemm(5, 9, 6), "blur": blur(5, 9), "triangular": triangular(5)}


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(list(NESTS)), st.integers(0, 10**6))
def test_any_legal_trace_keeps_the_meaning(name, seed):
    procedure = NESTS[name]
    text, after = random_trace(procedure, seed)
    inputs = arrays(procedure, {})
    wanted, got = interpret(procedure, inputs), interpret(verify(after), inputs)
    for key, values in wanted.items():
        np.testing.assert_array_equal(got[key], values, err_msg=text)


@needs_cc
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(list(NESTS)), seed=st.integers(0, 10**6))
def test_any_legal_trace_compiles_to_the_same(cache, name, seed):
    procedure = NESTS[name]
    text, after = random_trace(procedure, seed)
    if has_c(after):
        check_same(cache, procedure, text)


def has_c(procedure):
    """Whether what a random trace keeps in registers has a C form."""
    try:
        generate(procedure)
    except CodegenError as error:
        if "in registers" not in str(error):
            raise
        return False
    return True
