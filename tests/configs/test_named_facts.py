"""Facts that a driver's options name: refused where all are known beforehand, else it stops."""

from __future__ import annotations

import pytest

from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError

H200 = {
    "name": "facts",
    "problem": {"name": "gemm_gpu", "m": 4096, "n": 4096, "k": 4096},
    "target": {"name": "recorded", "landscape": "h200_gemm_4096x4096x4096"},
    "budget": {"trials": 24},
}
LECTURE = H200 | {"target": {"name": "gpu-model"}}
MODEL = H200 | {
    "problem": {"name": "matmul", "m": 8, "n": 8, "k": 8},
    "space": {"kind": "schedule"},
    "target": {"name": "cpu-model"},
}


@pytest.mark.parametrize(
    ("campaign", "driver", "near"),
    [
        (H200, {"name": "pareto", "objectives": ["time", "rges"]}, "regs"),
        (H200, {"name": "map_elites", "axes": ["bm", "foot_print"]}, "footprint"),
        (LECTURE, {"name": "pareto", "objectives": ["time", "intensty"]}, "intensity"),
        (LECTURE, {"name": "map_elites", "axes": ["regs"]}, None),
        (MODEL, {"name": "pareto", "objectives": ["dram_byte"]}, "dram_bytes"),
    ],
)
def test_a_fact_that_a_target_never_tells_is_refused_at_once(campaign, driver, near):
    option, names = list(driver.items())[1]
    with pytest.raises(ConfigError) as caught:
        api.plan_of(campaign | {"driver": driver})
    assert caught.value.path == f"driver.{option}"
    assert caught.value.found == repr(names[-1])
    assert caught.value.nearest == near
    assert "footprint" in caught.value.expected


def test_facts_that_there_are_pass():
    named = {"name": "pareto", "objectives": ["time", "regs", "shared", "footprint"]}
    assert api.plan_of(H200 | {"driver": named}).plan is not None
    named = {"name": "map_elites", "axes": ["dram_bytes", "intensity", "code_size"]}
    assert api.plan_of(MODEL | {"driver": named}).plan is not None


TARGET = """
from kernelwright.evaluators.gpu_model import GpuModel


class Silent:
    '''One that does not say beforehand what it tells.'''

    def __init__(self, problem, *, seed: int = 0):
        self._model = GpuModel(problem, seed=seed)

    def __getattr__(self, name):
        if name in ("facts", "_model"):
            raise AttributeError(name)
        return getattr(self._model, name)
"""


def test_elsewhere_the_search_stops_when_something_ran(tmp_path):
    (tmp_path / "silent.py").write_text(TARGET)
    driver = {"name": "pareto", "objectives": ["time", "foot_print"]}
    target = {"name": f"{tmp_path / 'silent.py'}:Silent"}
    summary = api.run(LECTURE | {"driver": driver, "target": target}, tmp_path / "run")
    assert summary["stop"]["rule"] == "driver"
    assert "found 'foot_print', which no trial that ran has" in summary["stop"]["reason"]
    assert "did you mean 'footprint'" in summary["stop"]["reason"]
    assert summary["trials"] < 24
