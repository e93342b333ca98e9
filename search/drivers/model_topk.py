"""The model ranks, the first ``k`` are measured: the recipe of compilers that pick a kernel by
heuristics (PyTorch Inductor's max-autotune among them).

A few random configurations first, for a model that has to learn; then the space is ranked once and
walked from the top. A knob space is ranked whole, of an open or a very large one a sample; where
its end is reached another is drawn. Unlike `cost_model` nothing is learned on the way, so the
ranking costs once and its mistakes stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.types import Problem, Proposal
from kernelwright.search.drivers.pool import is_ranked_whole, make_pool
from kernelwright.search.models.model import make_model, needs, note
from kernelwright.search.trial import Trial


class ModelTopK:
    """Measures the favourites of a ranking that is made once."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        problem: Problem | None = None,
        model: Annotated[
            str, Field(description="what ranks: ridge, trees, prior or a dotted path")
        ] = "ridge",
        initial: Annotated[
            int, Field(ge=0, description="random configurations that the model learns from")
        ] = 32,
        k: Annotated[
            int | None, Field(ge=1, description="favourites that are measured; none is all")
        ] = None,
        sample: Annotated[
            int, Field(ge=1, description="drawn and ranked at a time, in a space without an end")
        ] = 64,
    ) -> None:
        del batch
        self._space = space
        self._pool = make_pool(space, np.random.default_rng(seed))
        self._model = make_model(model, space, seed=seed, problem=problem)
        if initial < needs(self._model):
            expected = f"at least {needs(self._model)} for {model} to learn from"
            raise OptionError("initial", expected, str(initial))
        self._initial, self._k, self._sample = initial, k, sample
        self._proposed = self._measured = 0
        self._told: list[Trial] = []
        self._ranked: list[int] | None = None  # the favourite last

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        if self._k is not None and self._measured >= self._k:
            return f"the model's {self._k} favourites were measured"
        return self._pool.stopped

    def ask(self, n: int) -> list[Proposal]:
        """Random configurations until the model has learned, then its favourites."""
        out: list[Proposal] = []
        self._rank()
        while len(out) < n and self.stopped is None:
            handle, is_favourite = self._favourite(), True
            if handle is None:
                handle, is_favourite = self._pool.draw(), False
            if handle is None:
                break
            self._pool.remove(handle)
            self._proposed += 1
            self._measured += is_favourite
            says = f"model_topk {note(self._model)}".rstrip() if is_favourite else "model_topk"
            out.append(Proposal(self._pool.candidate(handle), says))
        return out

    def _rank(self) -> None:
        """Rank, once there are enough configurations and some of them ran."""
        if self._ranked is not None or self._proposed < self._initial:
            return
        if self._told:
            told, self._told = self._told, []
            rows = self._pool.features([self._pool.handle(trial.candidate) for trial in told])
            self._model.add(rows, np.array([-(trial.objective or 0.0) for trial in told]))
        if self._model.count >= needs(self._model):
            self._ranked = self._order()

    def _order(self) -> list[int]:
        """Unvisited handles by predicted time, the least last; ties by handle."""
        if is_ranked_whole(self._space):
            handles = [h for h in self._space.valid.tolist() if h in self._pool]
        else:
            drawn = [self._pool.look() for _ in range(self._sample)]
            handles = [h for h in dict.fromkeys(drawn) if h in self._pool]
        if not handles:
            return []
        predicted = self._model.predict(self._pool.features(handles))
        return [handles[i] for i in np.argsort(predicted, kind="stable")[::-1]]

    def _favourite(self) -> int | None:
        if self._ranked is None:
            return None
        # At its end another sample is ranked; of a knob space nothing is left.
        self._ranked = self._ranked or self._order()
        while self._ranked:
            handle = self._ranked.pop()
            if handle in self._pool:
                return handle
        return None

    def tell(self, trials: Sequence[Trial]) -> None:
        """Take the trials out of what may be proposed, and keep what the model learns from."""
        for trial in trials:
            self._pool.remove(self._pool.handle(trial.candidate))
            if trial.objective is not None and self._ranked is None:
                self._told.append(trial)
