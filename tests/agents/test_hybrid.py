"""Seeds by a model and a search by a classical driver; of C, templates whose macros are tuned."""

from __future__ import annotations

import pytest
from contract import Scripted, made_up, some

from kernelwright.agents.drivers.hybrid import polisher
from kernelwright.agents.drivers.tunable import read_tunable
from kernelwright.agents.talk import MOST_USELESS
from kernelwright.env.options import OptionError
from kernelwright.env.types import Candidate, Language


def test_a_hybrid_whose_seeds_fail_goes_on_as_the_driver_would_have_alone(worlds, recording):
    world = worlds["knobs"]
    model = Scripted(json=some(4))
    journal = recording()
    options = {"polish": "evolution", "seeds": 4, "test": 6}
    driver = world.driver(journal, agent="hybrid", backend=model, seed=3, **options)
    seeds = {
        c.key for c in map(driver._desk.dialect.parse, map("```json\n{}\n```".format, some(4)))
    }

    def height(candidate):
        return None if candidate.key in seeds else made_up(candidate)

    asked, _ = world.play(driver, asks=12, objective=height)
    alone = polisher("evolution", world.space, seed=3, batch=4, problem=world.problem)
    expected, _ = world.play(alone, asks=11, objective=height)
    found = [p.candidate for proposals in asked[1:] for p in proposals]
    assert found == [p.candidate for ps in expected for p in ps if p.candidate.key not in seeds]
    assert {p.candidate.key for p in asked[0]} == seeds
    (event,) = [e for e in journal.events if e.kind == "seeds"]
    assert event.data == {"kept": [], "dropped": 4}


def test_seeds_that_beat_the_drivers_own_are_told_to_it(worlds, recording):
    world, journal = worlds["knobs"], recording()
    model = Scripted(json=some(4))
    options = {"polish": "evolution", "seeds": 4, "test": 16}
    driver = world.driver(journal, agent="hybrid", backend=model, seed=3, **options)
    best = driver._desk.dialect.parse(f"```json\n{some(4)[2]}\n```").key
    asked, _ = world.play(driver, asks=30, objective=lambda c: 9.0 if c.key == best else made_up(c))
    (event,) = [e for e in journal.events if e.kind == "seeds"]
    assert event.data == {"kept": [best], "dropped": 3}
    later = [p for proposals in asked[6:] for p in proposals]
    assert any(best in p.parents for p in later)
    assert {p.proposer for p in later} == {"hybrid evolution"}


def test_a_hybrid_goes_on_without_a_model_that_gives_nothing(worlds, recording):
    world, model = worlds["knobs"], Scripted(json=["[]"])
    driver = world.driver(recording(), agent="hybrid", backend=model, polish="random")
    asked, _ = world.play(driver, asks=3)
    assert all(len(proposals) == 4 for proposals in asked)
    assert len(model.requests) == MOST_USELESS


@pytest.mark.parametrize(("name", "polish"), [("knobs", "nothing"), ("schedule", "grid")])
def test_a_polisher_that_cannot_be_is_refused(worlds, recording, name, polish):
    with pytest.raises(OptionError, match="polish: expected"):
        worlds[name].driver(recording(), agent="hybrid", polish=polish)


TEMPLATE = """#include <math.h>
#include <stdint.h>
#define WIDTH 8 // tune: 4, 8, 16
#define DEPTH 1 // tune: 1, 2
#define FIXED 3 // tune: 3
void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols) { }
"""


def test_macros_with_values_behind_them_are_tunable(worlds):
    space = worlds["source"].space
    found = read_tunable(Candidate(Language.SOURCE, TEMPLATE), space)
    assert [(k.name, k.values) for k in found.knobs] == [("WIDTH", (4, 8, 16)), ("DEPTH", (1, 2))]
    changed = found.program({"WIDTH": 16, "DEPTH": 2}).payload
    assert changed == TEMPLATE.replace("WIDTH 8", "WIDTH 16").replace("DEPTH 1", "DEPTH 2")
    assert found.program(dict(found.default)).payload == TEMPLATE
    twice = TEMPLATE + "#define WIDTH 8 // tune: 4, 8\n"
    assert [k.name for k in read_tunable(Candidate(Language.SOURCE, twice), space).knobs] == [
        "DEPTH"
    ]
    assert read_tunable(Candidate(Language.SOURCE, "int x;\n"), space) is None


def test_macros_outside_the_regions_are_left_alone(worlds):
    space = worlds["regions"].space
    text = space.text.replace(
        "// region normalise\n", "// region normalise\n#define W 8 // tune: 4\n"
    )
    outside = "#define V 8 // tune: 4\n" + text
    assert [k.name for k in read_tunable(Candidate(Language.SOURCE, text), space).knobs] == ["W"]
    assert read_tunable(Candidate(Language.SOURCE, outside), space) is None


def test_of_c_the_best_template_is_tuned_and_then_the_model_is_asked_again(worlds, recording):
    world = worlds["source"]
    plain = TEMPLATE.replace(" // tune:", " //")
    model = Scripted(c=[plain, TEMPLATE, plain + "// other\n"])
    options = {"polish": "random", "seeds": 2, "tuning": 9}
    driver = world.driver(recording(), agent="hybrid", backend=model, batch=2, **options)
    asked, trials = world.play(driver, asks=6, batch=2, objective=lambda c: 1.0)
    assert "// tune: 4, 8, 16, 32" in model.requests[0].messages[-1][1]
    first = [p.candidate.payload for p in asked[0]]
    assert first == [plain, TEMPLATE]
    tuned = [p for proposals in asked[1:4] for p in proposals]
    assert len(tuned) == 5  # of six choices one is known
    assert {p.parents for p in tuned} == {(trials[1].candidate.key,)}
    assert {p.proposer for p in tuned} == {"hybrid random"}
    assert len(model.requests) > 2
    with pytest.raises(OptionError, match="polish: expected"):
        world.driver(recording(), agent="hybrid", polish="beam")


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("#define T 8 // tune: 99999999999999999999, 4", (4, 8)),
        (f"#define T 8 // tune: 4, {'9' * 5000}", (4, 8)),
        ("#define T 2 // tune: 9007199254740993, 4", (2, 4)),
        ("#define T 8 // tune: 010, --4, 1-2, 16", (8, 16)),
        ("#define T 8 // tune: -4, 0", (-4, 0, 8)),
        # What C reads otherwise than Python, or not at all.
        *((f"#define T {own} // tune: 4", None) for own in ("010", "-0", "9" * 5000, "9" * 20)),
        ("#define 8T 8 // tune: 4", None),
        ("#define T \u0668 // tune: \u0664", None),
        ("#define T 8 // tune: ", None),
    ],
)
def test_numbers_that_no_macro_should_have_are_left_alone(worlds, line, values):
    world = worlds["source"]
    program = Candidate(Language.SOURCE, f"{line}\n{world.problem.plain_c}")
    found = read_tunable(program, world.space)
    assert (found and found.knobs[0].values) == values
    if found:
        assert found.program(dict(found.default)) == program
