"""The race: who is measured, who leaves, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.search.race import FIRST_MOST, Race


def noisy(rng, truths, pairs, spread=0.02, tails=0.0):
    logs = np.array(truths)[:, None] + spread * rng.standard_normal((len(truths), pairs))
    struck = rng.random(logs.shape) < tails
    logs[struck] -= rng.exponential(0.5, int(struck.sum()))
    return logs.tolist()


def run(race, rng, truths, **noise):
    heats = []
    while (heat := race.heat()) is not None:
        heats.append(heat)
        chosen = [truths[entrant] for entrant in heat.entrants]
        race.tell(dict(zip(heat.entrants, noisy(rng, chosen, heat.pairs, **noise), strict=True)))
    return heats


def test_the_field_shrinks_and_the_pairs_of_each_grow():
    rng, truths = np.random.default_rng(0), [0.0] * 300
    race = Race(noisy(rng, truths, 5))
    heats = run(race, rng, truths)
    sizes, pairs = [len(h.entrants) for h in heats], [h.pairs for h in heats]
    assert sizes == sorted(sizes, reverse=True)
    assert pairs == sorted(pairs)
    assert (sizes[0], len(heats), len(race.ranking)) == (FIRST_MOST, 5, 3)
    # What a search may spend on it besides its screens and confirmations.
    assert sum(len(h.entrants) * h.pairs for h in heats) < 1000


def test_it_finds_the_fastest_among_many_whatever_is_interrupted():
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truths = [0.0] * 99 + [0.05]
        race = Race(noisy(rng, truths, 5, tails=0.1))
        run(race, rng, truths, tails=0.1)
        found += race.ranking[0] == 99
    assert found >= 19


def test_whoever_is_behind_beyond_doubt_is_not_measured_again():
    rng, truths = np.random.default_rng(1), [0.0, 0.001, 0.002, *[-0.5] * 40]
    race = Race(noisy(rng, truths, 5))
    assert sorted(race.ranking) == [0, 1, 2]


def test_an_entrant_whose_calls_were_interrupted_is_measured_again():
    calm = [[0.001 * i, 0.0, -0.001 * i, 0.002, -0.002] for i in range(20)]
    race = Race([*calm, [0.05, 0.05, -1.0, -1.5, -3.0]])
    assert 20 in race.ranking


def test_an_entrant_that_fails_is_out():
    race = Race([[0.0] * 5, [0.1] * 5, [0.05] * 5])
    heat = race.heat()
    race.tell({entrant: [] if entrant == 1 else [0.0, 0.01] for entrant in heat.entrants})
    assert 1 not in race.ranking
    race.tell({})
    assert (race.ranking, race.heat()) == ((), None)


def test_screens_against_another_reference_only_choose_who_starts():
    race = Race([[9.0] * 5, [0.2] * 5, [0.1] * 5], comparable=[False, True, True], keep=3)
    assert set(race.ranking) <= {0, 1, 2}
    while (heat := race.heat()) is not None:
        race.tell({entrant: [-1.0 if entrant == 0 else 0.15] * 2 for entrant in heat.entrants})
    assert race.ranking[0] != 0


def test_screens_that_were_stopped_early_do_not_shorten_the_race():
    near = [[0.0, 0.01, -0.01, 0.0, 0.005]] * 10
    assert Race([*near, *[[-1.2]] * 30]).heat().pairs == Race(near).heat().pairs


def test_no_rounds_no_heat_and_nobody_without_a_sample():
    race = Race([[0.0], [1.0]], rounds=0)
    assert race.heat() is None
    assert race.ranking == (1, 0)
    with pytest.raises(ValueError, match="at least one sample"):
        Race([[0.0], []])
    assert Race([]).ranking == ()
