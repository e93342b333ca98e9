"""What goes wrong with models' answers, at set rates, each with the name of what was done.

A class is what the programmer does on purpose, so it is the truth that a campaign's own classes
are compared with. Where a language has no form of a class (knob values compute no wrong answer) the
answer is an honest one, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from kernelwright.env.options import OptionError, nearest

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

# What may become of a program that is read: a verifier or the judge refuses it, it fails, or it has
# been said before.
_UNTRIED = ("duplicate", "declined")
_FAILED = ("wrong", "crashed", "timeout", "over_limit", "build_error", "rejected", *_UNTRIED)
_NO_PROGRAMS = ("plan", "review", "action")
# Every class, with what a campaign may file it as: the class of the reply, or the verdict's status.
# Words around a program are no fault of it, so anything may become of that. A plan, a review or an
# action is no program, so what is wrong with it is filed as what it is: an action that no tool
# carries out, words that decide nothing.
FILED_AS: dict[str, tuple[str, ...]] = {
    "truncated": ("truncated",),
    "refused": ("refused",),
    "empty": ("empty",),
    "prose": ("unparsable",),
    "unparsable": ("unparsable",),
    "syntax": ("unparsable", "build_error", *_UNTRIED),
    "wrong_schema": ("wrong_schema",),
    "wrong_code": ("illegal", *_FAILED),
    "wrong_answer": ("wrong", "crashed", "review", *_UNTRIED),
    "illegal": ("illegal", "build_error", "rejected", "action", *_UNTRIED),
    "duplicate": ("plan", *_UNTRIED),
    "cheating": ("illegal", "wrong_schema", "unparsable", "too_fast", *_NO_PROGRAMS, *_FAILED),
    "prose_around": (),
}

# Rates of all classes under a name; what is left is honest. The two small ones were measured with
# SmolLM2-135M on a schedule of four fields, 30 answers each, in free text and in JSON mode.
PROFILES: dict[str, dict[str, float]] = {
    "frontier": {
        "duplicate": 0.08,
        "illegal": 0.08,
        "wrong_answer": 0.07,
        "syntax": 0.04,
        "wrong_schema": 0.03,
        "truncated": 0.03,
        "refused": 0.01,
        "empty": 0.01,
        "prose_around": 0.02,
        "cheating": 0.01,
    },
    "small-free": {"truncated": 25 / 30, "prose": 5 / 30},
    "small-json": {"wrong_schema": 13 / 30, "truncated": 13 / 30},
    "hostile": {"cheating": 0.3},
}


def fault_rates(faults: float | str | Mapping[str, float]) -> dict[str, float]:
    """The rate of every class: of a total, of a profile, or as given.

    Raises:
        OptionError: if a profile or class does not exist, or rates are not between 0 and 1
            altogether.
    """
    if isinstance(faults, str):
        if faults not in PROFILES:
            expected = f"a rate, rates by class, or one of {', '.join(PROFILES)}"
            raise OptionError("faults", expected, repr(faults), nearest(faults, PROFILES))
        rates = PROFILES[faults]
    elif isinstance(faults, int | float):
        rates = {name: share * faults for name, share in SHARES.items()}
    else:
        rates = dict(faults)
    for name in rates:
        if name not in FILED_AS:
            near = nearest(name, FILED_AS)
            raise OptionError("faults", f"one of {', '.join(FILED_AS)}", repr(name), near)
    rates = {name: rates.get(name, 0.0) for name in FILED_AS}
    total = sum(rates.values())
    if not min(rates.values()) >= 0 or not total <= 1 + 1e-9:
        raise OptionError("faults", "rates of 0 to 1 altogether", f"{faults}")
    return rates


def draw_fault(rates: Mapping[str, float], rng: Random) -> str | None:
    """A class with its rate, or None."""
    left = rng.random()
    for name, rate in rates.items():
        left -= rate
        if left < 0:
            return name
    return None
