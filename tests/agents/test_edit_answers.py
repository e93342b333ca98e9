"""Answers that are edits of the parent, and programs that were tried in another spelling."""

from __future__ import annotations

import pytest
from contracts import judged

from kernelwright.agents.chat import Completion, Malformed
from kernelwright.agents.dialects import dialect_for
from kernelwright.env.options import OptionError
from kernelwright.env.types import Candidate, Language


def answer(mark, text):
    return f"Here.\n\n```{mark}\n{text}```\n"


def edit(search, replace):
    return answer("edit", f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n")


DIVIDE = edit("y[i * cols + j] /= sum;", "y[i * cols + j] *= 1 / sum;")


class Saying:
    """A model with a list of answers; the last is said again."""

    model, priced, missing = "saying", False, ()

    def __init__(self, *answers):
        self.answers, self.asked = answers, []

    def complete(self, request):
        self.asked.append(request)
        text = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return Completion(text, "stop", self.model, "id")


def spoken(worlds, name, edits):
    return dialect_for(worlds[name].space, worlds[name].problem, edits=edits)


@pytest.mark.parametrize("name", ["source", "regions"])
@pytest.mark.parametrize("edits", ["search_replace", "either"])
def test_edits_are_of_the_parent_or_where_there_is_none_of_the_start(worlds, name, edits):
    dialect, space = spoken(worlds, name, edits), worlds[name].space
    found = dialect.parse(DIVIDE)
    assert found.payload == space.text.replace("/= sum;", "*= 1 / sum;")
    assert not space.check(found)
    parent = Candidate(Language.SOURCE, space.text.replace("float sum = 0", "float sum = 0.0f"))
    again = dialect.parse(DIVIDE, parent)
    assert again.payload == parent.payload.replace("/= sum;", "*= 1 / sum;")


def test_edits_outside_the_regions_are_refused_with_the_place(worlds):
    found = spoken(worlds, "regions", "either").parse(edit("float sum = 0;", "float sum = 1;"))
    assert isinstance(found, Malformed)
    assert found.kind == "wrong_schema"
    assert "outside: edit 1: line 11 is outside the regions exponentials, normalise" in found.reason


@pytest.mark.parametrize(
    ("reply", "kind", "reason"),
    [
        (edit("nothing of it", "x;"), "wrong_schema", "nowhere: edit 1: expected lines"),
        (edit("...", "x;"), "wrong_schema", "elided: edit 1: expected every line"),
        (answer("edit", "y = 1;\n"), "unparsable", "line 1: expected a line <<<<<<< SEARCH"),
        (DIVIDE.rstrip("`\n"), "unparsable", "not closed"),
        ("I would divide once.", "unparsable", "expected one fenced ```edit block"),
    ],
)
def test_what_is_no_edit_says_why(worlds, reply, kind, reason):
    found = spoken(worlds, "source", "search_replace").parse(reply)
    assert isinstance(found, Malformed)
    assert found.kind == kind
    assert reason in found.reason


def test_the_whole_file_is_an_answer_only_where_it_is_asked_for(worlds):
    text = worlds["source"].space.text
    whole = answer("c", text)
    assert spoken(worlds, "source", "whole").parse(whole).payload == text
    assert spoken(worlds, "source", "either").parse(whole).payload == text
    assert spoken(worlds, "source", "search_replace").parse(whole).kind == "unparsable"
    assert spoken(worlds, "source", "whole").parse(DIVIDE).kind == "unparsable"
    # Edits are known by their marks, whatever the block is marked with.
    for mark in ("c", "diff"):
        found = spoken(worlds, "source", "either").parse(DIVIDE.replace("```edit", f"```{mark}"))
        assert found.payload == text.replace("/= sum;", "*= 1 / sum;")


def test_a_language_without_edits_refuses_the_option(worlds):
    with pytest.raises(OptionError) as caught:
        spoken(worlds, "knobs", "either")
    assert caught.value.option == "edits"
    assert "the language knobs have no edits" in caught.value.expected


def test_a_driver_asks_for_edits_and_applies_them_to_what_it_has_shown(worlds, journal):
    world = worlds["source"]
    wrong, other = edit("not there", "x;"), edit("float sum = 0;", "float sum = 0.0f;")
    model = Saying(DIVIDE, wrong, other)
    driver = world.driver(journal, backend=model, batch=1, edits="search_replace")
    (first,) = driver.ask(1)
    driver.tell([judged(0, first.candidate, 1.0)])
    (second,) = driver.ask(1)
    assert second.candidate.payload == first.candidate.payload.replace("sum = 0;", "sum = 0.0f;")
    assert second.parents == (first.candidate.key,)
    shown = model.asked[0].messages[-1][1].partition("## Answer")[2]
    assert "begins with ```edit" in shown
    assert "The whole file" not in shown
    mending = model.asked[2].messages[-1][1]
    assert mending.startswith("Your answer could not be used (wrong_schema): nowhere: edit 1")
    assert "<<<<<<< SEARCH" in mending


def test_either_is_offered_with_the_whole_first(worlds, journal):
    model = Saying(DIVIDE)
    worlds["regions"].driver(journal, backend=model, edits="either").ask(1)
    shown = model.asked[0].messages[-1][1].partition("## Answer")[2]
    assert 0 < shown.index("begins with ```c") < shown.index("begins with ```edit")


AGAIN = {
    "schedule": (
        ("python", "split('i', 8)\nsplit('j', 8)\nvectorize('ji')\n"),
        ("python", "split('j', 8, 'a', 'b')\nvectorize('b')\nsplit('i', 8)  # rows\n"),
    ),
    "knobs": (
        ("json", '{"bm": 64, "bn": 64, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}\n'),
        ("json", '{"bn": 64.0, "bm": 64, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}\n'),
    ),
    "source": (
        ("c", "void softmax(float *x, float *y, long n, long m)\n{ int q = 0; y[q] = x[q]; }\n"),
        (
            "c",
            "void softmax(float *a, float *b, long n, long m) {\nint i=0;//\nb[i]=a[i];}\n",
        ),
    ),
}


@pytest.mark.parametrize("name", list(AGAIN))
def test_a_program_in_another_spelling_is_a_duplicate(worlds, recording, name):
    world, (one, other) = worlds[name], AGAIN[name]
    for is_told in (True, False):
        journal = recording()
        model = Saying(answer(*one), answer(*other))
        driver = world.driver(journal, backend=model, batch=2 - is_told)
        if is_told:
            (proposal,) = driver.ask(1)
            driver.tell([judged(0, proposal.candidate, 1.0)])
            driver.ask(1)
        else:
            (proposal,) = driver.ask(2)
        asked = 1 + is_told
        reason = journal.past("duplicate", asked, 1 - is_told).data["reason"]
        wanted = "it was tried before" if is_told else "it is already proposed"
        assert reason.startswith(wanted)
        if is_told and name != "knobs":
            assert "as the same program in another spelling: 2x" in reason
        found = world.driver(recording())._desk.dialect.parse(answer(*other))
        assert (found == proposal.candidate) is (name == "knobs")
