"""Files that are cut, ambiguous or made to do harm: what is read of them is true, or nothing is."""

from __future__ import annotations

import contextlib
import copy
import functools
import gzip
import itertools
import json
import math
import operator

import pytest

from kernelwright.env.landscape import WRITERS
from kernelwright.env.landscape import source as source_module
from kernelwright.env.landscape.open import read_landscape
from kernelwright.env.landscape.python_values import values_of
from kernelwright.env.landscape.record import (
    Entry,
    Failure,
    JsonText,
    Landscape,
    LandscapeError,
)
from kernelwright.env.landscape.save import best_name, convert, render
from kernelwright.env.landscape.source import Source
from kernelwright.env.landscape.t1 import from_t1, to_t1

ENTRIES = (
    Entry((("a", 1), ("b", "é")), (1.25, 2.5), metrics=(("é", 12.5),), unit="ms", cost_unit="ms"),
    Entry((("a", 2), ("b", "é")), error="é failed", failure=Failure.RUNTIME, unit="ms"),
    Entry((("a", 4), ("b", "y")), (3.125,), costs=(("compile", 33.5),), unit="ms", cost_unit="ms"),
)
SMALL = Landscape("é", "dev", (("x", 64),), ("a", "b"), ENTRIES, objectives=("time",))


def ktt(a, us):
    configuration = [{"Name": "a", "Value": a}]
    return {"Status": "Ok", "TotalDuration": us, "Configuration": configuration}


def t4(a, us):
    return {"configuration": {"a": a}, "times": {"runtimes": [us]}, "invalidity": "correct"}


def tvm(a, s):
    config = {"entity": [["k", "ot", a]]}
    return {"input": ["llvm", "é", [1], {}], "config": config, "result": [[s], 0, 1.5, 1.6e9]}


ABOUT = {"Device": "é", "TimeUnit": "Microseconds"}
FILES = {
    **{
        name: render(SMALL, form)[0]
        for name, form in (
            *(("a.jsonl", "jsonl"), ("a.json", "kernel_tuner")),
            *(("a_t4.json", "t4"), ("a.autotune.json", "triton")),
        )
    },
    "ktt.json": json.dumps({"Metadata": ABOUT, "Results": [ktt(1, 1.25), ktt(2, 2.5)]}),
    "last_ktt.json": json.dumps({"Results": [ktt(1, 1.25), ktt(2, 2.5)], "Metadata": ABOUT}),
    "last_t4.json": json.dumps(
        {"results": [t4(1, 1.25), t4(2, 2.5)], "metadata": {"timeunit": "microseconds"}}
    ),
    "helion.csv": "run_id,config,status,perf_ms,compile_time_s\n"
    'é,"Config(a=1, b=[2, 3])",ok,0.125,1.25\n'
    'é,"Config(a=2, b=[2, 3])",error,,1.25\n'
    'é,"Config(a=12, b=[2, 3])",ok,0.375,1.75\n',
    "tvm.log": "".join(json.dumps(tvm(a, 0.125 * a), ensure_ascii=False) + "\n" for a in (1, 2, 3)),
}


@pytest.mark.parametrize("name", FILES)
def test_of_a_file_cut_anywhere_what_is_read_is_true(tmp_path, name):
    data, path = FILES[name].encode(), tmp_path / name
    path.write_bytes(data)
    whole = read_landscape(path)
    most = 0
    for end in range(len(data)):
        path.write_bytes(data[:end])
        try:
            found = read_landscape(path)
        except LandscapeError:
            # Once something could be read, a longer piece of the file is never refused.
            assert not most, end
            continue
        assert len(found.entries) >= most, end
        most = len(found.entries)
        assert found.entries == whole.entries[:most], end
        # Only between two lines can nobody see that there were more.
        between = data[:end].endswith(b"\n") or data[end : end + 1] == b"\n"
        assert most == len(whole.entries) or between or "break" in "".join(found.notes), end


def test_a_cut_description_of_a_space_is_refused(tmp_path):
    parameters = [{"Name": "a", "Type": "int", "Values": "[1, 2]"}]
    conditions = [{"Expression": "a > 0", "Parameters": ["a"]}] * 2
    space = {"TuningParameters": parameters, "Conditions": conditions}
    data, path = json.dumps({"ConfigurationSpace": space}), tmp_path / "a.t1.json"
    for end in range(1, len(data)):
        path.write_text(data[:end])
        with pytest.raises(LandscapeError):
            from_t1(Source(path))


