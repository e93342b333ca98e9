"""Seeds by a model and a search by a classical driver; of C, templates whose macros are tuned."""

from __future__ import annotations

import json

import pytest
from contract import Scripted, made_up, some

from kernelwright.agents.drivers.hybrid import polisher
from kernelwright.agents.drivers.tunable import read_tunable
from kernelwright.agents.talk import MOST_USELESS
from kernelwright.env.options import OptionError
from kernelwright.env.types import Candidate, Language


def of_seeds(driver, count):
    return {
        c.key for c in map(driver._desk.dialect.parse, map("```json\n{}\n```".format, some(count)))
    }


def searched(world, journal, *, seed_height, batch=4, asks=12, **options):
    """A hybrid whose seeds all have one height; what was asked, and by whom."""
    model = Scripted(json=some(12))
    driver = world.driver(
        journal, agent="hybrid", backend=model, seed=3, batch=batch, polish="evolution", **options
    )
    seeds = of_seeds(driver, 12)
    told = []
    tell = driver._way._polisher.tell
    driver._way._polisher.tell = lambda trials: (told.extend(trials), tell(trials))

    def height(candidate):
        return seed_height if candidate.key in seeds else made_up(candidate)

    asked, trials = world.play(driver, asks=asks, batch=batch, objective=height)
    assert told == trials  # the polisher is told of everything, in order
    return [[p.proposer for p in proposals] for proposals in asked]


@pytest.mark.parametrize("height", [None, -9.0])
def test_a_model_whose_seeds_are_slow_is_asked_no_more(worlds, recording, height):
    journal = recording()
    asked = searched(worlds["knobs"], journal, seed_height=height)
    assert asked[0] == ["hybrid", "hybrid", "hybrid evolution", "hybrid evolution"]
    assert asked[1:] == [["hybrid evolution"] * 4] * 11
    (event,) = [e for e in journal.events if e.kind == "seeds"]
    assert event.data == {"seeds": 2, "reason": "slower"}


@pytest.mark.parametrize(("batch", "seeds"), [(1, 3), (3, 5), (4, 8), (8, 8)])
def test_a_model_that_leads_goes_on_beside_the_driver(worlds, recording, batch, seeds):
    journal = recording()
    asked = searched(worlds["knobs"], journal, seed_height=9.0, batch=batch, seeds=seeds)
    sown = [ask.count("hybrid") for ask in asked]
    assert sum(sown) == seeds
    assert max(sown) <= 2
    assert all(2 * sum(sown[:at]) <= at * batch + 1 for at in range(len(asked)))
    (event,) = [e for e in journal.events if e.kind == "seeds"]
    assert event.data == {"seeds": seeds, "reason": "all proposed"}


def test_a_seed_that_the_driver_proposes_too_is_judged_once(worlds, recording):
    world = worlds["knobs"]
    alone = polisher("grid", world.space, seed=0, batch=4, problem=world.problem)
    first = [dict(p.candidate.payload) for p in alone.ask(2)]
    model = Scripted(json=[json.dumps(values) for values in reversed(first)])
    driver = world.driver(recording(), agent="hybrid", backend=model, polish="grid")
    asked, _ = world.play(driver, asks=3)
    keys = [p.candidate.key for proposals in asked for p in proposals]
    assert len(set(keys)) == len(keys) > 8


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
