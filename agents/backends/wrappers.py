"""What is put around a backend of any kind: limits, prices, a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, runtime_checkable

from kernelwright.agents.backends.failures import TooLateError, bounded
from kernelwright.agents.backends.gate import Gate
from kernelwright.agents.backends.limits import Limits
from kernelwright.agents.backends.retrying import Again, Patience, persist, unheard
from kernelwright.agents.chat import (
    BackendError,
    BudgetSpentError,
    ChatModel,
    ChatRequest,
    Completion,
    Hurried,
    price,
)
from kernelwright.agents.hearing import Notices
from kernelwright.agents.ledger import Ledger
from kernelwright.env.options import OptionError


@runtime_checkable
class Gated(Protocol):
    """A backend that makes several attempts at an answer, each of which is to pass a gate."""

    def pass_through(self, gate: Gate) -> None:
        """Send every attempt through this gate from now on."""
        ...


class Around:
    """A backend around another one: the same in everything that is not said otherwise."""

    def __init__(self, inner: ChatModel) -> None:
        self.inner = inner

    @property
    def model(self) -> str:
        """The inner one's."""
        return self.inner.model

    @property
    def priced(self) -> bool:
        """Whether the inner one is."""
        return self.inner.priced

    @property
    def missing(self) -> tuple[str, ...]:
        """What the inner one lacks."""
        return self.inner.missing

    @property
    def usd_per_million(self) -> Mapping[str, float] | None:
        """The inner one's price list, None where it tells none."""
        found: Mapping[str, float] | None = getattr(self.inner, "usd_per_million", None)
        return found

    def keep_to(self, left_s: Callable[[], float]) -> None:
        """Have the inner one keep to the time."""
        if isinstance(self.inner, Hurried):
            self.inner.keep_to(left_s)

    def complete(self, request: ChatRequest) -> Completion:
        """The inner one's answer."""
        return self.inner.complete(request)


def core(backend: object) -> object:
    """What is inside all that was put around it."""
    while isinstance(backend, Around):
        backend = backend.inner
    return backend


class Limited(Around):
    """A backend within limits. One that makes attempts of its own has each of them limited, any
    other one whole calls.
    """

    def __init__(self, inner: ChatModel, limits: Limits, gate: Gate | None = None) -> None:
        super().__init__(inner)
        self._gate = gate or Gate(limits)
        self._patience = Patience(limits.retries)
        self._left_s: Callable[[], float] = lambda: math.inf
        self._again: Again = unheard
        bare = core(inner)
        self._is_gated = isinstance(bare, Gated)
        if isinstance(bare, Gated):
            if limits.retries:  # two layers of retries would multiply
                expected = "none, as this backend has retries of its own"
                raise OptionError("limits.retries", expected, str(limits.retries))
            bare.pass_through(self._gate)

    def keep_to(self, left_s: Callable[[], float]) -> None:
        """Insist no longer than there is time."""
        super().keep_to(left_s)
        self._left_s = left_s

    def complete(self, request: ChatRequest) -> Completion:
        """The answer, when it may be asked for.

        Raises:
            BackendError: if there is none, or no room within the limits.
        """
        if self._is_gated:
            return self.inner.complete(request)
        return persist(
            lambda left_s: self._once(request, left_s),
            self._patience.within(self._left_s()),
            self._gate.clock,
            lambda error: self._again(error),
        )

    def on_retry(self, again: Again) -> None:
        """Call this before each further attempt, from now on."""
        self._again = again

    def _once(self, request: ChatRequest, left_s: float) -> Completion:
        with self._gate.admit(request, left_s) as permit:
            answer = self.inner.complete(request)
            permit.settle(answer.tokens)
            return answer


class Priced(Around):
    """A backend whose answers cost what a price list says."""

    def __init__(self, inner: ChatModel, usd_per_million: Mapping[str, float]) -> None:
        super().__init__(inner)
        self._prices = usd_per_million

    @property
    def priced(self) -> bool:
        """Yes."""
        return True

    @property
    def usd_per_million(self) -> Mapping[str, float]:
        """The list."""
        return self._prices

    def complete(self, request: ChatRequest) -> Completion:
        """The answer with its price."""
        answer = self.inner.complete(request)
        usd = price(
            answer.prompt_tokens, answer.completion_tokens, self._prices, answer.cached_tokens
        )
        return replace(answer, usd=usd)


class Budgeted(Around):
    """A backend that is not asked beyond a budget; it gives notice of its calls."""

    def __init__(self, inner: ChatModel, ledger: Ledger, notices: Notices) -> None:
        super().__init__(inner)
        self._ledger, self._notices = ledger, notices

    def complete(self, request: ChatRequest) -> Completion:
        """The answer.

        Raises:
            BudgetSpentError: if a limit of the budget is reached.
            BackendError: if there is none.
        """
        self._ledger.reserve(request, self.usd_per_million)
        try:
            self._notices.asked()
            return self.inner.complete(request)
        except BaseException:
            self._ledger.release(request)
            self._notices.over()
            raise


class Timely(Around):
    """A backend that is given no more time than the campaign has left.

    Args:
        inner: who answers; one that is `Hurried` ends by itself, any other one is left waiting.
        left_s: the wall seconds that are left.
    """

    def __init__(self, inner: ChatModel, left_s: Callable[[], float]) -> None:
        super().__init__(inner)
        self._left_s = left_s
        self.keep_to(left_s)

    def complete(self, request: ChatRequest) -> Completion:
        """The answer, if it comes in time.

        Raises:
            BudgetSpentError: if there is no time.
            BackendError: if there is none; one that failed in passing if it did not come in time.
        """
        left_s = self._left_s()
        if left_s <= 0:
            raise BudgetSpentError("budget.seconds: no time is left for a call")
        if math.isinf(left_s):
            return self.inner.complete(request)
        try:
            return bounded(lambda: self.inner.complete(request), left_s)
        except TooLateError:
            text = f"no answer in the {left_s:.3g} s that budget.seconds left for it"
            raise BackendError("transient", text) from None
