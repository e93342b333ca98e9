"""The correctness corpus: honest kernels are right, mutants are wrong, and an audit counts what a
judge says of them. All of it is proved and judged by ``make audit``; here a part.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from toys import CPU_PROBLEMS

from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.types import Stage, Status
from kernelwright.evaluators.corpus import audit, honest, mutants, proof, specimen
from kernelwright.evaluators.corpus.audit import audit_correctness
from kernelwright.evaluators.corpus.draws import draws, instances
from kernelwright.evaluators.corpus.honest import HONEST
from kernelwright.evaluators.corpus.mutants import EQUIVALENT, MUTANTS, Mutant
from kernelwright.evaluators.corpus.mutation import OPERATORS, mutations
from kernelwright.evaluators.corpus.specimen import named, read
from kernelwright.evaluators.corpus.witness import SANITIZERS, WitnessError, observe
from kernelwright.evaluators.cpu.target import Cpu

# The pipelines and stencils that schedules are about have no written corpus yet, nor have the
# sparse problems that are written like those that have one.
WITHOUT = {
    "batched_matmul",
    "block_scores",
    "box4",
    "column_sum",
    "conv2d_nchw",
    "conv2d_nhwc",
    "depthwise",
    "gauss_seidel",
    "jacobi2d",
    "moe_matmul",
    "mttkrp",
    "paged_scores",
    "pyramid",
    "sddmm",
    "sparse_mul",
    "spgemm",
    "ttv",
    "unsharp",
}
CATALOGUE = tuple(sorted(set(CPU_PROBLEMS) - WITHOUT))
ROW_SUM = """void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
    EXTRA
}
"""


@pytest.fixture(scope="module")
def toolchain():
    return find_toolchain()


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def spread(found, count, start=0):
    return [one for place, one in enumerate(found) if place % (len(found) // count) == start]


# What is there


def test_every_problem_has_honest_kernels_of_many_kinds():
    assert len({one.name for one in HONEST}) == len(HONEST) >= 120
    for problem in CATALOGUE:
        of_problem = [one for one in HONEST if one.problem.name == problem]
        assert len(of_problem) >= 9, problem
        assert len({one.problem for one in of_problem}) >= 6, problem
        assert any("openmp" in one.tags for one in of_problem), problem
        assert all(one.name.startswith(f"{problem}_") for one in of_problem)
    tags = [tag for one in HONEST for tag in one.tags]
    assert tags.count("reassociated") >= 25
    assert set(tags) == {"reassociated", "openmp", "static_scratch", "lazy_table"}
    assert all((one.threads > 1) == ("openmp" in one.tags) for one in HONEST)


def test_intrinsics_have_a_fallback():
    for one in HONEST:
        if "intrin.h" in one.source:
            assert re.search(r"#if.*__(AVX|SSE)", one.source), one.name


def test_every_problem_has_mutants_of_many_kinds():
    assert len({one.name for one in MUTANTS}) == len(MUTANTS) >= 300
    assert sum(one.by_hand for one in MUTANTS) >= 100
    for problem in CATALOGUE:
        assert len({one.operator for one in MUTANTS if one.problem.name == problem}) >= 12, problem
    made = {one.operator for one in MUTANTS if not one.by_hand}
    rounding = {"half_precision", "bfloat16_precision", "float_precision"}
    assert made == {*OPERATORS, *rounding}
    kinds = {one.operator for one in MUTANTS if one.by_hand}
    assert {"precision", "race", "stale_state", "memory", "unstable", "overflow"} <= kinds


def test_they_are_read_when_they_are_asked_for():
    assert honest.HONEST is HONEST
    assert mutants.MUTANTS is MUTANTS
    for module in (honest, mutants):
        with pytest.raises(AttributeError, match="has no attribute 'NOTHING'"):
            _ = module.NOTHING


# Files


def test_a_file_says_what_it_needs(tmp_path):
    path = tmp_path / "quick.c"
    head = "problem: row_sum rows=3 cols=2..9 dtype=float64; flags: -fopenmp -g; threads: 2"
    path.write_text(f"/* {head}; tags: a, b; shows: how: it is done */\nvoid f(void);\n")
    one = read(path)
    assert (one.name, one.shows) == ("quick", "how: it is done")
    assert (one.threads, one.flags, one.tags) == (2, ("-fopenmp", "-g"), {"a", "b"})
    assert str(one.problem) == "row_sum rows=3 cols=2..9 dtype=float64"
    assert named(str(one.problem)) == one.problem
    workload = one.problem.make().workloads[0]
    assert workload.label == "3x2..9"
    assert one.problem.make() is one.problem.make()
    assert one.candidate.payload == path.read_text()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("void f(void);", "expected a first line"),
        ("/* problem: row_sum rows=3 cols=2 */", "expected problem and shows|expected shows"),
        ("/* shows: x */", "expected problem, found none"),
        ("/* problem: row_sums rows=3; shows: x */", "found 'row_sums'"),
        ("/* problem: row_sum rows; shows: x */", "expected option=value, found 'rows'"),
        ("/* problem: row_sum rows=3; colour: red; shows: x */", "found 'colour: red'"),
        ("/* problem: row_sum; shows: x; shows: y */", "once at most"),
        ("/* problem: row_sum; threads: two; shows: x */", "two"),
    ],
)
def test_a_file_that_says_nothing_proper_is_refused_by_name(tmp_path, line, reason):
    path = tmp_path / "odd.c"
    path.write_text(f"{line}\n")
    with pytest.raises(ValueError, match=rf"odd\.c: .*({reason})"):
        read(path)


def test_all_files_of_a_folder_are_read_in_order(tmp_path):
    for name in "ba":
        line = "/* problem: gelu n=3; shows: x */\n"
        (tmp_path / f"{name}.c").write_text(line)
    assert [one.name for one in specimen.read_all(tmp_path)] == ["a", "b"]
    folder = Path(honest.__file__).parent / "honest"
    assert len(list(folder.glob("*"))) == len(HONEST)


# Inputs


@pytest.mark.parametrize("text", ["matmul m=5 n=6 k=7", "prefix_sum n=40 dtype=int32"])
def test_draws_have_the_problems_shapes_and_dtypes(text, rng):
    problem = named(text).make()
    (workload,) = instances(problem, rng)
    found = draws(problem, workload, rng)
    assert len({draw.name for draw in found}) == len(found) >= 7
    first = found[0].arrays
    for draw in found:
        assert {n: (a.shape, a.dtype) for n, a in draw.arrays.items()} == {
            n: (a.shape, a.dtype) for n, a in first.items()
        }
    assert [draw.is_exact for draw in found].count(True) == (2 if "matmul" in text else 0)


def test_the_structure_of_a_sparse_matrix_is_never_changed(rng):
    problem = named("spmv rows=9 cols=8 nnz=20").make()
    (workload,) = instances(problem, rng)
    ordinary, *_, last = draws(problem, workload, rng)
    assert last.name == "permuted"
    np.testing.assert_array_equal(ordinary.arrays["crd"], last.arrays["crd"])
    assert not np.array_equal(ordinary.arrays["vals"], last.arrays["vals"])


def test_a_range_stands_for_its_ends_and_an_odd_extent_between(rng):
    problem = named("gelu n=4..40").make()
    labels = [int(workload.label) for workload in instances(problem, rng)]
    assert labels[:2] == [4, 40]
    assert 4 < labels[2] < 40
    assert labels[2] % 2 == 1


# Mutation


def test_a_mutation_changes_one_place():
    text = ROW_SUM.replace("    EXTRA\n", "")
    found = mutations(text, "float")
    assert len({one.text for one in found}) == len(found)
    assert text not in {one.text for one in found}
    by_operator = {one.operator: one for one in found if one.place == 0}
    expected = {
        "last_iteration_dropped": "i < (rows) - 1; i++",
        "every_other_iteration": "i += 2",
        "sum_subtracted": "sum -= x[i * cols + j];",
        "subscripts_swapped": "x[j * cols + i]",
        "stride_too_short": "x[i * (cols - 1) + j]",
        "middle_term_dropped": "if (j != (cols) / 2)\n            sum += x",
        "starts_at_one": "float sum = 1;",
        "one_row_zero": "y[i] = i == (rows) / 2 ? 0 : sum;",
        "half_precision": "sum = rounded(sum + x[i * cols + j]);",
    }
    for operator, piece in expected.items():
        assert piece in by_operator[operator].text, operator
    assert "float_precision" not in by_operator
    double = {one.operator for one in mutations(text.replace("float", "double"), "double")}
    assert "float_precision" in double
    whole = {one.operator for one in mutations(text.replace("float", "int32_t"), "int32_t")}
    assert not any("precision" in operator for operator in whole)


# The witness


def seen(body, toolchain, rng, flags=SANITIZERS, text="row_sum rows=4 cols=16", **options):
    problem = named(text).make()
    (workload,) = instances(problem, rng)
    given = draws(problem, workload, rng)
    source = "#include <stdlib.h>\n" + ROW_SUM.replace("EXTRA", body)
    return observe(source, problem, workload, given, toolchain, flags=flags, **options)


@pytest.mark.cc
@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("", None),
        ("y[rows] = 0;", "heap-buffer-overflow"),
        ("volatile float v = x[-1]; (void)v;", "heap-buffer-overflow"),
        ("((float *)x)[3] = 1;", "changed an input"),
        ("abort();", "ended with"),
        ("exit(0);", "stopped early"),
        ("volatile int32_t big = INT32_MAX; big <<= rows * 9;", "shift exponent"),
    ],
)
def test_the_witness_sees_what_a_kernel_does_to_memory(body, fault, toolchain, rng):
    found = seen(body, toolchain, rng)
    assert found.is_right == (fault is None), found
    assert fault is None or fault in found.fault


@pytest.mark.cc
@pytest.mark.parametrize(
    ("body", "draw"),
    [
        ("y[1] += 1;", None),
        ("y[0] = 0 / (y[0] - y[0]);", None),
        ("static int calls; if (calls++ == 2) y[0] += 1;", "ordinary 2"),
        ("for (int i = 0; i < rows; i++) if (x[i * cols] > 60) y[i] = 0;", None),
    ],
)
def test_the_witness_compares_every_call(body, draw, toolchain, rng):
    found = seen(body, toolchain, rng, DEFAULT_FLAGS)
    assert not found.is_right
    assert not found.fault
    assert found.error > found.bound
    assert draw in (None, found.draw)


@pytest.mark.cc
def test_the_witness_sees_an_element_that_is_not_written(toolchain, rng):
    source = ROW_SUM.replace("i = 0", "i = 1").replace("EXTRA", "")
    problem = named("row_sum rows=4 cols=16").make()
    (workload,) = instances(problem, rng)
    given = draws(problem, workload, rng)[:1]
    assert observe(source, problem, workload, given, toolchain).error == np.inf


@pytest.mark.cc
def test_what_does_not_compile_is_no_mutant(toolchain, rng):
    with pytest.raises(WitnessError, match=r"row_sum: .*refused the code"):
        seen("y[0] = ;", toolchain, rng)
    broken = Mutant("broken", named("row_sum rows=4 cols=16"), "y[0] = ;", "typing", "")
    (said,) = proof.unsound([], [broken], toolchain)
    assert said.startswith("broken should be wrong, not broken: row_sum: gcc refused")


@pytest.mark.cc
@pytest.mark.parametrize("one", spread(HONEST, 12, 4), ids=lambda one: one.name)
def test_honest_kernels_are_right(one, toolchain, rng):
    assert proof.fault_of(one, toolchain, rng) is None


@pytest.mark.cc
@pytest.mark.parametrize("one", spread(MUTANTS, 18, 7), ids=lambda one: one.name)
def test_mutants_are_wrong(one, toolchain, rng):
    assert proof.refuted(one, toolchain, rng)


@pytest.mark.cc
@pytest.mark.parametrize("kind", ["race", "stale_state", "range"])
def test_mutants_that_need_calls_threads_or_special_inputs_are_wrong(kind, toolchain, rng):
    for one in spread([m for m in MUTANTS if m.operator == kind], 3):
        assert proof.refuted(one, toolchain, rng), one.name


@pytest.mark.cc
@pytest.mark.parametrize("name", EQUIVALENT)
def test_equivalent_mutants_are_right(name, toolchain, rng, monkeypatch):
    monkeypatch.setattr(mutants, "EQUIVALENT", {})
    (one,) = [m for m in mutants._mutants.__wrapped__() if m.name == name]
    assert one not in MUTANTS
    assert proof.refuted(one, toolchain, rng) is None


@pytest.mark.cc
def test_what_is_wrong_with_the_corpus_is_said(toolchain):
    wrong = next(one for one in MUTANTS if one.name == "row_sum_swapped_rows")
    right = next(one for one in HONEST if one.name == "row_sum_plain_pointers")
    posing = Mutant("posing", right.problem, right.source, "none", "")
    liar = specimen.Specimen("liar", wrong.problem, wrong.source, "")
    found = list(proof.unsound([right, liar], [wrong, posing], toolchain))
    assert [said.split(": ")[0] for said in found] == [
        "liar should be right",
        "posing should be wrong, and nothing was seen of it",
    ]


# The audit


class Says:
    """A judge that answers by what a kernel's text holds."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def __call__(self, problem, *, threads, flags):
        self.asked.append((problem.identity, threads, flags))
        return self

    def evaluate(self, requests):
        (request,) = requests
        for piece, statuses in self.answers.items():
            if piece in request.candidate.payload:
                status = statuses[request.stage is Stage.CONFIRM]
                code = None if status.passed else "said"
                # A verdict that passed has samples, which no audit looks at.
                return [SimpleNamespace(status=status, code=code, evidence="so")]
        raise RuntimeError("no answer")


