"""What a model writes becomes the candidate it meant, or says what is wrong with it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import ChatRequest, Malformed
from kernelwright.agents.dialects import DIALECTS, dialect_for
from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.dialects.schedule import IN_FULL, Schedule, directive_help
from kernelwright.agents.dialects.source import Source, prototype
from kernelwright.agents.programmer.knobtext import obeys, read_choices, read_rules
from kernelwright.agents.programmer.reading import read_prompt
from kernelwright.agents.sheet import lasting_values
from kernelwright.env.compiler.schedule import DIRECTIVES
from kernelwright.env.options import OptionError
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.program import definition_of
from kernelwright.env.spaces.schedule import ProgramSpace, ScheduleSpace
from kernelwright.env.spaces.schedule.template import from_knobs, template_program
from kernelwright.env.spaces.source import SourceSpace
from kernelwright.env.types import Candidate, Directive, Language
from kernelwright.prompts.render import render

KNOBS = {"bm": 64, "bn": 64, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}


def dialect(worlds, name):
    return dialect_for(worlds[name].space, worlds[name].problem)


def refused(dialect, reply):
    found = dialect.parse(reply)
    assert isinstance(found, Malformed), found
    return found.kind, found.reason


@pytest.mark.parametrize("name", ["knobs", "schedule", "source", "regions"])
def test_what_is_shown_reads_back_as_the_same_candidate(worlds, name):
    spoken, space = dialect(worlds, name), worlds[name].space
    rng = np.random.default_rng(3)
    shown = [spoken.start()] + [space.sample(rng) for _ in range(20)] * space.can_sample
    for candidate in shown:
        reply = f"Here it is.\n\n{fenced(spoken.show(candidate), spoken.fence)}\n"
        assert spoken.parse(reply) == candidate
        assert "\n" not in spoken.brief(candidate)


@pytest.mark.parametrize("name", ["knobs", "schedule", "source", "regions"])
def test_a_search_starts_from_the_default_of_its_space(worlds, name):
    assert dialect(worlds, name).start() == worlds[name].space.default


@pytest.mark.parametrize(
    ("reply", "kind", "reason"),
    [
        ("I would tile it.", "unparsable", "found none"),
        ('```json\n{"bm": 64,\n```', "unparsable", "expected JSON"),
        ('```json\n{"bm": NaN}\n```', "unparsable", "NaN"),
        ("```json\n[1]\n```", "wrong_schema", "found a list"),
        ("```json\n{}\n```", "wrong_schema", "no value for bm"),
        (json.dumps(KNOBS | {"bq": 1}), "wrong_schema", "unknown knob 'bq'"),
        ('{"bm": 64, "bn": 64, "bm": 128}', "wrong_schema", "one value for 'bm', found 2"),
        (json.dumps(KNOBS | {"bm": [64]}), "wrong_schema", "bm: expected a number or text"),
        (json.dumps(KNOBS | {"bm": None}), "wrong_schema", "found null"),
        (json.dumps(KNOBS | {"bm": "\ud800"}), "wrong_schema", "surrogates"),
    ],
)
def test_knobs_that_are_no_object_of_all_knobs_are_malformed(worlds, reply, kind, reason):
    found = refused(dialect(worlds, "knobs"), reply)
    assert found[0] == kind
    assert reason in found[1]


def test_json_alone_and_whole_numbers_as_floats_are_understood(worlds):
    spoken = dialect(worlds, "knobs")
    wanted = Candidate(Language.KNOBS, tuple(KNOBS.items()))
    assert spoken.parse(json.dumps(KNOBS)) == wanted
    assert spoken.parse(json.dumps(KNOBS | {"bm": 64.0})) == wanted


def test_a_value_that_no_knob_has_is_for_the_space_to_refuse(worlds):
    space = worlds["knobs"].space
    candidate = dialect(worlds, "knobs").parse(json.dumps(KNOBS | {"bm": 65}))
    assert [v.code for v in space.check(candidate)] == ["knob_value"]


def test_the_schema_of_knobs_describes_what_is_parsed(worlds):
    jsonschema = pytest.importorskip("jsonschema")
    schema = dialect(worlds, "knobs").schema()
    jsonschema.validate(KNOBS, schema)
    for wrong in (KNOBS | {"bm": 65}, KNOBS | {"x": 1}, {"bm": 64}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        ("split('i', 8", "unparsable", "line 1"),
        ("x = 3", "wrong_schema", "expected a call"),
        ("for f in (2, 4):\n    split('i', f)", "wrong_schema", "line 1"),
        ("split('i', f)", "wrong_schema", "expected a number or text"),
        ("split(8, 'i')", "wrong_schema", "a loop's name first"),
        ("split('i', 1e999)", "wrong_schema", "finite"),
    ],
)
def test_what_is_no_list_of_directives_is_malformed(worlds, code, kind, reason):
    found = refused(dialect(worlds, "schedule"), f"```python\n{code}\n```")
    assert found[0] == kind
    assert reason in found[1]


def test_a_directive_that_may_not_be_applied_is_for_the_space_to_refuse(worlds):
    candidate = dialect(worlds, "schedule").parse("```python\nsplit('zz', 8)\n```")
    assert candidate.payload == (Directive("split", "zz", (8,)),)
    assert worlds["schedule"].space.check(candidate)


def test_every_directive_is_explained_with_its_arguments():
    for op in DIRECTIVES:
        told = directive_help(op)
        # What a directive is about comes first: a loop, or what its name says.
        assert re.match(rf"{op}\((loop|tensor|condition)\b", told.call)
        assert "Before::" in told.text
        assert "Raises" not in told.text
    assert directive_help("tile").call == "tile(loop, inner, rows, columns, tail='guard')"


def rules_of(space):
    """The directives as a prompt tells them: in full, and in a line."""
    facts = Schedule(space, matmul(m=8, n=16, k=8)).facts()
    lines = [told for _, group in facts["others"] for told in group]
    return facts["directives"], lines


def test_a_prompt_tells_every_directive_and_most_of_them_in_a_line():
    problem = matmul(m=8, n=16, k=8)
    procedure = definition_of(problem, problem.workloads[0])
    full, lines = rules_of(ScheduleSpace(procedure, directives="all"))
    names = [told.call.partition("(")[0] for told in (*full, *lines)]
    assert sorted(names) == sorted(DIRECTIVES)
    assert tuple(names[: len(full)]) == IN_FULL
    assert all("\n" not in told.text and told.text for told in lines)
    size = sum(len(told.call) + len(told.text) for told in lines)
    assert size < 1.5 * sum(len(told.call) + len(told.text) for told in full)
    # What a campaign names is told in full.
    full, lines = rules_of(ScheduleSpace(procedure, directives=["pack", "split"]))
    assert [told.call.partition("(")[0] for told in full] == [*IN_FULL, "pack"]
    assert "Before::" in full[-1].text
    assert not any(told.call.startswith("pack(") for told in lines)


@pytest.mark.parametrize(
    ("reply", "kind", "reason"),
    [
        ("```c\n\n```", "wrong_schema", "empty block"),
        ("```c\nint main(void) { return 0; }\n```", "wrong_schema", "expected a definition"),
        ("```c\n// softmax(\nint x;\n```", "wrong_schema", "expected a definition"),
        ("```c\nvoid softmax(void) {}\n", "unparsable", "not closed"),
        ("```c\nvoid softmax(void) { /* \ud800 */ }\n```", "unparsable", "UTF-8"),
    ],
)
def test_source_without_the_kernel_is_malformed(worlds, reply, kind, reason):
    found = refused(dialect(worlds, "source"), reply)
    assert found[0] == kind
    assert reason in found[1]


def test_a_region_alone_is_put_into_the_start(worlds):
    space = worlds["regions"].space
    body = "        for (int64_t j = 0; j < cols; j++)\n            y[i * cols + j] *= 1 / sum;\n"
    reply = f"```c\n// region normalise\n{body}// endregion normalise\n```"
    candidate = dialect(worlds, "regions").parse(reply)
    assert not space.check(candidate)
    assert space.region(candidate, "normalise") == body
    assert space.region(candidate, "exponentials") == space.region(space.default, "exponentials")


def test_a_whole_file_is_taken_as_it_is_and_checked_by_the_space(worlds):
    space = worlds["regions"].space
    inside = space.text.replace("/= sum", "*= 1 / sum")
    outside = space.text.replace("j = 1", "j = 0")
    spoken = dialect(worlds, "regions")
    assert not space.check(spoken.parse(f"```c\n{inside}```"))
    assert [v.code for v in space.check(spoken.parse(f"```c\n{outside}```"))] == ["outside_regions"]


@pytest.mark.parametrize(
    "code", ["// region other\nint x;\n// endregion other", "y[0] = 1;", "// region normalise\nx;"]
)
def test_regions_that_are_none_are_malformed(worlds, code):
    assert refused(dialect(worlds, "regions"), f"```c\n{code}\n```")[0] == "wrong_schema"


TWICE = "// region normalise\nx;\n// endregion normalise\n"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (TWICE * 2, "region normalise stands twice"),
        (TWICE + "// region exponentials\n" + TWICE, "expected endregion exponentials"),
        (TWICE + "// endregion normalise\n", "expected no endregion, found endregion normalise"),
        ("// region normalise\nx;\n", "expected a line // endregion normalise"),
        (TWICE + "// region other\ny;\n// endregion other\n", "found other"),
    ],
)
def test_regions_out_of_order_are_named(worlds, code, reason):
    found = refused(dialect(worlds, "regions"), f"```c\n{code}```")
    assert found[0] == "wrong_schema"
    assert reason in found[1]


def test_a_region_that_calls_the_kernel_is_no_file(worlds):
    space = worlds["regions"].space
    for body in ("if (0) softmax(x, y, 0, cols);\n", "if (softmax(x, y)) {\n}\n", "// softmax(\n"):
        reply = f"```c title=x.c\n// region normalise\n{body}// endregion normalise\n```"
        candidate = dialect(worlds, "regions").parse(reply)
        assert space.region(candidate, "normalise") == body


REGION = "#include <stdint.h>\n// region all\nvoid softmax(void) {{ {0} }}\n// endregion all\n"


def test_a_kernel_inside_a_region_is_read_with_and_without_the_rest(worlds):
    space = SourceSpace(REGION.format(""), entry="softmax", regions=("all",))
    spoken = Source(space, worlds["regions"].problem)
    wanted = Candidate(Language.SOURCE, REGION.format("x;"))
    include, _, region = REGION.format("x;").partition("\n")
    for text in (region, f"{include}\n{region}", "void softmax(void) { x; }\n"):
        found = spoken.parse(f"```c\n{text}```")
        if text.startswith("void"):
            # Without any marker it is a file, and the space says what it lacks.
            assert [v.code for v in space.check(found)] == ["regions"]
        else:
            assert found == wanted
    changed = spoken.parse(f"```c\n#include <math.h>\n{region}```")
    assert [v.code for v in space.check(changed)] == ["outside_regions"]


def test_the_only_region_needs_no_markers(worlds):
    text = "void softmax(void)\n{\n// region body\n// endregion body\n}\n"
    space = SourceSpace(text, entry="softmax", regions=("body",))
    spoken = Source(space, worlds["regions"].problem)
    for body in ("x;\n", "softmax();\n", "#define CAT(a, b) a##b\n", '#include "part.h"\n'):
        assert space.region(spoken.parse(f"```c\n{body}```"), "body") == body
    whole = text.replace("// region body\n", "// region body\nx;\n")
    assert spoken.parse(f"```c\n{whole}```") == Candidate(Language.SOURCE, whole)


def test_the_prototype_follows_the_calling_convention(worlds):
    assert prototype(worlds["schedule"].problem) == (
        "void matmul(const float *restrict A, const float *restrict B, float *restrict C, "
        "int64_t m, int64_t n, int64_t k)"
    )


def test_a_language_that_no_model_writes_is_refused(worlds):
    class Libraries:
        language = Language.LIBRARY

    with pytest.raises(OptionError, match="a space in one of the languages knobs"):
        dialect_for(Libraries(), worlds["knobs"].problem)
    assert set(DIALECTS) == {Language.KNOBS, Language.SCHEDULE, Language.SOURCE}


SPICES = [
    *("```", "```json", "```python", "```c", "{", "}", "split('i', 8)", '"bm": 1', "</think>"),
    *("// region normalise", "// endregion normalise", "void softmax("),
]
SPICED = st.lists(
    st.one_of(st.sampled_from(SPICES), st.text(max_size=12)),
    max_size=12,
).map("\n".join)


@pytest.mark.parametrize("name", ["knobs", "schedule", "source", "regions"])
@given(reply=SPICED)
@settings(deadline=None)
def test_no_reply_breaks_a_parser(worlds, name, reply):
    spoken = dialect(worlds, name)
    for text in (reply, fenced(reply, spoken.fence)):
        found = spoken.parse(text)
        if isinstance(found, Candidate):
            worlds[name].space.check(found)
        else:
            assert found.reason


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), SPICED), min_size=1, max_size=4))
def test_no_prompt_breaks_the_simulated_model(messages):
    for seed in range(8):
        request = ChatRequest("mock", tuple(messages), 100, 0.0, seed)
        assert Mock(seed=seed, faults=0.5).complete(request).model == "mock"


def test_values_are_read_whatever_their_documentation_says():
    rules = (
        "- `tile`: one of 4, 8 (a block [rows], see (1))\n- `pack`: one of true, false\n"
        '- `how`: one of "a, b", "c (d)"\n'
    )
    sheet = replace(read_prompt((("user", "x"),)), rules=rules)
    wanted = {"tile": [4, 8], "pack": [True, False], "how": ["a, b", "c (d)"]}
    assert read_choices(sheet) == wanted


def test_rules_are_read_with_the_names_they_define(worlds):
    space = worlds["knobs"].space
    text = render("refine", **prompt_values(worlds["knobs"]))[1][1]
    rules = read_rules(read_prompt((("user", text),)))
    assert len(rules) == len(space.constraints)
    for index in range(0, space.combinations, 37):
        assert obeys(rules, space.candidate(index).knobs) is space.contains_index(index)


def prompt_values(world):
    spoken = dialect_for(world.space, world.problem)
    return {
        **lasting_values(world.problem, spoken),
        **dict.fromkeys(("tried", "pending", "failures"), ()),
        "parent": None,
        "count": 0,
        "slot": 1,
        "batch": 1,
        "hint": "x",
    }


def test_knobs_that_are_macros_come_with_the_text_that_uses_them(worlds):
    world = replace(worlds["knobs"], problem=replace(worlds["knobs"].problem, template="int TM;"))
    assert "```c\nint TM;\n```" in render("refine", **prompt_values(world))[1][1]


# Schedules that a program wrote


@pytest.fixture(scope="module")
def told():
    """The dialect of a space whose schedules record decisions, and a schedule of it."""
    problem = matmul(m=64, n=64, k=64)
    procedure = problem.definition(problem.workloads[0])
    space = ProgramSpace(procedure, template_program(problem.knobs, problem.sketch))
    parent = from_knobs(space, Candidate(Language.KNOBS, problem.unscheduled))
    return dialect_for(space, problem), parent


def as_edits(told):
    return dialect_for(told[0]._space, told[0]._forms._problem, edits="either")


def test_decisions_are_shown_with_what_came_of_them(told):
    spoken, parent = told
    text = spoken.show(parent)
    assert "sample_categorical('kc', 512, 64, 128, 256, 512)\n" in text
    assert "split('p', 512)  # from kc\n" in text
    assert spoken.parse(fenced(text, "python"), parent).payload == parent.payload
    assert "sample" not in spoken.brief(parent)
    assert spoken.facts()["decides"] is True
    assert "split('p', 512)  # 6 from kc\n" in as_edits(told).show(parent)


def test_an_edited_decision_gives_the_directives_of_the_program(told):
    spoken, parent = told
    text = spoken.show(parent).replace("'kc', 512", "'kc', 128")
    found = spoken.parse(fenced(text, "python"), parent)
    assert Directive("split", "p", (128,)) in found.payload
    assert spoken._space.run_of(found).values["kc"] == (128,)
    steps = "replace 4: sample_categorical('kc', 128, 64, 128, 256, 512)"
    assert as_edits(told).parse(fenced(steps, "steps"), parent).payload == found.payload


def test_a_decision_that_cannot_be_is_refused_with_what_can(told):
    spoken, parent = told
    text = spoken.show(parent).replace("'kc', 512", "'kc', 100")
    found = spoken.parse(fenced(text, "python"), parent)
    assert isinstance(found, Malformed)
    assert "kc: expected one of 64, 128, 256, 512, found 100" in found.reason


def test_edited_directives_are_taken_as_they_are(told):
    spoken, parent = told
    text = spoken.show(parent).replace("split('p', 512)", "split('p', 32)")
    found = spoken.parse(fenced(text, "python"), parent)
    assert Directive("split", "p", (32, "po", "pi")) in found.payload or found != parent
    assert spoken._space.canonical(found).payload == tuple(
        step for step in found.payload if not step.is_decision
    )
    # Without the decisions it is the parent itself.
    bare = "".join(line for line in spoken.show(parent).splitlines(True) if "sample" not in line)
    assert spoken.parse(fenced(bare, "python"), parent) == parent


def test_the_rules_say_what_decisions_are(worlds, told):
    world = worlds["schedule"]
    assert "To change a decision" not in str(render("refine", **prompt_values(world)))
    world = replace(world, space=told[0]._space)
    text = str(render("refine", **prompt_values(world)))
    assert "To change a decision, write another value there" in text


def test_a_search_starts_from_a_schedule_of_the_program(told):
    spoken, _ = told
    start = spoken.start()
    assert start.payload == spoken._space.start.payload
    assert spoken._space.run_of(start) is not None
    assert spoken.start() == start
