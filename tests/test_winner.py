"""The winner of a run: exported, loaded, shown."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import yaml

from kernelwright.configs import api
from kernelwright.configs.build import build
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config
from kernelwright.configs.loaded import load
from kernelwright.configs.winner import (
    WinnerError,
    best_c,
    export,
    interface,
    schedule_steps,
    winner,
)
from kernelwright.env.compiler.codegen.comment import block_comment
from kernelwright.env.compiler.runtime.call import CallError
from kernelwright.env.compiler.runtime.toolchain import BuildError, find_toolchain
from kernelwright.search.store import StoreError

try:
    TOOLCHAIN = find_toolchain()
except BuildError:
    TOOLCHAIN = None
needs_cc = pytest.mark.skipif(TOOLCHAIN is None, reason="no C compiler on this machine")

QUICK = {
    "target": {"name": "cpu"},
    "driver": {"name": "random"},
    "budget": {"trials": 3},
    "judge": {"screen": {"pairs": 1}, "confirm": {"finalists": 1, "process_pairs": 2, "pairs": 1}},
}
SCHEDULED = {
    **QUICK,
    "name": "scheduled",
    "problem": {"name": "matmul", "m": 32, "n": 48, "k": 40},
    "space": {"kind": "schedule"},
}
TEMPLATE = """
#if STEP < 1
#error expected a step
#endif
#include <stdint.h>
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; i++) {
        float s = 0.0f;
        for (int64_t j = 0; j < KW_COLS; j += STEP)
            for (int64_t l = 0; l < STEP; l++) s += x[i * cols + j + l];
        y[i] = s;
    }
}
"""


def kernelwright(*arguments, cwd):
    command = [sys.executable, "-P", "-m", "kernelwright", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory):
    """A finished run in a space of schedules."""
    folder = tmp_path_factory.mktemp("runs") / "scheduled"
    api.run(SCHEDULED, folder)
    return folder


@pytest.fixture(scope="module")
def templated(tmp_path_factory):
    """A finished run of a template, with the files that it stands on."""
    home = tmp_path_factory.mktemp("templated")
    (home / "sum.c").write_text(TEMPLATE)
    campaign = {
        **QUICK,
        "name": "templated",
        "problem": {"name": "row_sum"},
        "space": {"kind": "template", "file": "sum.c", "knobs": {"STEP": [1, 2, 4, 8]}},
        "baseline": "default",
    }
    (home / "sum.yaml").write_text(yaml.safe_dump(campaign))
    api.run(home / "sum.yaml", home / "run")
    return home


@pytest.fixture(scope="module")
def modelled(tmp_path_factory):
    """A finished run on the GPU model, which has no C."""
    folder = tmp_path_factory.mktemp("runs") / "modelled"
    api.run("gemm_model_random", folder, overrides=["budget.trials=4"])
    return folder


def compiles_alone(text, tmp_path):
    (tmp_path / "best.c").write_text(text)
    command = [*TOOLCHAIN.command, "-O3", "-Wall", "-Werror", "-c", "best.c"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    return result.stderr if result.returncode else ""


@needs_cc
def test_an_export_compiles_alone_without_warnings(scheduled, templated, tmp_path):
    for folder in (scheduled, templated / "run"):
        assert compiles_alone(export(folder), tmp_path) == ""


@needs_cc
def test_an_export_says_what_it_is_and_what_was_found(scheduled):
    text, best = export(scheduled), api.show(scheduled)["best"]
    head = text[: text.index("*/")]
    assert "matmul@1 for m=32, n=48, k=40" in head
    assert best["key"] in head
    assert f"{api.show(scheduled)['claim']} (measured, operands cold)" in head
    assert "cc -O3 -march=native -c best.c" in head
    for line in best["candidate"].splitlines():
        assert line in head
    assert text.count("void matmul(") == 3  # comment, prototype, definition


@needs_cc
def test_an_export_is_written_where_it_is_asked_for(scheduled, tmp_path):
    ran = kernelwright("export", scheduled, "-o", "mine.c", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert (tmp_path / "mine.c").read_text() == export(scheduled)
    assert kernelwright("export", scheduled, cwd=tmp_path).stdout == export(scheduled)


@needs_cc
def test_best_c_is_the_export(scheduled):
    built = build(read_config(scheduled / "config.yaml"))
    assert best_c(built, winner(scheduled).trial) == export(scheduled)


@pytest.mark.parametrize(
    "nasty",
    ["*/ int x; /*", "**//", "*\\\n/ int x;", "/*", "line\n*/", "*/*/", "\u2028*/", "??/\n*/"],
)
def test_nothing_can_break_out_of_the_comment(nasty):
    text = block_comment(["before", nasty, "after"])
    spliced = text.replace("\\\n", "")
    assert spliced.index("*/") == len(spliced) - 2
    assert spliced.rindex("/*") == 0


@needs_cc
def test_a_loaded_winner_computes(scheduled, templated):
    matmul, rng = load(scheduled), np.random.default_rng(0)
    a, b = rng.random((32, 40), np.float32), rng.random((40, 48), np.float32)
    for got in (matmul(a, b), matmul(a, B=b), matmul(B=b, A=a), matmul(a.T.copy().T, b)):
        np.testing.assert_allclose(got, a @ b, rtol=1e-5)
    assert matmul.source == export(scheduled)
    assert matmul.trial == winner(scheduled).trial
    assert matmul.problem.name == "matmul"
    total = load(templated / "run")
    (spec,) = (t for t in total.problem.tensors if t.role == "input")
    extents = total.problem.workloads[0].fixed
    x = rng.random([extents[e] for e in spec.shape], np.float32)
    np.testing.assert_allclose(total(x), x.sum(axis=1, dtype=np.float64), rtol=1e-4)


A, B = np.zeros((32, 40), np.float32), np.zeros((40, 48), np.float32)


@needs_cc
@pytest.mark.parametrize(
    ("inputs", "named", "said"),
    [
        ((A,), {}, "expected an input B, found none"),
        ((A, B, B), {}, r"expected 2 inputs \(A, B\), found 3"),
        ((A, B), {"A": A}, "'A', which is given twice"),
        ((A, B), {"C": A}, "'C', which is no input"),
        ((A.astype(np.float64), B), {}, r"A: expected float32\[m, k\], found float64\[32, 40\]"),
        ((A, B[0]), {}, r"B: expected float32\[k, n\], found float32\[48\]"),
        ((A, B[1:]), {}, "axis 0 of B: expected 40, as axis 1 of A has it, found 39"),
        ((A[1:], B), {}, "matmul: expected m=32, n=48, k=40, found m=31, n=48, k=40"),
        ((A[:0], B), {}, "found m=0, n=48, k=40"),
        ((A.tolist(), B), {}, "A: expected a NumPy array float32.*found a list"),
    ],
)
def test_what_does_not_fit_the_problem_is_refused(scheduled, inputs, named, said):
    with pytest.raises(CallError, match=said):
        load(scheduled)(*inputs, **named)


@needs_cc
def test_the_schedule_is_shown_step_by_step(scheduled, tmp_path):
    rows = schedule_steps(scheduled)
    trace = api.show(scheduled)["best"]["candidate"].splitlines()
    assert [row["directive"] for row in rows] == [None, *trace]
    assert rows[0]["nest"].startswith("def matmul(")
    shown = kernelwright("show", "--schedule", scheduled, "--json", cwd=tmp_path)
    assert json.loads(shown.stdout) == {"schedule": rows}
    text = kernelwright("show", scheduled, "--schedule", cwd=tmp_path).stdout
    assert all(row["nest"] in text for row in rows)


@needs_cc
def test_knobs_have_no_schedule_to_show(templated, tmp_path):
    shown = kernelwright("show", "--schedule", templated / "run", cwd=tmp_path)
    assert shown.returncode == 1
    assert "expected a winner with a schedule, found one in language knobs" in shown.stderr


@needs_cc
def test_a_changed_template_is_not_the_winner(templated):
    changed = templated / "sum.c"
    text = changed.read_text()
    changed.write_text(text + "/* changed */\n")
    try:
        with pytest.raises(ConfigError, match="a file that was changed"):
            export(templated / "run")
    finally:
        changed.write_text(text)
    export(templated / "run")


def test_a_run_without_c_says_so(modelled, tmp_path):
    for command in (["export", modelled], ["show", "--schedule", modelled, "--json"]):
        ran = kernelwright(*command, cwd=tmp_path)
        assert ran.returncode == 1
        assert "expected a winner with a C form, found a run on target gpu-model" in (
            ran.stderr + ran.stdout
        )
    with pytest.raises(WinnerError, match="C form"):
        load(modelled)
    built = build(read_config(modelled / "config.yaml"))
    assert best_c(built, winner(modelled).trial) is None


def test_there_must_be_a_run(tmp_path):
    with pytest.raises(StoreError):
        winner(tmp_path)
    assert kernelwright("export", "nowhere", cwd=tmp_path).returncode == 2


def test_the_header_has_prototype_and_macros(tmp_path):
    header = interface("matmul", ["m=64"])
    assert "#define KW_M 64\n#define KW_N 512\n#define KW_K 512\n" in header
    assert header.endswith("int64_t m, int64_t n, int64_t k);\n")
    assert "C  output   float32[m][n]" in header
    if TOOLCHAIN is not None:
        assert compiles_alone(header, tmp_path) == ""
    ran = kernelwright("show", "--abi", "matmul", "--set", "m=64", "--json", cwd=tmp_path)
    assert json.loads(ran.stdout) == {"problem": "matmul", "header": header}
    assert kernelwright("show", "--abi", "matmul", "--set", "m=64", cwd=tmp_path).stdout == header


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--abi", "matmull"], 2, "did you mean 'matmul'"),
        (["--abi", "matmul", "--set", "q=1"], 2, "problem.q"),
        (["--abi", "recorded_kernel"], 2, "expected the key 'landscape'"),
        (["--abi", "matmul", "runs"], 2, "expected a DIR, or --abi PROBLEM"),
        (["--set", "m=1", "runs"], 2, "beside --abi"),
        ([], 2, "expected a DIR, or --abi PROBLEM"),
    ],
)
def test_wrong_calls_of_show_are_refused(tmp_path, arguments, code, said):
    ran = kernelwright("show", *arguments, cwd=tmp_path)
    assert ran.returncode == code
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
