"""Every key of a campaign file has a reader: a key that nobody reads is a lie."""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from dataclasses import fields

import pytest
import yaml

from kernelwright.agents.backends.limits import Limits
from kernelwright.agents.desk import Desk
from kernelwright.agents.options import Common
from kernelwright.configs import api
from kernelwright.configs.load import CONFIGS_DIR, GIVEN, TABLES, read_document, shipped_configs
from kernelwright.configs.resolve import options_model, parameter_name, resolve
from kernelwright.configs.schema import PLANNED_KEYS, CampaignFile
from kernelwright.evaluators.noise import Noise

# Between them these use every key.
ON_A_MODEL = {
    "name": "everything",
    "problem": {"name": "gemm_gpu"},
    "space": {"kind": "knobs"},
    "target": {"name": "gpu-model"},
    "baseline": "default",
    "driver": {"name": "random"},
    "judge": {
        "profile": "basic",
        "state": "cold",
        "race": {"rounds": 1},
        "confirm": {"finalists": 1, "alpha": 0.02, "process_pairs": 3, "pairs": 2},
    },
    "budget": {"trials": 12, "seconds": 50.0, "calls": 9, "tokens": 99, "usd": 1.0},
    "stop": {"roofline": 0.99, "plateau": 50, "target": {"us": 1.0}},
    "cache": {"folder": "known", "read": True, "write": True},
    "batch": 3,
    "seed": 1,
    "workers": 2,
    "hashes": {},
}


MATMUL = {"name": "matmul", "m": 8, "n": 8, "k": 8}
ON_THE_CPU = {
    "name": "template",
    "problem": MATMUL,
    "space": {
        "kind": "template",
        "file": "kernel.c",
        "knobs": {"STEP": [1, 2]},
        "default": {"STEP": 1},
        "constraints": ["STEP < 2"],
    },
    "target": {"name": "cpu", "flags": ["-O1"]},
    "driver": {"name": "random"},
    "judge": {
        "profile": "standard",
        "check": "full",
        "policy": {"symbols": ["f*"], "libraries": ["libf.so"], "static_state": "allow"},
        "screen": {"pairs": 1},
        "race": {"rounds": 0},
        "confirm": {"finalists": 1, "alpha": 0.02, "process_pairs": 2, "pairs": 1},
    },
    "budget": {"trials": 1},
}
BY_A_MODEL = {
    "name": "source",
    "problem": MATMUL,
    "space": {"kind": "source", "file": "kernel.c", "regions": ["body"]},
    "target": {"name": "cpu", "flags": ["-O1"]},
    "driver": {"name": "llm"},
    "agents": {
        "backend": {"name": "mock"},
        "prompt": "refine",
        "prices": {"mock": {"prompt": 1.0, "completion": 1.0, "cached": 0.5}},
        "context": {"tokens": 9000, "device": False, "profile": False},
        "retrieval": {"passages": 2, "directives": True, "pages": [], "runs": [], "cache": 1},
    },
    "judge": {"confirm": {"finalists": 1, "process_pairs": 2, "pairs": 1}},
    "budget": {"calls": 1},
}
BY_A_TEMPLATE = {
    "name": "written",
    "problem": MATMUL,
    "space": {"kind": "schedule", "template": "problem", "constraints": ["mr < 8"]},
    "target": {"name": "cpu-model"},
    "driver": {"name": "random"},
    "budget": {"trials": 2},
}
BY_DIRECTIVES = {
    "name": "wide",
    "problem": MATMUL,
    "space": {"kind": "schedule", "directives": ["cache_read", "unroll_and_jam"]},
    "target": {"name": "cpu-model"},
    "driver": {"name": "random"},
    "budget": {"trials": 2},
}
KERNEL = """
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    // region body
#ifndef STEP
#define STEP 1
#endif
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; p += STEP)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum;
        }
    // endregion body
}
"""


OF_TASKS = {
    "name": "tasks",
    "problem": {"name": "gemm_gpu"},
    "tasks": {
        "listed": [{"name": "a", "weight": 2, "problem": {"m": 16}, "target": {"noise": {}}}],
        "product": [{"b": {"weight": 3, "problem": {"m": 32}, "target": {"noise": {}}}}],
        "scheduler": {"name": "gradient"},
        "share": True,
    },
    "target": {"name": "gpu-model"},
    "driver": {"name": "random"},
    "budget": {"trials": 16},
}


