"""The page of every directive is executed: its program, its schedule and its refusals.

A page has the blocks ``python`` (builds ``procedure``, and ``inputs`` where random ones are no
tensors: positions and coordinates; some of them may be read after a schedule only), ``python
schedule`` with the ``text`` of the nest after it, and ``python refused`` with the ``text`` of the
refusal. ``--update-golden`` writes the texts.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.dtypes import FLOATS
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import Const
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule import known_directives
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace, print_trace

PAGES = Path(__file__).resolve().parents[3] / "docs" / "directives"
BLOCK = re.compile(r"```(python|python schedule|python refused|text)\n(.*?)```", re.DOTALL)
# Extents of a procedure, where a page leaves them open: no size divides another.
SIZE = 13


def blocks(name):
    return BLOCK.findall((PAGES / f"{name}.md").read_text())


def examples(name):
    """(kind, the page's program, trace, shown text) of every example on a page."""
    program = None
    found = blocks(name)
    for (kind, body), following in zip(found, [*found[1:], ("", "")], strict=True):
        if kind == "python":
            program = body
        elif kind != "text":
            assert program is not None, f"{name}: expected a program before the first example"
            assert following[0] == "text", f"{name}: expected a text after {body!r}"
            yield kind.removeprefix("python "), program, body, following[1]


def build(program):
    return built(program)[0]


def built(program):
    """The procedure of a page, and the inputs that it gives, or None."""
    names: dict[str, object] = {}
    exec(program, names)
    return names["procedure"], names.get("inputs")


def shown(kind, procedure, trace):
    if kind == "schedule":
        return print_procedure(apply_trace(procedure, trace))
    with pytest.raises(ScheduleError) as caught:
        apply_trace(procedure, trace)
    return f"{caught.value}\n"


def arrays(procedure, extents, rng):
    out = {}
    for tensor in procedure.tensors:
        if tensor.role == "input":
            shape = [
                int(n.value) if isinstance(n, Const) else extents[n.name] for n in tensor.shape
            ]
            some = rng.integers(0, 8, shape)
            out[tensor.name] = some.astype(tensor.dtype)
    return out


def read_by(procedure, inputs):
    """The inputs that a procedure has."""
    return {t.name: inputs[t.name] for t in procedure.tensors if t.role == "input"}


def test_every_directive_has_a_page_and_every_page_a_directive():
    assert {path.stem for path in PAGES.glob("*.md")} == set(known_directives())


@pytest.mark.parametrize("name", sorted(known_directives()))
def test_the_page_shows_what_happens(name, request):
    page = (PAGES / f"{name}.md").read_text()
    assert page.startswith(f"# {name}\n"), page[:40]
    kinds = set()
    for kind, program, body, text in list(examples(name)):
        kinds.add(kind)
        trace = parse_trace(body)
        assert parse_trace(print_trace(trace)) == trace
        if kind == "schedule":
            assert any(step.op == name for step in trace), f"{name} does not occur in its example"
        now = shown(kind, build(program), trace)
        if request.config.getoption("--update-golden"):
            page = page.replace(
                f"{body}```\n\n```text\n{text}```", f"{body}```\n\n```text\n{now}```"
            )
            (PAGES / f"{name}.md").write_text(page)
        else:
            assert now == text
    assert "schedule" in kinds


@pytest.mark.cc
@pytest.mark.parametrize("name", sorted(known_directives()))
def test_the_example_computes_what_it_did(name, tmp_path):
    rng = np.random.default_rng(0)
    for kind, program, body, _ in examples(name):
        if kind != "schedule":
            continue
        (procedure, given), trace = built(program), parse_trace(body)
        extents = dict.fromkeys(procedure.extents, SIZE)
        inputs = arrays(procedure, extents, rng) if given is None else given
        scheduled = apply_trace(procedure, trace)
        expected = interpret(procedure, read_by(procedure, inputs), extents)
        after = interpret(scheduled, read_by(scheduled, inputs), extents)
        kernel = compile_procedure(procedure, trace, cache=BuildCache(tmp_path))
        compiled = kernel(read_by(scheduled, inputs), extents)
        for tensor, values in expected.items():
            np.testing.assert_allclose(after[tensor], values, rtol=1e-6)
            # Whole numbers and their sums are exact; quotients and functions are not.
            tolerance = 1e-5 if values.dtype.name in FLOATS else 0
            np.testing.assert_allclose(compiled[tensor], values, rtol=tolerance)
