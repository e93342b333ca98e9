r"""Other tuners on the recorded spaces: how many evaluations Kernel Tuner's strategies and Optuna's
TPE need. Run once; ``search_peers.json`` keeps the figures.

    python benchmarks/search_peers.py [--only WORD]… [--seeds N] [--out FILE]    # run, resumable
    python benchmarks/search_peers.py --store [--out FILE]     # the runs -> search_peers.json
    python benchmarks/search_peers.py --table                  # print search_peers.json

Needs an environment of its own, and none of kernelwright; one BLAS thread:

    python3 -m venv peers
    peers/bin/pip install kernel-tuner==1.5.0 optuna==5.0.0
    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
        PYTHONHASHSEED=0 peers/bin/python benchmarks/search_peers.py --only h200_gemm --only tpe

Every run has its own seed and a fresh search-space object (Kernel Tuner's keeps state), default
options, and a budget of 256 charged evaluations. Kernel Tuner runs in its own simulation runner;
it is charged for each new member of the space, so not for repeats and not for what breaks a rule.
TPE samples categorical parameters and is told infinity for what fails or is no member. One run of
it is counted twice: ``tpe`` is charged like Kernel Tuner, ``tpe_charged`` for every ask.
CPU time is that of the whole search over its charged evaluations, without making the space.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import argparse
import json
import math
import os
import platform
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from importlib.metadata import version
from statistics import median

from peers import AT, kernel_tuner, records, tpe
from recordings import (
    BUDGET,
    SPACES,
    WIDTHS,
    best_at,
    geometric_mean,
    load,
    middle,
    random_search,
    reached,
)

STORED = Path(__file__).resolve().parent / "search_peers.json"
RUNS = STORED.parents[1] / "build" / "search_peers.jsonl"
# The most promising first.
PEERS = (
    "tpe",
    "adaptive_tabu_greywolf",
    "genetic_algorithm",
    "hybrid_vndx",
    "pso",
    "diff_evo",
    "random_sample",
    "simulated_annealing",
    "dual_annealing",
    "bayes_opt",
)
Cell = tuple[str, float | None]  # what is shown, and what the mean takes
PACKAGES = ("kernel-tuner", "optuna", "numpy", "scipy", "scikit-learn")


def run(words: Sequence[str], seeds: int, out: Path) -> None:
    """Add to ``out`` every run that it lacks: those whose space and whose peer are named by the
    words, where each word is the beginning of one; a kind without a word is taken whole.
    """
    spaces = chosen(words, SPACES)
    peers = chosen(words, PEERS)
    unknown = [word for word in words if not any(n.startswith(word) for n in (*SPACES, *PEERS))]
    if unknown:
        raise SystemExit(f"--only: expected the beginning of a space or peer, found {unknown}")
    done = {(line["space"], line["peer"], line["seed"]) for line in read(out)}
    for name in spaces:
        wanted = [(p, s) for p in peers for s in range(seeds) if (name, p, s) not in done]
        if not wanted:
            continue
        space = load(name)
        cache = records(space)
        for peer, seed in wanted:
            if peer == "tpe":
                found = tpe(space, seed)
            else:
                found = kernel_tuner(space, cache, peer, seed)
            line = {"space": name, "peer": peer, "seed": seed} | found
            with out.open("a") as file:
                file.write(json.dumps(line) + "\n")
        print(name, *peers, f"{len(wanted)} runs", flush=True)


def chosen(words: Iterable[str], names: Iterable[str]) -> list[str]:
    among = [name for name in names if any(name.startswith(word) for word in words)]
    return among or list(names)


def read(out: Path) -> list[dict]:
    """The runs made so far, after a first line that says by which versions. A last line that was
    cut off is taken away.
    """
    made_by = {
        "versions": {"python": platform.python_version()} | {p: version(p) for p in PACKAGES}
    }
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(made_by) + "\n")
    text = out.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        out.write_text(whole)
    first, *lines = map(json.loads, whole.splitlines())
    if first != made_by:
        raise SystemExit(f"{out}: expected runs by {made_by}, found {first}; name another --out")
    return lines


def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {
        package: version(package) for package in PACKAGES
    }


def store(out: Path) -> None:
    """Condense the runs into the stored table."""
    lines = read(out)
    groups: dict[str, dict[str, list[dict]]] = {name: {} for name in SPACES}
    for line in lines:
        peers = groups[line["space"]]
        peers.setdefault(line["peer"], []).append(line)
        if line["peer"] == "tpe":
            spent = min(line["asks"], BUDGET)
            cpu_s = line["cpu_s"] * spent / line["asks"]
            asked = {"minima": line["minima_asked"], "used": spent, "cpu_s": cpu_s}
            peers.setdefault("tpe_charged", []).append(line | asked)
    spaces = {}
    for name, peers in groups.items():
        space = load(name)
        ratios = [time / space.best for time in space.times.values()]
        spaces[name] = {
            "members": len(ratios),
            "failing": sum(map(math.isinf, ratios)),
            "within": {str(width): sum(r <= 1 + width for r in ratios) for width in WIDTHS},
            "random": random_search(ratios, AT),
            "peers": {peer: condensed(peers[peer]) for peer in sorted(peers)},
        }
    head = {
        "date": str(date.today()),
        "machine": f"{os.cpu_count()}-core VM, {platform.machine()}, shared, one thread",
        "versions": versions(),
        "budget": BUDGET,
    }
    # A line for each space and peer, so that a change of one shows as one.
    text = json.dumps(head | {"spaces": spaces}, separators=(",", ":"))
    for peer in (*PEERS, "tpe_charged"):
        text = text.replace(f'"{peer}":{{', f'\n"{peer}":{{')
    STORED.write_text(text.replace('"spaces":', '\n"spaces":') + "\n")
    print(f"{STORED.name}: {len(lines)} runs, {STORED.stat().st_size} bytes")


def condensed(lines: Sequence[dict]) -> dict:
    """What is kept of the runs of one peer on one space: sorted lists, None for never."""
    cpu = sorted(1e6 * line["cpu_s"] / max(line["used"], 1) for line in lines)
    best = [best_at(line["minima"], AT) for line in lines]
    spent = Counter(line["used"] for line in lines)
    found = {
        "seeds": len(lines),
        "evaluations": {
            str(width): ordered(reached(line["minima"], width) for line in lines)
            for width in WIDTHS
        },
        f"best_at_{AT}": ordered(None if b is None else float(f"{b:.4g}") for b in best),
        "used": {str(n): runs for n, runs in sorted(spent.items())},
        "asks": median(line["asks"] for line in lines),
        "cpu_us": [round(cpu[len(cpu) * q // 4]) for q in (1, 2, 3)],
    }
    overruns = sum("overrun" in line for line in lines)
    return found | ({"overruns": overruns} if overruns else {})


def ordered(values: Iterable[float | None]) -> list[float | None]:
    return sorted(values, key=lambda value: math.inf if value is None else value)


def table() -> None:
    """Print the stored figures as Markdown, a row a peer and a column a space."""
    stored = json.loads(STORED.read_text())
    spaces = stored["spaces"]
    print(f"{stored['date']}, {stored['machine']}, {stored['versions']}")
    for width in WIDTHS:
        print(f"\nMedian evaluations to within {width:.0%} (share of runs that reached it)\n")
        random = {name: exactly(entry["random"], str(width)) for name, entry in spaces.items()}
        rows(spaces, partial(soon, width=str(width)), random)
    print(f"\nBest over optimum after {AT} evaluations, geometric mean\n")
    random = {name: entry["random"]["best_at"] for name, entry in spaces.items()}
    rows(spaces, best, {name: (f"{ratio:.3f}", ratio) for name, ratio in random.items()})
    print("\nCPU us an evaluation, median\n")
    rows(spaces, lambda row: (str(row["cpu_us"][1]), row["cpu_us"][1]), {})
    print(f"\nEvaluations used of {BUDGET}, median\n")
    rows(spaces, lambda row: (f"{used(row):g}", used(row)), {})


def soon(row: Mapping, width: str) -> Cell:
    counts = row["evaluations"][width]
    share = sum(count is not None for count in counts) / len(counts)
    value = middle(counts)
    return f"{value:g} ({share:.0%})" if math.isfinite(value) else f">{BUDGET} ({share:.0%})", value


def exactly(random: Mapping, width: str) -> Cell:
    """As above, but known beyond the budget too; in the mean it counts as the others do."""
    value = random["median"][width]
    shown = f"{value} ({random['share'][width]:.0%})"
    return shown, value if value <= BUDGET else math.inf


def best(row: Mapping) -> Cell:
    ratios = [math.inf if ratio is None else ratio for ratio in row[f"best_at_{AT}"]]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{mean:.3f}", mean


def used(row: Mapping) -> float:
    return median(Counter({int(n): runs for n, runs in row["used"].items()}).elements())


def rows(
    spaces: Mapping[str, dict], cell: Callable[[Mapping], Cell], random: Mapping[str, Cell]
) -> None:
    print("| peer | seeds |", " | ".join(name.removeprefix("h200_") for name in spaces), end="")
    print(" | geometric mean |\n" + "|---" * (len(spaces) + 3) + "|")
    for peer in (*PEERS[:1], "tpe_charged", *PEERS[1:]):
        found = [entry["peers"].get(peer) for entry in spaces.values()]
        seeds = [row["seeds"] for row in found if row]
        if seeds:
            shown = "-".join(str(n) for n in sorted({min(seeds), max(seeds)}))
            line(peer, shown, [cell(row) if row else ("", None) for row in found])
    if random:
        line("random, exact", "", list(random.values()))


def line(peer: str, seeds: str, cells: Sequence[Cell]) -> None:
    """One row, with the geometric mean where there is a figure for every space."""
    values = [value for _, value in cells if value is not None]
    mean = f"{geometric_mean(values):.4g}" if len(values) == len(cells) else ""
    print(f"| {peer} | {seeds} |", " | ".join(shown for shown, _ in cells), f"| {mean} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="WORD")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RUNS)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        table()
    elif arguments.store:
        store(arguments.out)
    else:
        # Kernel Tuner warns of each proposal that its runner refuses.
        warnings.simplefilter("ignore")
        run(arguments.only, arguments.seeds, arguments.out)


if __name__ == "__main__":
    main()
