from __future__ import annotations

import gzip
import json
import math

import numpy as np
import pytest

from kernelwright.env.landscape.jsonl import read_jsonl
from kernelwright.env.landscape.open import locate, open_landscape, shipped_landscapes
from kernelwright.env.landscape.record import Entry, Failure, LandscapeError
from kernelwright.env.landscape.save import save

# Best time in us, and how many configurations are within 5% and 2x of it: the data's own README.
KNOWN = {
    "h200_gemm_4096x4096x4096": (192.2, 14, 422, 5.35),
    "h200_gemm_2048x14336x4096": (338.2, 10, 367, 5.52),
    "h200_gemm_16x14336x4096": (29.7, 85, 1348, 3.39),
    "h200_gemm_512x512x16384": (32.9, 2, 209, 6.85),
}
HEADER = {"kernel": "toy", "m": 8, "gpu": "NVIDIA H200", "unit": "us"}


def write(path, rows, header=HEADER):
    path.write_text("\n".join(json.dumps(row) for row in [header, *rows]) + "\n")
    return path


@pytest.mark.parametrize("name", KNOWN)
def test_the_shipped_landscapes_are_whole(name):
    landscape = open_landscape(locate(name))
    times = np.array([entry.true_ns for entry in landscape.entries]) / 1e3
    best, near, double, median = KNOWN[name]
    assert len(times) == 5400
    assert int(np.isnan(times).sum()) == 201
    ran = times[~np.isnan(times)]
    assert round(ran.min(), 1) == best
    assert ((ran <= 1.05 * ran.min()).sum(), (ran <= 2 * ran.min()).sum()) == (near, double)
    assert round(np.median(ran) / ran.min(), 2) == median
    assert landscape.library == "cublas"
    assert len(landscape.library_ns) == 15


# The same of fused attention: its library is PyTorch's own, and eight configurations do not fit.
ATTENTION = {
    "h200_attention_32x4096x128_causal": (387.3, 1, 59, 2.89),
    "h200_attention_32x4096x128_full": (596.4, 5, 64, 3.33),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_the_shipped_attention_is_whole(name):
    landscape = open_landscape(locate(name))
    times = np.array([entry.true_ns for entry in landscape.entries]) / 1e3
    best, near, double, median = ATTENTION[name]
    assert (len(times), landscape.failed) == (272, 8)
    ran = times[~np.isnan(times)]
    assert round(ran.min(), 1) == best
    assert ((ran <= 1.05 * ran.min()).sum(), (ran <= 2 * ran.min()).sum()) == (near, double)
    assert round(np.median(ran) / ran.min(), 2) == median
    assert landscape.library == "sdpa"
    assert landscape.knob_names == ("bm", "bn", "warps", "stages")
    assert dict(landscape.metadata)["causal"] is name.endswith("causal")
    assert all(dict(entry.costs_s)["compile_s"] > 0 for entry in landscape.entries if entry.times)


def test_every_shipped_file_is_listed():
    assert set(shipped_landscapes()) == {*KNOWN, *ATTENTION}


def test_a_last_line_that_breaks_off_is_lost_and_said(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"bm": 16, "us": [1.0]}, {"bm": 32, "us": [2.0]}])
    path.write_text(path.read_text()[:-9])
    found = read_jsonl(path)
    assert len(found.entries) == 1
    assert found.notes == ("the last line breaks off: 1 record is lost",)


def test_a_file_may_say_units_values_costs_and_kinds_of_failure(tmp_path):
    header = HEADER | {"unit": "ms", "values": {"bm": [64, 32, 16]}, "torch": "2.11", "k": "x"}
    rows = [
        {"bm": 16, "ms": [1.5], "compile_ms": 20.0, "metrics": {"tries": 3}},
        {"bm": 32, "error": "hung", "failure": "timeout"},
    ]
    found = read_jsonl(write(tmp_path / "a.jsonl", rows, header))
    ran, hung = found.entries
    assert ran.samples_ns == (1.5e6,)
    assert dict(ran.costs_s) == {"compile_s": pytest.approx(0.02)}
    assert ran.metrics == (("tries", 3),)
    assert hung.failure is Failure.TIMEOUT
    assert found.knob_values("bm") == (64, 32, 16)
    assert found.metadata == (("k", "x"), ("torch", "2.11"))


def test_a_failed_row_without_a_knob_holds_for_all_its_values(tmp_path):
    rows = [
        {"bm": 16, "group_m": 1, "us": [1.0]},
        {"bm": 16, "group_m": 4, "us": [2.0, 3.0]},
        {"bm": 32, "error": "shared memory"},
    ]
    landscape = read_jsonl(write(tmp_path / "a.jsonl", rows))
    failed = [entry for entry in landscape.entries if entry.error]
    assert [dict(e.knobs) for e in failed] == [{"bm": 32, "group_m": 1}, {"bm": 32, "group_m": 4}]
    assert all(math.isnan(entry.true_ns) for entry in failed)
    assert dict(landscape.median_entry.knobs) == {"bm": 16, "group_m": 1}


