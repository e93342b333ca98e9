"""`kernelwright.autotune`: buckets, padding, choices that are found, pinned and made."""

from __future__ import annotations

import functools
import json
import logging
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import kernelwright
from kernelwright.configs import tuner
from kernelwright.configs.autotuned import Autotuned, NotTunedError, TuningWarning
from kernelwright.configs.buckets import Buckets, cropped, paddable, padded, shapes_of
from kernelwright.configs.dispatch import Executed
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.resolve import resolve
from kernelwright.configs.scaffold import scaffold
from kernelwright.configs.tables import export_table
from kernelwright.env.compiler.runtime import toolchain
from kernelwright.env.compiler.runtime.call import CallError
from kernelwright.env.compiler.runtime.toolchain import BuildError, find_toolchain
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.matmul import matmul as make_matmul
from kernelwright.env.types import Workload

try:
    TOOLCHAIN = find_toolchain()
except BuildError:
    TOOLCHAIN = None
needs_cc = pytest.mark.skipif(TOOLCHAIN is None, reason="no C compiler on this machine")
MODEL = {"target": "cpu-model", "budget": {"trials": 6}, "driver": "random"}
QUICK = {
    "screen": {"pairs": 1},
    "race": {"rounds": 0},
    "confirm": {"finalists": 1, "process_pairs": 2, "pairs": 1},
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def tuned(key="mnk", problem="matmul", **settings):
    return kernelwright.autotune(key=tuple(key), problem=problem, cache="known", **settings)


def operands(m, n, k, dtype=np.float32):
    rng = np.random.default_rng(m + n + k)
    return rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)


@pytest.fixture
def searches(monkeypatch):
    """How many searches there were."""
    seen = []

    class Watched(tuner.Search):
        def run(self):
            seen.append(self.plan)
            return super().run()

    monkeypatch.setattr(tuner, "Search", Watched)
    return seen


def close(a, b, got):
    return got.shape == (a.shape[0], b.shape[1]) and np.allclose(got, a @ b, rtol=1e-4, atol=1e-4)


# Buckets and padding


def test_extents_are_rounded_up():
    buckets = Buckets(("m", "n", "k"), {"n": (48, 96), "k": "exact"})
    assert buckets.of({"m": 33, "n": 33, "k": 33, "t": 7}) == {"m": 64, "n": 48, "k": 33, "t": 7}
    assert buckets.of({"m": 64, "n": 96, "k": 1, "t": 7})["m"] == 64
    assert buckets.of({"m": 1, "n": 97, "k": 1, "t": 7}) is None
    assert [Buckets(("m",), "powers").of({"m": m})["m"] for m in (1, 2, 3, 1025)] == [1, 2, 4, 2048]


@pytest.mark.parametrize("rule", ["power", (), (4, 2), (2, 2), (0, 4), (2.5,), (True,)])
def test_rules_that_are_none_are_refused(rule):
    with pytest.raises(ConfigError, match=r"buckets\.m: expected powers, exact or sizes"):
        Buckets(("m",), rule)
    with pytest.raises(ConfigError, match="expected extents of the key"):
        Buckets(("m",), {"j": "exact"})


# By hand: where zeros behind the inputs leave the answers as they are. Whole numbers never are
# padded, as they may be indices (spmv) or counted (histogram).
PADDABLE = {
    "batched_matmul": {"batch", "m", "n", "k"},
    "blur": {"h", "w"},
    "box4": {"h", "w"},
    "column_sum": {"rows", "cols"},
    "conv2d_nchw": {"images", "channels", "filters", "h", "w"},
    "conv2d_nhwc": {"images", "channels", "filters", "h", "w"},
    "conv3x3": {"h", "w"},
    "depthwise": {"channels", "h", "w"},
    "gauss_seidel": set(),
    "gelu": {"n"},
    "histogram": set(),
    "jacobi1d": set(),
    "jacobi2d": set(),
    "layer_norm": {"rows"},
    "matmul": {"m", "n", "k"},
    "prefix_sum": {"n"},
    "pyramid": set(),
    "row_sum": {"rows", "cols"},
    "softmax": {"rows"},
    "spmv": set(),
    "transpose": {"rows", "cols"},
    "unsharp": {"h", "w"},
}


