"""Making the backend that a campaign names: those inside it first, each with its limits and prices
around it; and what a driver that asks it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.agents.backends.wrappers import Around, Budgeted, Limited, Priced, Timely
from kernelwright.agents.chat import ChatModel, Hears
from kernelwright.agents.hearing import HeardDriver, HeardJournal
from kernelwright.agents.ledger import Ledger
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
    """A backend within its budget, and who has to hear what becomes of its answers."""

    backend: Budgeted
    ears: tuple[Hears, ...]

    def asked(self, journal: Journal) -> ChatModel:
        """The backend for the time that a campaign has left."""
        return Timely(self.backend, journal.left_s)

    def journal(self, journal: Journal) -> Journal:
        """The journal of a driver that asks it."""
        return HeardJournal(journal, self.ears)

    def driver(self, driver: Driver) -> Driver:
        """A driver that asks it, as the campaign sees it."""
        return HeardDriver(driver, self.ears)


def hire(campaign: Campaign, chosen: Chosen, budget: Budget, made: Made) -> Hired:
    """The backend of a campaign.

    Raises:
        ConfigError: if it cannot be made, or is to keep to a budget in money without prices.
    """
    file = campaign.file
    prices = plain_prices(file.agents.prices if file.agents is not None else {})
    path = ("agents", "backend")
    backend = _make(campaign, chosen, path, prices, made)
    if budget.usd is not None and not backend.priced:
        expected = "prices of every model (agents.prices, or the backend's usd_per_million)"
        found = f"a limit of {budget.usd:g} USD, and no price of {backend.model}"
        raise campaign.document.error(("budget", "usd"), expected, found)
    if _is_endless(backend, budget) and file.stop.plateau is None:
        expected = "prices above 0, or another limit beside it"
        found = f"a limit of {budget.usd:g} USD, and {backend.model}, which costs nothing"
        raise campaign.document.error(("budget", "usd"), expected, found)
    ledger = Ledger(budget)
    learning = _core(backend)
    ears = (ledger, learning) if isinstance(learning, Hears) else (ledger,)
    return Hired(Budgeted(backend, ledger), ears)


def _is_endless(backend: Any, budget: Budget) -> bool:
    """Whether money is all that is limited, and none is ever spent."""
    others = (budget.trials, budget.seconds, budget.calls, budget.tokens)
    prices = getattr(backend, "usd_per_million", None)
    is_free = prices is not None and not any(prices.values())
    return budget.usd is not None and is_free and all(limit is None for limit in others)


def _core(backend: Any) -> Any:
    """What is inside all that was put around it, or asked where nothing is recorded."""
    while True:
        inner = backend.inner if isinstance(backend, Around) else getattr(backend, "asked", None)
        if inner is None:
            return backend
        backend = inner


def _make(
    campaign: Campaign,
    chosen: Chosen,
    path: tuple[str, ...],
    prices: Mapping[str, Mapping[str, float]],
    made: Made,
) -> ChatModel:
    options = dict(chosen.options)
    for option, inner in chosen.inner.items():
        at = (*path, option)
        options[parameter_name(option)] = (
            {
                name: _make(campaign, one, (*at, name), prices, made)
                for name, one in inner.several.items()
            }
            if inner.several is not None
            else _make(campaign, inner.one, at, prices, made)
        )
    if "seed" in parameters(chosen.factory):
        options["seed"] = campaign.file.seed
    backend: Any = made(path, lambda: chosen.factory(**options))
    lacking = [name for name in BACKEND_PARTS if not hasattr(backend, name)]
    if lacking:
        found = f"{chosen.name} without {' and '.join(lacking)}"
        expected = "a backend (model, priced, missing, complete)"
        raise campaign.document.error((*path, "name"), expected, found)
    if backend.model in prices:
        backend = Priced(backend, prices[backend.model])
    limits = chosen.limits
    if limits is not None:
        bare = backend
        backend = made(path, lambda: Limited(bare, limits))
    return backend  # type: ignore[no-any-return]
