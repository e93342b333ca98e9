"""Rows of the table of agents: duplicates are not judged again, other programs are not taken for
duplicates, and edits whose lines are misquoted go to the right place.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator

import merges
import misquotes
import spellings
from repeating import WORLDS, duplicates
from table import Row

from kernelwright.agents import AGENT_DRIVERS
from kernelwright.agents.edit_blocks import Misfit
from kernelwright.agents.edits import apply_edits

DIFFERENT_C, DIFFERENT_NESTS = 700, 300
SAME_C, SAME_NESTS, SHAPES = 400, 200, 400
EDITS_EACH = 200


def repeats() -> Iterator[Row]:
    for world in WORLDS:
        found = {agent: duplicates(agent, world) for agent in AGENT_DRIVERS}
        injected = sum(count for count, _ in found.values())
        let_in = sum(count for _, count in found.values())
        each = ", ".join(f"{agent} {count[1]} of {count[0]}" for agent, count in found.items())
        what = f"duplicates in {world} that are judged, all {len(found)} agents"
        met = min(count for count, _ in found.values()) > 0 and let_in <= 0.01 * injected
        yield what, "<= 1%, injected into each", f"{let_in} of {injected}: {each}", met


def forms() -> Iterator[Row]:
    pairs, merged = merges.different_c(DIFFERENT_C, random.Random(0))
    nests, merged_nests = merges.nests(spellings.other_schedules, DIFFERENT_NESTS, same=False)
    said = f"{merged} of {pairs} of C, {merged_nests} of {nests} loop nests"
    what = f"false merges in {pairs + nests:,} pairs of other programs"
    yield what, "0", said, merged + merged_nests == 0
    count, merged, wrong = merges.scoped_c(SHAPES, random.Random(0))
    said = f"{wrong} of {merged} merged of {count:,}"
    yield "false merges in C of nested scopes over four names", "0", said, wrong == 0
    pairs, apart, texts = merges.same_c(SAME_C, random.Random(0))
    said = f"{apart} of {pairs}, of {len(texts)} kernels"
    yield "C in two spellings, not merged", "printed", said, None
    pairs, apart = merges.nests(spellings.same_schedules, SAME_NESTS, same=True)
    yield "schedules in two spellings, not merged", "printed", f"{apart} of {pairs}", None
    for what, taken in (("C", merges.c_times()), ("a schedule", merges.schedule_times())):
        said = f"{statistics.median(taken):.2f} ms, most {max(taken):.2f} ms"
        yield f"CPU time of a form of {what}, median", "printed", said, None


def edits() -> Iterator[Row]:
    rng = random.Random(1)
    unrolled = [misquotes.repetitive(rng) for _ in range(60)]
    honest = [text for _, text in spellings.texts()]
    for name, texts in (("the honest corpus", honest), ("unrolled code, lines alike", unrolled)):
        yield from _edits(name, texts)


def _edits(name: str, texts: list[str]) -> Iterator[Row]:
    """What becomes of cases of every kind over some texts."""
    taken = []
    apply, refuse = Counter[str](), Counter[str]()
    for case in misquotes.cases(texts, EDITS_EACH, random.Random(0)):
        start = time.process_time_ns()
        found = apply_edits(case.text, (case.edit,))
        taken.append((time.process_time_ns() - start) / 1e6)
        if isinstance(found, Misfit):
            outcome = found.kind
        else:
            outcome = "right" if misquotes.is_wanted(case, found) else "wrong"
        (refuse if case.kind in misquotes.REFUSALS else apply)[outcome] += 1
    right, wrong = apply["right"], apply["wrong"] + refuse["wrong"]
    others = ", ".join(f"{kind} {n}" for kind, n in apply.items() if kind != "right")
    said = f"{right / apply.total():.1%} of {apply.total():,}{f' ({others})' if others else ''}"
    what = f"near-miss edits applied rightly, {name}"
    yield what, ">= 95%", said, right >= 0.95 * apply.total()
    yield f"edits in the wrong place, {name}", "0", f"{wrong} of {len(taken):,}", wrong == 0
    refused = refuse.total() - refuse["wrong"]
    said = f"{refused} of {refuse.total()}"
    yield f"edits that must be refused, {name}", "all", said, refused == refuse.total()
    said = f"{statistics.median(taken):.2f} ms, most {max(taken):.1f} ms"
    yield f"CPU time of an edit, {name}, median", "printed", said, None


GROUPS: dict[str, Callable[[], Iterator[Row]]] = {
    "duplicates": repeats,
    "forms": forms,
    "edits": edits,
}
