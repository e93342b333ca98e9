"""Text in a fence stays in it, and answers are found in what models write around them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.agents.chat import Malformed
from kernelwright.agents.dialects.fences import Block, answer_block, blocks, fenced
from kernelwright.agents.programmer.reading import sections

lines = st.lists(
    st.sampled_from(["a", "", "```", "````", "``` c", "## Answer", "`x`", "  ```json", "~~~"]),
    max_size=8,
)


@given(lines)
def test_a_fenced_text_comes_back_whole_whatever_is_in_it(parts):
    text = "".join(f"{part}\n" for part in parts)
    assert blocks(f"before\n{fenced(text, 'c')}\nafter") == [Block("c", text)]


@given(lines)
def test_a_heading_inside_a_fence_is_no_section(parts):
    prompt = f"## Parent\n\n{fenced(chr(10).join(parts), 'c')}\n\n## Answer\n\nend"
    assert sections(prompt)["Answer"].strip() == "end"


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("```c\nx\n```", "x\n"),
        ("words\n```C\nx\n```\nwords", "x\n"),
        ("```c\nx\n```\nbetter:\n```c\ny\n```", "y\n"),
        ("```\nx\n```", "x\n"),
        ("````c\n```\n````", "```\n"),
        ("```text\nnot this\n```\n```c\nx\n```", "x\n"),
        ("<think>first\n```c\ndraft\n```\n</think>\n```c\nx\n```", "x\n"),
        ("thinking without a start\n```c\ndraft\n```\n</think>\n```c\nx\n```", "x\n"),
        ("```c title=x.c\nx\n```", "x\n"),
        ('```C {title="x.c", lines=[1]}\nx\n```', "x\n"),
        ("```{.c .numberLines}\nx\n```", "x\n"),
        ("```c:src/x.c\nx\n```", "x\n"),
        ("```c,ignore\nx\n```", "x\n"),
        ("``` c \nx\n```", "x\n"),
        ("~~~c\nx\n~~~", "x\n"),
        ("~~~ c `quoted`\n```\nx\n~~~", "```\nx\n"),
        ("~~~~c\n~~~\n```\n~~~~", "~~~\n```\n"),
        ("1. here:\n     ```c\n     x {\n       y\n   }\n     ```", "x {\n  y\n}\n"),
        ("\t```c\n\tx\n\t```", "x\n"),
        ("```text file=a\nnot this\n```\n```c title=b\nx\n```", "x\n"),
        ("\ufeff```c\nx\n```", "x\n"),
        ("an inline ```c x``` and\n```c x```\n```c\nx\n```", "x\n"),
    ],
)
def test_the_answer_is_the_last_block_of_its_language(reply, found):
    assert answer_block(reply, ("c",)) == found


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("no block at all", "found none"),
        ("```c\nx", "not closed"),
        ("```c\nx\n``", "not closed"),
        ("```text\nx\n```", "found text"),
        ("```c_notes\nx\n```", "found c_notes"),
        ("```c title=x\nx\n~~~", "not closed"),
        ("~~~c\nx\n```", "not closed"),
        ("```\nx\n```\n```\ny\n```", "found unmarked, unmarked"),
    ],
)
def test_a_reply_without_one_whole_block_is_unparsable(reply, reason):
    found = answer_block(reply, ("c",))
    assert isinstance(found, Malformed)
    assert found.kind == "unparsable"
    assert reason in found.reason


@pytest.mark.parametrize(
    "reply",
    [
        "<think>" * 200_000,
        "</think>" + "<think>" * 200_000,
        "```" + "a" * 1_000_000 + "`",
        "```" + " " * 1_000_000 + "`",
        "~~~" * 300_000,
        " " * 1_000_000 + "x",
    ],
    ids=["thoughts", "thought", "word", "blanks", "tildes", "indented"],
)
def test_a_long_reply_is_read_in_time_that_is_linear_in_it(reply):
    assert isinstance(answer_block(reply, ("c",)), Malformed)
