"""Recorded tuning spaces, replayed: what is in each, and how soon a search came near the best.

A space holds every recorded configuration, the failing ones too. The true time of one is the
median of its recorded samples; a failing one is infinitely slow. A search is charged for a
configuration the first time it proposes it, and its result is the list of its running minima:
``(n, ratio)``, after how many charged evaluations the best so far was ``ratio`` times the best of
the space.

The data lie beside the checkout, in ``../shared/data``; they are read in place.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
WIDTHS = (0.05, 0.1, 0.02, 0.01)
BUDGET = 256
UNREACHED = 2 * BUDGET  # what an unreached median counts as in a geometric mean

Config = tuple[int, ...]
Minima = Sequence[tuple[int, float]]

# As published with the recordings (recorded_spaces/README.md); for the H200 spaces, at most 256
# accumulators of fp32 a thread (bm x 128 of them in the attention of head dimension 128).
RESTRICTIONS: dict[str, tuple[str, ...]] = {
    "convolution": (
        "use_padding == 0 or block_size_x % 32 != 0",
        "block_size_x * block_size_y <= 1024",
        "use_padding == 0 or use_shmem != 0",
        "use_shmem == 0 or (block_size_x * tile_size_x + filter_width - 1)"
        " * (block_size_y * tile_size_y + filter_height - 1) < 12 * 1024",
    ),
    "dedispersion": (
        "32 <= block_size_x * block_size_y <= 1024",
        "tile_size_x > 1 or tile_stride_x == 0",
        "tile_size_y > 1 or tile_stride_y == 0",
    ),
    "gemm": (
        "KWG % KWI == 0",
        "MWG % (MDIMC * VWM) == 0",
        "NWG % (NDIMC * VWN) == 0",
        "MWG % (MDIMA * VWM) == 0",
        "NWG % (NDIMB * VWN) == 0",
        "KWG % ((MDIMC * NDIMC) / MDIMA) == 0",
        "KWG % ((MDIMC * NDIMC) / NDIMB) == 0",
    ),
    "pnpoly": (),
    "h200_gemm": ("bm * bn <= 8192 * warps",),
    "h200_attention": ("bm <= 64 * warps",),
}
# Name -> file below the data folder.
SPACES = {
    "h200_gemm-4096x4096x4096": "h200_gemm/gemm_4096x4096x4096.jsonl.gz",
    "h200_gemm-2048x14336x4096": "h200_gemm/gemm_2048x14336x4096.jsonl.gz",
    "h200_gemm-16x14336x4096": "h200_gemm/gemm_16x14336x4096.jsonl.gz",
    "h200_gemm-512x512x16384": "h200_gemm/gemm_512x512x16384.jsonl.gz",
    "convolution-W6600": "recorded_spaces/convolution-W6600.json.gz",
    "convolution-A4000": "recorded_spaces/convolution-A4000.json.gz",
    "dedispersion-W6600": "recorded_spaces/dedispersion-W6600.json.gz",
    "gemm-RTX_2080_Ti": "recorded_spaces/gemm-RTX_2080_Ti.json.gz",
    "pnpoly-RTX_3090": "recorded_spaces/pnpoly-RTX_3090.json.gz",
    "h200_attention-causal": "h200_attention/attention_32x4096x128_causal.jsonl.gz",
    "h200_attention-full": "h200_attention/attention_32x4096x128_full.jsonl.gz",
}
H200_KNOBS = ("bm", "bn", "bk", "warps", "stages", "group_m")


@dataclass(frozen=True, slots=True)
class Space:
    """Knobs with their values in order, the rules between them, and the true time of each
    configuration (infinite: fails). Parameters of one value are not knobs: they are written into
    the rules and left out.
    """

    name: str
    knobs: Mapping[str, tuple[int, ...]]
    restrictions: tuple[str, ...]
    times: Mapping[Config, float]
    best: float


def load(name: str, data: Path = DATA) -> Space:
    """The space of that name. ValueError when the rules and the records name other members."""
    path = data / SPACES[name]
    with gzip.open(path, "rt") as file:
        rows = from_cache(json.load(file)) if path.suffixes[-2] == ".json" else from_lines(file)
    values = {knob: tuple(sorted({row[knob] for row, _ in rows})) for knob in rows[0][0]}
    constants = {knob: str(only[0]) for knob, only in values.items() if len(only) == 1}
    knobs = {knob: several for knob, several in values.items() if len(several) > 1}
    written = [
        re.sub(r"[A-Za-z_]\w*", lambda word: constants.get(word[0], word[0]), rule)
        for rule in RESTRICTIONS[name.split("-")[0]]
    ]
    # A rule between constants is none: every record obeys it.
    restrictions = tuple(
        rule for rule in written if any(word in knobs for word in re.findall(r"\w+", rule))
    )
    times = {tuple(row[knob] for knob in knobs): time for row, time in rows}
    rules = [compile(rule, name, "eval") for rule in restrictions]
    named = (dict(zip(knobs, config, strict=True)) for config in product(*knobs.values()))
    members = {tuple(row.values()) for row in named if all(eval(rule, {}, row) for rule in rules)}
    if members != set(times):
        found = f"{len(times)} recorded, {len(members)} by the rules"
        raise ValueError(f"{path}: expected a record of every member and no other, found {found}")
    return Space(name, knobs, restrictions, times, min(times.values()))


def from_cache(cache: dict) -> list[tuple[dict[str, int], float]]:
    """Knobs and true time of every entry of a Kernel Tuner cache; one without samples failed."""
    keys = cache["tune_params_keys"]
    found = []
    for entry in cache["cache"].values():
        time = median(entry["times"]) if "times" in entry else math.inf
        found.append(({key: entry[key] for key in keys}, time))
    return found


def from_lines(file: Iterable[str]) -> list[tuple[dict[str, int], float]]:
    """The same of our own recordings. A failed row without ``group_m`` holds for all of them."""
    _, *rows = map(json.loads, file)
    groups = sorted({row["group_m"] for row in rows if "group_m" in row})
    found = []
    for row in rows:
        time = median(row["us"]) if "us" in row else math.inf
        shared = groups and "group_m" not in row
        whole = [row | {"group_m": group} for group in groups] if shared else [row]
        found += [({knob: one[knob] for knob in H200_KNOBS if knob in one}, time) for one in whole]
    return found


def minima(ratios: Iterable[float]) -> list[tuple[int, float]]:
    """Where the running minimum falls: 1-based positions with the new minimum. Failures before
    the first success leave no trace.
    """
    found: list[tuple[int, float]] = []
    best = math.inf
    for position, ratio in enumerate(ratios, 1):
        if ratio < best:
            best = ratio
            found.append((position, ratio))
    return found


def reached(steps: Minima, width: float) -> int | None:
    """Evaluations until the best was within ``width`` of the optimum, None if never in budget."""
    return next((n for n, ratio in steps if ratio <= 1 + width and n <= BUDGET), None)


def best_at(steps: Minima, evaluations: int) -> float | None:
    """Best over optimum after so many evaluations, None if nothing had run by then."""
    return min((ratio for n, ratio in steps if n <= evaluations), default=None)


def middle(counts: Iterable[int | None]) -> float:
    """Their median, where None is infinite."""
    return median(math.inf if count is None else count for count in counts)


def geometric_mean(medians: Iterable[float]) -> float:
    """Of medians of evaluations, an infinite one as ``UNREACHED``."""
    logs = [math.log(value if math.isfinite(value) else UNREACHED) for value in medians]
    return math.exp(sum(logs) / len(logs))


def random_search(ratios: Iterable[float], evaluations: int) -> dict:
    """Random search without replacement, exactly: median evaluations to within each width, the
    share of runs that get there in the budget, and the geometric mean of the best over optimum
    after so many evaluations.
    """
    ranked = sorted(ratios)
    size = len(ranked)
    medians, shares = {}, {}
    for width in WIDTHS:
        good = sum(ratio <= 1 + width for ratio in ranked)
        missed = [1.0]  # the probability that none of the first n is good
        for n in range(size - good):
            missed.append(missed[-1] * (size - good - n) / (size - n))
        missed.append(0.0)
        medians[str(width)] = next(n for n, left in enumerate(missed) if left <= 0.5)
        shares[str(width)] = round(1 - missed[min(BUDGET, len(missed) - 1)], 4)
    # The best is the i-th of the ranking when the ones before it are all missed.
    logs, before = 0.0, 1.0
    for rank, ratio in enumerate(ranked):
        if before < 1e-15 or math.isinf(ratio):
            break
        hit = before * evaluations / (size - rank)
        logs += hit * math.log(ratio)
        before -= hit
    return {"median": medians, "share": shares, "best_at": round(math.exp(logs), 4)}