def lines(*rows, **header):
    return "\n".join(map(json.dumps, ({"kernel": "k", "knobs": ["a"], **header}, *rows))) + "\n"


def test_costs_of_several_units_stay_what_they_are(tmp_path):
    path, row = tmp_path / "a.jsonl", {"a": 1, "us": [1.0], "compile_ms": 3, "verify_s": 2}
    for header in ({}, {"cost_unit": "us"}):
        path.write_text(lines(row, **header))
        costs = read_landscape(path).entries[0].costs_s
        assert [(n, pytest.approx(s)) for n, s in costs] == [("compile_s", 0.003), ("verify_s", 2)]
    path.write_text(lines(row | {"compile_s": 1}))
    with pytest.raises(LandscapeError, match=r"a\.jsonl:2: compile: expected it in one"):
        read_landscape(path)


def test_names_that_stand_twice_are_told(tmp_path):
    path = tmp_path / "a.json"
    text = FILES["a.json"].replace('"2,é": {"a": 2', '"1,é": {"a": 1')
    path.write_text(text)
    assert read_landscape(path).notes == (
        "1 name stands more than once ('1,é'): the last value counts",
    )
    path = tmp_path / "a.jsonl"
    path.write_text('{"kernel": "k", "knobs": ["a"]}\n{"a": 1, "a": 2, "us": [1], "us": [2]}\n')
    assert read_landscape(path).notes == (
        "2 names stand more than once ('a', 'us'): the last value counts",
    )


def test_a_packed_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(source_module, "MAX_BYTES", 10_000)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b" " * 10_001))
    with pytest.raises(LandscapeError, match="expected at most 10,000 bytes, found more"):
        Source(path)
    path.write_bytes(gzip.compress(b"x" * 10_000))
    assert len(Source(path).text) == 10_000
    path.write_bytes(b"x" * 10_001)
    with pytest.raises(LandscapeError, match="expected at most 10,000 bytes, found more"):
        Source(path)
    path.write_bytes(gzip.compress(b"x" * 100)[:-9])
    with pytest.raises(LandscapeError, match="damaged data"):
        Source(path)


def test_one_row_does_not_stand_for_a_billion(tmp_path):
    path, knobs = tmp_path / "a.jsonl", [f"k{i}" for i in range(8)]
    rows = [{**dict.fromkeys(knobs, i), "us": [1.0]} for i in range(20)]
    path.write_text(lines(*rows, {"error": "x"}, knobs=knobs))
    with pytest.raises(LandscapeError, match=r"a\.jsonl:22: expected at most 1,000,000"):
        read_landscape(path)


@pytest.mark.parametrize(
    "text",
    [
        "[[i for i in range(100000)] for j in range(100000)]",
        "[i for i in range(100000) if [j for j in range(100000)]]",
        "[" + "-" * 90_000 + "1]",
        "[" + "1+" * 40_000 + "1]",
    ],
)
def test_values_that_take_for_ever_are_refused(text):
    with pytest.raises(ValueError, match="expected"):
        values_of(text)
    assert len(values_of("[16 * i for i in range(1, 1000) if i % 2 == 0]")) == 499


@pytest.mark.parametrize(
    "config",
    [
        "Config(a=" + "-" * 90_000 + "1)",
        "Config(a=" + "1+" * 30_000 + "1)",
        "Config(a=" + "x" * 200_000 + ")",
        "Config(a=1j)",
        "Config(a=b'x')",
        "Config(a=[{1, 2}])",
        "Config(a={'b': 1})",
        "Config(a='\\ud800')",
        '{""a"": ' + "[" * 50_000 + "}",
    ],
)
def test_configurations_that_are_none_are_refused(tmp_path, config):
    path = tmp_path / "a.csv"
    row = f'r,"{config}",ok,0.5,1.0\n'
    path.write_text("run_id,config,status,perf_ms,compile_time_s\n" + row + row)
    with pytest.raises(LandscapeError, match=r"a.csv:\d+: expected a row of a Helion log"):
        read_landscape(path)


