from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from strategies import landscapes

from kernelwright.env.landscape.open import read_landscape
from kernelwright.env.landscape.record import Entry, Landscape, LandscapeError
from kernelwright.env.landscape.save import convert, render, save
from kernelwright.env.landscape.units import in_unit, moved

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
FILES = sorted([*SHARED.glob("recorded_spaces/*.gz"), *SHARED.glob("h200_*/*.gz")])
WHOLE = {"jsonl": "a.jsonl", "kernel_tuner": "a.json", "t4": "a_t4.json"}
ABSENT = "needs ../shared/data/recorded_spaces beside the checkout"


def same(first, second):
    """Equal values, of equal types, in the same order."""
    assert first == second
    for one, other in zip(first.entries, second.entries, strict=True):
        assert repr(one.knobs) == repr(other.knobs)
        assert one.times == other.times
    assert repr(first.values) == repr(second.values)


@pytest.mark.parametrize("form", WHOLE)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(landscape=landscapes())
def test_landscapes_survive_every_format_of_results(form, landscape, tmp_path):
    try:
        save(landscape, tmp_path / WHOLE[form])
    except LandscapeError as error:
        # Two values with one text, of which a cache's key is made.
        assume("have the key" not in str(error))
        raise
    again = read_landscape(tmp_path / WHOLE[form])
    assert (again.format, again.notes) == (form, ())
    same(landscape, again)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(landscape=landscapes())
def test_the_best_forms_hold_the_best(landscape, tmp_path):
    for entry in landscape.entries:
        assume(all(value not in ("null", "unset") for _, value in entry.knobs))
    save(landscape, tmp_path / "k.autotune.json")
    again = read_landscape(tmp_path / "k.autotune.json")
    assert [bool(e.times) for e in again.entries] == [bool(e.times) for e in landscape.entries]
    for one, other in zip(landscape.entries, again.entries, strict=True):
        assert {**dict(one.knobs), "num_warps": 4, "num_stages": 3, "num_ctas": 1} == dict(
            other.knobs
        )


def chain(landscape, forms, folder):
    """The landscape after a file of each format, one made of the other."""
    path = folder / f"0{WHOLE[forms[0]]}"
    assert save(landscape, path) == ()
    for step, form in enumerate(forms[1:], 1):
        out = folder / f"{step}{WHOLE[form]}"
        assert convert(path, out).lost == ()
        path = out
    return read_landscape(path)


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason=ABSENT)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.split(".")[0])
def test_recorded_spaces_survive_every_chain_of_formats(path, tmp_path):
    landscape = read_landscape(path)
    same(landscape, chain(landscape, ("kernel_tuner", "t4", "jsonl"), tmp_path))


@pytest.mark.skipif(not FILES, reason=ABSENT)
@pytest.mark.parametrize("name", ["pnpoly-RTX_3090", "convolution-A4000"])
def test_a_cache_of_kernel_tuner_is_written_value_by_value(name, tmp_path):
    path = SHARED / "recorded_spaces" / f"{name}.json.gz"
    save(read_landscape(path), tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads(
        gzip.decompress(path.read_bytes())
    )


@pytest.mark.skipif(not FILES, reason=ABSENT)
def test_a_cache_and_its_t4_are_one_landscape():
    cache, results = (
        read_landscape(SHARED / "recorded_spaces" / f"convolution-A4000{end}.json.gz")
        for end in ("", "_T4")
    )
    assert len(cache.entries) == len(results.entries) == 4362
    assert cache.failed == results.failed == 161
    assert cache.knob_names == results.knob_names
    for one, other in zip(cache.entries, results.entries, strict=True):
        assert (one.knobs, one.times, one.error, one.failure, one.timestamp) == (
            *(other.knobs, other.times, other.error, other.failure, other.timestamp),
        )
        shared = {"compile", "verify", "framework", "strategy"}
        assert {c: v for c, v in one.costs if c in shared} == dict(other.costs)


COUNTS = {
    "convolution-W6600": (4362, 0),
    "dedispersion-W6600": (11130, 0),
    "gemm-RTX_2080_Ti": (17956, 0),
    "pnpoly-RTX_3090": (4092, 370),
}


@pytest.mark.skipif(not FILES, reason=ABSENT)
@pytest.mark.parametrize("name", COUNTS)
def test_recorded_spaces_have_as_many_configurations_as_they_say(name):
    found = read_landscape(SHARED / "recorded_spaces" / f"{name}.json.gz")
    count, failed = COUNTS[name]
    assert len(found.entries) == count
    assert found.failed <= failed
    assert all(len(entry.times) in (10, 32) for entry in found.entries if entry.times)


def entry(value, **fields):
    return Entry((("a", value),), **{"times": (1.0,), **fields})


def landscape(*entries, **fields):
    return Landscape(
        **{"kernel": "k", "device": "d", "extents": (), "knob_names": ("a",), **fields},
        entries=entries,
    )


@pytest.mark.parametrize(
    ("form", "made", "message"),
    [
        (
            "jsonl",
            replace(landscape(Entry((("us", 1),), (1.0,)), knob_names=("us",))),
            "than us in JSON",
        ),
        (
            "kernel_tuner",
            landscape(Entry((("time", 1),), (1.0,)), knob_names=("time",)),
            "than time in",
        ),
        ("kernel_tuner", landscape(entry(1), entry("1")), "the key '1'"),
        ("kernel_tuner", landscape(entry(1, metrics=(("a", 3),))), "than a in a Kernel Tuner"),
        ("t4", landscape(entry(1, metrics=(("regs", 3),))), "than regs in T4"),
        (
            "helion",
            landscape(entry(1, times=(), error="x")),
            "no configuration of this landscape ran",
        ),
    ],
)
def test_a_format_refuses_what_it_cannot_hold(form, made, message):
    with pytest.raises(LandscapeError, match=message):
        render(made, form)


def test_rounded_times_are_named():
    digits = entry(1, times=(1.0486123456789012,), unit="us")
    (lost,) = render(landscape(digits), "kernel_tuner")[1]
    back = in_unit(in_unit(digits.times, "us", "ms"), "ms", "us")
    assert bool(lost) == (back != digits.times)
    assert render(landscape(entry(1, times=(1.25,), unit="us")), "kernel_tuner")[1] == ()


@pytest.mark.parametrize("value", [192.3, 1e-05, 5e22, 1 / 3, 7])
def test_moving_a_decimal_point_is_exact_for_short_numbers(value):
    assert moved(moved(value, 3), -3) == pytest.approx(value, rel=1e-15)
    assert moved(192.3, 3) == 192300.0
    assert moved(1e-05, -3) == 1e-08
