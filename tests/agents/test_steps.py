"""Edits of schedules by the numbers of directives: each is applied, or says why not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.agents.chat import Completion, Malformed
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.dialects.steps import (
    MOST_STEPS,
    Misstep,
    Step,
    apply_steps,
    read_steps,
)
from kernelwright.env.compiler.schedule.trace import parse_trace, print_trace
from kernelwright.env.types import Candidate, Directive, Language

PARENT = parse_trace("split('i', 8)\nsplit('j', 16)\nreorder('io', 'jo', 'ii', 'ji')\n")


def edited(text, trace=PARENT):
    steps = read_steps(text)
    assert not isinstance(steps, Misstep), steps
    return apply_steps(trace, steps)


def test_edits_are_read_one_a_line():
    assert read_steps("# so\n\n insert 4: vectorize('ji')  # wide\nDELETE 1\n") == (
        Step("insert", 4, Directive("vectorize", "ji")),
        Step("delete", 1, None),
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("insert 4: vectorize('ji')", ["split i", "split j", "reorder io", "vectorize ji"]),
        ("insert 1: unroll('p')", ["unroll p", "split i", "split j", "reorder io"]),
        ("replace 2: split('j', 4)\ndelete 3", ["split i", "split j"]),
        ("delete 3\ninsert 3: a('x')\ninsert 3: b('y')", ["split i", "split j", "a x", "b y"]),
        # All numbers are the parent's.
        ("delete 1\nreplace 3: a('x')", ["split j", "a x"]),
    ],
)
def test_directives_are_put_in_replaced_and_taken_out(text, wanted):
    assert [f"{step.op} {step.target}" for step in edited(text)] == wanted


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("delete 4", "no_place", "delete 4: expected one of directives 1 to 3"),
        ("insert 5: a('x')", "no_place", "insert 5: expected one of directives 1 to 4"),
        ("replace 0: a('x')", "no_place", "replace 0: expected"),
        ("delete 2\nreplace 2: a('x')", "twice", "replace 2: expected one edit of each"),
        ("replace 1: split('i', 8)", "idle", "expected a change"),
    ],
)
def test_what_is_not_applied_says_why(text, kind, reason):
    found = edited(text)
    assert isinstance(found, Misstep)
    assert (found.kind, found.reason.startswith(reason)) == (kind, True)
    assert edited("delete 1", ()).reason.endswith("no directive, because there is none")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", f"expected 1 to {MOST_STEPS} edits, found 0"),
        ("split('i', 8)", "line 1: expected insert N: DIRECTIVE"),
        ("delete 1\nmove 2", "line 2: expected insert N: DIRECTIVE"),
        ("insert 1", "line 1: expected insert N: DIRECTIVE"),
        ("insert 1: a('x'); b('y')", "line 1: expected insert N: DIRECTIVE"),
        ("insert 1: split('i', f)", "line 1: expected a number or text, found f"),
        ("insert 1: split('i'", "line 1: expected directives"),
    ],
)
def test_what_is_no_list_of_edits_says_where(text, reason):
    found = read_steps(text)
    assert isinstance(found, Misstep)
    assert found.kind == "malformed"
    assert found.reason.startswith(reason)


@given(st.data())
def test_every_edit_is_applied_or_refused_with_a_reason(data):
    trace = PARENT[: data.draw(st.integers(0, 3))]
    step = st.builds(
        Step,
        st.sampled_from(["insert", "replace"]),
        st.integers(0, 5),
        st.builds(Directive, st.just("unroll"), st.sampled_from(["i", "j"])),
    ) | st.builds(Step, st.just("delete"), st.integers(0, 5), st.none())
    steps = data.draw(st.lists(step, max_size=4))
    found = apply_steps(trace, steps)
    if isinstance(found, Misstep):
        assert found.reason
    else:
        grown = sum({"insert": 1, "delete": -1}.get(each.op, 0) for each in steps)
        assert len(found) == len(trace) + grown


@pytest.mark.parametrize("edits", ["search_replace", "either"])
def test_a_schedule_is_answered_by_edits_of_the_parent(worlds, edits):
    space, problem = worlds["schedule"].space, worlds["schedule"].problem
    dialect = dialect_for(space, problem, edits=edits)
    parent = Candidate(Language.SCHEDULE, PARENT)
    assert "split('j', 16)  # 2\n" in dialect.show(parent)
    found = dialect.parse(fenced("insert 4: vectorize('ji')\n", "steps"), parent)
    assert print_trace(found.payload) == print_trace(PARENT) + "vectorize('ji')\n"
    first = dialect.parse(fenced("insert 1: unroll('i0')\n", "steps"))
    assert first.payload == (Directive("unroll", "i0"),)
    wrong = dialect.parse(fenced("delete 7\n", "steps"), parent)
    assert isinstance(wrong, Malformed)
    assert wrong.reason.startswith("no_place: delete 7")
    whole = dialect.parse(fenced("split('i', 8)\n", "python"), parent)
    assert isinstance(whole, Malformed) is (edits == "search_replace")


def test_numbered_directives_read_back_as_they_are(worlds):
    dialect = dialect_for(worlds["schedule"].space, worlds["schedule"].problem, edits="either")
    rng = np.random.default_rng(0)
    for candidate in [worlds["schedule"].space.sample(rng) for _ in range(5)]:
        assert dialect.parse(fenced(dialect.show(candidate), "python")) == candidate


def test_the_simulated_model_answers_a_prompt_with_numbers(worlds, journal):
    world = worlds["schedule"]
    asked, _ = world.play(world.driver(journal, edits="either"), asks=2)
    assert all(asked)


def test_a_driver_asks_for_edits_by_their_form(worlds, journal):
    class Saying:
        model, priced, missing, asked = "saying", False, (), ()

        def complete(self, request):
            self.asked = (*self.asked, request)
            return Completion(fenced("insert 1: split('i', 8)\n", "steps"), "stop", "saying", "id")

    model = Saying()
    driver = worlds["schedule"].driver(journal, backend=model, edits="search_replace")
    (proposal,) = driver.ask(1)
    assert proposal.candidate.payload == (Directive("split", "i", (8,)),)
    shown = model.asked[0].messages[-1][1].partition("## Answer")[2]
    assert "begins with ```steps" in shown
    assert "```python" not in shown
