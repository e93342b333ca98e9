"""A person as a model: prompts and answers are files."""

from __future__ import annotations

import pytest
from virtual import VirtualClock

from kernelwright.agents.backends.human import Human
from kernelwright.agents.chat import BackendError, ChatRequest, classify
from kernelwright.configs import api

REQUEST = ChatRequest("human", (("system", "be brief"), ("user", "which tile?")), 100, 0.5, 7)


class Typing(VirtualClock):
    """A clock during which somebody types: what is in the file after each sleep."""

    def __init__(self, path, *drafts):
        super().__init__()
        self.path, self.drafts = path, list(drafts)

    def sleep(self, seconds):
        super().sleep(seconds)
        if self.drafts:
            self.path.write_text(self.drafts.pop(0))


def human(folder, *drafts, name="0001.answer.md", **options):
    found = Human(folder=str(folder), **options)
    found._clock = Typing(folder / name, *drafts)
    return found


def test_the_prompt_is_a_file_and_the_answer_is_read_when_it_is_whole(tmp_path, caplog):
    model = human(tmp_path, "", "  \n", "half of", "half of it", "half of it")
    answer = model.complete(REQUEST)
    assert answer.text == "half of it"
    assert classify(answer) == "half of it"
    assert (answer.model, answer.finish_reason, answer.usage_estimated) == ("human", "stop", True)
    assert answer.tokens > 0
    text = (tmp_path / "0001.prompt.md").read_text()
    assert "which tile?" in text
    assert "be brief" in text
    assert "`0001.answer.md`" in text
    assert caplog.text.count("waiting for an answer to") == 1


def test_a_question_that_was_asked_is_not_asked_again(tmp_path):
    with pytest.raises(BackendError, match="no answer to") as caught:
        human(tmp_path, wait=5.0).complete(REQUEST)
    assert caught.value.kind == "permanent"
    assert "0001.answer.md, and run again" in str(caught.value)
    other = ChatRequest("human", (("user", "and which layout?"),), 100, 0.5, 7)
    with pytest.raises(BackendError):
        human(tmp_path, wait=5.0).complete(other)
    (tmp_path / "0001.answer.md").write_text("64")
    (tmp_path / "notes.md").write_text("mine")
    assert human(tmp_path).complete(REQUEST).text == "64"
    names = sorted(path.name for path in tmp_path.glob("*.prompt.md"))
    assert names == ["0001.prompt.md", "0002.prompt.md"]


def test_to_skip_is_a_refusal(tmp_path):
    answer = human(tmp_path, "Skip\n").complete(REQUEST)
    assert classify(answer).kind == "refused"


def test_a_folder_that_is_a_file_is_said_before_the_start(tmp_path):
    (tmp_path / "a").write_text("")
    model = human(tmp_path / "a")
    assert "a folder for questions" in model.missing[0]
    with pytest.raises(BackendError) as caught:
        model.complete(REQUEST)
    assert caught.value.kind == "permanent"


def test_a_campaign_waits_for_answers_and_goes_on_when_they_are_there(tmp_path):
    folder = tmp_path / "questions"
    backend = {"name": "human", "folder": str(folder), "wait": 0.02, "poll": 0.01}
    campaign = {
        "name": "by-hand",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "llm"},
        "agents": {"backend": backend},
        "budget": {"trials": 2},
        "batch": 1,
    }
    knobs = '{"bm": %d, "bn": 64, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}'
    for number, bm in enumerate((64, 128), 1):
        with pytest.raises(Exception, match="run again"):
            api.run(campaign, tmp_path / "run")
        (folder / f"{number:04d}.answer.md").write_text(f"I think\n```json\n{knobs % bm}\n```\n")
    summary = api.run(campaign, tmp_path / "run")
    assert summary["trials"] == 2
    assert summary["finished"]
    assert len(list(folder.glob("*.prompt.md"))) == 2


def test_an_answer_that_lies_there_already_is_to_another_question(tmp_path):
    (tmp_path / "0001.answer.md").write_text("of last week")
    answer = human(tmp_path, "64", "64", name="0002.answer.md").complete(REQUEST)
    assert answer.text == "64"


def test_two_runs_in_one_folder_ask_two_questions(tmp_path, monkeypatch):
    other = ChatRequest("human", (("user", "and which layout?"),), 100, 0.5, 7)
    first, second = human(tmp_path, wait=2.0), human(tmp_path, wait=2.0)
    put = Human._put

    def late(self, number, *rest):
        """The other run asks between looking at the folder and writing to it."""
        monkeypatch.setattr(Human, "_put", put)
        with pytest.raises(BackendError):
            second.complete(other)
        return put(self, number, *rest)

    monkeypatch.setattr(Human, "_put", late)
    with pytest.raises(BackendError):
        first.complete(REQUEST)
    texts = [place.read_text() for place in sorted(tmp_path.glob("*.prompt.md"))]
    assert ["which layout?" in text for text in texts] == [True, False]
    assert ["which tile?" in text for text in texts] == [False, True]


def test_an_answer_is_read_to_a_length_that_nobody_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("kernelwright.agents.backends.human.MOST_ANSWER", 10)
    assert human(tmp_path, "x" * 50, "x" * 50).complete(REQUEST).text == "x" * 10
