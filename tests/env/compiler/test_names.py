"""Names that C leaves free, and the names that new loops get."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import add, f32, matmul, mul, tensor

from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.names import is_free, is_free_function
from kernelwright.env.compiler.ir.nodes import Block, For, Load, Procedure, Store, Var, loops
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure, lower
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import TOOLCHAINS, BuildError, find_toolchain
from kernelwright.env.compiler.schedule.moves import spell
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, parse_trace
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.types import Candidate, Language

HEADERS = "".join(f"#include <{h}.h>\n" for h in ("math", "stdint", "stdlib", "string"))


def twice(loop="d", name="f", x="x", y="y"):
    body = Store(y, (Var(loop),), mul(Load(x, (Var(loop),)), f32(2.0)))
    tensors = (tensor(x, 16), tensor(y, 16, role="output"))
    return Procedure(name, (), tensors, For(loop, whole(16), body))


def added(outer, inner):
    """Two loops of any names around one store."""
    value = add(Load("x", (Var(outer), Var(inner))), f32(1.0))
    body = For(inner, whole(8), Store("y", (Var(outer), Var(inner)), value))
    tensors = (tensor("x", 8, 8), tensor("y", 8, 8, role="output"))
    return Procedure("f", (), tensors, For(outer, whole(8), body))


def directives(text):
    return parse_trace(text)


def names(procedure):
    return [loop.var for loop in loops(procedure)]


def preprocessed(name, text, *flags):
    try:
        found = find_toolchain(name)
    except BuildError:
        pytest.skip(f"no {name} on this machine")
    command = [*found.command, "-std=gnu11", "-E", *flags, "-x", "c", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.cc
@pytest.mark.parametrize("compiler", TOOLCHAINS)
def test_no_procedure_hides_what_its_headers_declare(compiler):
    text = preprocessed(compiler, HEADERS, "-P")
    functions = set(re.findall(r"\b([a-z]\w*) \(", text))
    assert {"round", "pow", "div", "select", "random", "index"} <= functions
    types = set(re.findall(r"^typedef [^;{}()]*?(\w+)(?:\[[^;]*\])?;", text, re.MULTILINE))
    assert {"int64_t", "size_t"} <= types
    macros = set(re.findall(r"#define (\w+)", preprocessed(compiler, HEADERS, "-dM")))
    assert {"isnan", "M_PI"} <= macros
    left = {name for name in functions | types | macros if is_free_function(name)}
    assert not left


@pytest.mark.cc
@pytest.mark.parametrize("compiler", TOOLCHAINS)
def test_no_loop_or_tensor_has_the_name_of_a_macro(compiler):
    defined = preprocessed(compiler, HEADERS, "-dM")
    plain = set(re.findall(r"#define (\w+)(?!\w|\()", defined))
    assert {"NULL", "linux"} <= plain
    # A name of one or two capitals is too good to lose, and these headers define none.
    assert not {name for name in plain if is_free(name)}


@pytest.mark.parametrize(
    "name", ["round", "pow", "div", "select", "random", "y0", "memset", "size_t", "_init", "main"]
)
def test_a_procedure_with_a_name_of_the_library_has_no_c_form(name):
    with pytest.raises(CodegenError, match=f"C leaves free, found '{name}'"):
        generate(twice(name=name))


@pytest.mark.parametrize("name", ["_Bool", "__restrict", "_Float32", "_", "__x", "int"])
def test_words_of_the_compiler_are_no_names(name):
    assert is_free(name) == (name == "_")


@pytest.mark.cc
@pytest.mark.parametrize("compiler", TOOLCHAINS)
def test_what_only_the_library_calls_so_may_be_a_tensor_or_loop(compiler, tmp_path):
    procedure = twice("index", "scale", x="gamma", y="y0")
    try:
        kernel = compile_procedure(procedure, cache=BuildCache(tmp_path), toolchain=compiler)
    except BuildError as error:
        if "no such compiler" not in str(error):
            raise
        pytest.skip(f"no {compiler} on this machine")
    values = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(kernel({"gamma": values})["y0"], 2 * values)


@pytest.mark.parametrize("name", ["int", "NULL", "f32x4", "kw_x", "M_PI", "free", "do"])
@pytest.mark.parametrize("text", ["split('d', 4, '{}')", "split('d', 4, 'a', '{}')"])
def test_a_new_loop_has_no_name_of_c(name, text):
    trace = directives(text.format(name))
    with pytest.raises(ScheduleError, match=f"C leaves free, found '{name}'"):
        apply_trace(twice(), trace)
    (violation,) = ScheduleSpace(twice()).check(Candidate(Language.SCHEDULE, trace))
    assert violation.code == "illegal_directive"


def test_a_fused_loop_has_no_name_of_c():
    with pytest.raises(ScheduleError, match="C leaves free, found 'int'"):
        apply_trace(added("i", "j"), directives("fuse('i', 'j', 'int')"))


@pytest.mark.parametrize(
    ("loop", "text", "found"),
    [
        ("i", "split('i', 4)", ["io", "ii"]),
        ("d", "split('d', 4)", ["d_o", "di"]),
        ("d", "split('d', 4, '', 'b')", ["d_o", "b"]),
        ("d", "split('d', 4)\nsplit('d_o', 2)", ["d_oo", "d_oi", "di"]),
        ("i", "split('i', 4, 'ii')", ["ii", "i_i"]),
        ("i", "split('i', 4, 'ii', '')", None),
    ],
)
def test_halves_are_named_after_their_loop(loop, text, found):
    if found is None:
        with pytest.raises(ScheduleError, match="expected a free name"):
            apply_trace(twice(loop), directives(text))
    else:
        assert names(apply_trace(twice(loop), directives(text))) == found


@pytest.mark.parametrize(
    ("outer", "inner", "text", "found"),
    [
        ("i", "io", "split('i', 4)", ["i_o", "ii", "io"]),
        ("i", "ii", "split('i', 4)", ["io", "i_i", "ii"]),
        ("x_", "x_o", "split('x_', 4)", ["x__o", "x_i", "x_o"]),
        ("i", "j", "fuse('i', 'j')", ["i_j"]),
        ("int64", "t", "fuse('int64', 't')", ["loop_int64_t"]),
        ("kw", "q", "fuse('kw', 'q')", ["loop_kw_q"]),
        ("N", "M", "fuse('N', 'M')", ["loop_N_M"]),
        ("d", "e", "tile('d', 'e', 4, 2)", ["d_o", "eo", "di", "ei"]),
    ],
)
def test_a_name_that_is_not_free_gives_way_to_another(outer, inner, text, found):
    procedure = apply_trace(added(outer, inner), directives(text))
    assert names(procedure) == found
    lower(added(outer, inner), directives(text))


def test_every_further_name_is_taken_in_turn():
    taken = ["io", "i_o", "loop_i_o", "loop_i_o2"]
    items = [
        For("i", whole(8), Store("y", (Var("i"),), f32(1.0))),
        *(For(name, whole(8), Store("y", (Var(name),), f32(1.0))) for name in taken),
    ]
    procedure = verify(Procedure("f", (), (tensor("y", 8, role="output"),), Block(tuple(items))))
    found = apply_trace(procedure, directives("split('i', 4)"))
    assert names(found)[:2] == ["loop_i_o3", "ii"]


def test_a_tile_keeps_its_names_or_is_refused():
    with pytest.raises(ScheduleError, match="expected a free name for a loop, found 'io'"):
        apply_trace(added("i", "io"), directives("tile('i', 'io', 2, 2)"))


LOOPS = st.sampled_from(["i", "io", "ii", "i_o", "d", "di", "j"])
GIVEN = st.sampled_from(["", "i", "io", "ii", "i_o", "i_i", "do", "d_o", "di", "i_j", "x"])


@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(
    st.lists(LOOPS, min_size=2, max_size=2, unique=True),
    st.sampled_from(["split", "fuse", "tile"]),
    st.lists(GIVEN, max_size=2),
)
def test_every_spelling_of_a_directive_is_the_same_program(pair, op, given_names):
    start = added(*pair)
    shown = "".join(f", {name!r}" for name in given_names)
    text = {
        "split": f"split({pair[0]!r}, 2{shown})",
        "fuse": f"fuse({pair[0]!r}, {pair[1]!r}{''.join(shown.partition(', ')[1:])})",
        "tile": f"tile({pair[0]!r}, {pair[1]!r}, 2, 4)",
    }[op]
    (directive,) = directives(text)
    try:
        found = apply(start, directive)
    except ScheduleError:
        return
    spelled = spell(directive)
    assert apply_trace(start, spelled) == found
    assert tuple(each for d in spelled for each in spell(d)) == spelled
    assert generate(found)


def test_names_that_are_free_stay_as_they_were():
    trace = directives("tile('i', 'j', 2, 4)\nsplit('k', 3)\nfuse('i0', 'j0')")
    expected = ["i0_j0", "io", "jo", "ko", "ki", "ii", "ji"]
    assert names(apply_trace(matmul(), trace)) == expected
