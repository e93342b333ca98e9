"""A choice that is only a word: how it is written is said, with the nearest name."""

from __future__ import annotations

import re

import pytest

from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import CHOICES, check_file, read_document

CAMPAIGN = """
name: bare
problem: {name: gemm_gpu}
target: {name: gpu-model}
driver: {name: random}
agents: {backend: {name: mock}}
tasks: {scheduler: {name: gradient}}
budget: {trials: 8}
"""
WORDS = {
    "problem": ("gemm_gpu", "gem_gpu", "gemm_gpu"),
    "target": ("gpu-model", "gpu_model", "gpu-model"),
    "driver": ("evolution", "evolutoin", "evolution"),
    "backend": ("mock", "mok", "mock"),
    "scheduler": ("gradient", "gradent", "gradient"),
}


@pytest.mark.parametrize("path", CHOICES)
def test_a_bare_name_is_refused_with_what_is_meant(tmp_path, path):
    file, dotted = tmp_path / "c.yaml", ".".join(path)
    file.write_text(CAMPAIGN)
    right, misspelt, near = WORDS[path[-1]]
    for word, meant in ((right, near), (misspelt, near), ("mine.py:Own", "mine.py:Own")):
        with pytest.raises(ConfigError) as caught:
            check_file(read_document(file, [f"{dotted}={word}"])[0])
        said = f"expected a mapping {{name: NAME, …}}, found '{word}'"
        assert said in str(caught.value)
        assert caught.value.nearest == f"{dotted}.name={meant}"
        written = re.sub(rf"{path[-1]}: {{name: [^}}]*}}", f"{path[-1]}: {word}", CAMPAIGN)
        assert written != CAMPAIGN
        other = tmp_path / "other.yaml"
        other.write_text(written)
        with pytest.raises(ConfigError) as caught:
            check_file(read_document(other)[0])
        assert caught.value.nearest == f"{dotted}: {{name: {meant}}}"
        assert caught.value.line is not None
    with pytest.raises(ConfigError) as caught:
        check_file(read_document(file, [f"{dotted}=zzzzzz"])[0])
    assert caught.value.nearest is None
