"""Passages are found by their words, always the same, and are frozen when a search begins."""

from __future__ import annotations

import sqlite3

import pytest
from contracts import judged

from kernelwright.agents.context import library as libraries
from kernelwright.agents.context.device import DeviceSheet
from kernelwright.agents.context.library import (
    MOST_TEXT,
    Library,
    NoFullTextError,
    check_full_text,
    passage,
    words_of,
)
from kernelwright.agents.context.pages import device_page, directive_pages, sections_of
from kernelwright.agents.context.surroundings import RETRIEVED, SEEN, Surroundings
from kernelwright.agents.context.winners import of_cache, of_runs
from kernelwright.agents.programmer.reading import sections
from kernelwright.configs import api
from kernelwright.env.compiler.schedule import DIRECTIVES
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.search.store import DATABASE


def test_every_directive_has_a_page_that_its_name_finds():
    library = Library(directive_pages())
    assert len(library) == len(DIRECTIVES)
    for op in DIRECTIVES:
        (found,) = library.find([f"illegal: {op}('i') cannot be done"], 1)
        assert found.title.startswith(f"{op}(")
        assert found.source == "directive"


def test_the_rarest_words_decide_and_the_first_of_equals_comes_first():
    told = [passage("page", f"p{i}", "about loops and tiles") for i in range(3)]
    told.append(passage("page", "odd", "about loops, and a swizzle"))
    library = Library(told)
    assert [p.title for p in library.find(["loops swizzle"], 2)] == ["odd", "p0"]
    assert [p.title for p in library.find(["tiles"], 9)] == ["p0", "p1", "p2"]
    assert library.find(["nothing like it"], 3) == []
    assert library.find([""], 3) == []


@pytest.mark.parametrize("text", ['tile" OR title:x', "tile) AND NEAR(", "tile*", "-tile ^tile"])
def test_words_of_a_query_are_no_operators(text):
    library = Library([passage("page", "a", "tile"), passage("page", "b", "other")])
    assert [p.title for p in library.find([text], 3)] == ["a"]


def test_a_query_has_the_first_telling_words_each_once():
    assert words_of(["for (int i) Vectorize vectorize x1 ab", "reorder"]) == [
        "vectorize",
        "reorder",
    ]
    assert len(words_of(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(500))) == 48


def test_a_passage_is_clean_and_bounded():
    found = passage("page", "a `b`\nc", "x\u202e" * 10_000)
    assert found.title == "a 'b' c"
    assert len(found.text) <= MOST_TEXT + 3
    assert "\u202e" not in found.text
    assert found.id == passage("page", "a `b`\nc", "x\u202e" * 10_000).id


def test_sections_of_a_page_are_found_under_their_headings():
    text = "before\n# One\nfirst\n```\n# no heading\n```\n## Two ##\n\nsecond\n## Empty\n\n"
    found = {p.title: p.text for p in sections_of("notes", text)}
    assert found == {
        "notes": "before",
        "notes: One": "first\n```\n# no heading\n```",
        "notes: Two": "second",
    }


def test_a_machine_of_which_nothing_is_known_has_no_page():
    assert device_page(DeviceSheet()) == []
    assert device_page(DeviceSheet("x", ("132 SMs",)))[0].text == "132 SMs"


def test_a_sqlite_without_full_text_is_said(monkeypatch):
    class Without:
        def execute(self, sql):
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self):
            pass

    monkeypatch.setattr(libraries.sqlite3, "connect", lambda name: Without())
    with pytest.raises(NoFullTextError, match="no such module: fts5"):
        check_full_text()


def found_by(prompts):
    return [sections(messages[1][1]).get("Known", "") for messages in prompts]


def test_a_driver_is_given_what_fits_its_question_and_records_it(worlds, recording):
    world, journal = worlds["source"], recording()
    around = Surroundings(passages=lambda sheet: tuple(directive_pages()), retrieved=2)
    driver = world.driver(journal, context=around)
    driver.tell([judged(0, world.space.default, None, log="loop not vectorized: vectorize fails")])
    driver._desk.talk.asks = 1
    text = sections(driver._fresh(0).messages[1][1])["Known"]
    assert text.count("(directive):") == 2
    assert "`vectorize(loop)` (directive):" in text
    (seen,) = [e for e in journal.events if e.kind == SEEN]
    (event,) = [e for e in journal.events if e.kind == RETRIEVED]
    ids = {p["id"]: p["title"] for p in seen.data["passages"]}
    assert ids[event.data["ids"][0]] == "vectorize(loop)"