@pytest.mark.parametrize("name", PADDABLE)
def test_only_what_leaves_the_answers_is_padded(name):
    factory = resolve(PROBLEMS, name)
    steps = {"t": 3}
    fixed = {
        "histogram": {"bins": 8},
        "jacobi1d": steps,
        "jacobi2d": steps,
        "gauss_seidel": steps,
    }.get(name, {})
    names = [n for n, _ in factory().workloads[0].extents if n not in fixed]
    wanted = {n if n in names else {"rows": "m", "cols": "n"}.get(n, n) for n in PADDABLE[name]}
    assert paddable(functools.partial(factory, **fixed), names) == wanted


def test_padded_inputs_give_the_outputs_when_they_are_cropped():
    problem, extents = make_matmul(m=3, n=4, k=5), {"m": 3, "n": 4, "k": 5}
    given = problem.inputs(Workload(tuple(extents.items())), np.random.default_rng(0))
    larger = {"m": 4, "n": 8, "k": 8}
    more = padded(given, shapes_of(problem, "input", larger))
    assert more["A"].shape == (4, 8)
    assert np.array_equal(more["A"][:3, :5], given["A"])
    assert not more["A"][3:].any()
    found = cropped(problem.reference(more), shapes_of(problem, "output", extents))
    assert np.allclose(found["C"], problem.reference(given)["C"])
    assert padded(given, shapes_of(problem, "input", extents))["A"] is given["A"]


# What is refused at once


REFUSED = [
    ({"key": ("m", "n", "q")}, "expected extents of matmul"),
    ({"key": ("m", "n")}, "k in neither"),
    ({"budget": {"trails": 5}}, "expected one of the keys"),
    ({"target": "cpux"}, "did you mean 'cpu'"),
    ({"problem": {"name": "matmul", "dtype": "f"}}, "problem.dtype"),
    ({"on_miss": "guess"}, "expected tune, baseline or error"),
    ({"frozen": True}, "table: expected a table where choices are frozen"),
    (
        {"frozen": True, "table": "t.json", "on_miss": "tune"},
        "on_miss: expected baseline",
    ),
    ({"table": "none.json"}, "expected a table as JSON"),
    ({"problem": "matmull"}, "did you mean 'matmul'"),
]


@pytest.mark.parametrize(("settings", "words"), REFUSED)
def test_settings_are_refused_when_the_function_is_made(settings, words):
    with pytest.raises(ConfigError, match=words.replace("'", ".")):
        tuned(**{"key": "mnk", **settings})


# Choices


@needs_cc
def test_a_miss_tunes_once_a_bucket_and_never_again(searches):
    matmul = tuned(**MODEL)
    assert matmul.choices() == []
    assert matmul.tuned(m=20, n=20, k=20) is None
    for m, n, k in ((20, 17, 30), (32, 32, 32), (17, 20, 31)):
        a, b = operands(m, n, k)
        assert close(a, b, matmul(a, b))
        assert close(a, b, matmul(B=b, A=a))
    assert len(searches) == 1
    (row,) = matmul.choices()
    assert row == matmul.tuned(m=20, n=20, k=20)
    assert (row["extents"], row["evaluations"]) == ({"m": 32, "n": 32, "k": 32}, 6)
    assert row["baseline"] == "unscheduled"
    # Another function, as in another process.
    again = tuned(**MODEL)
    assert close(a, b, again(a, b))
    assert len(searches) == 1
    a, b = operands(33, 32, 32)
    assert close(a, b, again(a, b))
    assert len(searches) == 2
    assert [r["extents"]["m"] for r in again.choices()] == [32, 64]


