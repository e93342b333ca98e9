"""What can be said of a candidate before it is judged: bounds, computed facts, an analytic model of
another machine, and what the run's own trials predict.

None of it is a verdict and none costs budget. A target that is itself a model is not asked: its
answer would be the verdict, and verdicts are what the budget buys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.configs.build import Built
from kernelwright.env.options import OptionError
from kernelwright.env.spaces.knobs import KnobSpace, is_listed
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.types import Candidate, Evidence
from kernelwright.evaluators.cpu_model import CpuModel
from kernelwright.evaluators.target import speed_of_light
from kernelwright.search.drivers.facts import Facts
from kernelwright.search.models.prior import PRIORS, Prior
from kernelwright.search.models.ridge import Ridge
from kernelwright.search.trial import Trial

# Trials that passed before anything is predicted from them, and how many of the latest are.
FEWEST, MOST = 6, 128
THE_JUDGE = "none: the target is itself a model, so its answer is a verdict (submit asks for it)"


class Estimator:
    """Estimates for the candidates of one campaign."""

    def __init__(self, built: Built) -> None:
        self._built = built
        self._has_features = isinstance(built.space, KnobSpace | ScheduleSpace)
        self._facts = Facts(built.space, built.problem)
        self._cpu = _cpu_model(built)

    def of(self, candidate: Candidate, trials: Sequence[Trial]) -> dict[str, Any]:
        """Everything that is known of a candidate of the space: ``floor_us`` by workload, ``facts``
        that are computed from it, ``model`` and ``learned``, each with an estimated ``speedup``
        over the baseline or a sentence on why there is none.
        """
        built = self._built
        light = speed_of_light(built.target, built.problem, built.plan.state)
        return {
            "floor_us": {bound.workload: bound.floor_ns / 1e3 for bound in light},
            "facts": self._facts.of_candidate(candidate),
            "model": self._modelled(candidate),
            "learned": self._learned(candidate, trials),
        }

    def _modelled(self, candidate: Candidate) -> dict[str, Any] | str:
        built = self._built
        if built.target.evidence is Evidence.MODELLED:
            return THE_JUDGE
        baseline = built.plan.baseline.candidate
        if self._cpu is not None:
            time_ns, other_ns = self._cpu.true_ns([candidate, baseline])
            found = self._cpu.estimate(candidate)
            if not (math.isfinite(time_ns) and math.isfinite(other_ns)):
                return f"none: {self._cpu.device.name} has no answer for it"
            return {
                "machine": f"{self._cpu.device.name}, another one than is measured on",
                "time_us": time_ns / 1e3,
                "speedup": other_ns / time_ns,
                "bound": [each.bound for each in found],
            }
        if built.problem.name in PRIORS and is_listed(built.space):
            return self._by_prior(candidate, baseline)
        return "none: there is no analytic model of this problem in this language"

    def _by_prior(self, candidate: Candidate, baseline: Candidate) -> dict[str, Any] | str:
        try:
            prior = Prior(self._built.space, problem=self._built.problem)
        except OptionError as error:
            return f"none: {error}"
        if baseline.language is not candidate.language:
            return "none: the baseline is no configuration"
        time, other = prior.predict(self._rows([candidate, baseline]))
        return {
            "machine": "the analytic GPU model of an H100, another one than is measured on",
            "time_us": 2.0**time * 1e6,
            "speedup": 2.0 ** (other - time),
        }

    def _learned(self, candidate: Candidate, trials: Sequence[Trial]) -> dict[str, Any] | str:
        """What ridge regression makes of the trials, and its typical error on each when it has
        learned the others.
        """
        if not self._has_features:
            return "none: text has no features to learn from"
        language = candidate.language
        ran = [t for t in trials if t.objective is not None and t.candidate.language is language][
            -MOST:
        ]
        if len(ran) < FEWEST:
            return f"none: {len(ran)} trials ran, at least {FEWEST} are needed"
        rows = self._rows([trial.candidate for trial in ran])
        targets = np.array([trial.objective for trial in ran], dtype=np.float64)
        errors = [
            _predicted(np.delete(rows, i, axis=0), np.delete(targets, i), rows[i]) - targets[i]
            for i in range(len(ran))
        ]
        typical = float(np.sqrt(np.mean(np.square(errors))))
        log2 = _predicted(rows, targets, self._rows([candidate])[0])
        return {
            "speedup": 2.0 ** min(log2, 60.0),
            "trials": len(ran),
            "typical_error": 2.0 ** min(typical, 60.0),
        }

    def _rows(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        return np.array([self._built.space.features(c) for c in candidates], dtype=np.float64)


def _predicted(
    rows: NDArray[np.float64], targets: NDArray[np.float64], row: NDArray[np.float64]
) -> float:
    model = Ridge(1.0)
    model.add(rows, targets)
    return float(model.predict(row[None])[0])


def _cpu_model(built: Built) -> CpuModel | None:
    """The analytic CPU model, where the target measures on a CPU and the model has the problem's
    loops.
    """
    if built.target.evidence is not Evidence.MEASURED:
        return None
    if built.space.language not in CpuModel.languages:
        return None
    threads = int(built.resolved["target"].get("threads", 1))
    try:
        return CpuModel(built.problem, threads=threads)
    except ValueError:
        return None
