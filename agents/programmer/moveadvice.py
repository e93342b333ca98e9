"""What is said around a search lets one expect of edits of C: rules of thumb on the profile of the
parent and the machine, and what other good programs have that the parent lacks. In log2 of speed.
"""

from __future__ import annotations

import re

from kernelwright.agents.programmer.background import Background
from kernelwright.agents.programmer.moves import Move

# What an edit is worth that helps where vectors lack; what it costs to hold more in registers that
# spill; what one is worth whose copies fill a vector; whose lines another good program has, for
# every doubling that it is ahead; and which a page names.
WIDE, SPILL, FILLED, BORROWED, READ = 0.5, 0.6, 0.2, 0.5, 0.3
MOST_AHEAD = 2.0
_VECTORS = ("simd", "simd reduction", "no dependence")
_COPIES = re.compile(r"(\d+) chains|(?:unroll by|jam) (\d+)")
_LOOP = re.compile(r"^loop at line (\d+): (.*)$", re.MULTILINE)
_MISSED = re.compile(r"^line (\d+): (?:not vectorized|missed)", re.MULTILINE)


def advised(move: Move, parent: str, height: float, around: Background) -> float:
    """How much more an edit promises by what is said around."""
    told = _of_profile(move, around) + _of_others(move, parent, height, around)
    copies = _copies(move)
    if around.machine is not None and copies:
        told += FILLED * (copies >= around.machine.lanes)
    return told + READ * bool(re.search(rf"\b{re.escape(move.name)}\b", around.advice))


def _copies(move: Move) -> int:
    found = _COPIES.fullmatch(move.name)
    return int(found[1] or found[2]) if found else 0


def _of_profile(move: Move, around: Background) -> float:
    told = 0.0
    if around.fact("spills") and _copies(move) >= 4:
        told -= SPILL
    if move.name not in _VECTORS:
        return told
    first, last = move.lines
    # What is known of this loop counts before what is known of the program.
    said = [text for line, text in _LOOP.findall(around.log) if first <= int(line) <= last]
    missed = any(first <= int(line) <= last for line in _MISSED.findall(around.log))
    if said:
        return told + (WIDE if missed or not any("on vectors" in text for text in said) else -WIDE)
    share = around.fact("vector_share")
    lacking = around.fact("vector_bits") == 0 or (share is not None and share < 0.5)
    return told + WIDE * (missed or lacking)


def _of_others(move: Move, parent: str, height: float, around: Background) -> float:
    """What better programs have of the lines that the edit brings in."""
    own = {line.strip() for line in parent.splitlines()}
    brought = {line.strip() for line in move.text.splitlines()} - own
    if not brought:
        return 0.0
    told = 0.0
    ahead = [(r.text, (r.height or 0.0) - height) for r in around.others]
    ahead += [(w.text, w.trust * (w.height - height)) for w in around.winners]
    for text, gain in ahead:
        theirs = {line.strip() for line in text.splitlines()}
        share = len(brought & theirs) / len(brought)
        told += BORROWED * share * min(max(gain, 0.0) + 0.5, MOST_AHEAD)
    return told
