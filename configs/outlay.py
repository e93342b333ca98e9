"""About how many proposals a budget of calls, tokens or money buys, before anybody is asked.

The driver is made to ask for one proposal, and only its question is looked at. How prompts grow,
how long answers are and how many are useless is taken to be as usual for the space's language.
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
from kernelwright.configs.backends import Hired
from kernelwright.env.types import Language
from kernelwright.env.words import counted
from kernelwright.search.driver import Driver
from kernelwright.search.plan import Budget

# As measured with the simulated model over 64 calls in each language (docs/backends.md): how much
# longer than the first a prompt is on average, once there are results to list; tokens of an answer;
# and calls for a proposal, of which some mend others.
GROWTH = {Language.SOURCE: 3.0}
USUAL_GROWTH = 2.0
ANSWER_TOKENS = {Language.SCHEDULE: 120, Language.SOURCE: 800}
USUAL_ANSWER = 60
CALLS_A_PROPOSAL = 1.4


@dataclass(frozen=True)
class Outlay:
    """What a proposal costs about, in tokens and, where there are prices, in USD; ``proposals`` is
    how many the budget buys about, None where it has no such limit.
    """

    model: str
    tokens: int
    usd: float | None
    proposals: int | None

    @property
    def sentence(self) -> str:
        """The estimate for people."""
        money = "" if not self.usd else f" or {self.usd:.2g} USD"
        each = f"{self.tokens:,} tokens{money} each"
        if self.proposals is None:
            return f"model: {self.model}; a proposal takes about {self.tokens:,} tokens{money}"
        proposals = counted(self.proposals, "proposal")
        return f"model: {self.model}; the budget buys about {proposals}, {each}"


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
    first = sum(estimate_tokens(text) for _, text in request.messages)
    asked = round(first * GROWTH.get(language, USUAL_GROWTH))
    said = min(ANSWER_TOKENS.get(language, USUAL_ANSWER), request.max_tokens)
    prices = hired.backend.usd_per_million
    usd = None if prices is None else price(asked, said, prices) * CALLS_A_PROPOSAL
    tokens = round((asked + said) * CALLS_A_PROPOSAL)
    bought = [] if budget.calls is None else [budget.calls / CALLS_A_PROPOSAL]
    if budget.tokens is not None:
        bought.append(budget.tokens / tokens)
    if budget.usd is not None and usd:
        bought.append(budget.usd / usd)
    proposals = max(1, round(min(bought))) if bought else None
    return Outlay(hired.backend.model, tokens, usd, proposals)
