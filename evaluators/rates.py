"""Rates of counts, with the limits that go with them."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of how many; ``low`` and ``high`` are the 95% limits of the share (Wilson, JASA 22,
    1927), which hold for counts near none and near all too.
    """

    count: int
    total: int

    def __post_init__(self) -> None:
        if not 0 <= self.count <= self.total:
            raise ValueError(f"expected a count from 0 to {self.total}, found {self.count}")

    @property
    def share(self) -> float:
        """The count as a share of the total; NaN of none."""
        return self.count / self.total if self.total else float("nan")

    @property
    def low(self) -> float:
        """The lower limit; 0 of none."""
        return self._limits()[0]

    @property
    def high(self) -> float:
        """The upper limit; 1 of none."""
        return self._limits()[1]

    def _limits(self) -> tuple[float, float]:
        if not self.total:
            return 0.0, 1.0
        n, z = self.total, NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
        centre = self.count + z * z / 2
        half = z * sqrt(self.count * (n - self.count) / n + z * z / 4)
        low, high = (centre - half) / (n + z * z), (centre + half) / (n + z * z)
        # Rounding must not put a share of none or all outside its own interval.
        return (0.0 if self.count == 0 else low), (1.0 if self.count == n else high)

    def __str__(self) -> str:
        if not self.total:
            return "0 of 0"
        limits = f"95% interval {_percent(self.low)} to {_percent(self.high)}"
        return f"{self.count:,} of {self.total:,} ({_percent(self.share)}, {limits})"


def _percent(share: float) -> str:
    """A share in percent that says 100% of all only."""
    text = f"{share:.1%}"
    return "> 99.9%" if text == "100.0%" and share < 1 else text.replace("100.0%", "100%")
