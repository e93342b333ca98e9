"""A schedule shown step by step: loops, regions, counts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kernelwright.configs.errors import ConfigError
from kernelwright.configs.winner import WinnerError, problem_steps
from kernelwright.display.schedules import LONG, steps_text

SIZES = ("h=16", "w=16")
TRACE = "split('y', 4)\ncompute_at('blurx', 'yo')\nparallel('yo')\n"


def kernelwright(*arguments, cwd, said=None):
    command = [sys.executable, "-P", "-m", "kernelwright", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, input=said)


def region_of(row, tensor, within=None):
    (found,) = [r for r in row["regions"] if (r["tensor"], r["within"]) == (tensor, within)]
    return found


def test_every_step_has_its_loops_regions_and_counts():
    rows = problem_steps("blur", TRACE, SIZES)
    assert [row["directive"] for row in rows] == [None, *TRACE.splitlines()]
    start, split, placed, threaded = rows
    assert region_of(start, "image")["reads"] == "[0 +: 18, 0 +: 18]"
    assert region_of(start, "out")["reads"] is None
    assert region_of(split, "blurx", "yo")["reads"] == "[yo * 4 +: 6, 0 +: 16]"
    assert region_of(placed, "blurx", "yo")["writes"] == "[0 +: 6, 0 +: 16]"
    assert start["counts"]["stages"][0] == {
        "tensor": "blurx",
        "computed": 288,
        "distinct": 288,
        "recompute": 1.0,
    }
    assert placed["counts"]["stages"][0]["recompute"] == 4 * 6 / 18
    assert placed["counts"]["peak_bytes"] == 6 * 16 * 4
    assert start["counts"]["operations"] == {"add": 2 * 288 + 2 * 256, "div": 288 + 256}
    assert (placed["counts"]["parallelism"], threaded["counts"]["parallelism"]) == (1, 4)
    assert all(row["uncounted"] is None for row in rows)
    json.dumps(rows, allow_nan=False)


def test_what_cannot_be_counted_says_why():
    (row,) = problem_steps("spmv", "", ("rows=8", "cols=8", "nnz=16"))
    assert row["counts"] is None
    assert row["uncounted"] == "expected loops of known extents, found p in pos[i + 1]"
    assert "counts: none (expected loops of known extents" in steps_text([row])


def test_the_text_tells_what_is_new():
    text = steps_text(problem_steps("blur", TRACE, SIZES))
    parts = text.split("\n\n# ")
    assert len(parts) == 4
    assert "  blurx in one yo: reads [0 +: 6, 0 +: 16], writes [0 +: 6, 0 +: 16]" in parts[2]
    assert "recompute: blurx 1.333x" in parts[2]
    assert "image: reads" not in parts[2]
    assert parts[1].endswith("counts: as before")
    assert parts[3].rstrip().endswith("at once: 4 iterations")


def test_of_a_long_nest_what_changes_is_shown():
    trace = "parallel('y')\nvectorize('x', 8)\nunroll('out_x', 2)"
    rows = problem_steps("pyramid", trace, ("h=64", "w=64"))
    assert len(rows[0]["nest"].splitlines()) > LONG
    start, _, between, last = steps_text(rows).split("\n\n# ")
    assert rows[0]["nest"].rstrip() in start
    assert rows[3]["nest"].rstrip() in last
    assert "lines, of which change)" in between
    assert "+      for xi in 8:  # vectorized" in between
    assert len(between.splitlines()) < LONG


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ("split('y', 4)\nvectorize('x', 9)", "line 2, vectorize('x', 9): expected an extent of"),
        ("split('y'", "line 1: expected directives"),
    ],
)
def test_a_refused_schedule_says_where(trace, said):
    with pytest.raises(WinnerError) as caught:
        problem_steps("blur", trace, SIZES)
    assert said in str(caught.value)


def test_problems_that_are_not_there_or_have_no_loops_are_refused():
    with pytest.raises(ConfigError, match="blur"):
        problem_steps("blurr")
    with pytest.raises(WinnerError, match="expected a definition in LoopIR"):
        problem_steps("gemm_gpu")


def test_the_command_line_shows_a_problem_s_nest(tmp_path):
    (tmp_path / "trace.py").write_text(TRACE)
    sizes = [part for size in SIZES for part in ("--set", size)]
    shown = kernelwright("show", "--nest", "blur", "--trace", "trace.py", *sizes, cwd=tmp_path)
    assert shown.stdout == steps_text(problem_steps("blur", TRACE, SIZES))
    piped = ("show", "--nest", "blur", "--trace", "-", "--json", *sizes)
    rows = json.loads(kernelwright(*piped, cwd=tmp_path, said=TRACE).stdout)
    assert rows == {"schedule": problem_steps("blur", TRACE, SIZES)}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--nest", "blur", "runs"], 2, "expected a DIR, or --abi PROBLEM, or --nest PROBLEM"),
        (["--nest", "blur", "--abi", "blur"], 2, "expected a DIR, or --abi PROBLEM"),
        (["--trace", "x.py", "runs"], 2, "--trace: expected it beside --nest"),
        (["--nest", "blur", "--trace", "none.py"], 2, "none.py"),
        (["--nest", "nothing"], 2, "nothing"),
        (["--nest", "gemm_gpu"], 1, "expected a definition in LoopIR"),
    ],
)
def test_wrong_calls_are_refused(tmp_path, arguments, code, said):
    ran = kernelwright("show", *arguments, cwd=tmp_path)
    assert ran.returncode == code
    assert said in ran.stderr
