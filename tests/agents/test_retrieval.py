"""Passages are found by their words, always the same, and are frozen when a search begins."""

from __future__ import annotations

import sqlite3

import pytest
from contracts import judged

from kernelwright.agents.context import library as libraries
from kernelwright.agents.context.library import (
    MOST_TEXT,
    Library,
    NoFullTextError,
    check_full_text,
    passage,
    words_of,
)
from kernelwright.agents.context.pages import directive_pages, sections_of
from kernelwright.agents.context.shelves import MOST_OF_A_SHELF, Shelves, as_many_as_fit, varied
from kernelwright.agents.context.surroundings import RETRIEVED, SEEN, Surroundings
from kernelwright.agents.context.winners import (
    Wanted,
    Winner,
    by_worth,
    of_cache,
    of_runs,
    program_text,
)
from kernelwright.agents.programmer.reading import sections
from kernelwright.configs import api
from kernelwright.env.compiler.schedule import known_directives
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.types import Language, knob_candidate
from kernelwright.search.store import DATABASE
from kernelwright.search.tuning.near import OTHER_DEVICE


def test_every_directive_has_a_page_that_its_name_finds():
    library = Library(directive_pages())
    assert len(library) == len(known_directives())
    for op in known_directives():
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
    around = Surroundings(passages=lambda: tuple(directive_pages()), retrieved=2)
    driver = world.driver(journal, context=around)
    driver.tell([judged(0, world.space.default, None, log="loop not vectorized: vectorize fails")])
    driver._desk.talk.asks = 1
    text = sections(driver._fresh(0).messages[1][1])["Known"]
    assert text.count("(directive):") == 2
    assert "`vectorize(loop, lanes=None)` (directive):" in text
    (seen,) = [e for e in journal.events if e.kind == SEEN]
    (event,) = [e for e in journal.events if e.kind == RETRIEVED]
    ids = {p["id"]: p["title"] for p in seen.data["passages"]}
    assert "vectorize(loop, lanes=None)" in [ids[each] for each in event.data["ids"]]


def test_what_may_be_retrieved_is_frozen_when_the_search_begins(worlds, recording):
    world, journal = worlds["source"], recording()
    told = [passage("page", "softmax", "rows of softmax, first edition")]
    around = Surroundings(passages=lambda: tuple(told))
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
    wanted = Wanted(gemm_gpu(), "h100-lecture", Language.KNOBS)
    (told,) = by_worth(of_runs([tmp_path / "runs"], wanted))
    assert told.source == "run"
    assert told.apart == 3  # each extent of 4096 was half as large
    speedup = summary["best"]["speedup"]
    assert told.title == f"gemm_gpu knobs 2048x2048x2048: {speedup:.4g}x on h100-lecture"
    for value in summary["best"]["candidate"].values():
        assert str(value) in told.text
    assert list(of_runs([tmp_path / "runs"], but=tmp_path / "runs" / "a")) == []
    assert list(of_runs([tmp_path / "none"])) == []
    (elsewhere,) = of_runs([tmp_path / "runs"], Wanted(gemm_gpu(), "h200", Language.KNOBS))
    assert elsewhere.apart == 3 + OTHER_DEVICE
    (foreign,) = of_runs([tmp_path / "runs"], Wanted(gemm_gpu(), "h200", Language.SOURCE))
    assert foreign.apart is None
    kept = list(of_cache(wanted, tmp_path / "cache", 5))
    assert 1 <= len(kept) <= 2
    assert all(w.source == "cache" and "2048" in w.shape and w.apart == 3 for w in kept)
    # What is known of the very same key is what a warm start begins with.
    same = Wanted(gemm_gpu(m=2048, n=2048, k=2048), "h100-lecture", Language.KNOBS)
    assert list(of_cache(same, tmp_path / "cache", 5)) == []
    other = Wanted(same.problem, "h200", Language.KNOBS)
    assert len(list(of_cache(other, tmp_path / "cache", 5))) == len(kept)


def knobs(**values):
    return knob_candidate({"bm": 64, "bn": 64, "bk": 32, "warps": 4, "stages": 2, **values})


def winner(speedup, apart, **values):
    return Winner("run", "gemm_gpu", "1x1x1", "gpu", knobs(**values), speedup, apart)


def test_winners_come_by_nearness_then_by_speedup():
    told = by_worth(
        [winner(9.0, None), winner(1.1, 0.0), winner(1.2, 2.6), winner(1.4, 2.1), winner(3.0, 4.0)]
    )
    assert [p.title.split()[3] for p in told] == ["1.1x", "1.4x", "1.2x", "3x", "9x"]


