"""Non-temporal stores in the generated C."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from programs import f32, tensor
from test_codegen import needs_cc
from test_schedule import D

from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.codegen.stream import can_stream
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Cast,
    Const,
    For,
    Load,
    Procedure,
    Store,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import TOOLCHAINS, BuildError, find_toolchain
from kernelwright.env.compiler.schedule.trace import apply_trace

I, J = Var("i"), Var("j")  # noqa: E741


def doubled(rows, columns, dtype="float32"):
    two = f32(2.0) if dtype == "float32" else Const(2, dtype)
    if dtype == "float64":
        two = Cast("float64", f32(2.0))
    store = Store("y", (I, J), Binary("mul", Load("x", (I, J)), two))
    tensors = (
        tensor("x", rows, columns, dtype=dtype),
        tensor("y", rows, columns, dtype=dtype, role="output"),
    )
    return verify(
        Procedure("f", (), tensors, For("i", whole(rows), For("j", whole(columns), store)))
    )


def streamed(procedure, lanes, *more):
    trace = (D("vectorize", "j", lanes), D("stream_store", "y"), *more)
    return apply_trace(procedure, trace)


def test_a_vector_is_stored_past_the_caches_and_a_fence_ends_the_function():
    text = generate(streamed(doubled(4, 32), 16))
    body = text[text.index("void f(") :]
    assert "kw_stream_f32x16(y + i * 32 + jo * 16, " in body
    assert body.rstrip().endswith("kw_fence();\n}")
    # The tail of a row is stored lane by lane, and plainly.
    assert generate(streamed(doubled(4, 30), 16)).count("kw_stream_f32x16(y") == 1


def test_every_thread_has_its_fence():
    text = generate(streamed(doubled(4, 32), 16, D("parallel", "i")))
    lines = [line for line in text.splitlines() if line.strip() == "kw_fence();"]
    assert [len(line) - len(line.lstrip()) for line in lines] == [8]


def test_short_vectors_and_reductions_are_stored_plainly():
    assert not can_stream("float32", 2)
    assert can_stream("float64", 2)
    assert "kw_stream" not in generate(streamed(doubled(4, 32), 2))
    scalar = apply_trace(doubled(4, 32), (D("stream_store", "y"),))
    assert "kw_" not in generate(scalar)


# Rows of 31 and of 36 elements begin at all alignments and at some.
@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize("columns", [31, 36])
@pytest.mark.parametrize(
    ("dtype", "lanes"), [("float32", 4), ("float32", 32), ("float64", 8), ("int32", 16)]
)
def test_the_values_are_the_same_on_every_target(tmp_path, columns, dtype, lanes):
    procedure = doubled(5, columns, dtype)
    x = np.arange(5 * columns).reshape(5, columns).astype(dtype)
    wanted = interpret(procedure, {"x": x})["y"]
    cache = BuildCache(tmp_path)
    after = streamed(procedure, lanes)
    for flags in (("-O2", "-march=native"), ("-O2", "-mno-avx"), ("-O2", "-mavx", "-mno-avx512f")):
        got = compile_procedure(after, cache=cache, flags=flags)({"x": x})["y"]
        np.testing.assert_array_equal(got, wanted)


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize("name", sorted(TOOLCHAINS))
def test_every_compiler_understands_them(tmp_path, name):
    try:
        find_toolchain(name)
    except BuildError:
        pytest.skip(f"{name} is not here")
    procedure = doubled(6, 48)
    x = np.arange(6 * 48, dtype=np.float32).reshape(6, 48)
    kernel = compile_procedure(
        streamed(procedure, 16, D("parallel", "i")), cache=BuildCache(tmp_path), toolchain=name
    )
    np.testing.assert_array_equal(kernel({"x": x})["y"], 2 * x)


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize("lanes", [8, 16, 32])
def test_no_address_is_taken_to_be_rounder_than_it_is(lanes, tmp_path):
    """Every load and store is tested where it runs; a wrong one traps."""
    text = generate(streamed(doubled(3, lanes + 1), lanes))
    size = 3 * (lanes + 1)
    start = f"""
    int main(void) {{
        static float x[{size}], y[{size}] __attribute__((aligned(64)));
        f(x, y);
        return 0;
    }}
    """
    flags = ("-O1", "-march=native", "-fsanitize=alignment", "-fsanitize-undefined-trap-on-error")
    (tmp_path / "f.c").write_text(text + start)
    build = ("gcc", *flags, "-o", str(tmp_path / "f"), str(tmp_path / "f.c"), "-lm")
    subprocess.run(build, check=True)
    subprocess.run([str(tmp_path / "f")], check=True)
