"""The table of searching: how many measurements drivers need on recorded spaces, beside Kernel
Tuner and Optuna, whose figures are in ``search_peers.json``. Prints each row with its target and
whether it is met.

    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE python benchmarks/search.py [--only GROUP]…

Groups: spaces, auto, h200, cpu, files, racing, noise, cost; ``gpu_model.py``, ``stopping.py``,
``tasks.py`` have more.
Searches are asked for one candidate at a time, as the others' are, with defaults, a budget of 256,
`SEEDS` seeds and true times (medians of the recorded samples); what fails is charged. The recorded
spaces lie beside the checkout, in ``../shared/data``.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import json
import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from recordings import DATA, SPACES, WIDTHS, geometric_mean, load, middle, reached
from repeats import cut_short, picked, raw, visited
from replay import Make, Run, knob_space, play, recording
from seconds import seconds_to
from table import Row, print_groups

from kernelwright.env.landscape.open import open_landscape
from kernelwright.env.landscape.save import save
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.spaces.expressions import own_rule
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Knob
from kernelwright.search.drivers.auto import Auto
from kernelwright.search.drivers.cost_model import CostModel
from kernelwright.search.drivers.evolution import Evolution
from kernelwright.search.drivers.model_topk import ModelTopK
from kernelwright.search.drivers.random import Random

SEEDS = 100
GEMMS = tuple(name for name in SPACES if name.startswith("h200_gemm"))
# Fewer runs than these do not make a peer's median.
LEAST_RUNS = 20
PEERS = json.loads((Path(__file__).resolve().parent / "search_peers.json").read_text())


def _peers(name: str, width: float) -> dict[str, float]:
    """The median evaluations of each peer on a space; infinite where most runs never got there."""
    return {
        peer: middle(found["evaluations"][str(width)])
        for peer, found in PEERS["spaces"][name]["peers"].items()
        if found["seeds"] >= LEAST_RUNS
    }


def _best_single(names: Sequence[str], width: float) -> tuple[str, float]:
    """The peer with the least geometric mean of medians over some spaces, of those on all."""
    tables = [_peers(name, width) for name in names]
    everywhere = set(tables[0]).intersection(*tables)
    means = {peer: geometric_mean(t[peer] for t in tables) for peer in sorted(everywhere)}
    best = min(means, key=lambda peer: means[peer])
    return best, means[best]


def _extents(name: str) -> tuple[int, int, int]:
    m, n, k = map(int, name.split("-")[1].split("x"))
    return m, n, k


def _auto(name: str, how: str) -> Make:
    """What makes `auto` with the advice of a row: none, the prior, transfer, or both."""
    options: dict[str, object] = {}
    if "prior" in how:
        m, n, k = _extents(name)
        options |= {"problem": gemm_gpu(m=m, n=n, k=k), "prior": "h100-lecture"}
    if "transfer" in how:
        m, n, k = _extents(name)
        others = [f"h200_gemm_{other.split('-')[1]}" for other in GEMMS if other != name]
        options |= {"problem": gemm_gpu(m=m, n=n, k=k), "transfer": tuple(others)}
    return lambda space, seed, batch: Auto(space, seed=seed, batch=batch, **options)


@lru_cache(maxsize=64)
def runs(name: str, how: str = "", batch: int = 1, enough: float = 1.01) -> tuple[Run, ...]:
    make = _auto(name, how)
    return tuple(play(name, make, seed, batch=batch, enough=enough) for seed in range(SEEDS))


def _medians(name: str, how: str, width: float, batch: int = 1) -> float:
    return middle(reached(run.minima, width) for run in runs(name, how, batch))


def spaces() -> Iterator[Row]:
    for name in SPACES:
        recorded = load(name)
        taken = []
        for _ in range(5):
            began = time.perf_counter()
            space = knob_space(recorded)
            taken.append(1e3 * (time.perf_counter() - began))
        what = f"{name}: {len(space.valid):,} of {space.combinations:,} enumerated"
        took = statistics.median(taken)
        yield what, "<= 25 ms", f"{took:.1f} ms", took <= 25
    knobs = [Knob(f"k{i}", tuple(range(1, 33))) for i in range(10)]
    names = frozenset(knob.name for knob in knobs)
    for what, pairs in (("five pairs", range(0, 9, 2)), ("a chain of ten", range(9))):
        rules = [own_rule(f"k{i} * k{i + 1} <= 64", names) for i in pairs]
        began = time.perf_counter()
        space = KnobSpace(knobs, rules)
        first = space.sample(np.random.default_rng(0))
        took = 1e3 * (time.perf_counter() - began)
        assert not space.check(first)
        yield f"first valid sample of 32^10, {what}", "<= 50 ms", f"{took:.1f} ms", took <= 50


def auto() -> Iterator[Row]:
    names = tuple(SPACES)
    for name in names:
        for width in (0.05, 0.1):
            own, peers = _medians(name, "", width), _peers(name, width)
            best = min(peers, key=lambda peer: peers[peer])
            # Where neither gets there nothing is gained: infinite over infinite is no pass.
            ratio = own / peers[best] if math.isfinite(peers[best]) or math.isinf(own) else 0.0
            said = f"{own:g}; {best} {peers[best]:g}; ratio {ratio:.2f}"
            is_judged = width == 0.05
            target = "<= 1.3x the best peer there" if is_judged else "printed"
            yield f"{name}, to {width:.0%}", target, said, ratio <= 1.3 if is_judged else None
    for width in (0.05, 0.1):
        own = geometric_mean(_medians(name, "", width) for name in names)
        best, theirs = _best_single(names, width)
        said = f"{own:.1f}; {best} {theirs:.1f}; ratio {own / theirs:.2f}"
        what = f"{len(names)} spaces, geometric mean to {width:.0%}"
        yield what, "<= 0.75x the best peer", said, own <= 0.75 * theirs
    shares = [
        statistics.fmean(reached(run.minima, 0.05) is not None for run in runs(name))
        for name in names
    ]
    share = statistics.fmean(shares)
    said = f"{share:.1%}, least {min(shares):.0%} ({names[shares.index(min(shares))]})"
    yield "runs that reach 5% within 256", ">= 95%", said, share >= 0.95
    own = geometric_mean(_medians(name, "", 0.05, batch=8) for name in names)
    yield "the same in batches of 8, to 5%", "printed", f"{own:.1f}", None


def h200() -> Iterator[Row]:
    for how, most, each in (("", 40, 80), ("prior", 4.8, 10), ("transfer", 3.5, 20)):
        yield from _gemms(how, most, each)
    yield from _gemms("transfer and prior", 3.5, 20)
    for how in ("", "prior", "transfer", "transfer and prior"):
        for width in (0.02, 0.01):
            own = geometric_mean(_medians(name, how, width) for name in GEMMS)
            best, theirs = _best_single(GEMMS, width)
            judged = how in ("prior", "transfer and prior")
            said = f"{own:.1f}; {best} {theirs:.1f}; ratio {own / theirs:.2f}"
            target = "<= 0.6x the best peer" if judged else "printed"
            met = own <= 0.6 * theirs if judged else None
            yield f"H200 GEMM to {width:.0%}, {how or 'no advice'}", target, said, met


def _gemms(how: str, most: float | None, each: float | None) -> Iterator[Row]:
    medians = [_medians(name, how, 0.05) for name in GEMMS]
    own = geometric_mean(medians)
    said = f"{own:.1f} ({', '.join(f'{median:g}' for median in medians)})"
    what = f"H200 GEMM to 5%, {how or 'no advice'}"
    if most is None or each is None:
        yield what, "printed", said, None
        return
    met = own <= most and max(medians) <= each
    yield what, f"<= {most}, none over {each}", said, met


def cpu() -> Iterator[Row]:
    drivers = (
        ("random", Random, 15),
        ("evolution", Evolution, 100),
        ("cost_model", CostModel, 2000),
        ("model_topk", ModelTopK, 2000),
        ("auto", Auto, 2000),
    )
    for title, driver, most in drivers:
        by_space = {}
        for name in SPACES:
            recording(name)
            taken = []
            for seed in range(3):
                run = play(name, lambda s, n, b, d=driver: d(s, seed=n, batch=b), seed, enough=0.0)
                taken.append(1e6 * run.cpu_s / run.used)
            by_space[name] = statistics.median(taken)
        worst = max(by_space, key=lambda name: by_space[name])
        middle_us = statistics.median(by_space.values())
        said = f"{middle_us:.0f}, most {by_space[worst]:.0f} ({worst})"
        yield f"CPU us an evaluation, {title}", f"<= {most} on all", said, by_space[worst] <= most


def files() -> Iterator[Row]:
    path = DATA / SPACES["dedispersion-W6600"]
    began, cpu_began = time.perf_counter(), time.process_time()
    landscape = open_landscape(path)
    with tempfile.TemporaryDirectory() as folder:
        save(landscape, Path(folder) / "copy.json")
    took, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    what = f"{len(landscape.entries):,} configurations read and written"
    yield what, "<= 1 s", f"{took:.2f} s, {cpu_s:.2f} s of CPU", took <= 1


SEARCHES: dict[str, tuple[Make | None, int]] = {
    "random": (None, SEEDS),
    "evolution": (lambda space, seed, batch: Evolution(space, seed=seed, batch=batch), SEEDS),
    "auto": (lambda space, seed, batch: Auto(space, seed=seed, batch=batch), 20),
}
CHARGED = ("convolution-W6600", "convolution-A4000", "dedispersion-W6600", "gemm-RTX_2080_Ti")


@lru_cache(maxsize=64)
def _visits(name: str, how: str) -> tuple[tuple[int, ...], ...]:
    make, seeds = SEARCHES[how]
    return tuple(tuple(visited(name, make, seed)) for seed in range(seeds))


def racing() -> Iterator[Row]:
    kept = 0
    for name in SPACES:
        repeats = max(map(len, raw(name).values()))
        for how, order in (("random", ""), ("evolution", ""), ("auto", ""), ("random", "recorded")):
            orders = _visits(name, how)
            found = [cut_short(name, o, i, shuffled=not order) for i, o in enumerate(orders)]
            saved = statistics.median(cut.saved for cut in found)
            lost = statistics.fmean(cut.lost for cut in found)
            p95 = float(np.quantile([cut.regret for cut in found], 0.95))
            said = f"{saved:.0%} saved, {lost:.1%} of {len(found)} lost it, p95 regret {p95:.2%}"
            what = f"{name}, {how}, {repeats} repeats" + (" in recorded order" if order else "")
            met = saved >= 0.6 and lost <= 0.01
            kept += met and how == "random" and not order
            judged = how in ("random", "evolution") and not order
            target = ">= 60%, best lost <= 1%" if judged else "printed"
            yield what, target, said, met if judged else None
    said = f"{kept} of {len(SPACES)}"
    yield "spaces that keep both, random", "most", said, kept > len(SPACES) / 2


def noise() -> Iterator[Row]:
    for name in SPACES:
        for how in ("random", "evolution"):
            said, regrets, extras = [], {}, {}
            for rule in ("none", "all alike", "halving"):
                found = [picked(name, o, i, rule) for i, o in enumerate(_visits(name, how))]
                regrets[rule] = float(np.quantile([pick.regret for pick in found], 0.95))
                extras[rule] = max(pick.extra for pick in found)
                said.append(f"{rule} {regrets[rule]:.2%} (+{extras[rule]:.0%})")
            met = regrets["halving"] <= 0.01 and extras["halving"] <= 0.25
            what = f"{name}, {how}, one sample a screen, p95 regret"
            yield what, "<= 1% with <= 25% more", "; ".join(said), met


def cost() -> Iterator[Row]:
    for name in CHARGED:
        taken = {}
        for way in ("evaluations", "seconds"):

            def make(space: KnobSpace, seed: int, batch: int, way: str = way) -> Auto:
                return Auto(space, seed=seed, batch=batch, cost=way)

            taken[way] = [seconds_to(name, make, seed, 0.05) for seed in range(SEEDS)]
        medians = [statistics.median(s for s, _ in found) for found in taken.values()]
        reached = [sum(math.isfinite(s) for s, _ in found) for found in taken.values()]
        less = 1 - medians[1] / medians[0]
        said = f"{medians[0]:.0f} s, {medians[1]:.0f} s by seconds ({less:.0%} less)"
        said += f"; {reached[0]} and {reached[1]} of {SEEDS} got there"
        yield f"{name}, auto, seconds to 5%", ">= 25% less", said, less >= 0.25


GROUPS = {
    "spaces": spaces,
    "auto": auto,
    "h200": h200,
    "cpu": cpu,
    "files": files,
    "racing": racing,
    "noise": noise,
    "cost": cost,
}

if __name__ == "__main__":
    assert set(WIDTHS) >= {0.05, 0.1}
    print_groups(GROUPS, __doc__)
