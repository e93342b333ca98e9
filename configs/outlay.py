"""About how many proposals a budget of calls, tokens or money buys, before anybody is asked.

The driver is made to ask for one proposal, and only its question is looked at. What it asks beside,
and how its questions grow, the driver says (`agents.usual`); how long answers are, and how many are
useless, is taken to be as usual for the space's language.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.agents.chat import (
    BudgetSpentError,
    ChatRequest,
    Completion,
    estimate_tokens,
    price,
)
from kernelwright.agents.usual import Usual
from kernelwright.configs.backends import Hired
from kernelwright.env.types import Language
from kernelwright.env.words import counted
from kernelwright.search.driver import Driver
from kernelwright.search.plan import Budget
from kernelwright.search.spending import Spent

# As measured with the simulated model over 60 calls in each language (docs/backends.md): questions
# for a program, of which some mend others; tokens of an answer; and how many times more than on
# knobs questions grow, once there are results to list.
QUESTIONS = {Language.KNOBS: 1.25, Language.SCHEDULE: 1.9}
USUAL_QUESTIONS = 1.4
ANSWER_TOKENS = {Language.KNOBS: 32, Language.SCHEDULE: 85, Language.SOURCE: 800}
USUAL_ANSWER = 60
GROWTH = {Language.SCHEDULE: 2.2, Language.SOURCE: 4.0}
USUAL_GROWTH = 1.0


@dataclass(frozen=True)
class Outlay:
    """What a proposal costs about, in calls, tokens and, where there are prices, in USD;
    ``proposals`` is how many the budget buys about, None where it has no such limit, or the model
    is asked for ``most`` proposals at most, which it pays for.
    """

    model: str
    calls: float
    tokens: int
    usd: float | None
    proposals: int | None
    most: int | None = None

    @property
    def sentence(self) -> str:
        """The estimate for people."""
        money = "" if not self.usd else f" or {self.usd:.2g} USD"
        each = f"{self.calls:.2g} calls, {self.tokens:,} tokens{money}"
        if self.proposals is not None:
            proposals = counted(self.proposals, "proposal")
            return f"model: {self.model}; the budget buys about {proposals}, {each} each"
        asked = "" if self.most is None else f", and it is asked for {self.most} at most"
        return f"model: {self.model}; a proposal takes about {each}{asked}"


class Onlooker:
    """A model that keeps the first question and answers none."""

    def __init__(self, hired: Hired) -> None:
        self.model, self.priced, self.missing = hired.backend.model, True, ()
        self.request: ChatRequest | None = None

    def complete(self, request: ChatRequest) -> Completion:
        """Nothing: the budget of an estimate is nothing."""
        self.request = self.request or request
        raise BudgetSpentError("an estimate asks nobody")


def estimate(
    driver: Driver, onlooker: Onlooker, hired: Hired, budget: Budget, language: Language
) -> Outlay | None:
    """What proposals cost and how many the budget buys; None if the driver asks nothing at first.

    Args:
        driver: asks the onlooker.
        onlooker: the model in its place.
        hired: the backend of the campaign.
        budget: what may be spent.
        language: of the candidates.
    """
    try:
        driver.ask(1)
    except Exception:  # noqa: BLE001 - a stranger's driver fails when it runs, not in an estimate
        if onlooker.request is None:
            return None
    request = onlooker.request
    if request is None:
        return None
    usual: Usual = getattr(driver, "usual", Usual())
    first = sum(estimate_tokens(text) for _, text in request.messages)
    asked = round(first * (1 + usual.growth * GROWTH.get(language, USUAL_GROWTH)))
    said = min(ANSWER_TOKENS.get(language, USUAL_ANSWER), request.max_tokens)
    prices = hired.backend.usd_per_million
    of_call = Spent(1, asked + said, Spent.picodollars(price(asked, said, prices)))
    written = QUESTIONS.get(language, USUAL_QUESTIONS) + usual.others
    calls = written * usual.share
    bought = [
        limit / (calls * one)
        for limit, one in (
            (budget.calls, of_call.calls),
            (budget.tokens, of_call.tokens),
            (budget.usd, of_call.usd),
        )
        if limit is not None and one and not _is_enough(limit, one * written, usual.most)
    ]
    return Outlay(
        hired.backend.model,
        calls,
        round(calls * of_call.tokens),
        None if prices is None else calls * of_call.usd,
        max(1, round(min(bought))) if bought else None,
        usual.most,
    )


def _is_enough(limit: float, one: float, most: int | None) -> bool:
    """Whether a limit is above all that a model is asked for."""
    return most is not None and limit > most * one
