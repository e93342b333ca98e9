"""What a candidate is like beside its time: facts by name, for drivers that keep different ones.

Some facts are computed from the candidate, before anything is measured:

- of a tiled GEMM (knobs ``bm bn bk``): ``intensity``, operations a byte that a block loads in a K
  step; ``footprint``, bytes of shared memory that its stages take; ``parallelism``, warps that the
  launch has;
- of a schedule, from its features: ``intensity``, statements a byte, and ``footprint``, bytes, of
  the innermost serial loop of the costliest store; ``parallelism``, iterations that run at once
  (lanes, copies and threads); ``code_size``, statements of the C.

Whatever a verdict says (``shared``, ``regs``, ``spills`` of a recording, ``dram_bytes`` of the CPU
model, ``elf.static_bytes`` of a binary) is a fact by its own name; and where it is more exact than
what is computed, in its place: ``shared`` and ``shared_bytes`` for ``footprint``, ``flops`` by
``dram_bytes`` for ``intensity``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.spaces.schedule.features import LEVELS, PER_STORE
from kernelwright.env.types import Candidate, Problem, Scalar
from kernelwright.search.trial import Trial

TILES = ("bm", "bn", "bk")
COMPUTED = ("intensity", "footprint", "parallelism")
# Of a row of a store's features: iterations, lanes, threads, copies of two kinds, and the first of
# the footprints, each with its intensity.
ITERATIONS, AT_ONCE, FOOTPRINTS = 0, (1, 3, 4, 5), PER_STORE - 2 * LEVELS


class Facts:
    """The source of facts for a space.

    Args:
        space: whose candidates they are about.
        problem: gives the extents of a GEMM; without it ``parallelism`` is of one block.
    """

    def __init__(self, space: Space, problem: Problem | None = None) -> None:
        self._space = space
        self._known: dict[str, dict[str, float]] = {}
        self._is_tiled = isinstance(space, KnobSpace) and _are_sizes(space)
        self._extents: Mapping[str, int] = {}
        self._itemsize = 2
        if problem is not None and self._is_tiled:
            self._extents = problem.workloads[0].fixed
            self._itemsize = min(np.dtype(tensor.dtype).itemsize for tensor in problem.tensors)

    @property
    def computed(self) -> tuple[str, ...]:
        """The names of what is known of every candidate."""
        if isinstance(self._space, ScheduleSpace):
            return (*COMPUTED, "code_size")
        return COMPUTED if self._is_tiled else ()

    def of_candidate(self, candidate: Candidate) -> dict[str, float]:
        """The computed facts of a candidate."""
        known = self._known.get(candidate.key)
        if known is None:
            known = self._known[candidate.key] = self._compute(candidate)
        return known

    def of(self, trial: Trial) -> dict[str, float]:
        """All facts of a trial."""
        told = dict(trial.verdicts[0][1].facts)
        return {**self.of_candidate(trial.candidate), **_exact(told), **told}

    def _compute(self, candidate: Candidate) -> dict[str, float]:
        if isinstance(self._space, ScheduleSpace):
            return _of_schedule(self._space.loop_features(candidate).tolist())
        return self._of_tiles(candidate.knobs) if self._is_tiled else {}

    def _of_tiles(self, knobs: Mapping[str, Scalar]) -> dict[str, float]:
        bm, bn, bk = (float(knobs[name]) for name in TILES)
        stage = (bm + bn) * bk * self._itemsize
        blocks = math.ceil(self._extents.get("m", 1) / bm) * math.ceil(
            self._extents.get("n", 1) / bn
        )
        return {
            "intensity": 2 * bm * bn * bk / stage,
            "footprint": stage * float(knobs.get("stages", 1)),
            "parallelism": blocks * float(knobs.get("warps", 1)),
        }


def _are_sizes(space: KnobSpace) -> bool:
    """Whether a space has the knobs of a tiled GEMM with values that can be sizes: macros of a text
    of one's own may have the same names and stand for anything.
    """
    known = {knob.name: knob.values for knob in space.knobs}
    values = [v for name in (*TILES, "stages", "warps") for v in known.get(name, ())]
    return set(TILES) <= set(known) and all(isinstance(v, int | float) and v > 0 for v in values)


class Demand:
    """The facts that an option of a driver names. Which there are is told by verdicts, so a name
    that is misspelt may come out only when something has run; the driver then stops.

    Args:
        option: which names them.
        names: of facts.
        facts: what is known of every candidate.
    """

    def __init__(self, option: str, names: Sequence[str], facts: Facts) -> None:
        self._option, self._names, self._facts = option, tuple(names), facts
        self._known, self._any_ran = set(facts.computed), False

    def refuse_unless(self, told: Iterable[str]) -> None:
        """See that there are these facts where what verdicts tell is known beforehand.

        Raises:
            OptionError: naming one that there is not, and those that there are.
        """
        told = dict.fromkeys(told, 1.0)
        self._known |= told.keys() | _exact(told).keys()
        lacking = self._lacking()
        if lacking is not None:
            raise OptionError(self._option, self._listed(), repr(lacking), self._near(lacking))

    def learn(self, trials: Sequence[Trial]) -> None:
        """Take up the facts of trials that ran."""
        ran = [trial for trial in trials if trial.objective is not None]
        self._any_ran = self._any_ran or bool(ran)
        if self._lacking() is not None:
            self._known.update(*(self._facts.of(trial) for trial in ran))

    @property
    def unmet(self) -> str | None:
        """Why the driver must stop: trials ran and none has a fact that is named."""
        lacking = self._lacking() if self._any_ran else None
        if lacking is None:
            return None
        near = self._near(lacking)
        hint = f"; did you mean {near!r}?" if near else ""
        return (
            f"{self._option}: expected {self._listed()}, "
            f"found {lacking!r}, which no trial that ran has{hint}"
        )

    def _lacking(self) -> str | None:
        return next((name for name in self._names if name not in self._known), None)

    def _listed(self) -> str:
        known = ", ".join(sorted(self._known))
        return f"facts that there are ({known})" if known else "no fact, as there is none"

    def _near(self, name: str) -> str | None:
        return next(iter(difflib.get_close_matches(name, sorted(self._known), 1)), None)


def _of_schedule(features: list[float]) -> dict[str, float]:
    """Facts of the store that runs most often; features are logarithms."""
    rows = [features[i : i + PER_STORE] for i in range(0, len(features) - PER_STORE + 1, PER_STORE)]
    size = {"code_size": 2 ** features[-1] - 1}
    if not rows:
        return size
    store = max(rows, key=lambda row: row[ITERATIONS])
    return {
        "intensity": 2 ** store[FOOTPRINTS + 1],
        "footprint": 2 ** store[FOOTPRINTS] - 1,
        "parallelism": 2 ** sum(store[i] for i in AT_ONCE),
        **size,
    }


def _exact(told: Mapping[str, float]) -> dict[str, float]:
    """What a verdict's own facts say under the names of computed ones."""
    out = {}
    for name in ("shared_bytes", "shared"):
        if name in told:
            out["footprint"] = told[name]
    if told.get("dram_bytes") and "flops" in told:
        out["intensity"] = told["flops"] / told["dram_bytes"]
    return out
