"""Changes between two texts as SEARCH/REPLACE blocks, the answer marked ``edit``."""

from __future__ import annotations

from difflib import SequenceMatcher

SEARCH, DIVIDER, REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"


def between(before: str, after: str) -> str:
    """The edits that lead from one text to another, in order: each as small as a search for it
    finds one place only, and none empty.
    """
    old, new = before.splitlines(), after.splitlines()
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    changes = [(a, b, c, d) for kind, a, b, c, d in matcher.get_opcodes() if kind != "equal"]
    if not changes:
        # Nothing changes: the first line that says something is replaced by itself.
        place = next((i for i, line in enumerate(old) if line.strip()), 0)
        changes = [(place, min(place + 1, len(old)), place, min(place + 1, len(new)))]
    out = list[str]()
    for low, high, first, last in _grown(old, new, changes):
        lines = [SEARCH, *old[low:high], DIVIDER, *new[first:last], REPLACE]
        out.append("\n".join(lines))
    return "\n".join(out) + "\n"


Change = tuple[int, int, int, int]


def _grown(old: list[str], new: list[str], changes: list[Change]) -> list[Change]:
    """Changes with as many lines around them as make each the only one; those that meet are one."""
    out = list[Change]()
    for low, high, first, last in changes:
        while not _is_only(old, low, high) and (low > 0 or high < len(old)):
            # The lines around a change are equal in both, or part of the change before or after.
            if low > 0:
                low, first = low - 1, first - 1
            if high < len(old):
                high, last = high + 1, last + 1
        if out and low <= out[-1][1]:
            before = out.pop()
            low, first = before[0], before[2]
            high, last = max(high, before[1]), max(last, before[3])
        out.append((low, high, first, last))
    return _aligned(old, new, out, changes)


def _is_only(old: list[str], low: int, high: int) -> bool:
    wanted = old[low:high]
    if not any(line.strip() for line in wanted):
        return False
    places = range(len(old) - len(wanted) + 1)
    return sum(old[i : i + len(wanted)] == wanted for i in places) == 1


def _aligned(
    old: list[str], new: list[str], grown: list[Change], changes: list[Change]
) -> list[Change]:
    """The same spans of the old text, each with exactly what stands there in the new one."""
    out = list[Change]()
    for low, high, _, _ in grown:
        inside = [c for c in changes if low <= c[0] and c[1] <= high]
        first = inside[0][2] - (inside[0][0] - low)
        last = inside[-1][3] + (high - inside[-1][1])
        out.append((low, high, max(first, 0), min(last, len(new))))
    return out
