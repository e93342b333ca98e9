"""Several backends as one: chosen by a bandit on what they are worth for what they cost, by
weights, or fixed; and others in their place while one is down.

What is learned comes from the campaign's record and from the trials that the driver is told
(`agents.hearing`), so a campaign that goes on chooses as if it had never been interrupted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from kernelwright.agents.backends.bandit import Bandit, Per
from kernelwright.agents.chat import (
    REPLY_CLASSES,
    BackendError,
    ChatModel,
    ChatRequest,
    Completion,
    Hears,
    Hurried,
    digest,
)
from kernelwright.env.options import ChoiceOption, OptionError
from kernelwright.search.trial import MODEL_CALL, Event, Trial

# Events that say that an answer gave no candidate.
USELESS = frozenset({*REPLY_CLASSES, "illegal", "duplicate", "lost", "too_long"})
MODEL = "ensemble"
Weight = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


class Ensemble:
    """Several backends, of which each call asks one.

    Raises:
        OptionError: if names do not fit together.
    """

    def __init__(
        self,
        *,
        seed: int,
        backends: Annotated[
            Any, Field(description="backends by names of one's own"), ChoiceOption(several=True)
        ],
        choice: Annotated[
            Literal["bandit", "weights", "fixed"],
            Field(description="how one is chosen; fixed always asks the first"),
        ] = "bandit",
        weights: Annotated[
            dict[str, Weight] | None, Field(description="how often each is asked, for weights")
        ] = None,
        per: Annotated[
            Per, Field(description="the cost that a bandit weighs rewards against")
        ] = "call",
        explore: Annotated[
            float, Field(ge=0, le=10, description="how curious a bandit is; 0 is greedy")
        ] = 0.35,
        fallback: Annotated[
            tuple[str, ...], Field(description="who is asked, in order, where a backend is down")
        ] = (),
    ) -> None:
        self._backends: dict[str, ChatModel] = dict(backends)
        self._seed, self._choice, self._fallback = seed, choice, fallback
        self._check(weights)
        self._weights = weights or dict.fromkeys(self._backends, 1.0)
        self._bandit = Bandit(list(self._backends), seed=seed, explore=explore, per=per)
        self._dead: dict[str, BackendError] = {}
        self._waiting: dict[tuple[int, int], str] = {}
        self._candidates: dict[str, str] = {}
        self.model = MODEL

    def _check(self, weights: Mapping[str, float] | None) -> None:
        names = ", ".join(self._backends)
        if len(self._backends) < 2:
            raise OptionError("backends", "at least two backends", f"{len(self._backends)}")
        inner = next((name for name, b in self._backends.items() if isinstance(b, Hears)), None)
        if inner is not None:
            raise OptionError("backends", "backends that choose among no others", inner)
        for name in self._fallback:
            if name not in self._backends:
                raise OptionError("fallback", f"names among {names}", repr(name))
        if (self._choice == "weights") != (weights is not None):
            expected = "weights" if weights is None else "no weights"
            raise OptionError("weights", f"{expected} with choice {self._choice!r}", "otherwise")
        if weights is not None:
            if set(weights) != set(self._backends):
                raise OptionError("weights", f"a weight for each of {names}", ", ".join(weights))
            if not any(weights.values()):
                raise OptionError("weights", "a weight above 0", "none")

    @property
    def priced(self) -> bool:
        """Whether all of them are."""
        return all(backend.priced for backend in self._backends.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """What any of them lacks."""
        return tuple(
            f"{what} (of {name})"
            for name, backend in self._backends.items()
            for what in backend.missing
        )

    @property
    def usd_per_million(self) -> Mapping[str, float] | None:
        """The dearest prices, None where one tells none."""
        lists = [getattr(b, "usd_per_million", None) for b in self._backends.values()]
        known = [prices for prices in lists if prices is not None]
        if len(known) < len(lists):
            return None
        return {name: max(p[name] for p in known) for name in ("prompt", "completion")}

    def keep_to(self, left_s: Callable[[], float]) -> None:
        """Have all of them keep to the time."""
        for backend in self._backends.values():
            if isinstance(backend, Hurried):
                backend.keep_to(left_s)

    def complete(self, request: ChatRequest) -> Completion:
        """The chosen one's answer, or that of the next where it is down.

        Raises:
            BackendError: if none answers; the first one's.
        """
        chosen = self._chosen(request.key)
        first: BackendError | None = None
        down: list[str] = []
        for name in (chosen, *(name for name in self._fallback if name != chosen)):
            try:
                if name in self._dead:
                    raise self._dead[name]
                return self._answer(name, request, tuple(down))
            except BackendError as error:
                if error.kind == "permanent":
                    self._dead[name] = error
                text = f"{name}: {error.message}"
                first = first or BackendError(error.kind, text, answered_by=name)
                down.append(name)
                if error.kind not in ("transient", "permanent"):
                    raise BackendError(error.kind, text, answered_by=name) from None
        assert first is not None
        raise first

    def _answer(self, name: str, request: ChatRequest, down: tuple[str, ...]) -> Completion:
        backend = self._backends[name]
        answer = backend.complete(replace(request, model=backend.model))
        return replace(answer, answered_by=name, down=down)

    def _chosen(self, key: str) -> str:
        """Whom to ask."""
        if self._choice == "fixed":
            return next(iter(self._backends))
        if self._choice == "bandit":
            return self._bandit.choose(self._dead)
        rng = random.Random(digest(["ensemble", self._seed, key]))
        alive = {n: w for n, w in self._weights.items() if w and n not in self._dead}
        odds = alive or self._weights
        return rng.choices(list(odds), list(odds.values()))[0]

    def hear(self, event: Event) -> None:
        """Take up whom a call asked and what it cost, and what its answer was worth."""
        place = (event.ask, event.slot)
        if event.kind == MODEL_CALL:
            answered = event.data.get("completion") or event.data.get("error") or {}
            name = str(answered.get("answered_by", ""))
            for down in answered.get("down", ()):
                if down in self._backends:
                    self._bandit.failed(down)
            if name in self._backends:
                self._waiting[place] = name
                self._bandit.pulled(name, event.tokens, event.usd)
        elif event.kind == "proposed" and place in self._waiting:
            self._candidates[str(event.data["key"])] = self._waiting.pop(place)
        elif event.kind in USELESS and place in self._waiting:
            self._bandit.rewarded(self._waiting.pop(place), 0.0)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Reward who proposed these. What was proposed and not judged is forgotten."""
        for trial in trials:
            reward = self._bandit.judged(trial.objective)
            name = self._candidates.pop(trial.candidate.key, None)
            if name is not None:
                self._bandit.rewarded(name, reward)
        self._candidates.clear()