def test_another_process_finds_the_choice():
    code = (
        "import sys, kernelwright\n"
        "from kernelwright.configs import tuner\n"
        "if sys.argv[1] == 'again':\n"
        "    tuner.Search = None\n"
        "f = kernelwright.autotune(problem='matmul', key=('m', 'n', 'k'), cache='known',\n"
        "    target='cpu-model', budget={'trials': 4}, driver='random')\n"
        "row = f.tuned(m=9, n=9, k=9) or f.tune(m=9, n=9, k=9)\n"
        "print(row['means'])\n"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-P", "-c", code, word], capture_output=True, text=True, check=True
        ).stdout
        for word in ("first", "again")
    )
    assert first == second != ""


def test_a_search_is_told_of_and_on_stderr_if_it_is_slow(caplog, monkeypatch):
    seen = []
    matmul = tuned(observe=seen.append, **MODEL)
    with caplog.at_level(logging.INFO, "kernelwright"):
        matmul.tune(m=8, n=8, k=8)
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]
    begins, ends = caplog.messages
    assert begins.startswith("matmul m=8, n=8, k=8: tuning on cpu-lecture, at most 6 trials")
    assert re.match(r"matmul m=8, n=8, k=8: 6 trials, (win|tie|loss): .* after \d+\.\d s$", ends)
    assert [progress.trials for progress in seen if progress.phase == "search"][-1] == 6
    caplog.clear()
    # As of a call that takes long, by a user who has set up no logging.
    search = tuner.Search.run
    monkeypatch.setattr(tuner, "SLOW_S", 0.0)
    monkeypatch.setattr(tuner.Search, "run", lambda self: told.wait(10) and search(self))
    told = threading.Event()
    monkeypatch.setattr(tuner._LOG, "warning", watched(tuner._LOG.warning, told))
    matmul.tune(m=9, n=9, k=9)
    assert len(caplog.messages) == 2
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert caplog.messages[0].endswith(f"kept in {Path('known').absolute()}")


def test_a_search_that_is_cut_short_is_told_of_too(caplog, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuner.Search, "run", interrupted)
    with caplog.at_level(logging.INFO, "kernelwright"), pytest.raises(KeyboardInterrupt):
        tuned(**MODEL).tune(m=8, n=8, k=8)
    assert "matmul m=8, n=8, k=8: not tuned, after" in caplog.messages[-1]


def watched(tell, told):
    def both(*words):
        tell(*words)
        told.set()

    return both


def test_threads_that_miss_at_once_tune_once(searches):
    matmul = tuned(**MODEL)
    barrier, found = threading.Barrier(4), []

    def call():
        a, b = operands(8, 8, 8)
        barrier.wait()
        found.append(close(a, b, matmul(a, b)))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [True] * 4
    assert len(searches) == 1


