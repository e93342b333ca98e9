from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import add, elementwise, f32, matmul, mul, tensor

from kernelwright.env.compiler.codegen.c import arguments, generate
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.codegen.names import hoisted, register
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
    Unary,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import lower
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.call import CallError, Kernel, aligned
from kernelwright.env.compiler.runtime.toolchain import (
    DEFAULT_FLAGS,
    TOOLCHAINS,
    BuildError,
    find_toolchain,
)

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "codegen"
I = Var("i")  # noqa: E741
X = Load("x", (I,))

try:
    TOOLCHAIN = find_toolchain()
except BuildError:
    TOOLCHAIN = None
needs_cc = pytest.mark.skipif(TOOLCHAIN is None, reason="needs a C compiler: gcc, clang or ziglang")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def compiled(procedure, cache, flags=DEFAULT_FLAGS):
    build = cache.build(generate(procedure), TOOLCHAIN, flags)
    return Kernel(build.library, procedure.name, arguments(procedure), procedure.extents)


def tiled(m=16, n=32, k=8, rows=4, lanes=8):
    """A register tile: io jo k, rows unrolled, columns vectorized."""
    io, jo, q, ii, ji = (Var(v) for v in ("io", "jo", "k", "ii", "ji"))
    i, j = add(mul(io, whole(rows)), ii), add(mul(jo, whole(lanes)), ji)
    update = Store("C", (i, j), mul(Load("A", (i, q)), Load("B", (q, j))), "add")
    inner = For(
        "ii", whole(rows), For("ji", whole(lanes), update, LoopKind.VECTORIZED), LoopKind.UNROLLED
    )
    nest = For("io", whole(m // rows), For("jo", whole(n // lanes), For("k", whole(k), inner)))
    start = For("i0", whole(m), For("j0", whole(n), Store("C", (Var("i0"), Var("j0")), f32(0.0))))
    tensors = (tensor("A", m, k), tensor("B", k, n), tensor("C", m, n, role="output"))
    return Procedure("tiled", (), tensors, Block((start, nest)))


def guarded(n=21, lanes=8):
    """A vectorized loop whose last round is not whole."""
    io, ii = Var("io"), Var("ii")
    i = add(mul(io, whole(lanes)), ii)
    body = If(Binary("lt", i, whole(n)), Store("y", (i,), mul(Load("x", (i,)), f32(2.0))))
    nest = For("io", whole(-(-n // lanes)), For("ii", whole(lanes), body, LoopKind.VECTORIZED))
    return Procedure("guarded", (), (tensor("x", n), tensor("y", n, role="output")), nest)


def with_temporary(n=6, size=5):
    t = tensor("t", size, role="temporary")
    fill = For("j", whole(size), Store("t", (Var("j"),), mul(X, Cast("float32", Var("j")))))
    total = For("q", whole(size), Store("y", (I,), Load("t", (Var("q"),)), "add"))
    body = Allocate(t, Block((fill, Store("y", (I,), f32(0.0)), total)))
    return Procedure(
        "temporary", (), (tensor("x", n), tensor("y", n, role="output")), For("i", whole(n), body)
    )


PROGRAMS = {
    "matmul": matmul(),
    "tiled": tiled(),
    "guarded": guarded(),
    "temporary": with_temporary(),
    "large_temporary": with_temporary(size=40_000),
    "parallel": elementwise(mul(X, X), kind=LoopKind.PARALLEL),
    "lanes": elementwise(
        Select(Binary("lt", X, f32(0.5)), X, Unary("exp", X)), kind=LoopKind.VECTORIZED
    ),
    "negative": elementwise(Unary("neg", add(X, f32(-1.5))), kind=LoopKind.VECTORIZED),
    "gather": elementwise(Load("x", (Binary("sub", whole(15), I),)), kind=LoopKind.VECTORIZED),
    "broadcast": elementwise(f32(-0.0), kind=LoopKind.VECTORIZED),
    "extremes": elementwise(Binary("min", Binary("max", X, f32(0.25)), f32(0.75))),
    "odd_lanes": elementwise(mul(X, X), n=7, kind=LoopKind.VECTORIZED),
    "math": elementwise(Unary("tanh", Unary("log", Unary("sqrt", Unary("erf", X))))),
    "integers": elementwise(
        add(mul(Binary("floordiv", X, whole(-3)), whole(7)), Binary("mod", X, whole(5))),
        dtype="int64",
    ),
}


def inputs_of(procedure, seed=0):
    rng = np.random.default_rng(seed)
    out = {}
    for t in procedure.tensors:
        if t.role == "input":
            shape = tuple(e.value for e in t.shape)
            integers = t.dtype.startswith("int")
            out[t.name] = (
                rng.integers(-50, 50, shape).astype(t.dtype)
                if integers
                else rng.random(shape).astype(t.dtype)
            )
    return out


@pytest.mark.parametrize("compiler", TOOLCHAINS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_c_means_what_the_interpreter_means(name, compiler, cache):
    try:
        toolchain = find_toolchain(compiler)
    except BuildError:
        pytest.skip(f"needs {compiler}")
    procedure = verify(PROGRAMS[name])
    inputs = inputs_of(procedure)
    build = cache.build(generate(procedure), toolchain, DEFAULT_FLAGS)
    kernel = Kernel(build.library, procedure.name, arguments(procedure), procedure.extents)
    got, wanted = kernel(inputs), interpret(procedure, inputs)
    for key, array in wanted.items():
        np.testing.assert_allclose(got[key], array, rtol=3e-6)


@pytest.mark.parametrize("name", ["matmul", "tiled", "guarded", "temporary", "lanes"])
def test_generated_c_is_what_was_reviewed(name, request):
    text, path = generate(PROGRAMS[name]), GOLDEN / f"{name}.c"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{path} differs; look at it, then run with --update-golden"


@needs_cc
def test_a_broadcast_keeps_the_sign_of_zero(cache):
    got = compiled(PROGRAMS["broadcast"], cache)(inputs_of(PROGRAMS["broadcast"]))["y"]
    assert np.signbit(got).all()


@needs_cc
def test_extents_are_arguments(cache):
    nest = For("i", Var("n"), Store("y", (I,), mul(X, f32(3.0))))
    procedure = verify(
        Procedure("scale", ("n",), (tensor("x", "n"), tensor("y", "n", role="output")), nest)
    )
    kernel = compiled(procedure, cache)
    x = np.arange(9, dtype=np.float32)
    np.testing.assert_array_equal(kernel({"x": x}, {"n": 9})["y"], 3 * x)
    for inputs, extents, message in [
        ({"x": x}, {}, "expected extents"),
        ({}, {"n": 9}, "input x, found none"),
        ({"x": x}, {"n": 8}, "expected float32"),
        ({"x": x.astype(np.float64)}, {"n": 9}, "found float64"),
    ]:
        with pytest.raises(CallError, match=message):
            kernel(inputs, extents)


values = st.recursive(
    st.one_of(st.just(X), st.floats(-4, 4, width=32).map(f32), st.just(Cast("float32", I))),
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from(["add", "sub", "mul", "min", "max"]), inner, inner),
        st.builds(Unary, st.sampled_from(["neg", "abs"]), inner),
        st.builds(lambda a, b, c: Select(Binary("lt", a, b), b, c), inner, inner, inner),
    ),
    max_leaves=8,
)


@needs_cc
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(values, st.sampled_from(list(LoopKind)))
def test_any_expression_in_any_loop_kind(cache, value, kind):
    procedure = verify(elementwise(value, kind=kind))
    inputs = inputs_of(procedure, seed=3)
    # Without contraction C rounds as the interpreter does, so the comparison is exact.
    got = compiled(procedure, cache, ("-O2", "-ffp-contract=off"))(inputs)["y"]
    np.testing.assert_array_equal(got, interpret(procedure, inputs)["y"])


@pytest.mark.parametrize(
    ("procedure", "message"),
    [
        (Procedure("for", (), (), Block(())), "C leaves free, found 'for'"),
        (elementwise(X, n=10_000, kind=LoopKind.UNROLLED), "at most 2048 statements"),
        (Procedure("f", (), (tensor("kw_x", 4),), Block(())), "found 'kw_x'"),
    ],
)
def test_what_has_no_c_form_is_refused(procedure, message):
    with pytest.raises(CodegenError, match=message):
        generate(procedure)


# The build cache


@needs_cc
def test_a_build_is_reused_and_its_key_is_all_it_depends_on(tmp_path):
    cache, source = BuildCache(tmp_path), generate(matmul())
    first = cache.build(source, TOOLCHAIN, ("-O1",))
    again = cache.build(source, TOOLCHAIN, ("-O1",))
    assert (first.cached, again.cached, first.library) == (False, True, again.library)
    others = [
        cache.build(source + "\n", TOOLCHAIN, ("-O1",)),
        cache.build(source, TOOLCHAIN, ("-O2",)),
    ]
    assert len({first.library, *(b.library for b in others)}) == 3


@needs_cc
@pytest.mark.parametrize("damage", ["library", "missing", "record"])
def test_a_damaged_entry_is_built_again(tmp_path, damage):
    cache, source = BuildCache(tmp_path), generate(matmul())
    entry = cache.build(source, TOOLCHAIN, ("-O1",)).library.parent
    if damage == "library":
        data = bytearray((entry / "kernel.so").read_bytes())
        data[-1] ^= 1
        (entry / "kernel.so").write_bytes(data)
    elif damage == "missing":
        (entry / "kernel.so").unlink()
    else:
        (entry / "entry.json").write_text("{")
    again = cache.build(source, TOOLCHAIN, ("-O1",))
    assert not again.cached
    assert cache.build(source, TOOLCHAIN, ("-O1",)).cached


@needs_cc
def test_a_compiler_s_refusal_carries_its_log(tmp_path):
    with pytest.raises(BuildError, match="refused the code") as caught:
        BuildCache(tmp_path).build("void f( {", TOOLCHAIN, ())
    assert "error" in caught.value.log
    assert not [p for p in tmp_path.iterdir() if not p.name.startswith(".")]


@needs_cc
def test_flags_that_miscompile_are_refused(tmp_path):
    for flag in ("-fgraphite-identity", "-floop-nest-optimize"):
        with pytest.raises(BuildError, match="Graphite"):
            BuildCache(tmp_path).build(generate(matmul()), TOOLCHAIN, (flag,))


def test_a_missing_compiler_is_named():
    with pytest.raises(BuildError, match="expected tcc, found no such compiler"):
        find_toolchain("tcc")


def whole_values(value):
    return elementwise(value, n=4, dtype="int64")


BIG, LEAST = whole(2_000_000_000), Const(-(2**31), "int32")
LONG = Load("x", (I,))
ODD_PROGRAMS = {
    "long constants": whole_values(add(Select(Binary("lt", I, whole(2)), BIG, whole(1)), BIG)),
    "long product": whole_values(
        mul(Select(Binary("lt", I, whole(2)), whole(100_000), whole(1)), whole(100_000))
    ),
    "long negation": whole_values(Binary("sub", Unary("neg", BIG), BIG)),
    "int32 division": elementwise(
        add(Binary("floordiv", X, Const(2, "int32")), X), n=4, dtype="int32"
    ),
    "least int32": elementwise(Select(Binary("lt", LEAST, X), X, LEAST), n=4, dtype="int32"),
    "bool": elementwise(Cast("float32", Cast("bool", X)), n=4),
    "signed zeros": elementwise(Binary("min", f32(0.0), f32(-0.0)), n=4),
    "large whole": elementwise(Cast("float32", add(I, whole(2**60 + 2**36))), n=4),
    "vector int32": elementwise(
        add(Binary("floordiv", Load("x", (whole(0),)), Const(2, "int32")), X),
        n=8,
        kind=LoopKind.VECTORIZED,
        dtype="int32",
    ),
}


@needs_cc
@pytest.mark.parametrize("name", ODD_PROGRAMS)
def test_c_s_own_rules_for_numbers_do_not_leak_in(name, cache):
    procedure = verify(ODD_PROGRAMS[name])
    inputs = inputs_of(procedure)
    if name == "bool":
        inputs["x"][:] = [0.5, 0.0, 256.0, -1.0]
    got, wanted = compiled(procedure, cache)(inputs)["y"], interpret(procedure, inputs)["y"]
    np.testing.assert_array_equal(got, wanted)
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


@needs_cc
def test_the_least_number_can_be_divided_by_minus_one(cache):
    procedure = verify(elementwise(Binary("mod", X, Load("x", (whole(1),))), n=2, dtype="int64"))
    assert compiled(procedure, cache)({"x": np.array([-(2**63), -1])})["y"].tolist() == [0, 0]


@pytest.mark.parametrize("name", ["INFINITY", "NULL", "free", "expf", "linux", "f32x4", "M_PI"])
def test_names_of_headers_are_refused(name):
    procedure = Procedure("f", (), (tensor(name, 4),), Block(()))
    with pytest.raises(CodegenError, match="C leaves free"):
        generate(procedure)


def test_expressions_without_end_are_refused():
    deep = X
    for _ in range(3000):
        deep = add(deep, X)
    with pytest.raises(CodegenError, match="less than a thousand levels"):
        lower(elementwise(deep))


@needs_cc
def test_many_temporaries_do_not_fill_the_stack(cache):
    body = Store("y", (whole(0),), f32(1.0))
    for n in range(140):
        body = Allocate(
            tensor(f"t{n}", 16_000, role="temporary"),
            Block((Store(f"t{n}", (whole(0),), f32(1.0)), body)),
        )
    procedure = verify(Procedure("f", (), (tensor("y", 1, role="output"),), body))
    assert compiled(procedure, cache)({})["y"].tolist() == [1.0]


@needs_cc
def test_libraries_with_threads_stay_loaded(cache):
    procedure = verify(elementwise(mul(X, X), n=64, kind=LoopKind.PARALLEL))
    inputs = inputs_of(procedure)
    for _ in range(6):
        got = compiled(procedure, cache, ("-O2", "-fopenmp"))(inputs)["y"]
        np.testing.assert_array_equal(got, inputs["x"] * inputs["x"])


@needs_cc
@pytest.mark.parametrize("value", [2.0, "a", -1, 2**70, True])
def test_extents_that_are_no_sizes_are_refused(cache, value):
    nest = For("i", Var("n"), Store("y", (I,), X))
    procedure = verify(
        Procedure("copy", ("n",), (tensor("x", "n"), tensor("y", "n", role="output")), nest)
    )
    with pytest.raises(CallError, match="extent n"):
        compiled(procedure, cache)({"x": np.ones(1, np.float32)}, {"n": value})


@needs_cc
@pytest.mark.parametrize("obstacle", ["file", "link"])
def test_what_stands_in_an_entry_s_place_is_moved_away(tmp_path, obstacle):
    cache, source = BuildCache(tmp_path), generate(matmul())
    entry = cache.build(source, TOOLCHAIN, ("-O0",)).library.parent
    shutil.rmtree(entry)
    if obstacle == "file":
        entry.write_text("x")
    else:
        entry.symlink_to(tmp_path / "nowhere")
    assert cache.build(source, TOOLCHAIN, ("-O0",)).library.is_file()


@needs_cc
def test_builders_side_by_side_agree(tmp_path):
    cache, source = BuildCache(tmp_path), generate(matmul())
    with ThreadPoolExecutor(4) as pool:
        builds = list(pool.map(lambda _: cache.build(source, TOOLCHAIN, ("-O0",)), range(8)))
    assert len({b.library for b in builds}) == 1
    assert all(b.library.is_file() for b in builds)


def test_arrays_are_aligned():
    for _ in range(5):
        assert aligned((3, 5), "float64").ctypes.data % 64 == 0


def test_constants_are_exact():
    assert "0.1" in generate(elementwise(Const(0.1, "float32")))
    third = generate(elementwise(f32(1 / 3)))
    assert "0x1.5555555555555p-2f" in third


def test_registers_have_names_that_nothing_else_has():
    registers = {register(tensor, n) for tensor in ("at", "at_0", "x") for n in (0, 1)}
    assert len(registers) == 6
    assert not registers & {hoisted(n) for n in range(10)}