def test_of_near_equal_winners_one_is_shown_before_all_that_differ():
    told = by_worth(
        [
            winner(1.5, 0.0),
            winner(1.4, 0.0, stages=3),
            winner(1.3, 0.0, bm=128, bn=128),
            winner(1.2, 0.0),
        ]
    )
    assert [p.title.split()[3] for p in varied(told)] == ["1.5x", "1.3x", "1.4x", "1.2x"]


def test_each_kind_has_its_share_however_many_there_are_of_another():
    values = range(16, 16 * 1001, 16)
    many = by_worth(winner(1 + v / 1e4, 1.0, bm=v, bn=3 * v, bk=v + 1) for v in values)
    pages = [passage("page", f"notes {i}", "knobs of gemm_gpu") for i in range(3)]
    kept = as_many_as_fit([*many, *pages, *directive_pages()])
    assert len(kept) == MOST_OF_A_SHELF + 3 + len(known_directives())
    shelves = Shelves(kept)
    found = shelves.find(["gemm_gpu knobs tile"], 5)
    assert [p.source for p in found] == ["run", "page", "run", "directive", "run"]
    assert found[0] == many[0]
    # A kind that has nothing leaves its turn to the others.
    assert [p.source for p in Shelves(many[:9]).find(["nothing like it"], 4)] == ["run"] * 4
    assert len(Shelves(many[:2]).find(["gemm_gpu"], 4)) == 2


def test_what_was_tried_makes_room_for_what_was_not():
    told = by_worth([winner(1.5, 0.0), winner(1.3, 0.0, bm=128, bn=128)])
    first, second = Shelves(told).find(["gemm_gpu"], 2)
    assert Shelves(told).find(["gemm_gpu"], 1, tried={first.text}) == [second]
    assert Shelves(told).find(["gemm_gpu"], 2, tried={first.text}) == [second, first]


def test_all_but_the_first_winner_have_their_turn():
    told = by_worth(winner(2 - i / 10, 0.0, bm=i, bn=i, bk=i, stages=i) for i in range(5))
    shown = [Shelves(told).find(["gemm_gpu"], 2, turn=turn) for turn in range(5)]
    assert {pair[0] for pair in shown} == {told[0]}
    assert [pair[1] for pair in shown] == [*told[1:], told[1]]


def test_a_winner_that_is_like_the_parent_comes_last():
    told = by_worth([winner(1.5, 0.0), winner(1.3, 0.0, bm=128, bn=128)])
    like = program_text(knobs(stages=3))
    assert Shelves(told).find(["gemm_gpu"], 1, parent=like) == [told[1]]
    # Where there is room for all, they keep their order.
    assert Shelves(told).find(["gemm_gpu"], 2, parent=like) == told


def test_a_question_is_given_the_next_winner_once_one_was_tried(worlds, recording):
    world, journal = worlds["knobs"], recording()
    found = [world.space.default, *world.space.neighbours(world.space.default)]
    told = [
        Winner("run", world.problem.name, "1x1", "gpu", candidate, 2.0 - i / 100, 1.0).passage()
        for i, candidate in enumerate(found[:2])
    ]
    around = Surroundings(passages=lambda: tuple(told), retrieved=1)
    driver = world.driver(journal, context=around)
    assert told[0].title in driver._fresh(0).messages[1][1]
    driver.tell([judged(0, found[0], 0.5)])
    driver._desk.talk.asks = 1
    assert program_text(found[0]) == told[0].text
    asked = driver._fresh(0).messages[1][1]
    assert told[1].title in asked
    assert told[0].title not in asked


@pytest.mark.parametrize(
    ("config", "count"), [("no JSON", 1), ("[1]", 1), ('{"problem": "x"}', 2), ("[" * 100_000, 1)]
)
def test_a_run_whose_configuration_cannot_be_read_hides_no_other(tmp_path, config, count):
    api.run(campaign(tmp_path), tmp_path / "runs" / "b")
    api.run(campaign(tmp_path), tmp_path / "runs" / "a")
    with sqlite3.connect(tmp_path / "runs" / "a" / DATABASE) as database:
        database.execute("UPDATE meta SET value = ? WHERE name = 'config'", (config,))
    database.close()
    titles = [told.title for told in by_worth(of_runs([tmp_path / "runs"]))]
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
    assert "(page):" in told["Known"]
    assert "(directive):" not in told["Known"]
    assert "gemm_gpu" in told["Known"]
    # The runs that it learned from may go; its prompts stay.
    (tmp_path / "runs" / "a" / "run.sqlite").unlink()
    (tmp_path / "runs" / "a").rename(tmp_path / "runs" / "gone")
    again = sections(prompt_of(tmp_path / "b", "5")["messages"][1]["content"])
    assert again == told