def test_an_interrupted_search_is_served_to_the_next(monkeypatch, searches):
    matmul = tuned(**MODEL)

    def interrupted(self, *args, **named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("kernelwright.search.campaign.Campaign._finals", interrupted)
        with pytest.raises(KeyboardInterrupt):
            matmul(*operands(8, 8, 8))
    assert matmul.choices() != []  # a search that stopped has a choice, if not a claim
    row = matmul.tune(m=8, n=8, k=8)
    # The claim goes before the guess, whatever it says.
    assert row["served"] == 6
    assert row["status"] in ("win", "tie", "loss")


def test_what_a_miss_does_is_chosen(searches):
    a, b = operands(8, 8, 8)
    calls = []

    @kernelwright.autotune(key=("m", "n", "k"), cache="known", on_miss="baseline", **MODEL)
    def matmul(left, right):
        """A product."""
        calls.append(left.shape)
        return left @ right

    assert isinstance(matmul, Autotuned)
    assert (matmul.__name__, matmul.__doc__) == ("matmul", "A product.")
    assert np.array_equal(matmul(a, b), a @ b)
    assert calls == [(8, 8)]
    with pytest.raises(NotTunedError, match="matmul: expected a choice for m=8, n=8, k=8, found"):
        tuned(on_miss="error", **MODEL)(a, b)
    assert np.allclose(tuned(on_miss="baseline", **MODEL)(a, b), a @ b, atol=1e-5)
    beyond = tuned(buckets=(4,), on_miss="error", **MODEL)
    assert beyond.bucket(m=8, n=8, k=8) is None
    with pytest.raises(NotTunedError):
        beyond(a, b)
    assert searches == []


def test_inputs_that_do_not_fit_are_refused():
    matmul = tuned(on_miss="baseline", **MODEL)
    a, b = operands(8, 8, 8)
    with pytest.raises(CallError, match="axis 0 of B: expected 8"):
        matmul(a, b[:5])
    with pytest.raises(CallError, match="expected float32"):
        matmul(a.astype(np.float64), b)
    with pytest.raises(CallError, match="expected extents m, n, k"):
        matmul.tuned(m=8, n=8)
    fixed = tuned("mn", {"name": "matmul", "k": 16}, on_miss="baseline", **MODEL)
    with pytest.raises(CallError, match="expected k=16, which is not in the key, found 8"):
        fixed(a, b)
    assert fixed.bucket(m=5, n=6) == {"m": 8, "n": 8, "k": 16}


# Pinned choices


@pytest.fixture
def table():
    """A table with a win for 8 x 8 x 8, as another run has exported it."""
    tuned(**MODEL).tune(m=8, n=8, k=8)
    data = json.loads(export_table(["known"]))
    (row,) = data["rows"]
    row |= {"status": "win", "speedup": 2.0, "ci_low": 1.9, "ci_high": 2.1, "library_high": None}

    def write(**changes):
        Path("t.json").write_text(json.dumps({**data, "rows": [{**row, **changes}]}))
        return row | changes

    write()
    return write


@needs_cc
def test_a_frozen_table_decides_alone(table, searches, monkeypatch):
    row = table()
    used = []
    call = Executed.__call__

    def watched(self, *args):
        used.append(self)
        return call(self, *args)

    monkeypatch.setattr(Executed, "__call__", watched)
    frozen = tuned(table="t.json", frozen=True, **MODEL)
    assert frozen.tuned(m=5, n=6, k=7) == row
    assert frozen.choices() == [row]
    for shape in ((8, 8, 8), (5, 6, 7)):
        a, b = operands(*shape)
        assert close(a, b, frozen(a, b))
    # One kernel for both: the smaller operands are padded.
    assert len(used) == 2
    assert used[0] is used[1]
    a, b = operands(9, 9, 9)
    assert close(a, b, frozen(a, b))
    assert len(used) == 2
    with pytest.raises(ConfigError, match="expected choices that are not frozen"):
        frozen.tune(m=8, n=8, k=8)
    assert searches == []
    # What the cache learns later changes nothing.
    table(configuration="another", status="tie")
    assert frozen.tuned(m=8, n=8, k=8) == row


@pytest.mark.parametrize(
    "change",
    [
        {"device": "another machine"},
        {"toolchain": "gcc 1"},
        {"problem": "matmul@9"},
        {"options": {"dtype": "float64"}},
    ],
)
def test_rows_of_another_device_or_problem_are_refused(table, change):
    table(**change)
    with pytest.raises(ConfigError, match=r"t?able: expected rows of matmul@1 on cpu-lecture"):
        tuned(table="t.json", frozen=True, **MODEL)
    # Where choices are not frozen they are as good as none.
    assert tuned(table="t.json", **MODEL).tuned(m=8, n=8, k=8)["device"] == "cpu-lecture"


def test_a_row_whose_configuration_means_something_else_by_now_is_none(table):
    table(means="schedule:of another sketch")
    assert tuned(table="t.json", frozen=True, **MODEL).tuned(m=8, n=8, k=8) is None


@pytest.mark.parametrize("change", [{"status": "loss"}, {"speedup": 0.9}, {"library_high": 0.8}])
def test_a_choice_that_is_slower_is_not_used(table, change, monkeypatch):
    table(**change)
    monkeypatch.setattr(Executed, "__call__", None)
    frozen = tuned(table="t.json", frozen=True, **MODEL)
    a, b = operands(8, 8, 8)
    assert close(a, b, frozen(a, b))


@needs_cc
def test_a_kernel_that_disagrees_is_left_for_the_function(table, monkeypatch):
    table()
    computed = Executed._computed

    def wrong(self, arrays, extents):
        return {name: array + 1 for name, array in computed(self, arrays, extents).items()}

    monkeypatch.setattr(Executed, "_computed", wrong)
    frozen = tuned(table="t.json", frozen=True, **MODEL)
    a, b = operands(8, 8, 8)
    with pytest.warns(TuningWarning, match="the tuned kernel differs from the reference"):
        assert close(a, b, frozen(a, b))
    assert close(a, b, frozen(a, b))  # without another warning
    a, b = operands(7, 8, 8)
    with pytest.warns(TuningWarning):
        assert close(a, b, frozen(a, b))


@needs_cc
def test_a_function_that_computes_something_else_is_an_error(table):
    table()

    @tuned(table="t.json", frozen=True, **MODEL)
    def matmul(left, right):
        return left @ right + 1

    with pytest.raises(CallError, match="matmul: expected a function that computes matmul@1"):
        matmul(*operands(8, 8, 8))


@needs_cc
def test_inputs_that_check_nothing_leave_the_check_for_later(table):
    table()
    frozen = tuned(table="t.json", frozen=True, **MODEL)
    a, b = operands(8, 8, 8)
    odd = a.copy()
    odd[0, 0] = np.nan
    assert np.isnan(frozen(odd, b)[0]).all()
    (executed,) = frozen._kernels.values()
    assert not executed._is_checked
    assert close(a, b, frozen(a, b))
    assert executed._is_checked


def test_without_a_compiler_the_function_answers_and_says_so_once(monkeypatch, searches):
    monkeypatch.setattr(toolchain, "_command", lambda name: None)
    a, b = operands(8, 8, 8)

    @kernelwright.autotune(key=("m", "n", "k"), cache="known")
    def matmul(left, right):
        return left @ right

    with pytest.warns(TuningWarning, match="not tuned without a C compiler"):
        assert np.array_equal(matmul(a, b), a @ b)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in ((8, 8, 8), (40, 8, 8)):
            assert close(*operands(*shape), matmul(*operands(*shape)))
    assert searches == []


def test_a_search_that_fails_leaves_the_function(monkeypatch):
    def fails(self):
        raise OSError("no room")

    monkeypatch.setattr(tuner.Search, "run", fails)
    matmul, (a, b) = tuned(**MODEL), operands(8, 8, 8)
    with pytest.warns(TuningWarning, match="m=8, n=8, k=8 is not tuned: no room"):
        assert close(a, b, matmul(a, b))
    assert close(a, b, matmul(a, b))


# On this machine


@needs_cc
@pytest.mark.cc
def test_kernels_of_this_machine_are_tuned_kept_and_called(searches):
    def made():
        return tuned(
            ("rows", "cols"), "row_sum", budget={"trials": 3}, judge=QUICK, driver="random"
        )

    row_sum, x = made(), np.random.default_rng(0).standard_normal((60, 50)).astype(np.float32)
    assert np.allclose(row_sum(x), x.sum(axis=1), atol=1e-4)
    (row,) = row_sum.choices()
    assert (row["evidence"], row["extents"]) == ("measured", {"rows": 64, "cols": 64})
    assert TOOLCHAIN.version in row["toolchain"]
    assert np.allclose(made()(x), x.sum(axis=1), atol=1e-4)
    assert len(searches) == 1
    # A pinned win is executed, padded, whatever the clock said of it here.
    data = {"format": 1, "rows": [{**row, "status": "win", "speedup": 2.0, "library_high": None}]}
    Path("t.json").write_text(json.dumps(data))
    frozen = tuned(("rows", "cols"), "row_sum", table="t.json", frozen=True)
    assert np.allclose(frozen(x), x.sum(axis=1), atol=1e-4)
    assert [k._extents for k in frozen._kernels.values()] == [{"rows": 64, "cols": 64}]


BROKEN = [
    (lambda row: row.pop("means"), "row 1: means: expected text, found nothing"),
    (lambda row: row.pop("baseline"), "row 1: baseline: expected text or null, found nothing"),
    (lambda row: row.update(speedup=None), "row 1: speedup: expected a number, found None"),
    (lambda row: row.update(speedup=float("nan")), "row 1: speedup: expected a number, found nan"),
    (lambda row: row.update(library_high="x"), "library_high: expected a number or null"),
    (lambda row: row.update(target=3), "row 1: target: expected a mapping, found 3"),
    (lambda row: row.update(extents=[]), "row 1: extents: expected sizes by name"),
    (lambda row: row.update(extents={"m": "x"}), "row 1: invalid literal"),
    (lambda row: row.update(status="good"), "row 1: 'good' is not a valid"),
]


@pytest.mark.parametrize("place", range(len(BROKEN)))
def test_a_row_that_is_not_whole_is_refused_when_the_table_is_read(table, place):
    change, message = BROKEN[place]
    row = table()
    change(row)
    Path("t.json").write_text(json.dumps({"format": 1, "rows": [row]}))
    with pytest.raises(ConfigError, match=message):
        tuned(table="t.json", on_miss="baseline", **MODEL)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": 1, "rows": {}}'])
def test_what_is_no_table_is_refused(text, tmp_path):
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="expected a table"):
        tuned(table=path, on_miss="baseline", **MODEL)


