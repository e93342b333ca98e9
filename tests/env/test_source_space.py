from __future__ import annotations

import re

import numpy as np
import pytest

from kernelwright.env.options import OptionError
from kernelwright.env.spaces.source import MAX_BYTES, SourceSpace
from kernelwright.env.types import Candidate, Language, knob_candidate

TEXT = """#include <stdint.h>
// region helpers
// endregion helpers

void row_sum(const float *restrict x, float *restrict y, int64_t m, int64_t n)
{
    // region body
    for (int64_t i = 0; i < m; i++) {
        y[i] = 0;
        for (int64_t j = 0; j < n; j++) y[i] += x[i * n + j];
    }
    // endregion body
}
"""
SPACE = SourceSpace(TEXT, entry="row_sum", regions=("helpers", "body"))


def source(text):
    return Candidate(Language.SOURCE, text)


def refusal(space, text):
    (violation,) = space.check(source(text))
    return violation.code, violation.reason


def test_the_start_is_in_the_space_and_is_what_a_sample_gives():
    assert SPACE.default == source(TEXT)
    assert SPACE.check(SPACE.default) == ()
    rng = np.random.default_rng(0)
    assert SPACE.sample(rng) == SPACE.default
    assert SPACE.canonical(SPACE.default) == SPACE.default
    assert not SPACE.can_sample
    assert SPACE.language is Language.SOURCE


def test_nothing_is_moved_without_a_writer():
    rng = np.random.default_rng(0)
    assert SPACE.mutate(SPACE.default, rng) is None
    assert SPACE.crossover(SPACE.default, SPACE.default, rng) is None
    assert SPACE.neighbours(SPACE.default) == ()


def test_regions_are_read_and_replaced():
    assert SPACE.region(SPACE.default, "helpers") == ""
    assert SPACE.region(SPACE.default, "body").startswith("    for (int64_t i")
    changed = SPACE.splice({"body": "    y[0] = 1;", "helpers": "static int one;\n"})
    assert SPACE.check(changed) == ()
    assert SPACE.region(changed, "body") == "    y[0] = 1;\n"
    assert SPACE.region(changed, "helpers") == "static int one;\n"
    assert SPACE.splice({}) == SPACE.default
    again = {name: SPACE.region(changed, name) for name in SPACE.regions}
    assert SPACE.splice(again) == changed


def test_the_last_line_stays_as_it_is():
    for end in ("", "\n", "\n\n"):
        text = TEXT.rstrip("\n") + end
        space = SourceSpace(text, entry="row_sum", regions=("body",))
        assert space.splice({}).payload == text
        assert space.splice({"body": "y[0] = 0;"}).payload.endswith("}" + end)


def test_unknown_regions_are_refused_by_name():
    with pytest.raises(ValueError, match="one of the regions helpers, body, found 'bodi'"):
        SPACE.splice({"bodi": ""})
    with pytest.raises(ValueError, match="one of the regions helpers, body"):
        SPACE.region(SPACE.default, "tail")


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        (("#include <stdint.h>", "#include <math.h>"), "outside_regions", "line 1: .*stdint.*math"),
        (("\n{\n", "\n{ \n"), "outside_regions", r"line 6: outside the regions expected '\{'"),
        (("// endregion body\n}\n", "// endregion body\n}\nint x;\n"), "outside_regions", "int x"),
        (("// endregion body\n}\n", "// endregion body\n}"), "outside_regions", "found nothing"),
        (("    // endregion body\n", ""), "regions", "expected a line // endregion body"),
        (("// region helpers\n", ""), "regions", "line 2: expected no endregion"),
        (("// region helpers\n// endregion helpers\n", ""), "regions", "// region helpers, found"),
        (("y[i] = 0;", "y[i] = 0;\n// region body"), "regions", "expected endregion body"),
        (
            ("// endregion helpers\n", "// endregion helpers\n" * 2),
            "regions",
            "line 4: expected no endregion, found endregion helpers",
        ),
        (
            ("// endregion body\n", "// endregion body\n// region body\n// endregion body\n"),
            "regions",
            "region body stands twice",
        ),
    ],
)
def test_what_is_outside_the_regions_stays_byte_for_byte(change, code, reason):
    text = TEXT.replace(*change, 1)
    assert text != TEXT
    found = refusal(SPACE, text)
    assert found[0] == code
    assert re.search(reason, found[1])


def test_any_text_goes_into_a_region():
    for text in ("", "\n", "}}}", "// region other\n", "\f\x0b\x1c weird\n", "/* é */"):
        assert SPACE.check(SPACE.splice({"body": text})) == ()


def test_without_regions_the_whole_text_may_change():
    space = SourceSpace(TEXT, entry="row_sum")
    assert space.regions == ()
    assert space.check(source("void row_sum(float *y) { *y = 0; }")) == ()


