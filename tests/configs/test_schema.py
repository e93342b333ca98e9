from __future__ import annotations

import json

import jsonschema
import pytest
import yaml

from kernelwright.configs.jsonschema import SCHEMA_FILE, campaign_schema
from kernelwright.configs.load import shipped_configs

SCHEMA = campaign_schema()


def test_the_shipped_schema_is_the_code_s():
    # python -P -m kernelwright.configs.jsonschema writes it.
    assert json.loads(SCHEMA_FILE.read_text()) == SCHEMA


def test_it_is_a_json_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", shipped_configs().values(), ids=lambda path: path.stem)
def test_shipped_campaigns_satisfy_it(path):
    jsonschema.validate(yaml.safe_load(path.read_text()), SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        {"sede": 1},
        {"seed": "x"},
        {"driver": {"name": "evolution", "popluation": 3}},
        {"target": {"name": "gpu-model", "noise": {"lognormal": 7}}},
        {"budget": {}, "name": "a b"},
    ],
)
def test_it_refuses_what_the_program_refuses(change):
    good = yaml.safe_load(shipped_configs()["gemm_h200"].read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(good | change, SCHEMA)


def test_it_allows_what_a_user_brings():
    good = yaml.safe_load(shipped_configs()["gemm_h200"].read_text())
    mine = good | {"driver": {"name": "my_driver.py:Mine", "anything": 3}}
    jsonschema.validate(mine, SCHEMA)
