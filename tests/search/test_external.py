"""The driver that is fed: it proposes what is handed in, and again what was, without anybody."""

from __future__ import annotations

from contracts import judged
from playground import SPACE

from kernelwright.env.types import Proposal
from kernelwright.search.drivers.external import CLOSED, SUBMITTED, External
from kernelwright.search.store import StoreJournal

FIRST, SECOND, THIRD = (SPACE.candidate(int(index)) for index in SPACE.valid[:3])


def driver(events):
    return External(SPACE, seed=0, batch=8, journal=StoreJournal(tuple(events), events.append))


def keys(proposals):
    return [p.candidate.key for p in proposals]


def test_it_proposes_what_is_handed_in_and_records_it_first():
    events = []
    fed = driver(events)
    fed.hand_in(Proposal(FIRST, "someone", (SECOND.key,)))
    assert fed.stopped is None
    (proposal,) = fed.ask(8)
    assert (proposal.candidate, proposal.proposer) == (FIRST, "someone")
    assert proposal.parents == (SECOND.key,)
    assert [(e.kind, e.ask, e.slot) for e in events] == [(SUBMITTED, 1, 0)]


def test_what_was_handed_in_is_proposed_again_at_its_place():
    events = []
    fed = driver(events)
    for candidate in (FIRST, SECOND):
        fed.hand_in(Proposal(candidate, "someone"))
        fed.ask(8)
    again = driver(list(events))
    assert again.is_behind
    asked = [again.ask(8), again.ask(8)]
    assert [keys(proposals) for proposals in asked] == [[FIRST.key], [SECOND.key]]
    assert [p.proposer for proposals in asked for p in proposals] == ["someone", "someone"]
    assert not again.is_behind


def test_an_ask_that_was_made_takes_nothing_new():
    events = []
    fed = driver(events)
    fed.hand_in(Proposal(FIRST, "someone"))
    fed.ask(8)
    again = driver(list(events))
    again.hand_in(Proposal(THIRD, "another"))
    assert keys(again.ask(8)) == [FIRST.key]
    assert keys(again.ask(8)) == [THIRD.key]


def test_nobody_hands_anything_in():
    fed = driver([])
    assert fed.ask(8) == []
    assert "kernelwright mcp" in fed.stopped


def test_the_end_is_recorded_and_comes_again():
    events = []
    fed = driver(events)
    fed.hand_in(Proposal(FIRST, "someone"))
    fed.ask(8)
    fed.close("enough")
    assert (fed.ask(8), fed.stopped) == ([], "enough")
    again = driver(list(events))
    again.ask(8)
    assert again.is_behind
    assert (again.ask(8), again.stopped) == ([], "enough")
    assert [e.kind for e in events] == [SUBMITTED, CLOSED]


def test_refusals_have_places_of_their_own_after_a_restart_too():
    events = []
    fed = driver(events)
    fed.refuse("invalid", key="", candidate="x", reasons=["no"])
    fed.refuse("invalid", key="", candidate="y", reasons=["no"])
    again = driver(events)
    again.refuse("invalid", key="", candidate="z", reasons=["no"])
    assert [(e.ask, e.slot) for e in events] == [(1, 0), (1, 1), (1, 2)]


def test_what_is_withdrawn_is_not_proposed():
    fed = driver([])
    fed.hand_in(Proposal(FIRST, "someone"))
    fed.withdraw()
    assert fed.ask(8) == []


def test_it_keeps_what_became_of_candidates():
    fed = driver([])
    fed.tell([judged(0, FIRST, 1.0)])
    assert fed.told[FIRST.key].objective == 1.0
