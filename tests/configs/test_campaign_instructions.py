"""A campaign brings instructions of its own."""

from __future__ import annotations

import re

import pytest
import yaml

from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config, resolved_config
from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.schedule.instruction import find_instruction
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace
from kernelwright.env.problems.program import definition_of
from kernelwright.env.problems.row_sum import row_sum

MINE = """
from kernelwright.env.compiler.ir.nodes import Procedure, Store
from kernelwright.env.compiler.schedule.instruction import Instruction
from kernelwright.env.compiler.schedule.instructions.write import load, under, window

HALVES = 2
ROW = Instruction(
    Procedure(
        "my_row",
        ("k",),
        (window("X", ("k",), "float32"), window("Y", (), "float32", written=True)),
        under(Store("Y", (), load("X", "p"), "add"), p="k"),
    ),
    "for (int64_t p = 0; p < k; p++) Y[0] += X[p * X_0];",
)
"""
CAMPAIGN = {
    "name": "mine",
    "problem": {"name": "row_sum", "rows": 4, "cols": 6},
    "space": {"kind": "schedule", "instructions": ["mine.py:ROW"]},
    "target": {"name": "cpu"},
    "driver": {"name": "random"},
    "budget": {"trials": 1},
}


def campaign_of(folder, **space):
    (folder / "mine.py").write_text(MINE)
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(CAMPAIGN | {"space": CAMPAIGN["space"] | space}))
    return path


def test_schedules_may_use_them(tmp_path):
    campaign = read_config(campaign_of(tmp_path))
    assert find_instruction("my_row").c.startswith("for")
    assert str(tmp_path / "mine.py") in campaign.files
    again = resolved_config(campaign, campaign.files, {})
    assert again["space"]["instructions"] == [f"{tmp_path / 'mine.py'}:ROW"]
    problem = row_sum(rows=4, cols=6)
    procedure = definition_of(problem, problem.workloads[0])
    scheduled = apply_trace(procedure, parse_trace("tensorize('j', 'my_row')"))
    assert "kw_call_my_row(x + i * 6, 1, y + i, 6);" in generate(scheduled)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.py:HALVES", "expected an Instruction, found 'mine.py:HALVES', a int"),
        ("mine.py:NONE", "expected an instruction: a dotted path or file.py:name, found 'NONE'"),
        ("none.py:ROW", "expected an instruction: .* found .*none.py"),
        (
            "kernelwright.env.compiler.schedule.instructions.engine:LOAD",
            "expected an instruction of its own name, found .*engine_load",
        ),
    ],
)
def test_what_is_none_is_refused_where_it_stands(tmp_path, name, message):
    with pytest.raises(ConfigError, match=message) as caught:
        read_config(campaign_of(tmp_path, instructions=[name]))
    assert re.search(r"space\.instructions\.0", str(caught.value))
