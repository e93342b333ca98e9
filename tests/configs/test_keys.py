"""Every key of a campaign file has a reader: a key that nobody reads is a lie."""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest

from kernelwright.configs import api
from kernelwright.configs.load import CONFIGS_DIR, GIVEN, read_config, shipped_configs
from kernelwright.configs.resolve import options_model, resolve
from kernelwright.configs.schema import PLANNED_KEYS, CampaignFile
from kernelwright.env.problems import PROBLEMS
from kernelwright.evaluators import TARGETS
from kernelwright.evaluators.noise import Noise
from kernelwright.search.drivers import DRIVERS

EVERYTHING = {
    "name": "everything",
    "problem": {"name": "gemm_gpu"},
    "space": {"kind": "knobs"},
    "target": {"name": "gpu-model"},
    "baseline": "default",
    "driver": {"name": "random"},
    "judge": {
        "profile": "basic",
        "state": "cold",
        "confirm": {"finalists": 1, "process_pairs": 3, "pairs": 2},
    },
    "budget": {"trials": 12, "seconds": 50.0},
    "stop": {"roofline": 0.99, "plateau": 50},
    "batch": 3,
    "seed": 1,
    "workers": 2,
    "hashes": {},
}


def models(model, prefix=""):
    """Every pydantic model of the file with the dotted prefix of its keys."""
    yield model, prefix
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and hasattr(field.annotation, "model_fields"):
            yield from models(field.annotation, f"{prefix}{name}.")


def test_every_key_of_the_file_is_read_by_a_run(tmp_path, monkeypatch):
    read = set()
    for model, prefix in models(CampaignFile):

        def spy(self, name, prefix=prefix, fields=frozenset(model.model_fields)):
            if name in fields and "pydantic" not in inspect.stack(0)[1].filename:
                read.add(prefix + name)
            return object.__getattribute__(self, name)

        monkeypatch.setattr(model, "__getattribute__", spy)
    api.run(EVERYTHING, tmp_path / "run")
    wanted = {
        prefix + name for model, prefix in models(CampaignFile) for name in model.model_fields
    }
    # What only groups other keys counts as read when they are.
    assert wanted - read == set()


TABLES = [("problem", PROBLEMS), ("target", TARGETS), ("driver", DRIVERS)]
FACTORIES = [(kind, name, table) for kind, table in TABLES for name in table]


@pytest.mark.parametrize(("kind", "name", "table"), FACTORIES)
def test_every_option_is_used_by_what_it_configures(kind, name, table):
    factory = resolve(table, name)
    function = factory.__init__ if inspect.isclass(factory) else factory
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    names = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    }
    for option in options_model(factory, GIVEN[kind]).model_fields:
        assert option in names, f"{kind} {name}: option {option} has no reader"


def test_every_kind_of_noise_is_read():
    from kernelwright.evaluators import noise

    source = inspect.getsource(noise)
    for field in Noise.model_fields:
        assert source.count(f"noise.{field}") + source.count(f"self.{field}") >= 1


def test_every_key_and_option_is_documented():
    text = (CONFIGS_DIR.parent / "docs" / "campaigns.md").read_text()
    for model, prefix in models(CampaignFile):
        for name in model.model_fields:
            assert f"`{prefix}{name}`" in text, f"docs/campaigns.md lacks `{prefix}{name}`"
    for kind, name, table in FACTORIES:
        for option in options_model(resolve(table, name), GIVEN[kind]).model_fields:
            assert f"`{option}`" in text, f"docs/campaigns.md lacks `{option}` of {name}"
    for path in PLANNED_KEYS:
        assert f"`{'.'.join(path)}`" in text, f"docs/campaigns.md lacks `{'.'.join(path)}`"


@pytest.mark.parametrize("name", shipped_configs())
def test_every_shipped_config_runs_with_a_short_budget(name, tmp_path):
    summary = api.run(name, tmp_path / "run", overrides=["budget.trials=24"])
    assert summary["trials"] == 24
    assert summary["best"]["status"] in ("win", "tie", "loss")
    assert read_config(tmp_path / "run" / "config.yaml").file.name == name
