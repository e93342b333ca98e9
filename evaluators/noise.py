"""Simulated noise, keyed: every draw is a function of (seed, candidate key, repeat), never of the
order of calls.

Three kinds, each off at 0: ``lognormal`` is the standard deviation of the log of a sample;
``drift`` the size of a slow common change of clock, a function of (seed, trial number) that both
arms of a pair share; ``heavy_tail`` the chance that a sample is interrupted, which multiplies it by
a Pareto variate of shape 1.5 (median 1.6, infinite variance).
"""

from __future__ import annotations

import hashlib
import math
from statistics import NormalDist
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_NORMAL = NormalDist()
_TAIL_SHAPE = 1.5
# Trials a period: slow against a batch, and not multiples of each other.
_DRIFT_PERIODS = (53.0, 171.0, 617.0)


class Noise(BaseModel):
    """How a simulated clock errs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    lognormal: Annotated[float, Field(ge=0, le=1, description="standard deviation of log time")] = (
        0.0
    )
    drift: Annotated[float, Field(ge=0, le=1, description="amplitude of the common log drift")] = (
        0.0
    )
    heavy_tail: Annotated[
        float, Field(ge=0, le=1, description="chance of an interrupted sample")
    ] = 0.0

    @property
    def is_zero(self) -> bool:
        """Whether every sample is the true time."""
        return self.lognormal == self.drift == self.heavy_tail == 0


def keyed_uniforms(seed: int, key: str, repeat: int, count: int) -> list[float]:
    """``count`` (at most 8) uniform variates in (0, 1) that depend on (seed, key, repeat) only."""
    text = f"{seed}|{key}|{repeat}".encode()
    digest = hashlib.blake2b(text, digest_size=8 * count).digest()
    return [
        (int.from_bytes(digest[8 * i : 8 * i + 8], "big") >> 11) * 2.0**-53 + 2.0**-54
        for i in range(count)
    ]


def drift_factor(noise: Noise, seed: int, trial: int) -> float:
    """The common factor on all times of a trial."""
    if not noise.drift:
        return 1.0
    phases = keyed_uniforms(seed, "drift", 0, len(_DRIFT_PERIODS))
    waves = (
        math.sin(2 * math.pi * (trial / period + phase))
        for period, phase in zip(_DRIFT_PERIODS, phases, strict=True)
    )
    return math.exp(noise.drift * sum(waves) / math.sqrt(len(_DRIFT_PERIODS) / 2))


def noisy_pair(noise: Noise, seed: int, key: str, repeat: int, trial: int) -> tuple[float, float]:
    """Factors on the true times of (candidate, reference) in one pair of samples."""
    if noise.is_zero:
        return 1.0, 1.0
    u = keyed_uniforms(seed, key, repeat, 6)
    drift = drift_factor(noise, seed, trial)
    return drift * _factor(noise, *u[:3]), drift * _factor(noise, *u[3:])


def _factor(noise: Noise, normal: float, coin: float, tail: float) -> float:
    value = math.exp(noise.lognormal * _NORMAL.inv_cdf(normal)) if noise.lognormal else 1.0
    return value * tail ** (-1 / _TAIL_SHAPE) if coin < noise.heavy_tail else value
