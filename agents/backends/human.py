"""A person as a model: questions are files in a folder, answers are files beside them.

``0001.prompt.md`` is answered by ``0001.answer.md``. A question that was asked before a run was
stopped is not asked again: the run goes on waiting for its answer, or finds it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from kernelwright.agents.backends.pace import Clock, WallClock
from kernelwright.agents.chat import BackendError, ChatRequest, Completion, estimate_tokens
from kernelwright.env.options import FolderOption, ReachOption

_log = logging.getLogger(__name__)
_PROMPT = re.compile(r"^(\d{4,9})\.prompt\.md$")
_NUMBERED = re.compile(r"^(\d{4,9})\.(?:prompt|answer)\.md$")
# Characters of an answer: more than anybody writes.
MOST_ANSWER = 1_000_000
_MARK, MOST_MARK = "<!-- request {key} -->", 100
# An answer that is this word alone is a refusal.
SKIP = "skip"
HOW = """\
> Write the answer to `{answer}` in this folder: what is asked for at the end, in the form that is
> shown there. It is read once it has not changed for {settle:g} s. The word `{skip}` alone passes.
"""


class Human:
    """A person, who reads prompts in a folder and writes answers there."""

    def __init__(
        self,
        *,
        folder: Annotated[
            str,
            Field(min_length=1, description="where questions and answers lie"),
            FolderOption(),
            ReachOption(),
        ],
        wait: Annotated[
            float, Field(gt=0, le=1e7, description="seconds to wait for an answer"), ReachOption()
        ] = 86400.0,
        poll: Annotated[
            float,
            Field(gt=0, le=3600, description="seconds between two looks at the folder"),
            ReachOption(),
        ] = 1.0,
    ) -> None:
        self.model = "human"
        self._folder, self._wait, self._poll = Path(folder), wait, poll
        self._clock: Clock = WallClock()

    @property
    def priced(self) -> bool:
        """A person's time has no price here."""
        return True

    @property
    def usd_per_million(self) -> Mapping[str, float]:
        """Nothing."""
        return {"prompt": 0.0, "completion": 0.0}

    @property
    def missing(self) -> tuple[str, ...]:
        """A folder to write to."""
        if self._folder.exists() and not self._folder.is_dir():
            return (f"a folder for questions (there is a file at {self._folder})",)
        return ()

    def complete(self, request: ChatRequest) -> Completion:
        """The person's answer, once it is there.

        Raises:
            BackendError: if it does not come in time, or the folder cannot be used; the question
                stays, and the same run goes on waiting.
        """
        try:
            prompt = self._asked(request)
            answer = prompt.with_name(prompt.name.replace(".prompt.", ".answer."))
            text = self._answer(prompt, answer)
        except OSError as error:
            raise BackendError("permanent", f"{self._folder}: {error}") from None
        passed = text.strip().lower() == SKIP
        return Completion(
            text=None if passed else text,
            finish_reason="stop",
            model=self.model,
            id=f"{prompt.name.partition('.')[0]}-{request.key[:16]}",
            refusal="the person passed" if passed else None,
            prompt_tokens=sum(estimate_tokens(content) for _, content in request.messages),
            completion_tokens=estimate_tokens(text),
            usage_estimated=True,
        )

    def _asked(self, request: ChatRequest) -> Path:
        """The file of the question, which is written unless it is there already."""
        self._folder.mkdir(parents=True, exist_ok=True)
        mark, names = _MARK.format(key=request.key), sorted(p.name for p in self._folder.iterdir())
        for name in filter(_PROMPT.match, names):
            place = self._folder / name
            with place.open(encoding="utf-8", errors="replace") as file:
                if file.readline(MOST_MARK).strip() == mark:
                    return place
        # An answer that lies there already is to another question, which is gone.
        numbers = [int(found[1]) for name in names if (found := _NUMBERED.match(name))]
        return self._put(max(numbers, default=0) + 1, mark, request)

    def _put(self, number: int, mark: str, request: ChatRequest) -> Path:
        """The file of a new question, of that number or, where another run was faster, a later
        one.
        """
        while True:
            place = self._folder / f"{number:04d}.prompt.md"
            try:
                place.open("x").close()
                break
            except FileExistsError:
                number += 1
        answer = place.name.replace(".prompt.", ".answer.")
        how = HOW.format(answer=answer, settle=self._poll, skip=SKIP)
        parts = [f"# {role}\n\n{text.rstrip()}\n" for role, text in request.messages]
        temporary = place.with_name(f".{place.name}.new")
        text = "\n".join([mark, "", how, *parts])
        temporary.write_text(text, encoding="utf-8", errors="replace")
        temporary.replace(place)
        return place

    def _answer(self, prompt: Path, answer: Path) -> str:
        """The text of the answer, when it has been written to its end."""
        end, last, told = self._clock.now() + self._wait, "", False
        while True:
            text = _read(answer)
            if text.strip() and text == last:
                return text
            last = text
            if self._clock.now() >= end:
                found = f"no answer to {prompt} after {self._wait:g} s: write it to {answer}"
                raise BackendError("permanent", found, is_pause=True)
            if not told and not text.strip():
                _log.warning("waiting for an answer to %s in %s", prompt, answer.name)
                told = True
            self._clock.sleep(self._poll)


def _read(answer: Path) -> str:
    """What an answer's file holds so far; nothing where there is none yet."""
    if not answer.is_file():
        return ""
    with answer.open(encoding="utf-8", errors="replace") as file:
        return file.read(MOST_ANSWER)
