"""A simulated model: a small stochastic programmer that works offline and makes mistakes at set
rates.

A completion is a function of (seed, request) and nothing else: no call order, no clock. The prompt
is read as text, so what it leaves out the programmer does not know. Every planted fault carries its
ground truth in ``Completion.injected``, which no prompt ever shows; so a campaign can count what
its parsers and judges made of it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from kernelwright.agents.chat import ChatRequest, Completion, digest, estimate_tokens, price
from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.programmer import knobs, schedule, source
from kernelwright.agents.programmer.faults import draw_fault, fault_rates
from kernelwright.agents.programmer.reading import Sheet, read_prompt

PROGRAMMERS = {"json": knobs, "python": schedule, "c": source}
REFUSAL = "I can't help with that."
THOUGHTS = (
    "I change what limits the parent most.",
    "The parent leaves the vector units idle.",
    "This keeps more values in registers.",
    "A small step from the parent.",
)
PROSE = (
    "Tiling should help here, because the working set exceeds the cache. One would choose blocks "
    "so that three of them fit, and vectorize the innermost loop; the exact numbers depend on the "
    "machine."
)
STRANGE = {
    "json": '["fast", "faster"]',
    "python": "for factor in (4, 8):\n    split('i', factor)",
    "c": "int answer(void) { return 42; }",
}
BROKEN = {"json": '{"fast": tru', "python": "split('i', 8\nunroll('ii')"}


class Mock:
    """The simulated model behind the seam of real ones.

    Raises:
        OptionError: if the fault rates make no sense.
    """

    def __init__(
        self,
        *,
        seed: int,
        skill: Annotated[
            float, Field(ge=0, le=1, description="0 makes random moves, 1 the most promising ones")
        ] = 0.7,
        faults: Annotated[
            float | dict[str, float],
            Field(description="rate of faulty answers: a total, or rates by class"),
        ] = 0.0,
        usd_per_million: Annotated[
            float, Field(ge=0, le=1e6, description="what a million tokens shall cost")
        ] = 0.0,
    ) -> None:
        self._seed, self._skill, self._rates = seed, skill, fault_rates(faults)
        self._prices = {"prompt": usd_per_million, "completion": usd_per_million}
        self.model = "mock"

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
        sheet = read_prompt(request.messages)
        fault = draw_fault(self._rates, rng)
        text, reason, injected = self._answer(sheet, fault, rng)
        text, reason = _cut(text, reason, request.max_tokens)
        asked = sum(estimate_tokens(content) for _, content in request.messages)
        said = estimate_tokens(text or "")
        return Completion(
            text=text,
            finish_reason=reason,
            model=self.model,
            id=f"mock-{request.key[:16]}",
            refusal=REFUSAL if fault == "refused" else None,
            prompt_tokens=asked,
            completion_tokens=said,
            usage_estimated=True,
            usd=price(asked, said, self._prices),
            injected=injected,
        )

    def _answer(
        self, sheet: Sheet, fault: str | None, rng: random.Random
    ) -> tuple[str | None, str, str | None]:
        """Text, finish reason and ground truth."""
        if fault in ("refused", "empty"):
            return (None if rng.random() < 0.5 or fault == "refused" else " \n"), "stop", fault
        programmer = PROGRAMMERS.get(sheet.mark)
        if fault == "prose" or programmer is None:
            return PROSE, "stop", fault
        text = programmer.propose(sheet, rng, self._skill)
        injected = fault
        if fault == "wrong_code":
            text, injected = programmer.sabotage(sheet, text, rng)
        elif fault == "wrong_schema":
            text = STRANGE[sheet.mark]
        elif fault == "unparsable":
            text = BROKEN.get(sheet.mark, text)
        answer = f"{rng.choice(THOUGHTS)}\n\n{fenced(text, sheet.mark)}\n"
        if fault == "unparsable" and sheet.mark not in BROKEN:
            answer = answer.rstrip().rstrip("`")  # the fence that ends the block is missing
        if fault == "truncated":
            return answer[: rng.randrange(len(answer) // 4, len(answer))], "length", fault
        return answer, "stop", injected


def _cut(text: str | None, reason: str, max_tokens: int) -> tuple[str | None, str]:
    """A real model stops at the limit, whatever it wanted to say."""
    if text is None or estimate_tokens(text) <= max_tokens:
        return text, reason
    return text[: 4 * max_tokens], "length"