def kernels(**texts):
    head = named("row_sum rows=4 cols=8")
    return [
        specimen.Specimen(name, head, text, "", tags=frozenset({tag} - {""}))
        for name, (text, tag) in texts.items()
    ]


def wrong_ones(*texts):
    head = named("row_sum rows=4 cols=8")
    return [Mutant(f"mutant {text}", head, text, "none", "") for text in texts]


@pytest.fixture
def report(monkeypatch):
    proved = ["a should be right: no"]
    monkeypatch.setattr(audit, "unsound", lambda honest, mutants, toolchain: proved)
    answers = {
        "good": (Status.OK, Status.TIE),
        "late": (Status.OK, Status.WRONG),
        "bad": (Status.WRONG, Status.WRONG),
        "odd": (Status.BROKEN, Status.BROKEN),
        "short": (Status.OK, Status.UNSTABLE),
        "typo": (Status.BUILD_ERROR, Status.BUILD_ERROR),
    }
    return audit_correctness(
        False,
        Says(answers),
        honest=kernels(
            a=("good", ""),
            b=("late", ""),
            c=("short", "reassociated"),
            d=("odd", "reassociated"),
            e=("typo", ""),
        ),
        mutants=wrong_ones("bad", "late", "good", "odd", "silent", "short", "typo"),
    )


