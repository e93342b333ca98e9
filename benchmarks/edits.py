"""Edits whose lines are misquoted: how many are applied rightly, how many refused, and how many in
the wrong place.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import random
import statistics
import time
from collections import Counter

import misquotes
import spellings

from kernelwright.agents.edit_blocks import Misfit
from kernelwright.agents.edits import apply_edits

EACH = 200


def tabulate(texts: list[str]) -> None:
    """What becomes of cases of every kind over some texts."""
    taken = []
    counts: dict[str, Counter[str]] = {}
    for case in misquotes.cases(texts, EACH, random.Random(0)):
        start = time.process_time_ns()
        found = apply_edits(case.text, (case.edit,))
        taken.append((time.process_time_ns() - start) / 1e6)
        if isinstance(found, Misfit):
            outcome = f"refused: {found.kind}"
        else:
            outcome = "right" if misquotes.is_wanted(case, found) else "wrong"
        counts.setdefault(case.kind, Counter())[outcome] += 1
        if outcome == "wrong" and "-v" in sys.argv:
            print("\n".join(("SEARCH", *case.edit.search, "REPLACE", *case.edit.replace)))
            print(f"FOUND\n{found}")
    for kind, outcomes in counts.items():
        print(f"{kind}: {', '.join(f'{what} {n}' for what, n in outcomes.most_common())}")
    able = [outcomes for kind, outcomes in counts.items() if kind not in misquotes.REFUSALS]
    right, total = sum(o["right"] for o in able), sum(o.total() for o in able)
    wrong = sum(o["wrong"] for o in counts.values())
    print(f"{total} to apply: {right} right ({right / total:.1%}); of all, {wrong} wrong")
    print(f"time an edit takes: median {statistics.median(taken):.2f} ms, most {max(taken):.1f} ms")


def main() -> None:
    print("the honest corpus")
    tabulate([text for _, text in spellings.texts()])
    print("\nunrolled code, whose lines are all alike")
    rng = random.Random(1)
    tabulate([misquotes.repetitive(rng) for _ in range(60)])


if __name__ == "__main__":
    main()
