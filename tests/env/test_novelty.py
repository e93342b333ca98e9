"""Forms: equal for one program in many spellings, and never for two programs."""

from __future__ import annotations

import importlib.util
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import add, elementwise, f32

from kernelwright.env.compiler.ir.nodes import Load, Var
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.spaces.clocals import without_names
from kernelwright.env.spaces.ctokens import UnsureError, tokens
from kernelwright.env.spaces.loopform import loop_text
from kernelwright.env.spaces.novelty import REMEMBERED, Forms, macro_form, source_form
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.types import Candidate, Directive, Knob, Language, knob_candidate

SPELLINGS = Path(__file__).resolve().parents[2] / "benchmarks" / "common" / "spellings.py"


@pytest.fixture(scope="module")
def spellings():
    spec = importlib.util.spec_from_file_location("spellings", SPELLINGS)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def texts(code):
    return [token.text for token in tokens(code)]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("a+ +b", ["a", "+", "+", "b"]),
        ("a++b", ["a", "++", "b"]),
        ("x<<=1;/* y */// z\n", ["x", "<<=", "1", ";"]),
        ("1e-5f 0x1p+3 .5 1.e+2", ["1e-5f", "0x1p+3", ".5", "1.e+2"]),
        ('"a // b" \'\\\'\' u8"c"', ['"a // b"', "'\\''", 'u8"c"']),
        ("a\\\nb", ["ab"]),
        ("#define F(x)  x\n#define F (x)", ["define F( x ) x", "define F ( x )"]),
        ("# include <a//b.h> // c\n", ["include <a//b.h>"]),
        ("#pragma  omp /* y\n z */ simd\ni", ["pragma omp simd", "i"]),
        ("a # b", ["a", "#", "b"]),
        ("#\nx", ["x"]),
    ],
)
def test_a_text_is_its_tokens(code, wanted):
    assert texts(code) == wanted


@pytest.mark.parametrize(
    "code",
    [
        *("x ??/ y", "a <% b", "%: define", "'x", '"x\n"', "/* x", "@", "é", "1'000"),
        *("__LINE__", "assert(x)", "#line 7", 'R"(x)"', "#define S(x) #x"),
    ],
)
def test_what_is_not_sure_has_no_tokens_and_its_bytes_for_a_form(code):
    with pytest.raises(UnsureError):
        tokens(code)
    assert source_form(code) != source_form(f"{code} ")
    assert source_form(code) == source_form(code)


def function(body, parameters="int a, float *restrict b"):
    return f"void f({parameters})\n{{\n{body}\n}}\n"


