"""Lowered code to be read: its schedule at the head."""

from __future__ import annotations

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.codegen.comment import block_comment
from kernelwright.env.compiler.pipeline import lower
from kernelwright.env.compiler.schedule import DIRECTIVES, GROUPS
from kernelwright.env.compiler.schedule.trace import parse_trace


def row_sum():
    x, k = te.placeholder("x", (8, 16)), te.reduce_axis("k", 16)
    return te.lower("f", [te.compute("y", (8,), lambda i: te.reduce_sum(x[i, k.value], k), [x])])


def test_the_listing_is_the_source_under_its_schedule():
    trace = parse_trace("split('k', 4)\nunroll('ki')")
    lowered = lower(row_sum(), trace)
    head, _, rest = lowered.listing.partition("\n\n")
    assert head.splitlines()[:2] == ["/*", " * f, with the schedule"]
    assert head.splitlines()[-3:] == [" *   split('k', 4)", " *   unroll('ki')", " */"]
    assert rest == lowered.source
    assert " *   none\n */" in lower(row_sum()).listing


def test_what_is_built_does_not_depend_on_how_it_was_said():
    one = lower(row_sum(), parse_trace("split('k', 4, 'ko', 'ki')"))
    other = lower(row_sum(), parse_trace("split('k', 4)"))
    assert one.source == other.source
    assert one.listing != other.listing


def test_nothing_in_a_schedule_can_end_the_comment():
    text = block_comment(["rename('k', 'a*/b')", "/* again", "two\nlines"])
    assert text.count("*/") == 1
    assert text.endswith("*/")
    assert text.count("/*") == 1
    assert " * two\n * lines" in text


def test_every_directive_is_in_one_group():
    listed = [op for ops in GROUPS.values() for op in ops]
    assert sorted(listed) == sorted(DIRECTIVES)
    assert len(listed) == len(set(listed))