def test_of_nothing_the_function_s_answer_is_given_and_nothing_is_searched(searches):
    matmul = tuned(**MODEL)
    empty = matmul(np.ones((0, 30), np.float32), np.ones((30, 25), np.float32))
    assert empty.shape == (0, 25)
    none = matmul(np.ones((2, 0), np.float32), np.ones((0, 3), np.float32))
    assert none.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert searches == []


def test_extents_are_whole_numbers_of_any_kind():
    matmul = tuned(on_miss="baseline", **MODEL)
    assert matmul.bucket(m=np.int64(17), n=32, k=31) == {"m": 32, "n": 32, "k": 32}
    for wrong in (0, -4, True, 3.0):
        with pytest.raises(CallError, match="expected extents m, n, k of at least 1"):
            matmul.bucket(m=wrong, n=32, k=31)


@needs_cc
@pytest.mark.cc
def test_a_template_s_choice_is_executed_kept_and_pinned(searches, monkeypatch):
    scaffold("knn")
    executed = []
    call = Executed.__call__
    monkeypatch.setattr(
        Executed, "__call__", lambda self, *args: executed.append(self) or call(self, *args)
    )
    knobs = {"ROWS": [1, 2], "COLS": [2], "LANES": [4]}
    settings = {
        "key": ("m", "n", "d"),
        "problem": "knn/knn.py:make",
        "space": {"kind": "template", "file": "knn/knn.c", "knobs": knobs},
        "cache": "known",
        "judge": QUICK,
        "driver": "random",
    }
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((rows, 30)).astype(np.float32) for rows in (7, 16))
    wanted = ((x[:, None] - y) ** 2).sum(axis=2)
    row = kernelwright.autotune(**settings, budget={"trials": 2}).tune(m=7, n=16, d=30)
    assert row["extents"] == {"m": 8, "n": 16, "d": 32}
    assert len(searches) == 1
    # A win, whatever the clock said of it here.
    data = {"format": 1, "rows": [{**row, "status": "win", "speedup": 2.0, "library_high": None}]}
    Path("t.json").write_text(json.dumps(data))
    for pinned in ({"table": "t.json"}, {"table": "t.json", "frozen": True}):
        knn = kernelwright.autotune(**settings, **pinned)
        np.testing.assert_allclose(knn(x, y), wanted, rtol=1e-5)
    assert len(executed) == 2
    assert len(searches) == 1
    # Another text is another program, of which nothing is known.
    text = Path("knn/knn.c")
    text.write_text(f"{text.read_text()}static const int more = 0;\n")
    frozen = kernelwright.autotune(**settings, table="t.json", frozen=True)
    assert frozen.tuned(m=7, n=16, d=30) is None
