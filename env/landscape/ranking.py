"""How well a prediction ranks a recorded landscape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.landscape.record import Landscape

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LandscapeTable:
    """A landscape as arrays, one row a configuration: knob values, median times (NaN where it did
    not run) and the compiler's facts (NaN where not recorded).
    """

    columns: dict[str, NDArray[np.int64]]
    ns: Column
    facts: dict[str, Column]

    @property
    def ran(self) -> NDArray[np.bool_]:
        """Which configurations ran."""
        return np.isfinite(self.ns)

    def where(self, rows: NDArray[np.bool_]) -> LandscapeTable:
        """Some of the rows."""
        return LandscapeTable(
            {name: column[rows] for name, column in self.columns.items()},
            self.ns[rows],
            {name: column[rows] for name, column in self.facts.items()},
        )


def tabulate(landscape: Landscape) -> LandscapeTable:
    """A landscape of whole-number knobs as arrays, in the order of its entries."""
    rows = [dict(entry.knobs) for entry in landscape.entries]
    facts = [dict(entry.facts) for entry in landscape.entries]
    names = sorted({name for fact in facts for name in fact})
    return LandscapeTable(
        {name: np.array([row[name] for row in rows]) for name in landscape.knob_names},
        np.array([e.true_ns if e.error is None else np.nan for e in landscape.entries]),
        {name: np.array([fact.get(name, np.nan) for fact in facts]) for name in names},
    )


def ranks(values: Column) -> Column:
    """Ranks from 0; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    out: Column = (ends - (counts + 1) / 2)[inverse]
    return out


def spearman(left: Column, right: Column) -> float:
    """The rank correlation of two columns, ties counted by their mean rank."""
    return float(np.corrcoef(ranks(left), ranks(right))[0, 1])


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a search that follows a prediction would find, as multiples of the real best."""

    spearman: float
    first: float
    best_of_10: float
    best_of_50: float
    # Over orders in which ties are broken at random: median and worst of what comes first.
    first_by_chance: float
    first_at_worst: float


def rank(predicted: Column, order: NDArray[np.int64], measured: Column, seed: int = 0) -> Ranking:
    """Judge predicted against measured times, all finite; ``order`` has the indices as the
    predictor would try them.
    """
    best = float(measured.min())
    # Estimates that differ by rounding alone are ties too.
    tied = measured[predicted <= predicted.min() * (1 + 1e-9)]
    drawn = np.random.default_rng(seed).choice(tied, 1000)
    return Ranking(
        spearman=spearman(predicted, measured),
        first=float(measured[order[0]]) / best,
        best_of_10=float(measured[order[:10]].min()) / best,
        best_of_50=float(measured[order[:50]].min()) / best,
        first_by_chance=float(np.median(drawn)) / best,
        first_at_worst=float(tied.max()) / best,
    )
