"""The table of the spine: figures, searches, overheads, crashes. Prints each row with its target
and whether it is met.

    python benchmarks/spine.py [--only GROUP]…

Groups: figures, search, recorded, compare, cpu, store, kill, env, package. Times are CPU times or
ratios within one run.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path

import gymnasium
import numpy as np
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import crash_child
from crash_child import tables
from table import Row, print_groups

import kernelwright.env.gym
from kernelwright.configs.api import run
from kernelwright.configs.build import Built, build
from kernelwright.configs.load import read_config
from kernelwright.env.compiler.machine.device import load_device
from kernelwright.env.compiler.machine.gpu_gemm import estimate_gemm
from kernelwright.env.records import dumps
from kernelwright.env.types import Candidate, Request, Verdict
from kernelwright.search.campaign import Campaign, Progress
from kernelwright.search.efficiency import (
    best_true_ns,
    evaluations_to_target,
    median_interval,
    median_ratio,
    target_watch,
)
from kernelwright.search.figures.table import all_figures
from kernelwright.search.store import MemoryStore, Sitting, SqliteStore
from kernelwright.search.trial import Event, Trial

CRASH_CHILD = Path(crash_child.__file__)
DRIVERS = ("random", "evolution", "cost_model")
SHAPES = ((4096, 4096, 4096), (2048, 14336, 4096), (16, 14336, 4096), (512, 512, 16384))


def figures() -> Iterator[Row]:
    rows = all_figures()
    for section in "ABH":
        chosen = [row for row in rows if row.id.startswith(section)]
        bad = [row.id for row in chosen if not row.ok]
        got = f"{len(chosen) - len(bad)} of {len(chosen)} ok" + (f", not {bad}" if bad else "")
        yield f"FIGURES {section}", "every row ok", got, not bad


def evaluations(
    config: str, seeds: Sequence[int], overrides: Sequence[str] = ()
) -> list[int | None]:
    """Evaluations to within 5% of the best true time, one a seed."""
    out: list[int | None] = []
    best: float | None = None
    for seed in seeds:
        built = build(read_config(config, [*overrides, f"seed={seed}"]))
        if best is None:
            best = best_true_ns(built.target, all_candidates(built))
        store = MemoryStore()
        watch = target_watch(built.target, best, 0.05)
        Campaign(built.plan, store, until=watch).run()
        out.append(evaluations_to_target(store.trials(), built.target, best, 0.05))
    return out


def all_candidates(built: Built) -> list[Candidate]:
    return [built.space.candidate(i) for i in built.space.valid.tolist()]


def interval(counts: Sequence[int | None]) -> str:
    median = median_interval(counts)
    solved = sum(c is not None for c in counts)
    limits = f"95% {median.low:g} to {median.high:g}"
    return f"{median.value:g} ({limits}; {solved} of {len(counts)} solved)"


def search() -> Iterator[Row]:
    targets = {"random": (160, 185), "evolution": (0, 60), "cost_model": (0, 24)}
    for driver, (low, high) in targets.items():
        counts = evaluations(f"gemm_model_{driver}", range(100))
        median = median_interval(counts).value
        target = f"{low} to {high}" if low else f"at most {high}"
        name = f"gpu-model 4096^3, 2% noise, 100 seeds: median to 5%, {driver}"
        yield name, target, interval(counts), low <= median <= high


def recorded() -> Iterator[Row]:
    for m, n, k in SHAPES:
        shape = f"{m}x{n}x{k}"
        overrides = [f"problem.m={m}", f"problem.n={n}", f"problem.k={k}"]
        overrides.append(f"target.landscape=h200_gemm_{shape}")
        for driver in DRIVERS:
            counts = evaluations(f"gemm_h200_{driver}", range(100), overrides)
            yield f"recorded {shape}: median to 5%, {driver}", "printed", interval(counts), None


def compare() -> Iterator[Row]:
    """A/A and A/B of `compare`'s rule, on disjoint blocks of 20 seeds."""
    repeats, seeds, budget = 100, 20, 256
    runs = {}
    for driver in DRIVERS:
        counts = evaluations(f"gemm_model_{driver}", range(2 * repeats * seeds))
        runs[driver] = [budget + 1 if count is None else count for count in counts]

    def blocks(driver: str, start: int) -> list[list[int]]:
        values = runs[driver]
        return [
            values[(start + 2 * r) * seeds : (start + 2 * r + 1) * seeds] for r in range(repeats)
        ]

    for driver in DRIVERS:
        pairs = zip(blocks(driver, 0), blocks(driver, 1), strict=True)
        same = sum(not median_ratio(a, b).is_difference for a, b in pairs)
        name = f"compare: {driver} against itself says 'no difference'"
        yield name, "at least 90 of 100", f"{same} of {repeats}", same >= 90
    pairs = zip(blocks("random", 0), blocks("cost_model", 1), strict=True)
    missed = sum(not median_ratio(a, b).is_difference for a, b in pairs)
    yield (
        "compare: random against cost_model says 'no difference'",
        "never",
        f"{missed} of 100",
        not missed,
    )


