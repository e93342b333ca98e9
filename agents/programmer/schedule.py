"""Writing schedules: register tiles by rule for who is skilled, a random directive for who is
not.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from kernelwright.agents.dialects.fences import blocks
from kernelwright.agents.programmer.reading import Sheet

_LOOP = re.compile(r"^( *)for (\w+) in (\d+):")
_STORE = re.compile(r"^( *)(\w+)\[(.*?)\] (\+=|\*=|min=|max=|=) (.*)$")
_LANES = re.compile(r"vectors of ([0-9, ]+) lanes")
_THREADS = re.compile(r"The machine has (\d+) thread")
# A schedule of no directive, in a block that is not empty.
EMPTY = "# no directive: the loops as they are written"
# A split by the names that `write` gives: what is left inside is a row, a width or lanes.
_CUT = re.compile(r"split\('\w+', (\d+), '\w+', '\w+_(\w)'\)")
FACTORS = (2, 4, 8, 16, 32)
# Accumulators that fit the registers of a machine with vectors; more spill.
REGISTERS = 24


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops around one store, outermost first, with what the store and its value are indexed by."""

    loops: tuple[tuple[str, int], ...]
    indices: tuple[str, ...]
    reduces: bool
    value: str

    @property
    def names(self) -> tuple[str, ...]:
        """The loops' names."""
        return tuple(name for name, _ in self.loops)

    @property
    def reduction(self) -> tuple[str, ...]:
        """Loops that the stored element does not depend on."""
        used = set(re.findall(r"\w+", " ".join(self.indices)))
        return tuple(name for name in self.names if name not in used)


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions for a whole procedure: rows and vectors of the register tile, lanes, the order of
    blocks, threads.
    """

    rows: int
    vectors: int
    lanes: int
    across: bool
    threads: bool

    @property
    def promise(self) -> float:
        """How good it looks before anything is known, in log2 of speed."""
        held = self.rows * self.vectors
        crowded = max(0.0, held / REGISTERS - 1.0)
        wide = {4: 0.0, 8: 0.9, 16: 1.4, 32: 1.0}.get(self.lanes, -0.5)
        return wide + 0.5 * math.sqrt(min(held, 16)) - 2.0 * crowded + 0.5 * self.threads


def propose(sheet: Sheet, rng: random.Random, skill: float) -> str:
    """Directives, one a line."""
    repeated = sheet.wrong is not None and sheet.wrong[0] == "duplicate"
    refused = sheet.wrong is not None and sheet.wrong[0] == "illegal"
    if refused and rng.random() < 0.3 + 0.7 * skill:
        mended = _mend(sheet)
        if mended is not None and _line(mended) not in sheet.seen:
            return mended
    nests = read_nests(sheet.rules)
    if nests and rng.random() < skill:
        return _planned(sheet, nests, rng, blind=repeated)
    return _random_step(sheet, nests, rng)


def read_nests(rules: str) -> list[Nest]:
    """The nests of the printed procedure, in order."""
    shown = blocks(rules)
    stack: list[tuple[int, str, int]] = []
    out = []
    for line in (shown[0].text if shown else "").splitlines():
        depth = len(line) - len(line.lstrip())
        stack = [entry for entry in stack if entry[0] < depth]
        loop, store = _LOOP.match(line), _STORE.match(line)
        if loop:
            stack.append((depth, loop[2], int(loop[3])))
        elif store:
            indices = tuple(part.strip() for part in store[3].split(","))
            loops = tuple((name, extent) for _, name, extent in stack)
            out.append(Nest(loops, indices, store[4] != "=", store[5]))
    return out


def _planned(sheet: Sheet, nests: list[Nest], rng: random.Random, *, blind: bool) -> str:
    """The most promising plan that is not listed. A listed one that resembles it lends it what it
    gained. ``blind`` takes any: what promised most turned out to be known, and not all is listed.
    """
    plans = _plans(sheet.rules)
    heights = {r.text: r.height for r in sheet.results}
    seen = sheet.seen
    learned = [
        (plan, -2.0 if (h := heights.get(_line(text))) is None else h - plan.promise)
        for plan, text in plans.items()
        if _line(text) in seen and _line(text) not in sheet.pending
    ]

    def hope(plan: Plan) -> float:
        if blind:
            return rng.random()
        weights = [(0.4 ** _distance(plan, other), surprise) for other, surprise in learned]
        total = sum(w for w, _ in weights)
        lent = sum(w * s for w, s in weights) / (total + 0.3)
        return plan.promise + lent + rng.gauss(0, 0.15)

    fresh = [plan for plan, text in plans.items() if text and _line(text) not in seen]
    fresh = _as_planned(sheet.plan, fresh) or fresh
    if not fresh:
        return _random_step(sheet, nests, rng)
    return plans[max(fresh, key=hope)]


def _as_planned(told: str, plans: list[Plan]) -> list[Plan]:
    """Of some plans those that words speak of; all where they say nothing of schedules."""
    said = {
        "rows": re.search(r"(\d+) rows?\b", told),
        "vectors": re.search(r"(\d+) vectors?\b", told),
        "lanes": re.search(r"(\d+) lanes?\b", told),
    }
    for name, found in said.items():
        if found:
            plans = [plan for plan in plans if getattr(plan, name) == int(found[1])]
    if re.search(r"\bparallel\b", told) and any(plan.threads for plan in plans):
        plans = [plan for plan in plans if plan.threads]
    return plans


def in_words(text: str) -> list[str]:
    """A schedule as steps: its register tile if it has one, then how its blocks are walked."""
    lines = text.splitlines()
    sizes = {m[2]: int(m[1]) for line in lines if (m := _CUT.match(line))}
    lanes = sizes.get("v") or sizes.get("w")
    steps = []
    if lanes:
        vectors = sizes["w"] // lanes if "v" in sizes else 1
        rows = sizes.get("r", 1)
        steps.append(f"tile: unroll {rows} rows by {vectors} vectors and vectorize {lanes} lanes")
    steps += ["reorder the blocks"] if any(line.startswith("reorder") for line in lines) else []
    steps += ["run the outer loop in parallel"] if "parallel(" in text else []
    return steps or [f"try {line}" for line in lines]


@lru_cache(maxsize=16)
def _plans(rules: str) -> dict[Plan, str]:
    """Every plan for what the prompt describes, written out."""
    nests = read_nests(rules)
    lanes, threads = _LANES.search(rules), _THREADS.search(rules)
    grid = product(
        (1, 2, 4, 6, 8),
        (1, 2, 3, 4),
        [int(x) for x in lanes[1].split(",")] if lanes else [8],
        (False, True),
        (False, True) if threads and int(threads[1]) > 1 else (False,),
    )
    return {plan: write(plan, nests) for plan in (Plan(*values) for values in grid)}


def _distance(a: Plan, b: Plan) -> int:
    pairs = ((a.rows, b.rows), (a.vectors, b.vectors), (a.lanes, b.lanes))
    return sum(x != y for x, y in (*pairs, (a.across, b.across), (a.threads, b.threads)))


def write(plan: Plan, nests: list[Nest]) -> str:
    """A plan as directives, nest by nest."""
    return "".join(_write_nest(plan, nest) for nest in nests)


def _write_nest(plan: Plan, nest: Nest) -> str:
    unit = nest.indices[-1]
    extents = dict(nest.loops)
    spatial = [name for name in nest.names if name not in nest.reduction]
    if unit not in extents or not spatial:
        return ""
    outer = next((n for n in spatial if n != unit), None)
    if _sums_along_memory(nest, unit):
        return _many_chains(plan, nest, unit)
    out, order = [], []
    if outer is not None and nest.reduction and plan.rows > 1 and extents[outer] >= plan.rows:
        out.append(f"split('{outer}', {plan.rows}, '{outer}_o', '{outer}_r')")
        order += [f"{outer}_o", f"{outer}_r"]
    width = plan.lanes * plan.vectors
    if extents[unit] < plan.lanes:
        return ""
    if width > extents[unit]:
        width = plan.lanes
    out.append(f"split('{unit}', {width}, '{unit}_o', '{unit}_w')")
    several = width > plan.lanes
    if several:
        out.append(f"split('{unit}_w', {plan.lanes}, '{unit}_u', '{unit}_v')")
    lanes = f"{unit}_v" if several else f"{unit}_w"
    if nest.reduction and len(nest.loops) == len(spatial) + len(nest.reduction):
        blocks_ = [f"{unit}_o"]
        if order:
            blocks_ = [f"{unit}_o", order[0]] if plan.across else [order[0], f"{unit}_o"]
        rest = [n for n in spatial if n not in (unit, outer if order else None)]
        inner = ([order[1]] if order else []) + ([f"{unit}_u"] if several else [])
        names = [*rest, *blocks_, *nest.reduction, *inner, lanes]
        out.append(f"reorder({', '.join(map(repr, names))})")
    if order:
        out.append(f"unroll('{order[1]}')")
    if several:
        out.append(f"unroll('{unit}_u')")
    out.append(f"vectorize('{lanes}')")
    if plan.threads:
        first = order[0] if order else (spatial[0] if spatial[0] != unit else f"{unit}_o")
        out.append(f"parallel('{first}')")
    return "".join(f"{line}\n" for line in out)


def _sums_along_memory(nest: Nest, unit: str) -> bool:
    """Whether what lies next to each other in memory is summed up: lanes along the stored elements
    would then gather.
    """
    last = [part.rpartition(",")[2] for part in re.findall(r"\[([^\[\]]*)\]", nest.value)]
    words = [set(re.findall(r"\w+", part)) for part in last]
    along = any(word & set(nest.reduction) for word in words)
    return along and not any(unit in word for word in words)


def _many_chains(plan: Plan, nest: Nest, unit: str) -> str:
    """Several sums side by side, where one would wait for itself."""
    extents = dict(nest.loops)
    rows = plan.rows * plan.vectors
    if rows < 2 or rows > 64 or extents[unit] < rows or not nest.reduction:
        return ""
    names = [f"{unit}_o", *nest.reduction, f"{unit}_r"]
    listed = ", ".join(map(repr, names))
    return (
        f"split('{unit}', {rows}, '{unit}_o', '{unit}_r')\nreorder({listed})\nunroll('{unit}_r')\n"
    )


def _random_step(sheet: Sheet, nests: list[Nest], rng: random.Random) -> str:
    """The parent with one directive more, or one less."""
    parent = [line for line in sheet.parent.splitlines() if line and not line.startswith("#")]
    if parent and rng.random() < 0.3:
        return "".join(f"{line}\n" for line in parent[:-1])
    names = [name for nest in nests for name in nest.names]
    for line in parent:
        cut = re.match(r"split\('(\w+)', \d+(?:, '(\w+)', '(\w+)')?\)", line)
        if cut and cut[1] in names:
            names.remove(cut[1])
            names += [cut[2] or f"{cut[1]}o", cut[3] or f"{cut[1]}i"]
    loop = rng.choice(names or ["i"])
    kinds = [f"split('{loop}', {rng.choice(FACTORS)})", f"vectorize('{loop}')"]
    kinds.append(f"unroll('{loop}')")
    if len(names) > 1:
        kinds.append(f"reorder('{loop}', '{rng.choice([n for n in names if n != loop])}')")
    return "".join(f"{line}\n" for line in [*parent, rng.choice(kinds)])


def _mend(sheet: Sheet) -> str | None:
    """The last answer without the directive that the reason names."""
    found = blocks(sheet.said)
    if not found or sheet.wrong is None:
        return None
    lines = [line for line in found[-1].text.splitlines() if line.strip()]
    op, _, reason = sheet.wrong[1].partition(": ")
    named = set(re.findall(r"\w+", reason))

    def blame(place: int) -> tuple[bool, int, int]:
        words = set(re.findall(r"\w+", lines[place]))
        return lines[place].startswith(f"{op}("), len(words & named), place

    drop = max(range(len(lines)), key=blame, default=0)
    kept = [line for i, line in enumerate(lines) if i != drop]
    return "".join(f"{line}\n" for line in kept) if lines else None


def _line(text: str) -> str:
    """A schedule as prompts list it."""
    return "; ".join(text.splitlines()) or "pass"