def models(model, prefix=""):
    """Every pydantic model of the file with the dotted prefix of its keys."""
    yield model, prefix
    for name, field in model.model_fields.items():
        for part in parts(field.annotation):
            yield from models(part, f"{prefix}{name}.")


def parts(annotation):
    """The models in an annotation, however deep in lists and mappings."""
    if isinstance(annotation, type) and hasattr(annotation, "model_fields"):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in parts(part)]


def test_every_key_of_the_file_is_read_by_a_run(tmp_path, monkeypatch):
    read = set()
    for model, prefix in models(CampaignFile):

        def spy(self, name, prefix=prefix, fields=frozenset(model.model_fields)):
            if name in fields and "pydantic" not in inspect.stack(0)[1].filename:
                read.add(prefix + name)
            return object.__getattribute__(self, name)

        monkeypatch.setattr(model, "__getattribute__", spy)
    (tmp_path / "kernel.c").write_text(KERNEL)
    campaigns = (ON_A_MODEL, ON_THE_CPU, BY_A_MODEL, BY_A_TEMPLATE, BY_DIRECTIVES, OF_TASKS)
    for number, campaign in enumerate(campaigns):
        path = tmp_path / f"{number}.yaml"
        path.write_text(yaml.safe_dump(campaign))
        api.run(path, tmp_path / f"run{number}")
    wanted = {
        prefix + name for model, prefix in models(CampaignFile) for name in model.model_fields
    }
    # What only groups other keys counts as read when they are.
    assert wanted - read == set()


FACTORIES = [(kind, name, table) for kind, table in TABLES.items() for name in table]


@pytest.mark.parametrize(("kind", "name", "table"), FACTORIES)
def test_every_option_is_used_by_what_it_configures(kind, name, table):
    factory = resolve(table, name)
    options = options_model(factory, GIVEN[kind]).model_fields
    if not options:  # nor need it have a signature of its own
        return
    function = factory.__init__ if inspect.isclass(factory) else factory
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    names = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    }
    if hasattr(function, "__wrapped__"):  # what all agents have is read where they work
        names |= {f.name for f in fields(Common) if f"options.{f.name}" in inspect.getsource(Desk)}
    for option in options:
        assert parameter_name(option) in names, f"{kind} {name}: option {option} has no reader"


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
    for limit in Limits.model_fields:
        assert f"`{limit}`" in text, f"docs/campaigns.md lacks `{limit}` of limits"
    for path in PLANNED_KEYS:
        assert f"`{'.'.join(path)}`" in text, f"docs/campaigns.md lacks `{'.'.join(path)}`"


# Of those that compile and measure one of each kind; `make audit` runs all of them.
MEASURED = ("quickstart", "matmul_knobs", "softmax_schedule", "spmv_source_mock")


def runs():
    for name in shipped_configs():
        measures = read_document(name)[0].data["target"]["name"] == "cpu"
        is_slow = measures and name not in MEASURED
        marks = [pytest.mark.audit] if is_slow else []
        if name == "smollm_knobs":
            marks = [pytest.mark.skip("asks a server; tests/agents/test_small_model.py runs it")]
        yield pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", list(runs()))
def test_every_shipped_config_runs_with_a_short_budget(name, tmp_path):
    data = read_document(name)[0].data
    measures = data["target"]["name"] == "cpu"
    count = 2 if measures else 24
    if "tasks" in data:
        # Every task has its first batch, whatever the budget.
        count = len(api.check(name)["tasks"])
    overrides = [f"budget={{trials: {count}}}"]
    if "tasks" in data:
        overrides += ["batch=1", "judge.confirm.process_pairs=2"]
    if measures:
        overrides += ["judge.screen={pairs: 1}"]
        overrides += ["judge.confirm={finalists: 1, process_pairs: 2, pairs: 1}"]
    summary = api.run(name, tmp_path / "run", overrides=overrides)
    assert summary["trials"] == count
    if "tasks" in data:
        assert {row["best"]["status"] for row in summary["tasks"]} <= {"win", "tie", "loss"}
    elif summary["best"] is not None or not measures:
        assert summary["best"]["status"] in ("win", "tie", "loss")
    assert read_document(tmp_path / "run" / "config.yaml")[0].data["name"] == name
