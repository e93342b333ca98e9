"""Searches by the simulated model on the analytic GPU model, up to a true time within 5% of the
best of `gemm_gpu`: what parts of a prompt are worth in proposals and calls.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scipy.stats import wilcoxon

from kernelwright.configs import api
from kernelwright.configs.build import build
from kernelwright.configs.load import read_config
from kernelwright.search.campaign import Campaign
from kernelwright.search.efficiency import best_true_ns, target_watch
from kernelwright.search.store import MemoryStore
from kernelwright.search.trial import MODEL_CALL

Shape = tuple[int, int, int]
WITHIN = 0.05
# A search that does not get there counts as so many proposals.
CAP = 120
BATCH = 4
SHAPE: Shape = (4096, 4096, 4096)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a search took to its target."""

    proposals: int
    calls: int


@cache
def search(seed: int, shape: Shape = SHAPE, agents: str = "{}", driver: str = "{}") -> Spent:
    """A campaign (``gemm_model_llm``: 2% noise) up to its target.

    Args:
        seed: the campaign's.
        shape: of the GEMM.
        agents: options of ``agents`` as JSON, beside the simulated model.
        driver: options of the driver `llm` as JSON.
    """
    sets = {
        "seed": seed,
        "problem": _problem(shape),
        "budget": {"trials": CAP},
        "batch": BATCH,
        "agents": {"backend": {"name": "mock"}, **json.loads(agents)},
        "driver": {"name": "llm", **json.loads(driver)},
    }
    built = build(read_config("gemm_model_llm", [f"{k}={json.dumps(v)}" for k, v in sets.items()]))
    space, target = built.space, built.target
    least = best_true_ns(target, [space.candidate(i) for i in space.valid.tolist()])
    store = MemoryStore()
    stop = Campaign(built.plan, store, until=target_watch(target, least, WITHIN)).run()
    calls = sum(event.kind == MODEL_CALL for event in store.events())
    return Spent(len(store.trials()) if stop.rule == "until" else CAP, calls)


def searches(seeds: int, *args: object, **options: object) -> list[Spent]:
    """`search` with the seeds from 0."""
    return [search(seed, *args, **options) for seed in range(seeds)]


def _problem(shape: Shape) -> dict[str, object]:
    return {"name": "gemm_gpu", **dict(zip("mnk", shape, strict=True))}


def earlier(folder: Path, shapes: Sequence[Shape]) -> str:
    """Campaigns of some shapes by evolution, whose folder later ones retrieve from; options of
    ``agents`` that say so.
    """
    for shape in shapes:
        document = {
            "name": "earlier",
            "problem": _problem(shape),
            "target": {"name": "gpu-model", "noise": {"lognormal": 0.02}},
            "driver": {"name": "evolution"},
            "budget": {"trials": 128},
            "cache": {"folder": str(folder / "cache")},
        }
        api.run(document, folder / "runs" / "x".join(map(str, shape)))
    return json.dumps({"retrieval": {"runs": [str(folder / "runs")]}})


@dataclass(frozen=True, slots=True)
class Compared:
    """Two ways, seed by seed: the ratio of medians, and the chance that a difference at least as
    large in favour of the first comes about where there is none (Wilcoxon's signed ranks,
    one-sided).
    """

    ratio: float
    p: float
    said: str


def compare(left: Sequence[Spent], right: Sequence[Spent], of: Callable[[Spent], int]) -> Compared:
    """The first of two ways against the second, paired by seed."""
    a, b = [of(each) for each in left], [of(each) for each in right]
    p = 1.0 if a == b else float(wilcoxon(a, b, alternative="less").pvalue)
    middles = statistics.median(a), statistics.median(b)
    ratio = middles[0] / middles[1]
    means = f"means {statistics.fmean(a):.1f} and {statistics.fmean(b):.1f}"
    said = f"{middles[0]:g} and {middles[1]:g}; {means}; ratio {ratio:.2f}, p = {p:.1e}"
    return Compared(ratio, p, said)
