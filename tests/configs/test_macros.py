"""What a template's knobs may be called and may be; `malformed` has what they may not."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from kernelwright.configs.macros import name_fault, value_fault
from kernelwright.configs.resolve import resolve
from kernelwright.env.compiler.runtime.toolchain import BuildError, find_toolchain
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.program import program
from kernelwright.env.types import knob_candidate

MATMUL = resolve(PROBLEMS, "matmul")(m=8, n=8, k=8)
C_WORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while _Alignas _Bool _Static_assert __func__ __restrict bool "
    "alignof defined int32_t int64_t uint8_t"
)


@pytest.mark.parametrize("name", ["STEP", "T", "Tile", "tile", "mr", "rows", "x", "_t", "KWARGS"])
def test_macros_have_the_names_that_c_and_the_problem_leave(name):
    assert name_fault(name, MATMUL) is None


@pytest.mark.parametrize("name", C_WORDS.split())
def test_words_of_c_are_no_names_of_macros(name):
    assert "C" in name_fault(name, MATMUL)


@pytest.mark.parametrize("name", ["KW_M", "KW_", "kw_call", "Kw_x"])
def test_names_that_the_builder_uses_are_kept(name):
    assert "kernelwright keeps" in name_fault(name, MATMUL)


@pytest.mark.parametrize("name", ["matmul", "A", "B", "C", "m", "n", "k"])
def test_the_names_of_the_prototype_are_no_names_of_macros(name):
    assert "matmul" in name_fault(name, MATMUL)


VALUES = [1, -1, 0.5, True, "", "float", "a \\ b", "1 // one", "x ? y : z", '"s"', "??/ 1"]


@pytest.mark.parametrize("value", VALUES)
def test_values_are_what_fits_a_line(value):
    assert value_fault(value) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("1\n#error", "one line"),
        ("1\r#error", "one line"),
        ("1\0", "one line"),
        ("1\\", "backslash"),
        ("1\\ \t", "backslash"),
        ("1 ??/", "backslash"),
        ("/*", "comment"),
        ("1 /* one */", "comment"),
    ],
)
def test_values_that_reach_beyond_their_line_are_refused(value, said):
    assert said in value_fault(value)


@pytest.mark.cc
def test_a_value_leaves_the_lines_after_it_alone(tmp_path):
    """Each with a compiler that also reads trigraphs."""
    try:
        toolchain = find_toolchain()
    except BuildError:
        pytest.skip("no C compiler on this machine")
    template = "#if KW_M != 8\n#error the line after was lost\n#endif\nvoid matmul(void) {}"
    for value in VALUES:
        problem = replace(MATMUL, template=template)
        text = program(problem, knob_candidate({"V": value}), problem.workloads[0]).text
        (tmp_path / "v.c").write_text(text)
        command = [*toolchain.command, "-std=c11", "-w", "-c", "v.c", "-o", "v.o"]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, (value, ran.stderr)