POINT = "struct point { int x, y; };\n"
# (one, other): the same program.
SAME = [
    (function("b[a] = 1;"), function("y[n] = 1;", "int n, float *restrict y")),
    (function("int c = a; b[c]=c;"), function("int x=a;\n\n// so\n b[x] = x;")),
    (
        function("for (int i = 0; i < a; i++) b[i] = 0; for (int i = 0; i < a; i++) b[i] = i;"),
        function("for (int i = 0; i < a; i++) b[i] = 0; for (int k = 0; k < a; k++) b[k] = k;"),
    ),
    (
        function("int i = a; { int i = 2; b[i] = 1; } b[i] = 3;"),
        function("int i = a; { int k = 2; b[k] = 1; } b[i] = 3;"),
    ),
    (
        function("for (int64_t i = 0; i < a; i++) if (i) b[i] = 1; else { int q = i; b[q] = 2; }"),
        function("for (int64_t z = 0; z < a; z++) if (z) b[z] = 1; else { int p = z; b[p] = 2; }"),
    ),
    (
        function("switch (a) { case 1: ; int c = 2; b[c] = 1; break; default: b[0] = 1; }"),
        function("switch (a) { case 1: ; int d = 2; b[d] = 1; break; default: b[0] = 1; }"),
    ),
    (
        function("do { int c = a--; b[c] = 1; } while (a);"),
        function("do { int d = a--; b[d] = 1; } while (a);"),
    ),
    (function("s.a = a; p->a = a;"), function("s.a = n; p->a = n;", "int n, float *restrict b")),
    (
        "typedef float v8 __attribute__((vector_size(32)));" + function("v8 x = {0}; b[0] = x[a];"),
        "typedef float v8 __attribute__((vector_size(32)));" + function("v8 y = {0}; b[0] = y[a];"),
    ),
    (function("float (*p)[4] = q; p[a][0] = 1;"), function("float (*r)[4] = q; r[a][0] = 1;")),
    (
        function('_Pragma("omp simd") for (int i = 0; i < a; i++) b[i] = 1;'),
        function('_Pragma("omp simd") for (int j = 0; j < a; j++) b[j] = 1;'),
    ),
    (
        "#define MIN(a, b) ((a) < (b) ? (a) : (b))\n" + function("int c = MIN(a, 4); b[c] = 1;"),
        "#define MIN(a, b) ((a) < (b) ? (a) : (b))\n" + function("int d = MIN(a, 4); b[d] = 1;"),
    ),
    (
        function("int c[] = {a, 1 ? a : 2, 3}; b[c[0]] = a ? c[1], 1 : 2;"),
        function("int d[] = {a, 1 ? a : 2, 3}; b[d[0]] = a ? d[1], 1 : 2;"),
    ),
]
# (one, other): two programs, or at least not certainly one.
OTHER = [
    (function("b[a] = 1;"), function("b[a] = 2;")),
    (function("int c = 1, d = 2; b[c] = d;"), function("int c = 1, d = 2; b[d] = c;")),
    # Which of two an inner use means.
    (
        function("int i = a; { int i = 2; b[i] = 1; }"),
        function("int i = a; { int k = 2; b[i] = 1; }"),
    ),
    # What a loop declares ends with its body, braces or not.
    (
        function("int i = 7; for (int i = 0; i < 3; i++) b[i] = 0; b[i] = 1;"),
        function("int k = 7; for (int i = 0; i < 3; i++) b[i] = 0; b[i] = 1;"),
    ),
    (
        function("int i = 7; if (a) { int i = 1; b[i] = 0; } b[i] = 1;"),
        function("int k = 7; if (a) { int i = 1; b[i] = 0; } b[i] = 1;"),
    ),
    # Two of one name in one scope are no C.
    (function("b[0] = 1;", "int c, float *b"), function("b[0] = 1;", "int b, float *b")),
    (function("int c = a; b[0] = c;"), function("int a = a; b[0] = a;")),
    (function("int c = 1; int d = 2; b[c] = d;"), function("int c = 1; int c = 2; b[c] = c;")),
    (function("int c = 1, d = 2; b[0] = d;"), function("int d = 1, d = 2; b[0] = d;")),
    # A global and a local of one name.
    (
        "int n = 3, m = 4;" + function("b[n] = 0; { int n = 1; b[n] = 1; }"),
        "int n = 3, m = 4;" + function("b[m] = 0; { int m = 1; b[m] = 1; }"),
    ),
    (
        "int n = 3, m = 4;" + function("{ int n = 1; b[n] = 1; } b[n] = 0;"),
        "int n = 3, m = 4;" + function("{ int m = 1; b[m] = 1; } b[m] = 0;"),
    ),
    # A macro may say the name.
    (
        "#define K n\n" + function("int n = a; b[K] = 1;"),
        "#define K n\n" + function("int m = a; b[K] = 1;"),
    ),
    (
        "#define P(x) q##x\n" + function("int q1 = a; b[P(1)] = 1;"),
        "#define P(x) q##x\n" + function("int q2 = a; b[P(1)] = 1;"),
    ),
    (
        function(
            "int s = 0;\n#pragma omp parallel for private(s)\nfor (int i = 0; i < a; i++) b[i] = s;"
        ),
        function(
            "int t = 0;\n#pragma omp parallel for private(s)\nfor (int i = 0; i < a; i++) b[i] = t;"
        ),
    ),
    (
        function('int s = 0; _Pragma("omp parallel private(s)") b[s] = 1;'),
        function('int t = 0; _Pragma("omp parallel private(s)") b[t] = 1;'),
    ),
    # An attribute's word is no local, nor are labels, tags and members.
    (
        function("int packed = a; float x __attribute__((packed)) = packed; b[0] = x;"),
        function("int aligned = a; float x __attribute__((aligned)) = aligned; b[0] = x;"),
    ),
    (function("int x = a; goto x; x: b[x] = 1;"), function("int y = a; goto y; y: b[y] = 1;")),
    (function("int x = a; struct x z; z.x = x;"), function("int y = a; struct y z; z.y = y;")),
    (function("s.a = a;"), function("s.n = n;", "int n, float *restrict b")),
    # A name that a header may have as a macro, and one that is called.
    (function("int I = a; b[I] = 1;"), function("int J = a; b[J] = 1;")),
    (function("int ACC = a; b[ACC] = 1;"), function("int TOP = a; b[TOP] = 1;")),
    # Blanks that mean something.
    ("#define F(x) x\n", "#define F (x) x\n"),
    (function("b[0] = a++ + 1;"), function("b[0] = a + ++ 1;")),
    ('char *s = "a  b";', 'char *s = "a b";'),
    (function("#define Q 1\nb[0] = Q;"), function("#define Q 2\nb[0] = Q;")),
    # What is not read for certain keeps its names.
    (
        function('int x = a; __asm__("" : "+r"(x)); b[x] = 1;'),
        function('int y = a; __asm__("" : "+r"(y)); b[y] = 1;'),
    ),
    (
        function("int x = ({ int q = a; q; }); b[x] = 1;"),
        function("int y = ({ int q = a; q; }); b[y] = 1;"),
    ),
    (
        "#define BEGIN {\n#define END }\n"
        + function("int i = a; BEGIN int i = 1; b[i] = 2; END b[i] = 3;"),
        "#define BEGIN {\n#define END }\n"
        + function("int i = a; BEGIN int k = 1; b[k] = 2; END b[k] = 3;"),
    ),
    (
        "#define SWAP } {\n" + function("int i = a; { int i = 1; b[i] = 2; SWAP b[i] = 3; }"),
        "#define SWAP } {\n" + function("int i = a; { int k = 1; b[k] = 2; SWAP b[k] = 3; }"),
    ),
    (
        "#define EMPTY_t\n" + function("int x = a; { EMPTY_t x = 1; } b[x] = 1;"),
        "#define EMPTY_t\n" + function("int x = a; { EMPTY_t y = 1; } b[x] = 1;"),
    ),
    (function("int n[a]; b[sizeof n] = a;"), function("int n[a]; b[sizeof a] = a;")),
    # A directive is not the word that it consists of.
    (
        function("#ifdef A\nif (a) b[0] = 1;\n#else\nb[1] = 2;\n#endif"),
        function("#ifdef A\nif (a) b[0] = 1;\nelse\nb[1] = 2;\n#endif"),
    ),
    # Members, labels and tags have names of their own, also where no dot stands before them.
    *(
        (
            f"{POINT}{head}" + function(f"int x = a; {use.format('x')} b[x] = 1;"),
            f"{POINT}{head}" + function(f"int y = a; {use.format('y')} b[y] = 1;"),
        )
        for head, use in (
            ("", "struct point p = {{{}: 1}}; b[0] = p.x;"),
            ("", "struct point p = {{1, {}: 1}}; b[0] = p.x;"),
            ("", "b[0] = __builtin_offsetof(struct point, {});"),
            ("", "b[0] = offsetof(struct point, {});"),
            ("#define AT(s, f) ((s)->f)\n", "b[0] = AT(q, {});"),
            ("#define AT(s, f) s.f\n#define TO(s, f) AT(s, f)\n", "b[0] = TO(q, {});"),
            ("#define OF(f) offsetof(struct point, f)\n", "b[0] = OF({});"),
            ("#define DOT .\n", "b[0] = q DOT {};"),
            ("#define P() q.\n", "b[0] = P() {};"),
            ("#define TAG(t) struct t\n", "b[0] = sizeof(TAG({}));"),
            ("#define JUMP(l) goto l\n", "JUMP({});"),
            ("#define THREE(a, op, b) a op b\n", "b[0] = THREE(q, ., {});"),
            ("#define ANY(...) q.__VA_ARGS__\n", "b[0] = ANY({});"),
        )
    ),
    # What one compiler takes for the end of a line is a blank to another.
    (function("b[0] = 1; // c\rb[0] = 2;"), function("b[0] = 1;")),
    # Two strokes in a header's name are no comment.
    ("#include_next <a//b>\n", "#include_next <a//c>\n"),
    ("#define H <a//b>\n#include H\n", "#define H <a//c>\n#include H\n"),
    ("#if __has_include(<a//b>)\n#endif\n", "#if __has_include(<a//c>)\n#endif\n"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_program_in_two_spellings_has_one_form(one, other):
    assert source_form(one) == source_form(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_two_programs_have_two_forms(one, other):
    assert source_form(one) != source_form(other)


def test_locals_are_numbered_by_function_in_order():
    found = without_names(
        tokens("int f(int a) { int b = a; return b; } int g(int b) { return b; }")
    )
    assert " ".join(found) == (
        "int f ( int %0 ) { int %1 = %0 ; return %1 ; } int g ( int %0 ) { return %0 ; }"
    )


def test_brackets_without_end_are_read():
    depth = 5_000
    text = function(f"b[0] = {'(' * depth}a{')' * depth};")
    assert source_form(text) == source_form(f"{text}\n")


@pytest.mark.parametrize("seed", range(4))
def test_respelled_c_is_merged_and_changed_c_is_not(spellings, seed):
    rng = random.Random(seed)
    wanted = ("matmul_goto", "softmax_online", "row_sum_pairwise", "transpose_tiles")
    known = dict(spellings.texts())
    for name in wanted:
        text = known[name]
        for _ in range(3):
            again = spellings.respaced(spellings.renamed(text, rng), rng)
            assert again != text
            assert source_form(again) == source_form(text)
            other = spellings.changed(text, rng)
            assert other == text or source_form(other) != source_form(again)


@pytest.mark.cc
def test_what_is_merged_is_one_program_to_a_compiler(spellings):
    """Functions of nested scopes over four names, some of which are globals or in a macro."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("needs gcc")

    def assembly(text):
        command = [gcc, "-S", "-O0", "-w", "-xc", "-", "-o", "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else None

    rng, merged = random.Random(2), 0
    for _ in range(16):
        alike = {}
        for text in dict.fromkeys(islice(spellings.scoped(rng), 12)):
            alike.setdefault(source_form(text), []).append(text)
        for first, *others in alike.values():
            for other in others:
                assert assembly(other) == assembly(first)
                merged += 1
    assert merged


@given(st.text(alphabet="ab1 \n;,(){}[]#\"'/*=intfor%", max_size=60))
@settings(deadline=None)
def test_no_text_breaks_a_form(text):
    assert source_form(text) == source_form(text)


SMALL = matmul(m=6, n=8, k=4)
NEST = SMALL.definition(SMALL.workloads[0])
SPACE = ScheduleSpace(NEST, threads=2, lanes=(2, 4))


def schedule(*steps):
    return Candidate(Language.SCHEDULE, tuple(Directive(op, *rest) for op, *rest in steps))


def split(loop, factor, *names):
    return ("split", loop, (factor, *names))


def test_the_order_and_the_names_of_directives_are_no_part_of_a_nest():
    forms = Forms(SPACE, SMALL)
    one = schedule(split("i", 2), split("j", 4), ("vectorize", "ji", ()))
    two = schedule(
        split("j", 4, "a", "b"), ("vectorize", "b", ()), split("i", 2, "io", "ii", "guard")
    )
    assert one.key != two.key
    assert forms.of(one) == forms.of(two)
    for other in (
        schedule(split("i", 2), split("j", 4)),
        schedule(split("i", 2), split("j", 4), ("unroll", "ji", ())),
        schedule(split("i", 2), split("j", 2), ("vectorize", "ji", ())),
        schedule(split("i", 3), split("j", 4), ("vectorize", "ji", ())),
    ):
        assert not SPACE.check(other)
        assert forms.of(other) != forms.of(one)


def test_nests_are_told_apart_as_running_them_does(spellings):
    forms, rng = Forms(SPACE, SMALL), np.random.default_rng(1)
    for pairs, same in ((spellings.same_schedules, True), (spellings.other_schedules, False)):
        for _, (one, other) in zip(range(5), pairs(SPACE, rng), strict=False):
            facts = [spellings.nest_facts(SPACE.scheduled(each)) for each in (one, other)]
            assert (forms.of(one) == forms.of(other)) is (facts[0] == facts[1])
            assert (facts[0] == facts[1]) is same


def test_a_schedule_that_is_refused_has_its_directives_for_a_form():
    forms = Forms(SPACE, SMALL)
    wrong = [schedule(split("zz", 2)), schedule(split("zz", 4)), schedule(("unroll", "zz", ()))]
    assert len({forms.of(each) for each in wrong}) == 3


def test_floating_point_is_left_in_its_order():
    x = Load("x", (Var("i"),))
    assert loop_text(elementwise(add(x, f32(1.0)))) != loop_text(elementwise(add(f32(1.0), x)))
    assert loop_text(elementwise(f32(0.0))) != loop_text(elementwise(f32(-0.0)))


def test_knobs_are_the_schedule_that_they_stand_for():
    space = SPACE
    forms = Forms(space, SMALL)
    values = dict(SMALL.unscheduled) | {"mr": 2}
    trace = Candidate(Language.SCHEDULE, SMALL.sketch(values))
    knobs = Forms(type("Knobs", (), {"knobs": SMALL.knobs, "procedure": NEST}), SMALL)
    assert knobs.of(knob_candidate(values)) == forms.of(trace)
    assert knobs.of(knob_candidate({**values, "mr": 2.0})) == forms.of(trace)
    assert knobs.of(knob_candidate({"mr": 2})) == forms.of(trace)
    assert knobs.of(knob_candidate(values | {"mr": 1})) != forms.of(trace)
    assert knobs.of(knob_candidate(values | {"outer": "x"})) != knobs.of(
        knob_candidate(values | {"outer": "columns"})
    )


def test_knobs_of_a_model_are_their_values():
    problem = gemm_gpu()
    forms = Forms(object(), problem)
    values = dict(problem.unscheduled)
    one = forms.of(knob_candidate(values))
    assert forms.of(knob_candidate({**values, "bm": float(values["bm"])})) == one
    lacking = {name: value for name, value in values.items() if name != "bm"}
    assert forms.of(knob_candidate(lacking)) == one
    assert forms.of(knob_candidate({**values, "bm": 2 * values["bm"]})) != one


def test_macros_are_the_template_and_what_differs_from_its_fallbacks():
    text = "#ifndef TM\n#define TM 4\n#endif\nint x[TM];\n"
    assert macro_form(text, {"TM": 4}) == macro_form(text, {})
    assert macro_form(text, {"TM": 8}) != macro_form(text, {})
    assert macro_form(text, {"TM": 8}) == macro_form(text, {"TM": "8"})
    assert macro_form(text, {"TM": 4}) != macro_form(text + " ", {"TM": 4})
    problem = replace(
        SMALL, template=text, knobs=(Knob("TM", (4, 8)),), unscheduled=(("TM", 4),), sketch=None
    )
    forms = Forms(object(), problem)
    assert forms.of(knob_candidate({"TM": 8})) == macro_form(text, {"TM": 8})


def test_the_oldest_forms_are_forgotten():
    forms = Forms(object(), gemm_gpu())
    for n in range(REMEMBERED + 10):
        forms.of(knob_candidate({"bm": n}))
    assert len(forms._known) == REMEMBERED


def test_a_form_does_not_depend_on_how_deep_the_caller_stands():
    def deeper(left, code):
        return deeper(left - 1, code) if left else source_form(code)

    for depth in (10, 60, 63, 64, 65, 150, 250):
        code = function(f"int c = {'(' * depth}a{')' * depth}; b[c] = 1;")
        assert deeper(0, code) == deeper(300, code)
        blocks = function(f"{'{' * depth}int c = a; b[c] = 1;{'}' * depth}")
        assert deeper(0, blocks) == deeper(300, blocks)


@pytest.mark.parametrize(
    "code",
    ["typedef int a " * 4_000, "{" * 60_000, "(" * 60_000, '"' + '\\"' * 30_000, "/* " * 20_000],
    ids=["typedefs", "braces", "brackets", "quotes", "comments"],
)
def test_a_form_takes_time_that_is_linear_in_its_text(code):
    assert source_form(code) == source_form(code)
