"""What a verdict says, as a sentence: the one place that puts claims into words.

Limits are those at 95%. Whether they are a claim is decided at the stricter level of the verdict's
`Terms`, and beyond what identical kernels differ by; so the limits of a tie may lie above 1, and
the sentence then says what was lacking.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelwright.env.objective import log2_speedup
from kernelwright.env.types import Role, Status, Terms, Verdict
from kernelwright.evaluators.statistics import CONFIDENCE, Interval, speedup
from kernelwright.search.trial import Trial

_HEADS = {
    Status.WIN: "win: ",
    Status.TIE: "tie: no difference that could be claimed, ",
    Status.LOSS: "loss: slower, ",
}
# A tie whose limits lie on one side of 1.
_UNCLAIMED = "tie: a difference that may not be claimed, "
# Decimals of a ratio at most; limits that agree to this share have no spread.
MOST_DECIMALS, SAME = 6, 1e-9


@dataclass(frozen=True, slots=True)
class Names:
    """What a candidate was compared with, as a campaign calls it; None where that is unknown."""

    baseline: str | None = None
    library: str | None = None

    @classmethod
    def stored(cls, meta: Mapping[str, str]) -> Names:
        """The names that a run's store knows."""
        baseline = json.loads(meta["baseline"])["name"] if "baseline" in meta else None
        return cls(baseline, meta.get("library"))

    @property
    def the_baseline(self) -> str:
        """The baseline in words; a file's without its folder, and whose kernel a library's is."""
        if self.baseline is None:
            return "the baseline"
        if self.baseline == "library" and self.library:
            return f"the {self.library} baseline"
        return f"the {Path(self.baseline).name} baseline"

    @property
    def the_library(self) -> str:
        """The library in words."""
        return self.library or "the library"


def claim_of(trial: Trial, names: Names) -> str:
    """What the latest verdict on a trial says of it."""
    return in_words(trial.verdicts[-1][1], names, trial.objective)


def in_words(verdict: Verdict, names: Names, objective: float | None = None) -> str:
    """What a verdict says, after its status: the claim, or why there is none.

    Args:
        verdict: what was found.
        names: what it was compared with.
        objective: the log2 speedup that screens estimate; unless given, the verdict's own.
    """
    if verdict.status.is_claim:
        return _claimed(verdict, names)
    if objective is None:
        objective = log2_speedup(verdict)
    said = [verdict.status.value]
    if not verdict.status.passed:
        said = [_failed(verdict)]
    if objective is not None and (verdict.status.passed or verdict.status is Status.UNSTABLE):
        sample = in_figures(2.0**objective)
        said.append(f"{sample} in a screen against {names.the_baseline}, which is no claim")
    return (": " if verdict.status.passed else "; ").join(said)


def _failed(verdict: Verdict) -> str:
    evidence = verdict.evidence
    if verdict.status is Status.UNSTABLE:
        return f"unstable: nothing can be claimed: {evidence or verdict.code}"
    return f"{verdict.status} ({verdict.code})" + (f": {evidence}" if evidence else "")


def _claimed(verdict: Verdict, names: Names) -> str:
    found = speedup(verdict)
    assert found is not None
    is_aside = verdict.status is Status.TIE and not found.low <= 1 <= found.high
    head = _UNCLAIMED if is_aside else _HEADS[verdict.status]
    said = head + _with_limits(found, at=f" at {CONFIDENCE:.0%}")
    said += f", against {names.the_baseline}"
    if is_aside:
        said += f", {_lacking(verdict, verdict.terms)}"
    library = speedup(verdict, Role.LIBRARY)
    if library is not None and not _is_the_baseline(verdict):
        said += f"; against {names.the_library} {_with_limits(library)}"
    return said


def _is_the_baseline(verdict: Verdict) -> bool:
    """Whether the library is what the baseline is, too."""
    return len({m.reference_key for m in verdict.measurements}) == 1


def _lacking(verdict: Verdict, terms: Terms | None) -> str:
    """Why an interval that lies on one side of 1 is no claim."""
    if terms is None:
        return "which was not enough for a claim"
    level = 1 - 2 * terms.alpha
    strict = speedup(verdict, confidence=level)
    if strict is None or strict.low <= 1 <= strict.high:
        # Rounded, but never to certainty.
        return f"which is not enough for a claim at {min(round(100 * level, 4), 99.9999):g}%"
    beyond = f"{100 * terms.least_effect:.2g}%"
    return f"which is not beyond the {beyond} that identical kernels differ by on this host"


def _with_limits(found: Interval, at: str = "") -> str:
    if not is_known(found):
        return in_figures(found.estimate, None, None) + " (too few samples)"
    return in_figures(found.estimate, found.low, found.high, at=at)


def is_known(found: Interval) -> bool:
    """Whether both limits could be told."""
    return found.low > 0 and found.high < math.inf


def in_figures(estimate: float, *limits: float | None, at: str = "") -> str:
    """A ratio with its limits, if there are any: ``1.31x, between 1.28 and 1.34``.

    Three figures (below 1 two), and more where the limits are close together or a limit is close to
    1: which side of 1 it lies on is seen.

    Args:
        estimate: the ratio.
        limits: low and high, None where they could not be told; nothing for a bare ratio.
        at: what is said of the limits after them.
    """
    known = [limit for limit in limits if limit is not None]
    if len(known) == 2 and known[1] - known[0] > SAME * estimate:
        places = _decimals(estimate, known)
        low, high = (f"{limit:.{places}f}" for limit in known)
        return f"{estimate:.{places}f}x, between {low} and {high}{at}"
    ratio = f"{estimate:.{_decimals(estimate, [estimate])}f}x"
    if not limits:
        return ratio
    return f"{ratio}, without spread" if len(known) == 2 else f"{ratio}, of unknown limits"


def _decimals(estimate: float, limits: list[float]) -> int:
    """How many decimals show a ratio and its limits."""
    places = (2 if estimate >= 1 else 1) - math.floor(math.log10(estimate))
    half = (limits[-1] - limits[0]) / 2
    if half > 0:
        places = max(places, -math.floor(math.log10(half)))
    places = max(0, min(places, MOST_DECIMALS))
    while places < MOST_DECIMALS and any(limit != 1 == round(limit, places) for limit in limits):
        places += 1
    return places