class Metered:
    """A target that counts the CPU seconds spent inside it."""

    def __init__(self, inner: object) -> None:
        self._inner, self.cpu_s = inner, 0.0

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def evaluate(self, requests: Sequence[Request]) -> Sequence[Verdict]:
        began = time.process_time()
        verdicts = self._inner.evaluate(requests)  # type: ignore[attr-defined]
        self.cpu_s += time.process_time() - began
        return verdicts


def cpu() -> Iterator[Row]:
    """CPU a trial outside the evaluator, over 5,000 trials of a recorded space of 5,400, SQLite
    store included.
    """
    limits = {"random": 0.2, "evolution": 0.3, "cost_model": 2.0}
    for driver, limit in limits.items():
        whole, growth = [], []
        for repeat in range(5):
            marks = one_long_run(driver, repeat)
            first, last = marks[1200] - marks[200], marks[5000] - marks[4000]
            whole.append((marks[5000] - marks[0]) / 5000 * 1e3)
            growth.append(last / first)
        ms, ratio = statistics.median(whole), statistics.median(growth)
        yield (
            f"CPU a trial outside the evaluator, 5,000 trials, {driver}",
            f"at most {limit} ms",
            f"{ms:.3f} ms",
            ms <= limit,
        )
        yield (
            f"its last 1,000 / first 1,000 after 200, {driver}",
            "at most 1.2",
            f"{ratio:.2f}",
            ratio <= 1.2,
        )


def one_long_run(driver: str, seed: int) -> dict[int, float]:
    built = build(
        read_config(f"gemm_h200_{driver}", ["budget.trials=5000", "batch=8", f"seed={seed}"])
    )
    meter = Metered(built.target)
    object.__setattr__(built.plan, "evaluator", meter)
    marks: dict[int, float] = {}

    def observe(progress: Progress) -> None:
        marks[progress.trials] = time.process_time() - meter.cpu_s

    with tempfile.TemporaryDirectory() as folder, SqliteStore(Path(folder) / "run.sqlite") as store:
        marks[0] = time.process_time()
        Campaign(built.plan, store, observe=observe).run()
    return marks


def some_trials(count: int) -> list[Trial]:
    built = build(read_config("gemm_model_random", [f"budget.trials={count}"]))
    store = MemoryStore()
    Campaign(built.plan, store, until=lambda trial: trial.number == count - 1).run()
    return store.trials()[:count]


def store() -> Iterator[Row]:
    trials = some_trials(2000)
    rates, ratios = [], []
    for _ in range(7):
        with (
            tempfile.TemporaryDirectory() as folder,
            SqliteStore(Path(folder) / "a.sqlite") as kept,
        ):
            began = time.perf_counter()
            for i in range(0, len(trials), 8):
                kept.record(trials[i : i + 8], sitting=Sitting(1.0, 0.0))
            rates.append(len(trials) / (time.perf_counter() - began))
        ratios.append(bare_loop(trials[:300]) / paid_loop(trials[:300]))
    rate, ratio = statistics.median(rates), statistics.median(ratios)
    yield (
        "store writes in batches of 8",
        "at least 5,000 trials/s",
        f"{rate:,.0f} trials/s",
        rate >= 5000,
    )
    yield "one by one with FULL / bare SQLite loop", "at least 0.5", f"{ratio:.2f}", ratio >= 0.5


def paid_loop(trials: Sequence[Trial]) -> float:
    """Seconds to record trials one by one, each with an event that cost money, so each is
    synced.
    """
    with tempfile.TemporaryDirectory() as folder, SqliteStore(Path(folder) / "a.sqlite") as kept:
        began = time.perf_counter()
        for trial in trials:
            kept.record([trial], events=[Event("model_call", trial.number, 0, "{}", 10, 0.001)])
        return time.perf_counter() - began


def bare_loop(trials: Sequence[Trial]) -> float:
    """Seconds to write the same texts with nothing but sqlite3, one synced transaction a trial."""
    texts = [(t.number, dumps(t.candidate), dumps(t.verdicts[0][1])) for t in trials]
    with tempfile.TemporaryDirectory() as folder:
        db = sqlite3.connect(Path(folder) / "b.sqlite", isolation_level=None)
        db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;")
        for table in "tve":
            db.execute(f"CREATE TABLE {table} (n INTEGER PRIMARY KEY, text TEXT)")
        began = time.perf_counter()
        for number, candidate, verdict in texts:
            db.execute("BEGIN")
            db.execute("INSERT INTO t VALUES (?,?)", (number, candidate))
            db.execute("INSERT INTO v VALUES (?,?)", (number, verdict))
            db.execute("INSERT INTO e VALUES (?,?)", (number, "{}"))
            db.execute("COMMIT")
        seconds = time.perf_counter() - began
        db.close()
        return seconds


