"""Gaussian process regression on rows of coordinates, kept up to date one observation at a time.

A Matérn 5/2 kernel with a length scale for every coordinate, a constant mean and a noise variance;
mean and variance are profiled out, length scales and noise are the most probable ones under
log-normal priors (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, sections
2.7, 4.2 and 5.4). An observation adds a row to the inverse Cholesky factor and to what it explains
of every row of the table, so that looking at all candidates again costs O(observations x rows), not
a factorisation.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import minimize

Array = NDArray[np.float64]
Table = NDArray[np.float32]

ROOT5 = math.sqrt(5.0)
# The prior: coordinates are in the unit interval, and most knobs matter over most of it.
LENGTH, LENGTH_SPREAD = math.log(0.7), 1.0
NOISE, NOISE_SPREAD = math.log(1e-3), 2.0
LENGTH_BOUNDS, NOISE_BOUNDS = (-3.5, 3.0), (-11.5, -1.0)
ITERATIONS = 12
# Of more observations than these the best half and an even choice of the rest decide the fit.
FIT_ROWS = 80


class Gaussian:
    """A Gaussian process over ``dimension`` coordinates."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._log_scales = np.full(dimension, LENGTH)
        self._log_noise = NOISE
        self._seen: Table = np.empty((0, dimension), dtype=np.float32)
        self._table: Table = np.empty((0, dimension), dtype=np.float32)
        self._scaled = self._table
        self._norms: Table = np.empty(0, dtype=np.float32)
        self._inverse: Array = np.empty((0, 0))
        self._explained: Table = np.empty((0, 0), dtype=np.float32)
        self._known = 0  # observations that inverse and explained hold
        self._reduction: Table = np.empty(0, dtype=np.float32)

    @property
    def count(self) -> int:
        """How many rows were observed."""
        return len(self._seen)

    @property
    def length_scales(self) -> Array:
        """The distance over which each coordinate matters."""
        scales: Array = np.exp(self._log_scales)
        return scales

    def observe(self, rows: Table) -> None:
        """Rows where a value is or will be known, shape (rows, coordinates)."""
        self._seen = np.concatenate([self._seen, rows.astype(np.float32)])

    def agree(self, rows: Table) -> None:
        """Have exactly these rows observed, keeping what is known of those that were in this
        order.
        """
        rows = rows.astype(np.float32)
        same = min(len(rows), self.count)
        if not np.array_equal(rows[:same], self._seen[:same]):
            self._seen, self._known = rows, 0
        elif same < self.count:
            self._seen, self._known = self._seen[:same], 0
        else:
            self._seen = rows

    def look_at(self, table: Table) -> None:
        """The rows whose posterior is asked for."""
        self._table = np.ascontiguousarray(table, dtype=np.float32)
        self._known = 0

    def fit(self, targets: Array, *, most: int = FIT_ROWS) -> None:
        """Length scales and noise from targets of the first observed rows (about zero mean and
        unit variance), of no more than ``most`` of them.
        """
        rows, values = self._seen[: len(targets)].astype(np.float64), targets
        if len(values) > most:
            order = np.argsort(values, kind="stable")
            half = most // 2
            rest = order[half:]
            even = rest[np.linspace(0, len(rest) - 1, most - half).astype(int)]
            chosen = np.sort(np.concatenate([order[:half], even]))
            rows, values = rows[chosen], values[chosen]
        start = np.append(self._log_scales, self._log_noise)
        bounds = [LENGTH_BOUNDS] * self._dimension + [NOISE_BOUNDS]
        found = minimize(
            _cost,
            start,
            args=(rows, values),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": ITERATIONS},
        )
        self._log_scales, self._log_noise = found.x[:-1], float(found.x[-1])
        self._known = 0

    def mean(self, targets: Array) -> tuple[Table, float]:
        """The posterior mean at every row of the table given the targets of the first observed
        rows, and the variance of the process.
        """
        self._update()
        count = len(targets)
        inverse = self._inverse[:count, :count]
        ones, values = inverse.sum(axis=1), inverse @ targets
        level = float(ones @ values / (ones @ ones))
        residual = values - level * ones
        variance = max(float(residual @ residual) / count, 1e-9)
        weights = residual.astype(np.float32)
        mean: Table = np.float32(level) + weights @ self._explained[:count]
        return mean, variance

    def spread(self, variance: float) -> Table:
        """The posterior standard deviation at every row of the table given all observed rows."""
        self._update()
        left = np.maximum(np.float32(1.0) - self._reduction, np.float32(1e-7))
        spread: Table = np.sqrt(left * np.float32(variance))
        return spread

    def _update(self) -> None:
        if not self._known:
            self._rebuild()
        while self._known < self.count:
            self._append(self._seen[self._known])

    def _rebuild(self) -> None:
        count = self.count
        rows = self._seen.astype(np.float64)
        scaled = rows / self.length_scales
        matrix = _matern(_squared(scaled, scaled))
        matrix[np.diag_indices(count)] += math.exp(self._log_noise)
        self._inverse = lapack.dtrtri(np.linalg.cholesky(matrix), lower=1)[0]
        self._explained = np.empty((count + 64, len(self._table)), dtype=np.float32)
        scales = self.length_scales.astype(np.float32)
        self._scaled = self._table / scales
        self._norms = np.einsum("ij,ij->i", self._scaled, self._scaled)
        cross = _matern(_between(self._seen / scales, self._scaled, self._norms))
        np.matmul(self._inverse.astype(np.float32), cross, out=self._explained[:count])
        held = self._explained[:count]
        self._reduction = np.einsum("ij,ij->j", held, held)
        self._known = count

    def _append(self, row: Table) -> None:
        count = self._known
        scales = self.length_scales
        line = row[None]
        seen = self._seen[:count].astype(np.float64) / scales
        left = self._inverse @ _matern(_squared(seen, line / scales))[:, 0]
        pivot = math.sqrt(max(1.0 + math.exp(self._log_noise) - float(left @ left), 1e-8))
        inverse = np.zeros((count + 1, count + 1))
        inverse[:count, :count] = self._inverse
        inverse[count, :count] = -(left @ self._inverse) / pivot
        inverse[count, count] = 1.0 / pivot
        self._inverse = inverse
        if count == len(self._explained):
            more = np.empty((64, len(self._table)), dtype=np.float32)
            self._explained = np.concatenate([self._explained, more])
        narrow: Table = scales.astype(np.float32)
        here = line / narrow
        new: Table = _matern(_between(here, self._scaled, self._norms))[0]
        new -= left.astype(np.float32) @ self._explained[:count]
        new /= np.float32(pivot)
        self._explained[count] = new
        self._reduction += new * new
        self._known = count + 1