def test_a_deep_document_is_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"results": [{"a": ' + "[" * 100_000 + "]" * 100_000 + '}, {"b": {')
    with pytest.raises(LandscapeError, match="expected JSON: maximum recursion"):
        read_landscape(path)


def test_a_conversion_leaves_what_it_reads(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(FILES["a.json"])
    (tmp_path / "link.json").symlink_to(path)
    (tmp_path / "hard.json").hardlink_to(path)
    for other in ("a.json", "link.json", "hard.json"):
        for form in ("kernel_tuner", "triton", "t1"):
            with pytest.raises(LandscapeError, match="expected another file than the one that is"):
                convert(path, tmp_path / other, form)
    assert path.read_text() == FILES["a.json"]


def test_what_triton_and_t1_do_not_hold_is_told():
    entry = Entry(
        (("a", 1),), (1.0,), metrics=(("gflops", 2.0), ("p20", 1)), timestamp="2026", unit="ms"
    )
    found = Landscape(
        *("k", "dev", (("m", 8),), ("a",), (entry,), "cublas", (1.0,), entry.knobs),
        values=((1, "x"),),
        metadata=(("tuner", "x"), ("key", "y")),
    )
    metadata, library = "metadata: tuner", "the times of the library 'cublas'"
    assert render(found, "triton")[1] == (
        *("metrics: gflops", "times of day", "the device 'dev'", library),
        *("the default configuration", "the names of the extents", metadata),
        "values that no configuration has, of a",
    )
    assert render(found, "t1")[1] == (
        *("the results of all 1 configurations", "the device 'dev'", library),
        f"{metadata}, key",
        "the types of the values of a, which are of several",
    )


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("triton", ("warps", "num_warps")),
        ("helion", ("stages", "num_stages")),
        ("helion", ("block_sizes", "block_sizes_0")),
        ("helion", ("block_sizes_0", "block_sizes")),
        ("helion", ("block_sizes_0", "block_sizes_2")),
    ],
)
def test_two_knobs_do_not_become_one(form, names):
    knobs = tuple(sorted((name, value) for value, name in enumerate(names)))
    with pytest.raises(LandscapeError, match="expected"):
        render(Landscape("k", "", (), names, (Entry(knobs, (1.0,)),)), form)


def test_places_of_helions_lists_are_put_by_their_number():
    knobs = tuple(sorted((f"block_sizes_{place}", 2**place) for place in range(11)))
    names = tuple(name for name, _ in knobs)
    best = json.loads(render(Landscape("k", "", (), names, (Entry(knobs, (1.0,)),)), "helion")[0])
    assert json.loads(best["config"]) == {"block_sizes": [2**place for place in range(11)]}


@pytest.mark.parametrize("form", ["kernel_tuner", "t4"])
@pytest.mark.parametrize("ran", [True, False])
def test_a_metric_in_words_is_not_taken_for_an_error(tmp_path, form, ran):
    way = {"times": (1.0,)} if ran else {"error": "x", "failure": Failure.RUNTIME}
    entry = Entry((("a", 1),), metrics=(("speed", "high"),), unit="ms", cost_unit="ms", **way)
    found = Landscape("k", "", (), ("a",), (entry,), objectives=("time", "speed"))
    if form == "t4" and ran:
        (tmp_path / "a_t4.json").write_text(render(found, form)[0])
        assert read_landscape(tmp_path / "a_t4.json") == found
        return
    with pytest.raises(LandscapeError, match="expected other names than speed"):
        render(found, form)


@pytest.mark.parametrize(("form", "unit"), [("kernel_tuner", "ns"), ("triton", "ns")])
def test_a_time_does_not_become_nothing(form, unit):
    entry = Entry((("a", 1),), (5e-324,), unit=unit)
    with pytest.raises(LandscapeError, match="expected a time that its unit can hold"):
        render(Landscape("k", "", (), ("a",), (entry,)), form)


def test_a_problem_size_in_the_metadata_does_not_become_extents(tmp_path):
    entry = Entry((("a", 1),), (1.0,), unit="ms", cost_unit="ms")
    for extents in ((), (("m", 8),), (("x", 8),)):
        found = Landscape("k", "", extents, ("a",), (entry,), metadata=(("problem_size", 8),))
        (tmp_path / "a.json").write_text(render(found, "kernel_tuner")[0])
        assert read_landscape(tmp_path / "a.json") == found
    odd = Landscape("k", "", (), ("a",), (entry,), metadata=(("problem_size", JsonText("[8]")),))
    with pytest.raises(LandscapeError, match="other names than problem_size"):
        render(odd, "kernel_tuner")


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("matmul_kernel", "matmul_kernel"),
        ("../../etc/cron", "_.._etc_cron"),
        ("/tmp/x", "_tmp_x"),
        ("..", "kernel"),
        ("", "kernel"),
        ("a\0b\nc", "a_b_c"),
        ("é" * 300, "é" * 100),
        ("a" + "é" * 300, "a" + "é" * 99),
    ],
)
def test_a_kernels_name_leads_nowhere_else(kernel, name):
    assert best_name(kernel, "triton", "") == f"{name}.autotune.json"