def test_what_may_be_retrieved_is_frozen_when_the_search_begins(worlds, recording):
    world, journal = worlds["source"], recording()
    told = [passage("page", "softmax", "rows of softmax, first edition")]
    around = Surroundings(passages=lambda sheet: tuple(told))
    first, _ = world.play(world.driver(journal, context=around), asks=3)
    events = list(journal.events)
    told[:] = [passage("page", "softmax", "rows of softmax, second edition")]
    again, _ = world.play(world.driver(journal, context=around), asks=3)
    assert again == first
    assert journal.events == events
    assert "first edition" in events[0].payload


def campaign(tmp_path, **more):
    return {
        "name": "first",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "evolution", "population": 16},
        "budget": {"trials": 96},
        "seed": 2,
        "cache": {"folder": str(tmp_path / "cache")},
        **more,
    }


def test_winners_of_runs_and_of_a_cache_are_passages(tmp_path):
    shape = {"name": "gemm_gpu", "m": 2048, "n": 2048, "k": 2048}
    summary = api.run(campaign(tmp_path, problem=shape), tmp_path / "runs" / "a")
    (told,) = of_runs([tmp_path / "runs"])
    assert told.source == "run"
    assert told.title.startswith("gemm_gpu knobs 2048x2048x2048: ")
    assert told.title.endswith(" on h100-lecture")
    for value in summary["best"]["candidate"].values():
        assert str(value) in told.text
    assert of_runs([tmp_path / "runs"], but=tmp_path / "runs" / "a") == []
    assert of_runs([tmp_path / "none"]) == []
    kept = list(of_cache(gemm_gpu(), "h100-lecture", tmp_path / "cache", 5))
    assert 1 <= len(kept) <= 2
    assert all(p.source == "cache" and "2048" in p.title for p in kept)


@pytest.mark.parametrize(
    ("config", "count"), [("no JSON", 1), ("[1]", 1), ('{"problem": "x"}', 2), ("[" * 100_000, 1)]
)
def test_a_run_whose_configuration_cannot_be_read_hides_no_other(tmp_path, config, count):
    api.run(campaign(tmp_path), tmp_path / "runs" / "b")
    api.run(campaign(tmp_path), tmp_path / "runs" / "a")
    with sqlite3.connect(tmp_path / "runs" / "a" / DATABASE) as database:
        database.execute("UPDATE meta SET value = ? WHERE name = 'config'", (config,))
    database.close()
    titles = [told.title for told in of_runs([tmp_path / "runs"])]
    assert len(titles) == count
    assert any(title.startswith("gemm_gpu ") for title in titles)


def test_a_campaign_retrieves_what_earlier_ones_found(tmp_path):
    shape = {"name": "gemm_gpu", "m": 2048, "n": 2048, "k": 2048}
    api.run(campaign(tmp_path, problem=shape), tmp_path / "runs" / "a")
    (tmp_path / "notes.md").write_text("# Stages\n\nStages and warps of gemm_gpu hide latency.\n")
    retrieval = {
        "runs": [str(tmp_path / "runs")],
        "cache": 4,
        "pages": [str(tmp_path / "notes.md")],
    }
    later = campaign(
        tmp_path,
        name="later",
        driver={"name": "llm"},
        agents={"backend": {"name": "mock"}, "retrieval": retrieval},
        budget={"trials": 8},
        batch=4,
    )
    api.run(later, tmp_path / "b")
    from kernelwright.configs.transcript import prompt_of

    told = sections(prompt_of(tmp_path / "b", "5")["messages"][1]["content"])
    assert "(run):" in told["Known"] or "(cache):" in told["Known"]
    assert "gemm_gpu" in told["Known"]
    # The runs that it learned from may go; its prompts stay.
    (tmp_path / "runs" / "a" / "run.sqlite").unlink()
    (tmp_path / "runs" / "a").rename(tmp_path / "runs" / "gone")
    again = sections(prompt_of(tmp_path / "b", "5")["messages"][1]["content"])
    assert again == told