def _squared(left: Array, right: Array) -> Array:
    """Squared distances of scaled rows."""
    out: Array = (left * left).sum(axis=1)[:, None] + (right * right).sum(axis=1)[None]
    out -= 2 * (left @ right.T)
    return np.maximum(out, 0, out=out)


def _between(rows: Table, table: Table, norms: Table) -> Table:
    """Squared distances of a few scaled rows from many, whose squared norms are known."""
    out: Table = rows @ table.T
    out *= np.float32(-2.0)
    out += norms
    out += np.einsum("ij,ij->i", rows, rows)[:, None]
    return np.maximum(out, 0, out=out)


Squares = TypeVar("Squares", Array, Table)


def _matern(squared: Squares) -> Squares:
    """Matérn 5/2 of squared distances, in place."""
    distance = np.sqrt(squared)
    distance *= ROOT5
    squared *= 5.0 / 3.0
    squared += distance
    squared += 1.0
    np.negative(distance, out=distance)
    squared *= np.exp(distance, out=distance)
    return squared


def _cost(theta: Array, rows: Array, values: Array) -> tuple[float, Array]:
    """The negative log posterior of log length scales and log noise, and its gradient."""
    count = len(values)
    noise = math.exp(theta[-1])
    scaled = rows / np.exp(theta[:-1])
    squared = _squared(scaled, scaled)
    distance = ROOT5 * np.sqrt(squared)
    decay = np.exp(-distance)
    matrix = (1 + distance + (5 / 3) * squared) * decay
    matrix[np.diag_indices(count)] += noise
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return 1e10, np.zeros_like(theta)
    root = lapack.dtrtri(factor, lower=1)[0]
    inverse = root.T @ root
    ones = inverse.sum(axis=1)
    level = (ones @ values) / ones.sum()
    alpha = inverse @ (values - level)
    variance = max(float((values - level) @ alpha) / count, 1e-12)
    outer = inverse - np.outer(alpha, alpha) / variance
    weights = outer * ((5 / 3) * (1 + distance) * decay)
    slope = np.empty_like(theta)
    slope[:-1] = weights.sum(axis=1) @ (scaled * scaled)
    slope[:-1] -= np.einsum("ij,ij->j", scaled, weights @ scaled)
    slope[-1] = 0.5 * noise * np.trace(outer)
    off_length, off_noise = theta[:-1] - LENGTH, theta[-1] - NOISE
    prior = (off_length @ off_length) / (2 * LENGTH_SPREAD**2)
    prior += off_noise**2 / (2 * NOISE_SPREAD**2)
    slope[:-1] += off_length / LENGTH_SPREAD**2
    slope[-1] += off_noise / NOISE_SPREAD**2
    cost = 0.5 * count * math.log(variance) + float(np.log(np.diag(factor)).sum()) + prior
    return float(cost), slope
