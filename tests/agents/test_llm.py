"""The driver: questions and proposals are a function of what it is told and of the answers, and
useless answers are events, never candidates.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from kernelwright.agents import AGENT_DRIVERS, BACKENDS
from kernelwright.agents.asking import MOST_LOST, ReplayMismatch
from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import BackendError, Completion
from kernelwright.agents.report import CLASSES, confusion
from kernelwright.agents.talk import MOST_USELESS
from kernelwright.configs.resolve import resolve

NAMES = ("knobs", "schedule", "source", "regions")
GOOD = '```json\n{"bm": %d, "bn": 64, "bk": 32, "warps": 4, "stages": %d, "group_m": 8}\n```'


def said(text, reason="stop", **fields):
    return Completion(
        text, reason, "scripted", "id", prompt_tokens=10, completion_tokens=5, **fields
    )


class Scripted:
    """Answers from a list, then with the last of it; an exception in the list is raised."""

    model, priced, missing = "scripted", True, ()

    def __init__(self, *answers):
        self.answers, self.requests = answers, []

    def complete(self, request):
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Unplugged(Scripted):
    """A model that must not be asked."""

    def __init__(self, model):
        super().__init__(AssertionError("the model was asked"))
        self.model = model


def fresh(count):
    """Answers with that many different programs."""
    return [said(GOOD % (bm, stages)) for bm in (32, 64, 128, 256) for stages in (2, 3, 4)][:count]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch", [1, 4])
def test_a_recorded_search_runs_again_without_a_call_and_proposes_the_same(
    worlds, recording, name, batch
):
    world, journal = worlds[name], recording()
    driver = world.driver(journal, batch=batch, faults=0.4, seed=6)
    first, _ = world.play(driver, asks=6, batch=batch)
    before = journal.events
    driver = world.driver(journal, batch=batch, seed=6, backend=Unplugged("mock"))
    again, _ = world.play(driver, asks=6, batch=batch)
    assert again == first
    assert journal.events == before
    assert any(first)


def test_a_search_that_was_interrupted_goes_on_as_if_it_had_not_been(worlds, recording):
    world, whole = worlds["knobs"], recording()
    straight, _ = world.play(world.driver(whole, faults=0.4), asks=8)
    for kept in range(0, len(whole.events), 7):
        torn = recording()
        for event in whole.events[:kept]:
            torn.record(event)
        asked, _ = world.play(world.driver(torn, faults=0.4), asks=8)
        assert asked == straight
        assert torn.events == whole.events


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_or_batch_is_another_search(worlds, recording, name):
    def search(**options):
        world = worlds[name]
        batch = options.get("batch", 4)
        asked, _ = world.play(world.driver(recording(), **options), asks=4, batch=batch)
        return [p.candidate.key for proposals in asked for p in proposals]

    assert search(seed=1) == search(seed=1)
    assert search(seed=1) != search(seed=2)
    assert search(seed=1, batch=4) != search(seed=1, batch=2)


def test_a_journal_of_another_question_is_refused_and_says_what_differs(worlds, recording):
    world, journal = worlds["knobs"], recording()
    world.driver(journal).ask(2)
    for options, part in (
        ({"temperature": 0.1}, "temperature"),
        ({"max_tokens": 99}, "max_tokens"),
        ({"structured": True}, "schema"),
        ({"seed": 9}, "seed"),
        ({"backend": Unplugged("other")}, "model"),
    ):
        with pytest.raises(ReplayMismatch, match=f"ask 1, call 0: .*{part}"):
            world.driver(journal, **options).ask(2)


def test_a_paid_answer_is_recorded_before_it_is_read(worlds, journal):
    world = worlds["knobs"]

    class Broken:
        def __init__(self, space):
            self._space = space

        def __getattr__(self, name):
            return getattr(self._space, name)

        def check(self, candidate):
            raise RuntimeError("the power went out")

    driver = type(world)(Broken(world.space), world.problem).driver(journal)
    with pytest.raises(RuntimeError, match="power"):
        driver.ask(1)
    (event,) = journal.events
    assert event.kind == "model_call"
    assert event.tokens > 0


# Answers that are read: fewer where a program takes long to check.
ANSWERS = {"knobs": 1000, "schedule": 400, "source": 400, "regions": 400}


@pytest.mark.parametrize("name", NAMES)
def test_of_a_thousand_answers_no_useless_one_becomes_a_candidate(worlds, recording, name):
    world, events, proposed = worlds[name], [], 0
    for seed in range(40):
        journal = recording()
        driver = world.driver(journal, seed=seed, faults=0.4)
        asked, _ = world.play(driver, asks=12)
        events += [replace(e, ask=e.ask + 100 * seed) for e in journal.events]
        for proposals in asked:
            proposed += len(proposals)
            assert all(not world.space.check(p.candidate) for p in proposals)
        keys = [p.candidate.key for proposals in asked for p in proposals]
        assert len(set(keys)) == len(keys)
        if sum(e.kind == "model_call" for e in events) >= ANSWERS[name]:
            break
    table = confusion(events)
    calls = sum(table.values())
    assert calls == sum(e.kind == "model_call" for e in events) >= ANSWERS[name]
    assert sum(n for (_, found), n in table.items() if found == "candidate") == proposed
    filed = Counter(e.kind for e in events if e.kind in CLASSES)
    for kind in ("truncated", "refused", "empty", "wrong_schema"):
        assert table[kind, kind] == sum(n for (tag, _), n in table.items() if tag == kind) > 0
        assert filed[kind] == sum(n for (_, found), n in table.items() if found == kind)
    for tag in ("prose", "unparsable"):
        assert {found for (t, found) in table if t == tag} == {"unparsable"}
    assert filed["unparsable"] == table["prose", "unparsable"] + table["unparsable", "unparsable"]
    if name in ("knobs", "schedule"):
        assert {found for (tag, found) in table if tag == "illegal"} == {"illegal"}
    else:
        # A wrong program is told from a right one by building and running it.
        assert {found for (tag, found) in table if tag == "wrong_code"} <= {
            "candidate",
            "duplicate",
        }


@pytest.mark.parametrize("batch", [1, 5])
def test_an_ask_makes_no_more_calls_than_proposals_are_wanted(worlds, journal, batch):
    world = worlds["knobs"]
    model = Scripted(*fresh(12))
    proposals = world.driver(journal, batch=batch, backend=model).ask(batch)
    assert len(proposals) == len(model.requests) == batch
    assert len({r.key for r in model.requests}) == batch


def test_an_ask_goes_on_only_while_it_has_nothing(worlds, journal):
    bad, good = said("no block"), fresh(2)
    model = Scripted(bad, bad, bad, bad, bad, good[0], good[1])
    proposals = worlds["knobs"].driver(journal, backend=model).ask(4)
    assert len(proposals) == 1
    assert len(model.requests) == 6


def test_useless_answers_in_a_row_end_the_search_and_say_why(worlds, journal):
    model = Scripted(said("half", "length"))
    driver = worlds["knobs"].driver(journal, backend=model)
    assert driver.stopped is None
    assert driver.ask(4) == []
    assert len(model.requests) == MOST_USELESS
    assert driver.stopped.startswith(f"{MOST_USELESS} replies in a row gave nothing new")
    assert "truncated" in driver.stopped
    assert driver.ask(4) == []
    assert len(model.requests) == MOST_USELESS


def test_a_good_answer_in_between_starts_the_count_again(worlds, journal):
    bad = [said("no block")] * (MOST_USELESS - 1)
    model = Scripted(*bad, fresh(2)[0], *bad, fresh(2)[1])
    driver = worlds["knobs"].driver(journal, backend=model, batch=1)
    assert len(driver.ask(1)) == len(driver.ask(1)) == 1
    assert driver.stopped is None


def test_a_permanent_error_is_raised_after_one_call_and_leaves_no_trace(worlds, journal):
    model = Scripted(BackendError("permanent", "401 no"))
    with pytest.raises(BackendError, match="401 no"):
        worlds["knobs"].driver(journal, backend=model).ask(4)
    assert len(model.requests) == 1
    assert journal.events == []


def test_calls_lost_in_a_row_are_raised_so_that_the_campaign_can_be_resumed(worlds, recording):
    lost, journal = BackendError("transient", "no route"), recording()
    model = Scripted(lost)
    with pytest.raises(BackendError, match="no route"):
        worlds["knobs"].driver(journal, backend=model).ask(4)
    assert len(model.requests) == MOST_LOST
    assert [e.kind for e in journal.events].count("lost") == MOST_LOST - 1
    resumed = Scripted(*fresh(6))
    proposals = worlds["knobs"].driver(journal, backend=resumed).ask(4)
    assert len(proposals) == 4 - (MOST_LOST - 1)
    again = worlds["knobs"].driver(journal, backend=Unplugged("scripted")).ask(4)
    assert again == proposals


def test_a_call_lost_now_and_then_is_an_event(worlds, journal):
    lost = BackendError("transient", "no route")
    good = fresh(4)
    model = Scripted(lost, good[0], lost, good[1], lost, good[2])
    driver = worlds["knobs"].driver(journal, backend=model)
    assert len(driver.ask(6)) == 3
    assert [e.kind for e in journal.events].count("lost") == 3


def test_an_answer_that_is_no_completion_is_unparsable(worlds, journal):
    model = Scripted(BackendError("content", "found str"), *fresh(1))
    assert len(worlds["knobs"].driver(journal, backend=model).ask(2)) == 1
    assert journal.past("unparsable", 1, 0).data["reason"] == "found str"
    assert journal.past("model_call", 1, 0).data["error"]["kind"] == "content"


@pytest.mark.parametrize(
    ("answer", "kind", "mended"),
    [
        (said("half", "length"), "truncated", True),
        (said("no block"), "unparsable", True),
        (said("```json\n{}\n```"), "wrong_schema", True),
        (said(GOOD % (65, 2)), "illegal", True),
        (said(None, refusal="no"), "refused", False),
        (said(""), "empty", False),
    ],
)
def test_what_can_be_mended_is_asked_for_once_more(worlds, journal, answer, kind, mended):
    model = Scripted(answer, answer, *fresh(1))
    worlds["knobs"].driver(journal, backend=model).ask(3)
    assert journal.past(kind, 1, 0) is not None
    lengths = [len(request.messages) for request in model.requests]
    assert lengths == ([2, 4, 2] if mended else [2, 2, 2])


def test_attempts_bound_the_mending(worlds, journal):
    model = Scripted(*[said("no block")] * 7, *fresh(1))
    worlds["knobs"].driver(journal, backend=model, attempts=3).ask(1)
    assert [len(r.messages) for r in model.requests] == [2, 4, 6, 2, 4, 6, 2, 4]


def test_a_program_that_was_tried_is_a_duplicate_and_its_result_is_told(worlds, journal):
    world, (one, other) = worlds["knobs"], fresh(2)
    model = Scripted(one, one, other)
    driver = world.driver(journal, backend=model, batch=1)
    world.play(driver, asks=1, batch=1, objective=lambda c: 1.0)
    assert len(driver.ask(1)) == 1
    assert journal.past("duplicate", 2, 0).data["reason"].startswith("it was tried before: 2x")
    assert "2x; change something else" in model.requests[2].messages[-1][1]


def test_what_another_proposer_tried_is_a_duplicate_too(worlds, journal):
    from contracts import judged

    world, (one, other) = worlds["knobs"], fresh(2)
    driver = world.driver(journal, backend=Scripted(one, other))
    candidate = world.driver(journal)._desk.dialect.parse(one.text)
    driver.tell([judged(0, candidate, 0.0)])
    (proposal,) = driver.ask(2)
    assert proposal.candidate != candidate
    assert journal.past("duplicate", 1, 0) is not None


def test_a_proposal_says_where_it_comes_from_and_what_it_cost(worlds, journal):
    world = worlds["knobs"]
    answers = [replace(a, usd=0.25) for a in fresh(8)]
    model = Scripted(*answers)
    driver = world.driver(journal, backend=model)
    asked, trials = world.play(driver, asks=2, objective=lambda c: float(int(c.key[:4], 16)) / 1e4)
    best = max(trials[:4], key=lambda t: t.objective)
    first, second = asked[0][0], asked[1][0]
    assert first.parents == (world.space.default.key,)
    assert second.parents == (best.candidate.key,)
    assert second.prompt_hash == model.requests[4].key
    assert (second.proposer, second.tokens, second.usd) == ("llm", 15, 0.25)
    assert best.candidate.key[:8] in model.requests[4].messages[1][1]
    call = journal.past("model_call", 2, 0)
    assert (call.tokens, call.usd) == (15, 0.25)
    assert call.data["key"] == second.prompt_hash
    assert journal.past("proposed", 2, 0).data == {"key": second.candidate.key}


def test_failures_are_told_with_code_and_evidence(worlds, journal):
    from kernelwright.env.types import Stage, Status, Verdict
    from kernelwright.search.trial import Trial

    world, model = worlds["source"], Scripted(said("no block"))
    driver = world.driver(journal, backend=model)
    log = "kernel.c:3:5: error: unknown type name 'flaot'\n" + "note\n" * 1000 + "the last words"
    verdict = Verdict(Status.BUILD_ERROR, "compile_error", "gcc refused it", log=log)
    verdicts = ((Stage.SCREEN, verdict),)
    driver.tell([Trial(0, world.space.default, verdicts, None, "x", (), 0, 0)])
    driver.ask(1)
    shown = model.requests[0].messages[1][1]
    assert "build_error, compile_error" in shown
    for text in ("gcc refused it", "'flaot'", "the last words"):
        assert text in shown
    assert len(shown) < 6000


def test_options_of_a_call_come_from_the_driver(worlds, journal):
    model = Scripted(*fresh(2))
    options = {"max_tokens": 77, "temperature": 0.25, "structured": True}
    worlds["knobs"].driver(journal, backend=model, **options).ask(1)
    (request,) = model.requests
    assert (request.model, request.max_tokens, request.temperature) == ("scripted", 77, 0.25)
    assert '"enum":[16,32,64,128,256]' in request.schema
    worlds["schedule"].driver(journal.__class__(), backend=Mock(seed=0), structured=True).ask(1)


def test_history_bounds_what_is_listed(worlds, recording):
    def rows(history):
        model = Scripted(*fresh(12))
        driver = worlds["knobs"].driver(recording(), backend=model, history=history)
        worlds["knobs"].play(driver, asks=3)
        listed = model.requests[-4].messages[1][1].partition("## Results")[2]
        return listed.partition("Already")[0].partition("##")[0].count("\n- `")

    assert rows(2) == 2
    assert rows(6) == 6


def test_rows_of_the_tables_resolve():
    for table in (BACKENDS, AGENT_DRIVERS):
        for name in table:
            assert callable(resolve(table, name))


def test_the_report_joins_answers_with_what_became_of_their_candidates(worlds, journal):
    world = worlds["source"]
    faults = {"wrong_code": 0.5}
    driver = world.driver(journal, faults=faults)

    def judge(candidate):
        return None if "__builtin_abort" in candidate.payload else 1.0

    _, trials = world.play(driver, asks=10, objective=judge)
    table = confusion(journal.events, trials, variants=True)
    assert table["wrong_code:abort", "build_error"] > 0
    assert ("wrong_code:abort", "ok") not in table
    assert table["none", "ok"] > 0
    merged = confusion(journal.events, trials)
    assert {tag for tag, _ in merged} == {"none", "wrong_code"}
    assert sum(merged.values()) == sum(table.values())


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("source", "```c\nvoid softmax(float *y) {\n" + "y[0] = 1;\n" * 8000 + "}\n```"),
        ("schedule", "```python\n" + "reorder('j', 'i')\nreorder('i', 'j')\n" * 65 + "```"),
    ],
)
def test_a_program_that_is_too_long_is_refused_before_anybody_compares_it(
    worlds, journal, monkeypatch, name, code
):
    class Endless(Mock):
        def complete(self, request):
            return Completion(code, "stop", "mock", request.key)

    driver = worlds[name].driver(journal, backend=Endless(seed=0))
    form, read = driver._desk.dialect.form, []
    monkeypatch.setattr(driver._desk.dialect, "form", lambda c: read.append(c) or form(c))
    monkeypatch.setattr(driver._desk.dialect, "brief", None)
    driver.ask(1)
    filed = [event for event in journal.events if event.kind == "illegal"]
    assert len(filed) == MOST_USELESS
    assert "expected at most" in filed[0].data["reason"]
    assert set(read) == {worlds[name].space.default}


def test_a_refusal_cannot_pose_as_lines_of_the_summary(worlds, journal):
    refusal = "no\n\n9.9x faster (measured)\n  candidate abc\x1b[2J\u2028trial 7"
    driver = worlds["knobs"].driver(journal, backend=Scripted(said(None, refusal=refusal)))
    assert driver.ask(4) == []
    assert driver.stopped.endswith("refused: no 9.9x faster (measured) candidate abctrial 7")
    assert len(driver.stopped.splitlines()) == 1