def crash(config: str, folder: Path, mode: str, at: int, overrides: Sequence[str]) -> int:
    command = [
        sys.executable,
        "-P",
        str(CRASH_CHILD),
        config,
        str(folder),
        mode,
        str(at),
        *overrides,
    ]
    return subprocess.run(command, check=False).returncode


def kill() -> Iterator[Row]:
    """100 campaigns killed once each, resumed with other numbers of workers, against unbroken
    ones.
    """
    rng = random.Random(20261129)
    finalists, trials = 6, 120
    places = {"judge": 35, "commit": 30, "after": 15, "confirm": 10, "confirming": 10}
    jobs = [
        (mode, rng.randrange(finalists) if "confirm" in mode else rng.randrange(1, trials))
        for mode, count in places.items()
        for _ in range(count)
    ]
    overrides = [f"budget.trials={trials}", f"judge.confirm.finalists={finalists}"]
    overrides += ["batch=5", "seed=3"]
    equal = landed = 0
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        references = {}
        for driver in DRIVERS:
            crash(f"gemm_model_{driver}", base / driver, "never", 0, overrides)
            references[driver] = tables(base / driver)
        for number, (mode, at) in enumerate(jobs):
            driver, out = DRIVERS[number % 3], base / f"run{number}"
            code = crash(f"gemm_model_{driver}", out, mode, at, overrides)
            landed += code == -signal.SIGKILL and not finished(out)
            run(f"gemm_model_{driver}", out, overrides=overrides, workers=1 + number % 3)
            equal += tables(out) == references[driver]
            shutil.rmtree(out)
    got = f"{equal} bit-equal; {landed} landed before the end"
    got += f", {places['commit'] + places['confirm']} between a write and its commit"
    got += f", {places['confirm'] + places['confirming']} during confirmation"
    yield "kill -9 at 100 places", "100 bit-equal ends", got, equal == landed == 100


def finished(folder: Path) -> bool:
    return any(row[1] == "finished" for row in tables(folder)[2])


def env() -> Iterator[Row]:
    count, steps, rates = 1024, 300, []
    envs = gymnasium.make_vec(
        kernelwright.env.gym.KNOBS_ID, num_envs=count, vectorization_mode="vector_entry_point"
    )
    rng = np.random.default_rng(0)
    _, info = envs.reset(seed=0)
    for _ in range(6):
        began = time.process_time()
        for _ in range(steps):
            mask = info["action_mask"]
            _, _, _, _, info = envs.step((rng.random(mask.shape) * mask).argmax(axis=1))
        rates.append(count * steps / (time.process_time() - began))
    rate = statistics.median(rates[1:])
    yield (
        "Knobs-v0 on gpu-model, 1,024 environments, masked random policy included",
        "at least 100,000 steps/s",
        f"{rate:,.0f} steps/s",
        rate >= 1e5,
    )


def package() -> Iterator[Row]:
    device, times = load_device("h100-lecture"), []
    columns = build(read_config("gemm_model_random")).space.columns
    for _ in range(50):
        began = time.perf_counter()
        estimate_gemm(device, 4096, 4096, 4096, columns)
        times.append((time.perf_counter() - began) * 1e3)
    ms = statistics.median(times)
    yield "6,000 configurations of a shape estimated", "at most 5 ms", f"{ms:.2f} ms", ms <= 5
    helps = [help_cpu() for _ in range(5)]
    yield (
        "kernelwright --help, CPU",
        "at most 0.3 s",
        f"{statistics.median(helps):.2f} s",
        statistics.median(helps) <= 0.3,
    )
    mb = install_mb()
    yield "core dependencies beyond NumPy", "at most 90 MB", f"{mb:.0f} MB", mb <= 90


def help_cpu() -> float:
    before = os.times()
    subprocess.run(
        [sys.executable, "-P", "-m", "kernelwright", "--help"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def install_mb() -> float:
    """Megabytes of every distribution that kernelwright requires, NumPy and its own left out.

    As installed, byte code included.
    """
    waiting, seen, total = ["kernelwright"], set(), 0
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in seen or name == "numpy":
            continue
        seen.add(name)
        found = distribution(name)
        for text in found.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
        if name != "kernelwright":
            paths = [Path(str(found.locate_file(file))) for file in found.files or ()]
            total += sum(path.stat().st_size for path in paths if path.is_file())
    return total / 1e6


GROUPS: dict[str, Callable[[], Iterator[Row]]] = {
    "figures": figures,
    "search": search,
    "recorded": recorded,
    "compare": compare,
    "cpu": cpu,
    "store": store,
    "kill": kill,
    "env": env,
    "package": package,
}


if __name__ == "__main__":
    print_groups(GROUPS, __doc__)
