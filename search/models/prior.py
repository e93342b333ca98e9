"""An analytic model as a prior: its estimate plus what ridge regression learns of its errors, for
as long as it ranks what was measured; dropped when it misleads.

The test is the rank correlation of the estimates with all trials that ran. While fewer than
`ENOUGH` did the prior is believed; from then on it is believed while the correlation is at least
`LEAST`, decided anew with every batch, so a prior that was dropped on few trials can come back. A
prior that is dropped leaves plain ridge regression, which has learned all the time.

Estimates are looked up by problem in `PRIORS`. That of a GEMM is the analytic GPU model on the
lecture's H100; on recordings of another GPU it ranks well and its times are off, which is what
corrections are for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np

from kernelwright.env.compiler.machine.device import load_device
from kernelwright.env.compiler.machine.gpu_gemm import estimate_gemm
from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.knobs import KnobSpace, is_listed
from kernelwright.env.types import Problem
from kernelwright.search.models.model import Array, problem_name
from kernelwright.search.models.ranks import spearman
from kernelwright.search.models.ridge import Ridge

Estimate = Callable[[Array], Array]

DEVICE = "h100-lecture"
ENOUGH = 12
LEAST = 0.3
# How much more reluctantly errors of the estimate are learned than times: with the usual penalty a
# dozen trials bend it out of shape, with this one as many as thirty have a say (measured on H200).
CAUTION = 300
PRIORS: dict[str, str] = {"gemm_gpu": "kernelwright.search.models.prior:gemm_estimate"}


def gemm_estimate(space: KnobSpace, problem: Problem) -> Estimate:
    """Rows of features to log2 seconds of the analytic GEMM model.

    The first features of a knob space are the logarithms of the knobs, so a row has them all.

    Raises:
        OptionError: if the space has other knobs than the model.
    """
    names = ("bm", "bn", "bk", "warps", "stages", "group_m")
    if not set(names) <= set(space.names):
        expected = f"a space with the knobs {', '.join(names)}"
        raise OptionError("model", expected, ", ".join(space.names))
    device, extents = load_device(DEVICE), problem.workloads[0].fixed
    shape = (extents["m"], extents["n"], extents["k"])
    itemsize = min(np.dtype(tensor.dtype).itemsize for tensor in problem.tensors)
    places = [space.names.index(name) for name in names]

    def estimate(rows: Array) -> Array:
        values = np.rint(np.exp2(rows[:, places]))
        columns = dict(zip(names, values.T, strict=True))
        seconds = estimate_gemm(device, *shape, columns, itemsize).time_s
        return np.asarray(np.log2(seconds), dtype=np.float64)

    return estimate


class Prior:
    """An analytic estimate, corrected by what is measured and dropped when it misleads.

    Raises:
        OptionError: if there is no estimate for the problem, or it does not fit the space.
    """

    needs = 0

    def __init__(
        self, space: Space, *, problem: Problem | None = None, penalty: float = 0.1
    ) -> None:
        if problem is None or problem.name not in PRIORS or not is_listed(space):
            expected = f"a knob space of a problem with an analytic model ({', '.join(PRIORS)})"
            found = f"{type(space).__name__} of {problem_name(problem)}"
            raise OptionError("model", expected, found)
        module, _, name = PRIORS[problem.name].partition(":")
        self._estimate: Estimate = getattr(import_module(module), name)(space, problem)
        self._plain, self._errors = Ridge(penalty), Ridge(CAUTION * penalty)
        self._estimated: list[float] = []
        self._measured: list[float] = []
        self.correlation: float | None = None
        self.is_kept = True

    @property
    def count(self) -> int:
        """How many samples were learned."""
        return len(self._measured)

    @property
    def note(self) -> str:
        """Whether the prior is believed."""
        return "prior" if self.is_kept else "prior dropped"

    @property
    def says(self) -> str:
        """The decision with its reason."""
        if self.correlation is None:
            return f"{self.note}: not tested before {ENOUGH} trials"
        found = f"rank correlation {self.correlation:.2f} on {self.count} trials"
        return f"{self.note}: {found}, at least {LEAST} is believed"

    def add(self, rows: Array, targets: Array) -> None:
        """Learn the times, and the estimate's errors; then decide about it."""
        estimated = self._estimate(rows)
        self._plain.add(rows, targets)
        self._errors.add(rows, targets - estimated)
        self._estimated += estimated.tolist()
        self._measured += targets.tolist()
        # Without differences there is nothing to rank.
        differ = min(len(set(self._measured)), len(set(self._estimated))) > 1
        if self.count >= ENOUGH and differ:
            found = spearman(np.array(self._estimated), np.array(self._measured))
            self.correlation, self.is_kept = found, found >= LEAST

    def predict(self, rows: Array) -> Array:
        """The corrected estimate, or plain ridge regression once the estimate is dropped."""
        if not self.is_kept:
            return self._plain.predict(rows)
        estimated = self._estimate(rows)
        return estimated + self._errors.predict(rows) if self._errors.count >= 2 else estimated
