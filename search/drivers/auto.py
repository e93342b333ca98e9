"""The default driver: a portfolio of strategies that share one history and one Gaussian process.

First come what advice there is (an analytic model, recordings of other shapes or devices), each
tested by its own proposals and dropped when it misleads, and a few configurations far from each
other. Then a Gaussian process over knob coordinates (`search.models.coordinates`) predicts log time
and five strategies propose: ``global`` takes the greatest expected improvement anywhere (Jones,
Schonlau and Welch, J. Global Optimization 13, 1998); after `PATIENCE` trials without a better one
it takes turns with ``mirror``, the best trials with the two sides of a tile exchanged, ``near``,
configurations a few knobs from the best ones, ``density``, the values that the best fifth of the
trials has more often than the rest, knob by knob (the estimator of Bergstra, Bardenet, Bengio and
Kégl, NeurIPS 2011, on values), and ``sample``, the best of a sample of the posterior (Thompson,
Biometrika 25, 1933).

Only the fast part of a space has to be told apart, so times above the first quartile are flattened
and what failed counts as the slowest. Inside a batch an asked configuration is believed to have its
predicted time (Ginsbourger et al., Kriging is well-suited to parallelize optimization, 2010).

Of a space too large to look at whole, and of an open one, candidates are drawn: samples, mutations
and mixtures of the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import ndtr
from threadpoolctl import ThreadpoolController

from kernelwright.env.landscape import ENDINGS
from kernelwright.env.options import FileOption
from kernelwright.env.protocols import Space
from kernelwright.env.types import Problem, Proposal
from kernelwright.search.advice import Advice, model_advice
from kernelwright.search.drivers.counsel import Counsel, shrunk_slope
from kernelwright.search.drivers.field import View, make_field
from kernelwright.search.drivers.pool import listed, make_pool
from kernelwright.search.models.costs import Costs
from kernelwright.search.models.gaussian import Array, Gaussian
from kernelwright.search.transfer import transferred
from kernelwright.search.trial import Trial

PATIENCE = 20  # trials without a better one before strategies take turns
TURNS = ("mirror", "global", "density", "near", "sample")
_BLAS = ThreadpoolController()

TOP = 3  # the best trials around which `near` looks
SPREAD_DESIGN = 64  # draws of which the first configurations are the farthest from all others
GROWTH = 1.2  # how much the history grows between two fits
FAST = 0.25  # the share of trials whose times are told apart
LEAST_FAST = 8  # and at least so many
FLAT = 0.1  # how steep times above are
MOST = 512  # trials that the model stands on
GOOD, LEAST_GOOD = 0.2, 4  # the trials whose values are liked by `density`
MARGIN = 0.005  # log time by which an improvement must improve
ROUNDING = 1e-9  # log times that differ by no more are equal


class Auto:
    """A portfolio over one Gaussian process; needs the fewest measurements of all drivers."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        problem: Problem | None = None,
        initial: Annotated[
            int, Field(ge=2, description="configurations far from each other at the start")
        ] = 8,
        prior: Annotated[
            str | None,
            Field(description="a GPU whose analytic model gives advice (h100-lecture, h200)"),
        ] = None,
        transfer: Annotated[
            tuple[str, ...],
            Field(description="landscapes of other shapes or devices that give advice"),
            FileOption(ENDINGS),
        ] = (),
        cost: Annotated[
            Literal["evaluations", "seconds"],
            Field(
                description="what improvement is weighed against; seconds where verdicts have costs"
            ),
        ] = "evaluations",
    ) -> None:
        del batch
        self._rng = np.random.default_rng(seed)
        self._pool = make_pool(space, np.random.default_rng([seed, 1]))
        self._field = make_field(space, self._pool, self._rng)
        advice: list[Advice] = []
        if prior is not None:
            advice.append(model_advice(listed(space), problem, prior))
        with _BLAS.limit(limits=1):
            advice += transferred(listed(space), problem, transfer) if transfer else []
        self._counsel = Counsel(listed(space), advice, self._rng) if advice else None
        self._spent = Costs() if cost == "seconds" else None
        self._initial = initial
        self._model = Gaussian(self._field.dimension)
        self._handles: list[int] = []  # told, in order
        self._costs: list[float] = []  # log time up to a constant, infinite if failed
        self._kept: list[int] = []  # those of them that the model stands on
        self._seen = 0
        self._best_at = -1
        self._fit_at = initial
        self._viewed = -1
        self._turn = self._spread = 0
        self._asked: set[int] = set()
        self._strangers = self._made_up = 0  # trials of others in places of the spread

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._pool.stopped

    def ask(self, n: int) -> list[Proposal]:
        """Advice and a spread of configurations at first, then what the strategies choose."""
        # Small matrices gain nothing from threads, and sums must not depend on how many there are.
        with _BLAS.limit(limits=1):
            return self._ask(n)

    def _ask(self, n: int) -> list[Proposal]:
        count = self._pool.at_most(n)
        chosen: list[tuple[int, str]] = []
        outlook: _Outlook | None = None
        while len(chosen) < count:
            place = len(self._handles) + len(chosen)
            picked = self._counsel.propose(place, self._pool) if self._counsel else None
            if picked is None and (self._needs_spread(place) or not self._is_ready):
                picked = self._far([handle for handle, _ in chosen])
                self._spread += 1
                self._made_up += place >= self._initial
            elif picked is None:
                outlook = outlook or self._look()
                picked = self._by_strategy(outlook)
            if picked is None:
                break
            self._visit(picked[0])
            chosen.append(picked)
        self._asked.update(handle for handle, _ in chosen)
        return [Proposal(self._pool.candidate(handle), why) for handle, why in chosen]

    def tell(self, trials: Sequence[Trial]) -> None:
        """Remember the times."""
        for trial in trials:
            handle = self._pool.handle(trial.candidate)
            self._visit(handle)
            if self._asked and handle not in self._asked:
                self._strangers += len(self._handles) < self._initial
            objective = trial.objective
            cost = math.inf if objective is None else -objective * math.log(2)
            if cost < min(self._costs, default=math.inf):
                self._best_at = len(self._costs)
            self._handles.append(handle)
            self._costs.append(cost)
            if self._spent is not None:
                self._spent.learn(self._field.rows([handle]), trial.verdicts[0][1])
            if self._counsel is not None:
                self._counsel.learn(handle, cost)

    def _visit(self, handle: int) -> None:
        self._pool.remove(handle)
        self._field.visit(handle)

    @property
    def _is_ready(self) -> bool:
        """Whether enough ran for a model."""
        return sum(map(math.isfinite, self._costs)) >= 2

    def _needs_spread(self, place: int) -> bool:
        """Whether configurations far from each other are still missing; beside advice half of them
        are enough.
        """
        wanted = self._initial if self._counsel is None else self._initial // 2
        if self._spread >= wanted:
            return False
        if place < self._initial or self._counsel is not None:
            return True
        # What others propose meanwhile may lie close together: it delays the spread, no more.
        return self._made_up < self._strangers and (place - self._strangers) % 2 == 1

    def _far(self, asked: list[int]) -> tuple[int, str] | None:
        """Of some draws that which is farthest from everything asked."""
        drawn, known = self._field.draw(SPREAD_DESIGN), [*self._handles, *asked]
        if drawn and known:
            rows, taken = self._field.rows(drawn), self._field.rows(known)
            distance = np.abs(rows[:, None] - taken[None]).sum(axis=2).min(axis=1)
            return drawn[int(np.argmax(distance))], "auto spread"
        handle = drawn[0] if drawn else self._pool.draw()
        return None if handle is None else (handle, "auto spread")

    def _basis(self) -> list[int]:
        """The trials that the model stands on: all of them, or, of more than `MOST`, the best and
        the latest.
        """
        self._kept += range(self._seen, len(self._costs))
        self._seen = len(self._costs)
        if len(self._kept) > MOST:
            best = sorted(self._kept, key=lambda i: (self._costs[i], i))[: MOST // 3]
            self._kept = sorted({*best, *self._kept[-(MOST // 3) :]})
        return self._kept

    def _look(self) -> _Outlook:
        """What the model thinks after all that was told."""
        basis = self._basis()
        handles = [self._handles[i] for i in basis]
        costs = np.array([self._costs[i] for i in basis])
        edge = _edge(costs)
        ran = np.isfinite(costs)
        targets = _flat(np.where(ran, costs, 0.0), edge)
        targets[~ran] = targets[ran].max()
        leaders = [handles[i] for i in np.argsort(targets, kind="stable")[:TOP].tolist()]
        self._model.agree(self._field.rows(handles))
        opinion = self._counsel.opinion(handles, costs) if self._counsel else None
        bias = None if opinion is None else _flat(opinion, edge)
        rest = targets
        if bias is not None:
            said = bias[self._field.places(handles)]
            slope = shrunk_slope(said, targets)
            bias, rest = slope * bias, targets - slope * said
        level, scale = float(rest.mean()), float(rest.std())
        scale = scale if scale > ROUNDING else 1.0
        standard = (rest - level) / scale
        if len(self._costs) >= self._fit_at:
            self._model.fit(standard)
            self._fit_at = max(len(self._costs) + 2, int(len(self._costs) * GROWTH))
            self._field.refresh()
        view = self._field.view(leaders)
        if view.number != self._viewed:
            self._model.look_at(view.rows)
            self._viewed = view.number
        mean, variance = self._model.mean(standard)
        best = float(targets.min()) - MARGIN
        if bias is not None:
            mean = mean + (bias[self._field.places(view.handles)] / scale).astype(np.float32)
        return _Outlook(view, leaders, mean, variance, (best - level) / scale)

    def _good_and_rest(self) -> tuple[list[int], list[int]]:
        """The handles of the best fifth of the trials, and of the others."""
        order = sorted(range(len(self._costs)), key=lambda i: (self._costs[i], i))
        handles = [self._handles[i] for i in order]
        count = max(LEAST_GOOD, math.ceil(GOOD * len(handles)))
        return handles[:count], handles[count:]

    def _by_strategy(self, outlook: _Outlook) -> tuple[int, str] | None:
        """The choice of the strategy whose turn it is."""
        turn = "global"
        if len(self._costs) - 1 - self._best_at >= PATIENCE:
            turn = TURNS[self._turn % len(TURNS)]
            self._turn += 1
        view, free = outlook.view, self._field.free(outlook.view)
        if turn in ("near", "mirror"):
            among = self._field.near if turn == "near" else self._field.mirror
            part = free & among(view, outlook.leaders)
            free = part if part.any() else free
        if not free.any():
            handle = self._pool.draw()
            return None if handle is None else (handle, "auto random")
        spread = self._model.spread(outlook.variance)
        value: NDArray[np.floating] | None = None
        if turn == "density":
            value = self._field.density(view, *self._good_and_rest())
        if turn == "sample":
            drawn = self._rng.standard_normal(len(free), dtype=np.float32)
            value = -(outlook.mean + spread * drawn)
        if value is None:
            value = _improvement(outlook.best - outlook.mean, spread)
            if self._spent is not None:
                value /= self._spent.predicted(view.rows)
        place = int(np.argmax(np.where(free, value, -np.inf)))
        self._model.observe(view.rows[place : place + 1])
        return int(view.handles[place]), f"auto {turn}"


@dataclass(frozen=True, slots=True, eq=False)
class _Outlook:
    """The posterior over candidates: mean in standard units, the variance of the process, and what
    is to be improved.
    """

    view: View
    leaders: list[int]
    mean: NDArray[np.float32]
    variance: float
    best: float


def _improvement(gain: NDArray[np.float32], spread: NDArray[np.float32]) -> NDArray[np.float32]:
    """Expected improvement of a normal variable."""
    z = gain / spread
    density = np.exp(-0.5 * z * z) * np.float32(1 / math.sqrt(2 * math.pi))
    value: NDArray[np.float32] = gain * ndtr(z) + spread * density
    return value


def _edge(costs: Array) -> float:
    """The log time above which times are not told apart."""
    times = costs[np.isfinite(costs)]
    share = min(1.0, max(FAST, LEAST_FAST / len(times)))
    return max(float(np.quantile(times, share)), float(times.min()) + 0.05)


def _flat(times: Array, edge: float) -> Array:
    """Times with those above an edge almost level."""
    flattened: Array = np.where(
        times > edge, edge + FLAT * np.log1p(np.maximum(times - edge, 0.0) / 0.2), times
    )
    return flattened