@pytest.mark.parametrize(
    "text",
    [
        "void row_sum(const float *x, float *y) { }",
        "__attribute__((flatten)) void row_sum(\n    float *y,\n    long n\n)\n{\n}",
        'static const char *s = "{;";\nvoid row_sum (float y[static 4]) { }',
        "void g(void);\nint c = ';';\nvoid row_sum(float *y) /* { */ { g(); }",
    ],
)
def test_a_definition_of_the_entry_is_found(text):
    assert SourceSpace(TEXT, entry="row_sum").check(source(text)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "void row_sum(const float *x, float *y);",
        "void my_row_sum(float *y) { }",
        "void row_sum2(float *y) { }",
        "// void row_sum(float *y) { }\nint x;",
        "/* void row_sum(float *y) { } */",
        'const char *s = "void row_sum(float *y) { }";',
        "void other(void) { row_sum(y); }",
        "int row_sum;",
    ],
)
def test_a_text_that_does_not_define_the_entry_is_refused(text):
    code, reason = refusal(SourceSpace(TEXT, entry="row_sum"), text)
    assert code == "no_entry"
    assert "row_sum" in reason


@pytest.mark.parametrize(
    "text",
    [
        "int x = 1'000'000; void f(int n) { }",
        "int x = 0x1'F, y = 'a'; void f(int n) { }",
        "void f\\\n(int n) { }",
        "void f(int n) \\  \n{ }",
        "void f(struct {int a;} *p) { }",
        "void f(int n, void (*g)(int)) { }",
        "void (f)(int n) { }",
        "void f(n) int n; { }",
        "void f(int n) <% %>",
        "__attribute__((noinline))\nvoid f(int n) __attribute__((cold))\n{ }",
        "#define BODY {\nvoid f(int n) BODY }",
        "void f(int n)\n#ifdef X\n{ }\n#else\n{ }\n#endif",
        "#ifdef X\nvoid f(int n,\n#else\nvoid f(\n#endif\nint m) { }",
        "#define KERNEL(name) void name(int n)\nKERNEL(f) { }",
        "#define NAME f\nvoid NAME(int n) { }",
        "#define PASTE(a, b) a ## b\nvoid PASTE(, f)(int n) { }",
        '#include "/somewhere/kernel.c"',
        'void g(int n) { }\ntypeof(g) f __attribute__((alias("g")));',
        "#error don't\nvoid f(int n) { }",
        "#if 0\nit's\n#endif\nvoid f(int n) { }",
        "int g(void) { return f(1); }\nvoid f(int n) { }",
    ],
)
def test_what_may_be_a_definition_is_the_compiler_s_to_say(text):
    assert SourceSpace("void f(int n) { }", entry="f").check(source(text)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "int g(void) { if (f(1)) { } }",
        "int g(void) { while (f(1)) { } }",
        "int g(void) { return f(1); }",
        "int g(void) { int a = f(1) + 2, b[] = {f(1), 2}; }",
        "int g(void) { switch (f(1)) { case 1: { } } }",
        "int g(void) { return f(f(1)) ? f(2) : 3; }",
        "void f(int n), g(int n) { }",
        "#define N 4\nint g(void) { if (f(N)) { } }",
        "int x = 1'0; // void f(int n) { }",
        'const char *s = "\\\n void f(int n) { }";',
        "// a comment that goes on \\\nvoid f(int n) { }",
        "x.f = 1;",
    ],
)
def test_what_is_clearly_no_definition_is_refused(text):
    assert refusal(SourceSpace("void f(int n) { }", entry="f"), text)[0] == "no_entry"


@pytest.mark.parametrize("piece", ["f(", "f()", "(", "#define M(", "M(f)", "\n", "'", "/*", "a f "])
def test_no_text_takes_long_to_look_through(piece):
    """Quadratic patterns would take minutes here."""
    space = SourceSpace("void f(int n) { }", entry="f")
    text = "#define M(x) x\n" + piece * ((MAX_BYTES - 32) // len(piece))
    nested = "f(" * 15_000 + ")" * 15_000
    for each in (text, nested):
        assert {violation.code for violation in space.check(source(each))} <= {"no_entry"}


def test_size_and_language_have_limits():
    code, reason = refusal(SPACE, TEXT + "é" * (MAX_BYTES // 2))
    assert code == "too_long"
    assert str(MAX_BYTES) in reason
    assert SPACE.check(SPACE.splice({"body": "y[0] = 1;" * 2000})) == ()
    assert SPACE.check(knob_candidate({"a": 1}))[0].code == "language"
    with pytest.raises(ValueError, match="expected a source candidate"):
        SPACE.features(knob_candidate({"a": 1}))


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (TEXT, {"entry": "row_max"}, "a definition of the function row_max"),
        (TEXT, {"entry": "row_sum", "regions": ("tail",)}, "// region tail"),
        (TEXT, {"entry": "row_sum", "regions": ("body", "body")}, "each name once"),
        ("", {"entry": "row_sum"}, "expected C text"),
        (TEXT + " " * MAX_BYTES, {"entry": "row_sum"}, "bytes"),
    ],
)
def test_a_start_that_is_none_is_refused(text, options, reason):
    with pytest.raises(OptionError, match=reason):
        SourceSpace(text, **options)


def test_features_count_what_is_code():
    plain = SPACE.features(SPACE.default)
    assert np.isfinite(plain).all()
    comment = SPACE.features(SPACE.splice({"helpers": "/* for (;;) if */"}))
    assert (comment[2:] == plain[2:]).all()
    more = SPACE.features(SPACE.splice({"helpers": "#pragma GCC ivdep\nfor if while"}))
    assert (more > plain).sum() >= 4
    assert len(more) == len(plain)