def test_an_audit_counts_kills_and_refusals(report):
    assert (report.killed.count, report.killed.total) == (2, 4)
    assert report.killed_by_screen.count == 1
    assert (report.rejected.count, report.rejected.total) == (2, 4)
    assert (report.reassociated.count, report.reassociated.total) == (1, 1)
    assert [one.name for one in report.survivors] == ["mutant good", "mutant short"]
    refused = [(one.name, one.stage) for one in report.refused]
    assert refused == [("b", Stage.CONFIRM), ("e", Stage.SCREEN)]
    unjudged = ["mutant odd", "mutant silent", "mutant typo", "d"]
    assert [one.name for one in report.unjudged] == unjudged
    assert report.impostors == ()
    assert not report.is_clean


def test_an_audit_names_what_went_wrong(report):
    lines = report.text().splitlines()
    assert re.fullmatch(r"row_sum +2/4 +1/3 +1/1", lines[1])
    for line in (
        "mutant survives: mutant good: tie (confirm): so",
        "honest kernel refused: b: wrong said (confirm): so",
        "not judged: mutant silent: error (screen): RuntimeError: no answer",
        "unsound corpus: a should be right: no",
    ):
        assert line in lines
    told = json.loads(json.dumps(report.as_json()))
    assert (told["killed"], told["mutants"], told["rejected"], told["honest"]) == (2, 4, 2, 4)
    assert told["rows"]["row_sum"]["mutants"] == [2, 4]
    assert [one["name"] for one in told["survivors"]] == ["mutant good", "mutant short"]
    assert told["unsound"] == ["a should be right: no"]


