"""What goes wrong with models' answers, at set rates, each with the name of what was done."""

from __future__ import annotations

import random
from collections.abc import Mapping

from kernelwright.env.options import OptionError

# Shares of a total rate: wrong programs are the commonest fault of a model that can code.
SHARES: dict[str, float] = {
    "truncated": 0.15,
    "refused": 0.10,
    "empty": 0.10,
    "prose": 0.10,
    "unparsable": 0.15,
    "wrong_schema": 0.15,
    "wrong_code": 0.25,
}


def fault_rates(faults: float | Mapping[str, float]) -> dict[str, float]:
    """The rate of every class: of a total, or as given.

    Raises:
        OptionError: if a class does not exist, or rates are not between 0 and 1 altogether.
    """
    if isinstance(faults, int | float):
        rates = {name: share * faults for name, share in SHARES.items()}
    else:
        for name in faults:
            if name not in SHARES:
                raise OptionError("faults", f"one of {', '.join(SHARES)}", repr(name))
        rates = {name: faults.get(name, 0.0) for name in SHARES}
    total = sum(rates.values())
    if min(rates.values()) < 0 or not total <= 1 + 1e-9:
        raise OptionError("faults", "rates of 0 to 1 altogether", f"{faults}")
    return rates


def draw_fault(rates: Mapping[str, float], rng: random.Random) -> str | None:
    """A class with its rate, or None."""
    left = rng.random()
    for name, rate in rates.items():
        left -= rate
        if left < 0:
            return name
    return None