JUNK = (None, True, -1, 1.5, math.nan, 10**400, "", "x", [], [1], [[1]], {}, {"x": {"y": [1]}})
WHOLE = {
    "a.json": json.loads(FILES["a.json"]),
    "a.autotune.json": json.loads(FILES["a.autotune.json"]),
    "a.jsonl": [
        {
            "kernel": "k",
            "gpu": "d",
            "knobs": ["a"],
            "values": {"a": [1, 2]},
            "m": 5,
            "default": {"a": 1},
            "objectives": ["time"],
            "metadata": {"z": 1},
            "cublas_us": [1],
        },
        {"a": 1, "us": [1.0], "compile_s": 1, "regs": 1, "err": 0.1, "metrics": {"g": 1}},
        {"a": 2, "error": "x", "failure": "runtime"},
    ],
    "tvm.log": [tvm(1, 0.125), tvm(2, 0.25)],
    "ktt.json": {
        "Metadata": ABOUT,
        "Results": [
            ktt(1, 1.25)
            | {
                "ComputationResults": [
                    {
                        "KernelFunction": "f",
                        "Duration": 1.0,
                        "CompilationData": {"RegistersCount": 3},
                        "ProfilingData": {"Counters": [{"Name": "c", "Value": 1}]},
                    }
                ]
            }
        ],
    },
    "a_t4.json": {
        "metadata": {
            "timeunit": "ms",
            "tune_params": {"a": [1, 2]},
            "device": "d",
            "kernelwright": {"extents": {"m": 1}, "library": "x", "library_ns": [1.0]},
        },
        "results": [t4(1, 1.0) | {"measurements": [{"name": "g", "value": 1}]}],
    },
    "a.t1.json": {
        "General": {"FormatVersion": 1},
        "ConfigurationSpace": {
            "TuningParameters": [{"Name": "a", "Type": "int", "Values": [1, 2], "Default": 1}],
            "Conditions": [{"Expression": "a > 0", "Parameters": ["a"]}],
        },
        "KernelSpecification": {"KernelName": "k", "ProblemSize": [1, 2]},
    },
}


def places(value, path=()):
    """The paths to everything in a JSON value."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else ()
    for key, each in enumerate(value) if isinstance(value, list) else items:
        yield from places(each, (*path, key))


@pytest.mark.parametrize("name", WHOLE)
def test_another_kind_of_value_anywhere_is_read_or_refused(tmp_path, name):
    """Each value of a file in turn is another one, or missing: never a traceback."""
    path, whole = tmp_path / name, WHOLE[name]
    for place, junk in itertools.product(places(whole), (*JUNK, ...)):
        changed = copy.deepcopy(whole)
        at = functools.reduce(operator.getitem, place[:-1], changed)
        if junk is ...:
            del at[place[-1]]
        else:
            at[place[-1]] = junk
        rows = changed if isinstance(changed, list) else [changed]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with contextlib.suppress(LandscapeError):
            if name == "a.t1.json":
                to_t1(from_t1(Source(path)))
                continue
            found = read_landscape(path)
            for form in WRITERS:
                with contextlib.suppress(LandscapeError):
                    render(found, form)
