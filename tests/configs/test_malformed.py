"""A corpus of malformed campaigns: each is refused for its own reason, at its own line.

A file's first four lines say what is expected of its refusal.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError

CORPUS = sorted((Path(__file__).parent / "malformed").glob("*.yaml"))


def expectation(path):
    lines = path.read_text().splitlines()[:4]
    found = dict(line.removeprefix("# ").split(":", 1) for line in lines)
    return {key: value.strip() for key, value in found.items()}


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_refused_for_its_own_reason(path):
    expected = expectation(path)
    with pytest.raises(ConfigError) as caught:
        api.check(path)
    error = caught.value
    assert error.file == str(path)
    assert str(error.line) == expected["line"]
    assert error.path == expected["path"] or (
        not expected["path"] and expected["says"] in str(error)
    )
    assert expected["says"] in str(error)
    assert str(error.nearest).lower() == expected["nearest"]
    assert f"{path}:{error.line}:" in str(error)
    assert set(error.to_json()["error"]) == {"file", "line", "path", "expected", "found", "nearest"}


def test_the_corpus_is_large_and_no_two_files_say_the_same():
    assert len(CORPUS) >= 60
    said = []
    for path in CORPUS:
        with pytest.raises(ConfigError) as caught:
            api.check(path)
        said.append((caught.value.path, caught.value.expected, caught.value.found))
    assert len(set(said)) == len(said)
