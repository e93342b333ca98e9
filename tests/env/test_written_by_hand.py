"""The recording that docs/landscapes.md shows is one; a plain table is told what to become."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.configs import api
from kernelwright.env.landscape.jsonl import _HEADER
from kernelwright.env.landscape.open import open_landscape
from kernelwright.env.landscape.record import Failure, LandscapeError
from kernelwright.env.types import Status

PAGE = (Path(__file__).parents[2] / "docs" / "landscapes.md").read_text()
SECTION = PAGE.split("## Written by hand\n")[1].split("\n## ")[0]
(EXAMPLE,) = re.findall(r"^```jsonl\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)


def test_the_example_is_a_recording_that_can_be_searched(tmp_path):
    file = tmp_path / "stream.jsonl"
    file.write_text(EXAMPLE)
    found = open_landscape(file)
    assert (found.kernel, found.device, found.notes) == ("stream", "a laptop", ())
    assert found.extents == (("n", 65536),)
    assert found.knob_names == ("bs", "unroll")
    assert dict(found.default) == {"bs": 64, "unroll": 1}
    assert found.best.knobs == (("bs", 64), ("unroll", 4))
    assert found.best.true_ns == pytest.approx(33_000)
    assert [entry.failure for entry in found.entries] == [None, None, None, Failure.COMPILE]
    summary = api.run(
        {
            "name": "stream",
            "problem": {"name": "recorded_kernel", "landscape": str(file)},
            "target": {"name": "recorded", "landscape": str(file)},
            "driver": {"name": "random"},
            "budget": {"trials": 4},
        },
        tmp_path / "run",
    )
    assert summary["best"]["candidate"] == {"bs": 64, "unroll": 4}
    assert summary["by_status"][Status.BUILD_ERROR] == 1


def test_every_key_of_a_header_is_told():
    told = set(re.findall(r"`(\w+)`", SECTION))
    # Of results of other tuners, and of the library by the names that the shipped recordings have.
    elsewhere = {"cost_unit", "objectives", "metadata", "cublas_us", "sdpa_us"}
    assert _HEADER - elsewhere <= told


def test_a_plain_table_is_told_what_is_read_and_where_the_example_is(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("bs,unroll,time\n64,1,41.2\n")
    with pytest.raises(LandscapeError) as caught:
        open_landscape(table)
    said = str(caught.value)
    assert "a tuning log of Helion (columns config, status and perf_ms" in said
    assert "docs/landscapes.md, 'Written by hand'" in said
    assert "found a table with the columns bs,unroll,time" in said
    (script,) = re.findall(r"^```python\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)
    made = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    (tmp_path / "made.jsonl").write_text(made.stdout)
    assert open_landscape(tmp_path / "made.jsonl").best.true_ns == pytest.approx(33_000)
