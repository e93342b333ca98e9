"""Writing schedules: register tiles by rule for who is skilled, a random directive for who is
not.
"""

from __future__ import annotations

import random
import re
from functools import lru_cache
from itertools import product

from kernelwright.agents.dialects.fences import blocks
from kernelwright.agents.programmer.background import Background, Machine
from kernelwright.agents.programmer.directives import applied, directives, has_steps, listed
from kernelwright.agents.programmer.nests import Plan, read_nests, read_plan, write
from kernelwright.agents.programmer.reading import Sheet

_LANES = re.compile(r"vectors of ([0-9, ]+) lanes")
_THREADS = re.compile(r"The machine has (\d+) thread")
# A directive with its arguments that the prompt says one may try.
_OFFERED = re.compile(r"^- `((\w+)\('[^`]*\))`$", re.MULTILINE)
# A schedule of no directive, in a block that is not empty.
EMPTY = "# no directive: the loops as they are written"
FACTORS = (2, 4, 8, 16, 32)
# How often a directive that the prompt offers is tried.
ON_STATEMENT = 0.4
# What a failure counts for, in log2 of speed, against what was promised.
DREAD = -2.0
# What a tile of half the size is worth where registers spill, one of twice the size where data or
# chains are waited for, and vectors where there are none.
SPILL, REUSE, WIDE = 0.4, 0.2, 0.5
_DATA = ("l2", "l3", "dram", "loads", "stores", "access")


def propose(sheet: Sheet, rng: random.Random, skill: float) -> str:
    """Directives, one a line."""
    repeated = sheet.wrong is not None and sheet.wrong[0] == "duplicate"
    refused = sheet.wrong is not None and sheet.wrong[0] == "illegal"
    if refused and rng.random() < 0.3 + 0.7 * skill:
        mended = _mend(sheet)
        if mended is not None and listed(mended) not in sheet.seen:
            return mended
    if read_nests(sheet.rules) and rng.random() < skill:
        return _planned(sheet, rng, blind=repeated)
    return random_step(sheet, rng)


def _planned(sheet: Sheet, rng: random.Random, *, blind: bool) -> str:
    """The most promising plan that is not listed, or what won elsewhere as it is. A listed plan
    lends those that resemble it what it gained. ``blind`` takes any: what promised most turned out
    to be known, and not all is listed.
    """
    plans = _plans(sheet.rules)
    machine, seen = sheet.around.machine or Machine(), sheet.seen
    learned = _learned(sheet, plans, machine)
    parent = read_plan(sheet.parent)

    def hope(plan: Plan) -> float:
        if blind:
            return rng.random()
        weights = [(trust * 0.4 ** plan.apart(other), gain) for other, gain, trust in learned]
        total = sum(w for w, _ in weights)
        lent = sum(w * s for w, s in weights) / (total + 0.3)
        told = advised(plan, parent, sheet.around)
        return plan.promise(machine) + lent + told + rng.gauss(0, 0.15)

    fresh = [plan for plan, text in plans.items() if text and listed(text) not in seen]
    fresh = _as_planned(sheet.plan, fresh) or fresh
    won = {
        winner.text: winner.height * winner.trust + rng.gauss(0, 0.15)
        for winner in sheet.around.winners
        if not blind and listed(winner.text) not in seen
    }
    offered = won | {plans[plan]: hope(plan) for plan in fresh}
    return max(offered, key=offered.__getitem__) if offered else random_step(sheet, rng)


def _learned(
    sheet: Sheet, plans: dict[Plan, str], machine: Machine
) -> list[tuple[Plan, float, float]]:
    """Plans of which something is known, each with what it gained beyond its promise and how much
    that is believed: those that are listed, and those of other good programs and of winners.
    """
    own = {r.text: r.height for r in sheet.results}
    own |= {listed(r.text): r.height for r in sheet.around.others}
    seen = sheet.seen.difference(sheet.pending)
    tried = ((plan, own.get(listed(text))) for plan, text in plans.items() if listed(text) in seen)
    out = [(p, DREAD if h is None else h - p.promise(machine), 1.0) for p, h in tried]
    for winner in sheet.around.winners:
        plan = read_plan(winner.text)
        if plan is not None:
            # It was the best there, so none of those that are alike did better.
            out.append((plan, winner.height - plan.promise(machine), winner.trust))
    return out


def advised(plan: Plan, parent: Plan | None, around: Background) -> float:
    """What the profile of the parent lets expect of another plan, in log2 of speed; and what pages
    say.
    """
    told = 0.0
    larger = plan.held > (parent.held if parent else 1)
    smaller = plan.held < (parent.held if parent else 1)
    if around.fact("spills"):
        told += SPILL * (smaller - larger)
    elif around.bound in (*_DATA, "chain"):
        told += REUSE * (larger - smaller)
    share = around.fact("vector_share")
    if around.fact("vector_bits") == 0 or (share is not None and share < 0.5):
        told += WIDE * (plan.lanes > (parent.lanes if parent else 1))
    return told + REUSE * bool(around.advice and plan in _as_planned(around.advice, [plan]))


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
    lines, plan = text.splitlines(), read_plan(text)
    steps = []
    if plan:
        tile = f"unroll {plan.rows} rows by {plan.vectors} vectors"
        steps.append(f"tile: {tile} and vectorize {plan.lanes} lanes")
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


def random_step(sheet: Sheet, rng: random.Random) -> str:
    """The parent with one directive more, or one less."""
    nests, parent = read_nests(sheet.rules), directives(sheet.parent)
    if parent and rng.random() < 0.3:
        return "".join(f"{line}\n" for line in parent[:-1])
    offered = _OFFERED.findall(sheet.rules)
    if offered and rng.random() < ON_STATEMENT:
        # They come before all others.
        ops = {op for _, op in offered}
        first = sum(line.partition("(")[0] in ops for line in parent)
        lines = [*parent[:first], rng.choice(offered)[0], *parent[first:]]
        return "".join(f"{line}\n" for line in lines)
    # Nests may have loops of one name.
    names = list(dict.fromkeys(name for nest in nests for name in nest.names))
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
    said = found[-1].text
    if has_steps(said):
        said = "\n".join(applied(directives(sheet.parent), said.splitlines()))
    lines = directives(said)
    op, _, reason = sheet.wrong[1].partition(": ")
    named = set(re.findall(r"\w+", reason))

    def blame(place: int) -> tuple[bool, int, int]:
        words = set(re.findall(r"\w+", lines[place]))
        return lines[place].startswith(f"{op}("), len(words & named), place

    drop = max(range(len(lines)), key=blame, default=0)
    kept = [line for i, line in enumerate(lines) if i != drop]
    return "".join(f"{line}\n" for line in kept) if lines else None