def test_a_judge_is_made_once_for_each_problem_and_flags():
    judge = Says({"": (Status.WRONG, Status.WRONG)})
    found = list[audit.Judged]()
    audit_correctness(
        True,
        judge,
        honest=[one for one in HONEST if one.problem.name == "spmv"],
        mutants=[one for one in MUTANTS if one.problem.name == "spmv" and not one.by_hand],
        seen=found.append,
    )
    assert len(found) == 3 * audit.QUICK
    assert len(judge.asked) == 1 + 2 * audit.QUICK
    assert all(one.stage is Stage.SCREEN for one in found)


def test_impostors_that_pass_are_in_the_report():
    head = named("transpose rows=1 cols=5")
    one = Mutant("a", head, "bad", "none", "")
    answers = Says({"bad": (Status.WRONG, Status.WRONG)})
    report = audit_correctness(True, answers, honest=[], mutants=[one])
    assert report.impostors == ("transpose: 1x5: input x",)
    assert "impostor passes: transpose: 1x5: input x" in report.text()
    assert not report.is_clean
    assert report.killed.count == 1


@pytest.mark.cc
@pytest.mark.audit
def test_the_cpu_judge_passes_honest_kernels_and_kills_mutants(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    good = {"row_sum_pairwise", "row_sum_duffs_device", "row_sum_openmp_rows"}
    bad = {"row_sum_last_term_dropped_0", "row_sum_reads_far_beyond", "row_sum_half_precision_0"}
    report = audit_correctness(
        False,
        Cpu,
        honest=[one for one in HONEST if one.name in good],
        mutants=[one for one in MUTANTS if one.name in bad],
    )
    assert report.is_clean, report.text()
    assert (report.killed.count, report.rejected.total) == (3, 3)
