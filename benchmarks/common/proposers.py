"""Models to put before the hybrid beside the simulated one: one that takes what it is told of other
searches, and one that misleads. Campaigns name them by file.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import ChatRequest, Completion, digest
from kernelwright.agents.dialects.fences import blocks, fenced
from kernelwright.agents.programmer.reading import read_prompt, sections


class Reader(Mock):
    """Answers with the first configuration of a prompt's passages that is not listed as tried, else
    as the mock.
    """

    def complete(self, request: ChatRequest) -> Completion:
        """An answer; it takes the time of the mock's."""
        answer = super().complete(request)
        sheet = read_prompt(request.messages)
        tried = [_values(text) for text in (*sheet.seen, sheet.parent)]
        told = sections(request.messages[1][1]).get("Known", "")
        known = [values for block in blocks(told) if (values := _values(block.text))]
        fresh = [values for values in known if values not in tried]
        if not fresh or sheet.wrong is not None:
            return answer
        return replace(answer, text=fenced(json.dumps(fresh[0]), "json"))


class Misled:
    """Answers with any of some programs."""

    priced, missing, model = False, (), "misled"

    def __init__(self, *, seed: int, answers: list[str]) -> None:
        self._seed, self._answers = seed, answers

    def complete(self, request: ChatRequest) -> Completion:
        """An answer."""
        rng = random.Random(digest([self._seed, request.key]))
        text = fenced(rng.choice(self._answers), "json")
        return Completion(text, "stop", self.model, request.key)


def _values(text: str) -> dict[str, Any]:
    """The knob values of a text, none if it has none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def backend(name: str, **options: Any) -> dict[str, Any]:
    """One of them as a campaign's backend."""
    return {"name": f"{__file__}:{name}", **options}
