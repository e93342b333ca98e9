"""Making the backend that a campaign names: those inside it first, each with its limits and prices
around it; and what a driver that asks it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.agents.backends.retrying import Retries
from kernelwright.agents.backends.settling import Settled
from kernelwright.agents.backends.wrappers import Budgeted, Limited, Priced, Timely, core
from kernelwright.agents.chat import ChatModel, Hears
from kernelwright.agents.direct import Direct
from kernelwright.agents.hearing import HeardDriver, HeardJournal, Notices
from kernelwright.agents.ledger import Ledger
from kernelwright.configs.errors import nearest
from kernelwright.configs.load import Campaign, Chosen
from kernelwright.configs.resolve import parameter_name, parameters
from kernelwright.configs.schema import plain_prices
from kernelwright.search.driver import Driver, Journal
from kernelwright.search.plan import Budget

# Makes something of a section of the campaign, and blames the section if that fails.
Made = Callable[[tuple[str, ...], Callable[[], Any]], Any]
BACKEND_PARTS = ("model", "priced", "missing", "complete")


@dataclass(frozen=True)
class Hired:
    """A backend within its budget, who has to hear what becomes of its answers, and the models
    whose answers cost nobody knows what.
    """

    backend: Budgeted
    ears: tuple[Hears, ...]
    unpriced: tuple[str, ...]
    notices: Notices

    def asked(self, journal: HeardJournal) -> Direct:
        """The backend for the time that a campaign has left, as a driver with this journal is given
        it.
        """
        return Direct(Timely(self.backend, journal.left_s), journal)

    def journal(self, journal: Journal) -> HeardJournal:
        """The journal of a driver that asks it."""
        self.notices.to(journal)
        return HeardJournal(journal, self.ears)

    def driver(self, driver: Driver, asked: Direct) -> Driver:
        """A driver that asks it, as the campaign sees it."""
        return HeardDriver(driver, self.ears, asked.begin)


def hire(campaign: Campaign, chosen: Chosen, budget: Budget, made: Made) -> Hired:
    """The backend of a campaign.

    Raises:
        ConfigError: if it cannot be made, is to keep to a budget in money without prices, or there
            are prices of a model that it has not.
    """
    file = campaign.file
    prices = plain_prices(file.agents.prices if file.agents is not None else {})
    path = ("agents", "backend")
    notices = Notices()
    models: dict[str, None] = {}
    backend = _make(campaign, chosen, path, _Makes(prices, made, models, notices))
    for model in prices:
        if model not in models:
            expected = f"a model of this campaign's backend ({', '.join(models)})"
            near = nearest(model, models)
            raise campaign.document.error(("agents", "prices", model), expected, repr(model), near)
    unpriced = tuple(dict.fromkeys(_unpriced(backend)))
    if budget.usd is not None and unpriced:
        expected = "prices of every model (agents.prices, or the backend's usd_per_million)"
        found = f"a limit of {budget.usd:g} USD, and no price of {', '.join(unpriced)}"
        raise campaign.document.error(("budget", "usd"), expected, found)
    if _is_endless(backend, budget) and file.stop.plateau is None:
        expected = "prices above 0, or another limit beside it"
        found = f"a limit of {budget.usd:g} USD, and {backend.model}, which costs nothing"
        raise campaign.document.error(("budget", "usd"), expected, found)
    ledger = Ledger(budget)
    learning = _core(backend)
    ears = (ledger, learning) if isinstance(learning, Hears) else (ledger,)
    return Hired(Budgeted(backend, ledger, notices), ears, unpriced, notices)


def _unpriced(backend: ChatModel, member: str = "") -> list[str]:
    """The models behind a backend that have no price, of several with their names in it."""
    if backend.priced:
        return []
    members: Mapping[str, ChatModel] = getattr(core(backend), "members", {})
    if not members:
        return [f"{backend.model} of {member}" if member else backend.model]
    return [model for name, inner in members.items() for model in _unpriced(inner, name)]


def _is_endless(backend: Any, budget: Budget) -> bool:
    """Whether money is all that is limited, and none is ever spent."""
    others = (budget.trials, budget.seconds, budget.calls, budget.tokens)
    prices = getattr(backend, "usd_per_million", None)
    is_free = prices is not None and not any(prices.values())
    return budget.usd is not None and is_free and all(limit is None for limit in others)


def _core(backend: Any) -> Any:
    """What is inside all that was put around it, or asked where nothing is recorded."""
    while True:
        backend = core(backend)
        asked = getattr(backend, "asked", None)
        if asked is None:
            return backend
        backend = asked


@dataclass(frozen=True)
class _Makes:
    """What backends are made with: the campaign's prices, who is blamed, their models, which are
    noted, and where they give notice of calls.
    """

    prices: Mapping[str, Mapping[str, float]]
    made: Made
    models: dict[str, None]
    notices: Notices


def _make(campaign: Campaign, chosen: Chosen, path: tuple[str, ...], around: _Makes) -> ChatModel:
    options = dict(chosen.options)
    for option, inner in chosen.inner.items():
        at = (*path, option)
        options[parameter_name(option)] = (
            {name: _make(campaign, one, (*at, name), around) for name, one in inner.several.items()}
            if inner.several is not None
            else _make(campaign, inner.one, at, around)
        )
    if "seed" in parameters(chosen.factory):
        options["seed"] = campaign.file.seed
    backend: Any = around.made(path, lambda: chosen.factory(**options))
    lacking = [name for name in BACKEND_PARTS if not hasattr(backend, name)]
    if lacking:
        found = f"{chosen.name} without {' and '.join(lacking)}"
        expected = "a backend (model, priced, missing, complete)"
        raise campaign.document.error((*path, "name"), expected, found)
    _listen(backend, around.notices)
    backend = Settled(backend)
    around.models[backend.model] = None
    if backend.model in around.prices:
        backend = Priced(backend, around.prices[backend.model])
    limits = chosen.limits
    if limits is not None:
        bare = backend
        backend = around.made(path, lambda: Limited(bare, limits))
        _listen(backend, around.notices)
    return backend  # type: ignore[no-any-return]


def _listen(backend: Any, notices: Notices) -> None:
    """Have a backend that makes attempts of its own say so."""
    if isinstance(backend, Retries):
        backend.on_retry(notices.again)
