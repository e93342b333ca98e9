"""Edits: lines are found however they are misquoted, and what is not certain is refused."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.agents.edit_blocks import MOST_EDITS, Edit, Misfit, has_edits, read_edits
from kernelwright.agents.edits import apply_edits, regions_of
from kernelwright.agents.lines import without_comments

COMMON = Path(__file__).resolve().parents[2] / "benchmarks" / "common"
TEXT = """#include <math.h>
// region body
void f(const float *x, float *y, int n)
{
    /* one row */
    float sum = 0;
    for (int i = 0; i < n; i++) {
        // add up
        sum += x[i];
    }
    for (int i = 0; i < n; i++)
        y[i] = x[i] / sum;
}
// endregion body
int tail;
"""


def block(*pairs):
    return "".join(
        f"<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n" for search, replace in pairs
    )


def edited(*pairs, text=TEXT, regions=None):
    edits = read_edits(block(*pairs))
    assert not isinstance(edits, Misfit), edits
    return apply_edits(text, edits, regions)


def test_a_block_is_read_as_its_edits():
    assert read_edits(block(("a\nb\n", "c\n"), ("d\n", ""))) == (
        Edit(("a", "b"), ("c",)),
        Edit(("d",), ()),
    )
    assert read_edits("kernel.c\n<<<<<<<\na\n====\n=====\nb\n>>>>>>>>>\n") == (
        Edit(("a", "===="), ("b",)),
    )
    assert has_edits("x\n <<<<<<< SEARCH\n")
    assert not has_edits("x << 3;\n\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", f"expected 1 to {MOST_EDITS} edits, found 0"),
        ("x = 1;\n", "line 1: expected a line <<<<<<< SEARCH, found x = 1;"),
        ("<<<<<<< SEARCH\na\n", "edit 1: expected a line =======, found none"),
        ("<<<<<<< SEARCH\na\n=======\nb\n", "edit 1: expected a line >>>>>>> REPLACE, found none"),
        ("<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", "line 3: expected a line ======="),
        ("<<<<<<< SEARCH\n<<<<<<< SEARCH\n", "line 2: expected a line ======="),
        ("<<<<<<< SEARCH\n=======\n=======\n", "line 3: expected a line >>>>>>> REPLACE"),
        ("<<<<<<< SEARCH\n=======\n<<<<<<< SEARCH", "line 3: expected a line >>>>>>> REPLACE"),
        (block(*[("a\n", "b\n")] * 33), "expected 1 to 32 edits, found 33"),
        ("--- a/f.c\n+++ b/f.c\n@@ -1 +1 @@\n-x = 1;\n", "line 4: expected a line <<<<<<< SEARCH"),
    ],
)
def test_a_block_that_is_no_list_of_edits_says_where(text, reason):
    found = read_edits(text)
    assert isinstance(found, Misfit)
    assert found.kind == "malformed"
    assert found.reason.startswith(reason)


LINE, NEW = "        sum += x[i];\n", "        sum += 2 * x[i];\n"
WANTED = TEXT.replace("sum += x[i]", "sum += 2 * x[i]")


@pytest.mark.parametrize(
    ("search", "replace"),
    [
        (LINE, NEW),
        ("sum += x[i];  \n", "sum += 2 * x[i];  \n"),
        ("\n\tsum+=x[ i ];\n\n", "\n\tsum += 2 * x[i];\n\n"),
        # Lines around stay as the text has them.
        (
            "for (int i = 0; i < n; i++) {\n    // sum\n    sum += x[i];\n",
            "for (int i = 0; i < n; i++) {\n    // sum\n    sum += 2 * x[i];\n",
        ),
        (
            "float sum = 0;\nfor (int i = 0; i < n; i++)\n{\n  sum += x[i];\n}\n",
            "float sum = 0;\nfor (int i = 0; i < n; i++)\n{\n  sum += 2 * x[i];\n}\n",
        ),
        # A line left out, and another variable.
        (
            "    float sum = 0;\n        sum += x[i];\n",
            "    float sum = 0;\n        sum += 2 * x[i];\n",
        ),
        (
            "    float total = 0;\n    for (int i = 0; i < n; i++) {\n" + LINE,
            "    float total = 0;\n    for (int i = 0; i < n; i++) {\n" + NEW,
        ),
        # A part of a line.
        ("sum += x[i]\n", "sum += 2 * x[i]\n"),
    ],
)
def test_lines_are_found_however_they_are_quoted(search, replace):
    found = edited((search, replace))
    assert isinstance(found, str), found
    assert "".join(without_comments(found).split()) == "".join(without_comments(WANTED).split())


def test_what_takes_their_place_is_moved_to_where_they_stand():
    found = edited(("sum += x[i];\n", "float v = x[i];\nif (v > 0) {\n    sum += v;\n}\n"))
    assert (
        "        float v = x[i];\n        if (v > 0) {\n            sum += v;\n        }\n" in found
    )


def test_lines_are_put_in_and_taken_out():
    above = edited(("    float sum = 0;\n", "    int k = 0;\n    float sum = 0;\n"))
    assert above == TEXT.replace("    float sum", "    int k = 0;\n    float sum")
    below = edited(("    float sum = 0;\n", "    float sum = 0;\n    int k = 0;\n"))
    assert below == TEXT.replace("sum = 0;\n", "sum = 0;\n    int k = 0;\n")
    assert edited((LINE, "")) == TEXT.replace(LINE, "")


def test_edits_are_of_the_text_as_it_was_shown_in_any_order():
    one, two = (LINE, NEW), ("    float sum = 0;\n", "    float sum = 1;\n")
    assert edited(one, two) == edited(two, one) == WANTED.replace("sum = 0", "sum = 1")
    # The first makes lines that the second would find.
    again = edited(("float sum = 0;\n", "float sum = 0;\nsum += x[i];\n"), (LINE, NEW))
    assert again.count("sum += 2 * x[i]") == again.count("sum += x[i]") == 1


@pytest.mark.parametrize(
    ("pairs", "kind", "reason"),
    [
        ([("\n", "x;\n")], "empty", "edit 1: expected lines of the parent"),
        ([(LINE, " sum  += x[i];\n")], "idle", "edit 1: expected a change"),
        ([("}\n", "}}\n")], "several", "found them at lines 10, 13"),
        ([("i < n\n", "i < 3\n")], "several", "found them at lines 7, 11"),
        ([("product *= x[i];\n", "x;\n")], "nowhere", "nearest are line 9: 'sum += x[i];'"),
        ([("float sum = 0;\n...\n" + LINE, NEW)], "elided", "found '...'"),
        ([(LINE, "// ... the rest as before\n" + NEW)], "elided", "every line written out"),
        ([("float sum = 0;\n/* existing code */\n" + LINE, NEW)], "elided", "existing code"),
        (
            [(LINE, NEW), ("sum += x[i];\n}\n", "}\n")],
            "overlap",
            "edits 1 and 2 change line 9 both",
        ),
        (
            [
                (
                    "float total = 0;\nfor (int i = 0; i < n; i++) {\n" + LINE,
                    "float total = 0;\nfor (int i = 0; i < n; i++) {\ntotal += 1;\n",
                )
            ],
            "unknown_name",
            "'total' does not occur",
        ),
        (
            [("float sum = 0;\nsum += x[i];\n", "")],
            "unshown",
            "some in between are left out, near line 6",
        ),
    ],
)
def test_what_does_not_fit_says_why(pairs, kind, reason):
    found = edited(*pairs)
    assert isinstance(found, Misfit), found
    assert found.kind == kind
    assert reason in found.reason


def test_a_misfit_is_of_a_known_kind():
    with pytest.raises(ValueError, match="expected one of malformed"):
        Misfit("odd", "x")


def test_nothing_outside_the_regions_is_changed():
    regions = regions_of(TEXT, ("body", "none"))
    assert [(r.name, r.opened, r.closed) for r in regions] == [("body", 1, 13)]
    assert edited((LINE, NEW), regions=regions) == WANTED
    for outside in (
        ("#include <math.h>\n", "#include <stdio.h>\n"),
        ("int tail;\n", "int tail;\nint more;\n"),
        ("// region body\n", "int more;\n// region body\n"),
        ("// endregion body\n", ""),
        ("}\n// endregion body\nint tail;\n", "}\n// endregion body\n"),
    ):
        found = edited(outside, regions=regions)
        assert isinstance(found, Misfit)
        assert found.kind == "outside"
        assert "outside the regions body" in found.reason
    first = edited(("// region body\n", "// region body\nint more;\n"), regions=regions)
    assert first == TEXT.replace("// region body\n", "// region body\nint more;\n")
    last = edited(("}\n// endregion body\n", "}\nint more;\n// endregion body\n"), regions=regions)
    assert last == TEXT.replace("// endregion", "int more;\n// endregion")


def test_one_edit_that_does_not_fit_leaves_the_others_undone():
    found = edited((LINE, NEW), ("nothing like it\n", "x\n"))
    assert isinstance(found, Misfit)
    assert found.reason.startswith("edit 2: ")


@pytest.fixture(scope="module")
def corpus():
    """The cases of the benchmark, a few of each kind."""
    before = set(sys.modules)
    out = []
    for name in ("spellings", "misquotes"):
        spec = importlib.util.spec_from_file_location(name, COMMON / f"{name}.py")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        out.append(module)
    yield out
    for name in {"spellings", "misquotes"} - before:
        del sys.modules[name]


def test_misquoted_lines_are_found_and_never_taken_for_others(corpus):
    spellings, misquotes = corpus
    texts = [text for _, text in spellings.texts()]
    right = able = 0
    for case in misquotes.cases(texts, 8, random.Random(3)):
        found = apply_edits(case.text, (case.edit,))
        if isinstance(found, Misfit):
            assert case.kind != "indentation"
        else:
            assert misquotes.is_wanted(case, found), case
            right += 1
        able += case.wanted is not None
    assert right >= 0.95 * able > 50


def test_lines_that_are_all_alike_are_not_mistaken_for_each_other(corpus):
    rng = random.Random(5)
    texts = [corpus[1].repetitive(rng) for _ in range(12)]
    for case in corpus[1].cases(texts, 8, rng):
        found = apply_edits(case.text, (case.edit,))
        assert isinstance(found, Misfit) or corpus[1].is_wanted(case, found), case


MARKS = ["<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", *TEXT.split("\n")]


@given(st.lists(st.sampled_from(MARKS), max_size=14).map("\n".join))
@settings(deadline=None)
def test_no_block_breaks_the_reader(text):
    edits = read_edits(text)
    if not isinstance(edits, Misfit):
        found = apply_edits(TEXT, edits, regions_of(TEXT, ("body",)))
        if isinstance(found, str):
            assert found.startswith("#include <math.h>\n// region body\n")
            assert found.endswith("// endregion body\nint tail;\n")


LONG = "void f(float *y)\n{\n" + "    y[0] = 1;\n" * 4000 + "}\n"


@pytest.mark.parametrize(
    ("text", "search"),
    [
        (LONG, ("    y[0] = 1;",) * 499 + ("    z();",)),
        ("a " * 30_000 + "\n", ("a " * 250,) * 499 + ("b",)),
        ("ab" * 30_000 + "\nx\n", ("ab" * 29_000 + "q", "x")),
        ("/* " * 20_000 + "\n", ("/* " * 20_000 + "x",)),
        ('"' + '\\"' * 30_000 + "\n", ("q", "r")),
        (LONG, ("/" * 60_000,)),
    ],
    ids=["lines", "words", "characters", "comments", "quotes", "slashes"],
)
def test_no_edit_takes_longer_to_look_for_than_its_text_is_long(text, search):
    found = apply_edits(text, [Edit(search, ("c;",))])
    assert isinstance(found, Misfit)
    assert found.kind == "nowhere"


def test_a_place_among_thousands_is_several():
    found = apply_edits(LONG, [Edit(("y[0] = 1;",) * 300, ("y[0] = 2;",) * 300)])
    assert found.kind == "several"
    assert "lines 3, 4, 5, 6, 7, 8, 9, 10;" in found.reason


@pytest.mark.parametrize("side", ["x;\n" * 501, "x" * 65_537 + "\n"], ids=["lines", "characters"])
def test_an_edit_of_a_whole_book_is_refused(side):
    for block in (
        f"<<<<<<< SEARCH\n{side}=======\ny;\n>>>>>>> REPLACE",
        f"<<<<<<< SEARCH\nx;\n=======\n{side}>>>>>>> REPLACE",
    ):
        found = read_edits(block)
        assert found.kind == "malformed"
        assert "edit 1: expected at most 500 lines" in found.reason


def test_a_comment_that_is_not_closed_is_none():
    assert without_comments("a /* b */ c /* d\ne */ f /* g") == "a   c  \n f /* g"
    assert without_comments("x = '/*'; // y */\n/*/ z */") == "x = '/*';  \n "
