"""A simulated model: a small stochastic programmer that works offline and makes mistakes at set
rates.

A completion is a function of (seed, request) and nothing else: no call order, no clock. The prompt
is read as text, so what it leaves out the programmer does not know. Every planted fault carries its
ground truth in ``Completion.injected``, which no prompt ever shows; so a campaign can count what
its parsers and judges made of it.

Nothing sleeps: how long an answer would have taken is declared, and stands in the completion.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from kernelwright.agents.chat import ChatRequest, Completion, digest, estimate_tokens, price
from kernelwright.agents.programmer.answers import answer
from kernelwright.agents.programmer.faults import draw_fault, fault_rates
from kernelwright.agents.programmer.personas import persona_named
from kernelwright.agents.programmer.reading import read_prompt

# Of its behaviour: one version, seed and request make one answer, forever. A change that alters any
# answer is a new version; it is in the id of every completion, and so in a campaign's record.
VERSION = 3


class Mock:
    """The simulated model behind the seam of real ones.

    Raises:
        OptionError: if there is no such persona, or the fault rates make no sense.
    """

    def __init__(
        self,
        *,
        seed: int,
        persona: Annotated[
            str | None, Field(description="a model of its own: its skill, faults, times and prices")
        ] = None,
        skill: Annotated[
            float | None,
            Field(ge=0, le=1, description="0 makes random moves, 1 the best; 0.7 if none"),
        ] = None,
        faults: Annotated[
            float | str | dict[str, float] | None,
            Field(description="faulty answers: a total rate, a profile's name, or rates by class"),
        ] = None,
        latency_s: Annotated[
            float | None,
            Field(ge=0, le=86400, description="virtual seconds of a call; the persona's if none"),
        ] = None,
        usd_per_million: Annotated[
            float | None, Field(ge=0, le=1e6, description="what a million tokens shall cost")
        ] = None,
    ) -> None:
        self._seed, self._persona = seed, persona_named(persona)
        self._skill = self._persona.skill if skill is None else skill
        self._rates = fault_rates(self._persona.faults if faults is None else faults)
        self._latency_s = latency_s
        self._prices = {
            "prompt": self._persona.prompt_usd if usd_per_million is None else usd_per_million,
            "completion": self._persona.completion_usd
            if usd_per_million is None
            else usd_per_million,
        }
        self.model = "mock" if persona is None else f"mock-{persona}"

    @property
    def priced(self) -> bool:
        """It knows what it costs, if only nothing."""
        return True

    @property
    def usd_per_million(self) -> Mapping[str, float]:
        """Its price list."""
        return self._prices

    @property
    def missing(self) -> tuple[str, ...]:
        """Nothing: it runs anywhere."""
        return ()

    def complete(self, request: ChatRequest) -> Completion:
        """The programmer's answer, or a fault."""
        rng = random.Random(digest(["mock", self._seed, request.key]))
        fault = draw_fault(self._rates, rng)
        sheet = read_prompt(request.messages, is_bare=request.schema is not None)
        said = answer(sheet, fault, rng, self._skill)
        text, reason = _cut(said.text, said.finish_reason, request.max_tokens)
        injected = said.injected
        if injected is not None and text != said.text:
            injected = "truncated:limit"  # whatever else it was, nobody will read it
        asked = sum(estimate_tokens(content) for _, content in request.messages)
        told = estimate_tokens(text or said.refusal or "")
        return Completion(
            text=text,
            finish_reason=reason,
            model=self.model,
            id=f"mock-{VERSION}-{request.key[:16]}",
            refusal=said.refusal,
            prompt_tokens=asked,
            completion_tokens=told,
            usage_estimated=True,
            usd=price(asked, told, self._prices),
            injected=injected,
            seconds=self._seconds(told),
        )

    def _seconds(self, tokens: int) -> float:
        """How long the answer takes, by what is declared."""
        if self._latency_s is not None:
            return self._latency_s
        return self._persona.first_s + self._persona.token_s * tokens


def _cut(text: str | None, reason: str, max_tokens: int) -> tuple[str | None, str]:
    """A real model stops at the limit, whatever it wanted to say."""
    if text is None or estimate_tokens(text) <= max_tokens:
        return text, reason
    return text[: 4 * max_tokens], "length"
