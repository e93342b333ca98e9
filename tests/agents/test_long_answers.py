"""Answers are read in about as much time as their length takes, whatever they are made of: each of
these took hours with expressions that look back, and would again.
"""

from __future__ import annotations

import pytest

from kernelwright.agents.chat import Malformed
from kernelwright.agents.dialects.fences import MOST_BLOCK, answer_block, blocks, spoken
from kernelwright.agents.edit_blocks import Misfit, has_edits, read_edits
from kernelwright.agents.lines import without_comments

MANY = 500_000


@pytest.mark.parametrize(
    "line",
    ["```" + " " * MANY + "`", "```" + "a" * MANY + "`", "`" * MANY + "x`", " " * MANY + "x"],
)
def test_a_long_line_is_no_fence(line):
    assert blocks(line) == []


def test_thoughts_without_an_end_are_looked_through_once():
    assert spoken("<think>" * MANY) == "<think>" * MANY
    assert spoken("</think>" + "<think>" * MANY + "x") == "<think>" * MANY + "x"
    assert spoken("<think>a</think>" * MANY + "b") == "b"


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ("a<think>b</think>c", "c"),
        ("<think>a</think>b<think>c</think>d", "bd"),
        ("a</think>b</think>c", "b</think>c"),
        ("a<think>b", "a<think>b"),
        ("</think>a<think>b", "a<think>b"),
    ],
)
def test_what_is_thought_aloud_is_left_out(reply, left):
    assert spoken(reply) == left


def test_of_many_blocks_the_last_counts_and_one_is_not_endless():
    many = "```c\nint x;\n```\n" * 10_000
    assert answer_block(many, ("c",)) == "int x;\n"
    large = answer_block(f"```c\n{'x' * MOST_BLOCK}\n```", ("c",))
    assert isinstance(large, Malformed)
    assert f"at most {MOST_BLOCK} characters, found {MOST_BLOCK + 1}" in large.reason


def test_marks_of_edits_are_looked_for_once():
    long = "<<<<<" + " " * MANY + "x"
    assert not has_edits(long)
    edit = f"<<<<<<< SEARCH\n{'/' * MANY} x\n=======\n>>>>>{' ' * MANY}x\n>>>>>>> REPLACE\n"
    assert isinstance(read_edits(edit), Misfit)


def test_comments_and_texts_that_are_not_closed_are_looked_for_once():
    assert without_comments("/* " * MANY) == "/* " * MANY
    assert without_comments('"' + '\\"' * MANY) == '"' + '\\"' * MANY
    assert without_comments('a "b // c\nd // e') == 'a "b // c\nd  '