@pytest.mark.parametrize("name", ["b.jsonl", "b.jsonl.gz"])
def test_written_landscapes_read_back(tmp_path, name):
    rows = [
        {"bm": 16, "us": [1.5, 2.5], "err": 1e-4, "regs": 40},
        {"bm": 32, "error": "shared memory", "shared": 9},
    ]
    header = HEADER | {"default": {"bm": 16}, "cublas_us": [3.0]}
    first = read_jsonl(write(tmp_path / "a.jsonl", rows, header))
    assert save(first, tmp_path / name) == ()
    again = read_jsonl(tmp_path / name)
    assert again.entries == first.entries
    for field in ("kernel", "device", "extents", "knob_names", "library", "library_ns", "default"):
        assert getattr(again, field) == getattr(first, field)


DAMAGED = [
    ('{"m": 8}\n{"bm": 16, "us": [' + "9" * 400 + "]}\n", ":2: "),
    ('{"m": 8}\n' + "[" * 100_000 + "\n", ":2: expected a JSON object"),
    ('{"m": 8}\n{"bm": 16, "error": "\\ud800"}\n', ":2: expected a JSON object"),
    ('{"m": 8}\n{"bm": 16, "us": [1], "regs": NaN}\n', ":2: regs: expected a finite number"),
    ('{"m": 8, "cublas_us": []}\n{"bm": 16, "us": [1]}\n', "cublas_us: expected a list of times"),
    ('{"m": 8, "cublas_us": [-1]}\n{"bm": 16, "us": [1]}\n', "library: expected positive"),
    (
        '{"m": 8, "cublas_us": "123"}\n{"bm": 16, "us": [1]}\n',
        "cublas_us: expected a list of times",
    ),
    ('{"m": 8, "default": 3}\n{"bm": 16, "us": [1]}\n', "default: expected a mapping"),
    ("", "empty file"),
    ('{"m": 8}\nnot json\n', ":2: expected a JSON object"),
    ('{"m": 8}\n[1]\n', ":2: expected a JSON object, found list"),
    ('{"m": 8}\n{"bm": 16, "us": [1.0]}\n{"us": [1.0]}\n', ":3: expected a value of knob 'bm'"),
    ('{"m": 8}\n{"bm": 16, "us": [-1.0]}\n', ":2: expected positive finite times"),
    ('{"m": 8}\n{"bm": 16, "us": [NaN]}\n', ":2: expected positive finite times"),
    ('{"m": 8}\n{"bm": 16, "us": 3}\n', ":2: us: expected a list"),
    ('{"m": 8}\n{"bm": 16}\n', ":2: expected either samples or an error"),
    ('{"m": 8}\n{"bm": 16, "us": [1], "error": "x"}\n', ":2: expected either samples or an error"),
    ('{"m": 8}\n{"bm": [1], "us": [1]}\n', "bm: expected a knob value"),
    ('{"m": 8}\n{"bm": 16, "us": [1]}\n{"bm": 16, "us": [2]}\n', "stands twice"),
    ('{"m": 8, "unit": "h"}\n{"bm": 16, "us": [1]}\n', "unit: expected one of 'ns', 'us'"),
    ('{"m": 8, "knobs": 3}\n{"bm": 16, "us": [1]}\n', "knobs: expected a list"),
    ('{"m": 8, "default": {"bm": 64}}\n{"bm": 16, "us": [1]}\n', r"default .* is not among"),
    ('{"m": 8, "knobs": ["bm"]}\n', "at least one configuration"),
    ('{"m": 8}\n{"bm": 16, "us": [1], "err": -1}\n', ":2: expected a finite relative error"),
    (
        '{"m": 8, "cublas_us": ["x"]}\n{"bm": 16, "us": [1]}\n',
        "cublas_us: expected a time in microseconds",
    ),
]


@pytest.mark.parametrize(("text", "message"), DAMAGED)
def test_damaged_files_are_refused_with_their_place(tmp_path, text, message):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(LandscapeError, match=message) as caught:
        read_jsonl(path)
    assert str(path) in str(caught.value)


def test_a_truncated_gzip_is_refused(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"m": 8}\n{"bm": 16, "us": [1]}\n')[:-9])
    with pytest.raises(LandscapeError, match="damaged data"):
        read_jsonl(path)


def test_names_that_do_not_exist_get_the_nearest(tmp_path):
    with pytest.raises(LandscapeError, match="did you mean 'h200_gemm_4096x4096x4096'"):
        locate("h200_gemm_4096x4096x409")
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(LandscapeError, match=r"ending in \.jsonl or \.jsonl\.gz or \.json"):
        locate("a.txt", tmp_path)


def test_an_edited_file_is_read_again(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"bm": 16, "us": [1.0]}])
    assert len(open_landscape(path).entries) == 1
    write(path, [{"bm": 16, "us": [1.0]}, {"bm": 32, "us": [1.0]}])
    assert len(open_landscape(path).entries) == 2


def test_an_entry_is_samples_or_an_error():
    with pytest.raises(ValueError, match="either"):
        Entry((("a", 1),))


def test_line_separators_inside_text_are_text(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"m": 8}\n{"bm": 16, "error": "a\u2028b\u0085c"}\n{"bm": 32, "us": [1]}\n')
    assert read_jsonl(path).entries[0].error == "a\u2028b\u0085c"
