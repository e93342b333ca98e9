"""The driver `listed`: candidates from files."""

from __future__ import annotations

import pytest

from kernelwright.configs.build import build
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config
from kernelwright.env.options import OptionError
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.source import SourceSpace
from kernelwright.env.types import Knob
from kernelwright.search.drivers.listed import Listed

SPACE = SourceSpace("void f(float *y) { *y = 0; }\n", entry="f")
CAMPAIGN = """
name: listed
problem: {name: matmul, m: 8, n: 8, k: 8}
space: {kind: source}
target: {name: cpu}
driver: {name: listed, files: [0.c, 1.c]}
budget: {trials: 2}
"""


@pytest.fixture
def files(tmp_path):
    found = [tmp_path / f"{number}.c" for number in range(8)]
    for number, file in enumerate(found):
        file.write_text(f"void f(float *y) {{ *y = {number}; }}\n")
    return tuple(map(str, found))


def texts(driver, batch=3):
    found = []
    while proposals := driver.ask(batch):
        assert len(proposals) <= batch
        found += [proposal.candidate.payload for proposal in proposals]
        driver.tell([])
    return found


def test_it_proposes_each_file_once_in_the_order_of_the_list(files):
    driver = Listed(SPACE, seed=3, batch=3, files=files)
    assert driver.stopped is None
    (first,) = driver.ask(1)
    assert first.proposer == "listed 0.c"
    assert [first.candidate.payload, *texts(driver)] == [
        f"void f(float *y) {{ *y = {number}; }}\n" for number in range(8)
    ]
    assert driver.stopped == "all 8 files were proposed"


def test_the_seed_draws_the_order_if_asked(files):
    def shuffled(seed):
        return texts(Listed(SPACE, seed=seed, batch=3, files=files, shuffle=True))

    assert shuffled(1) == shuffled(1) != shuffled(2)
    assert (
        sorted(shuffled(1))
        == sorted(shuffled(2))
        == texts(Listed(SPACE, seed=0, batch=3, files=files))
    )


def test_what_it_cannot_propose_is_refused(files, tmp_path):
    knobs = KnobSpace([Knob("a", (1, 2))])
    with pytest.raises(OptionError, match="expected a space of kind source") as refusal:
        Listed(knobs, seed=0, batch=1, files=files)
    assert refusal.value.option == "name"
    (tmp_path / "odd.c").write_bytes(b"\xff\x00")
    for name in ("none.c", "odd.c"):
        with pytest.raises(OptionError, match=f"expected C files, found .*{name}"):
            Listed(SPACE, seed=0, batch=1, files=(str(tmp_path / name),))


def test_the_files_are_the_campaign_s(files, tmp_path):
    (tmp_path / "c.yaml").write_text(CAMPAIGN)
    campaign = read_config(tmp_path / "c.yaml")
    assert campaign.driver.plain["files"] == list(files[:2])
    assert set(campaign.files) == set(files[:2])
    before = dict(campaign.files)
    (tmp_path / "1.c").write_text("void f(float *y) { *y = 9; }\n")
    assert read_config(tmp_path / "c.yaml").files != before


def test_an_empty_list_and_a_missing_file_name_the_option(tmp_path):
    for names, says in (("[]", "at least 1"), ("[none.c]", "expected C files")):
        (tmp_path / "c.yaml").write_text(CAMPAIGN.replace("[0.c, 1.c]", names))
        with pytest.raises(ConfigError, match=says) as refusal:
            build(read_config(tmp_path / "c.yaml"))
        assert refusal.value.path == "driver.files"
