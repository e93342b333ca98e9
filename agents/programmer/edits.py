"""Changes between two texts as SEARCH/REPLACE blocks, the answer marked ``edit``."""

from __future__ import annotations

from difflib import SequenceMatcher

Change = tuple[int, int, int, int]
SEARCH, DIVIDER, REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"


def between(before: str, after: str) -> str:
    """The edits that lead from one text to another, in order: each as small as a search for it
    finds one place only, and none empty. Lines that would only move to the side stay where they
    are.
    """
    old, new = before.splitlines(), after.splitlines()
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    changes = [(a, b, c, d) for kind, a, b, c, d in matcher.get_opcodes() if kind != "equal"]
    for low, high, first, last in changes:
        if _words(old[low:high]) == _words(new[first:last]) and high - low == last - first:
            new[first:last] = old[low:high]
    changes = [c for c in changes if old[c[0] : c[1]] != new[c[2] : c[3]]]
    if not changes:
        # Nothing changes: the first line that says something is replaced by itself.
        place = next((i for i, line in enumerate(old) if line.strip()), 0)
        changes = [(place, min(place + 1, len(old)), place, min(place + 1, len(new)))]
    edits = _edits(old, new, _grown(old, new, changes))
    if not _is_sound(old, new, edits):
        # One edit makes a place for the next search: all of it is one edit.
        span = (changes[0][0], changes[-1][1], changes[0][2], changes[-1][3])
        edits = _edits(old, new, _grown(old, new, [span]))
    return (
        "\n".join("\n".join([SEARCH, *wanted, DIVIDER, *put, REPLACE]) for wanted, put in edits)
        + "\n"
    )


def _words(lines: list[str]) -> list[list[str]]:
    return [line.split() for line in lines]


Edit = tuple[list[str], list[str]]


def _edits(old: list[str], new: list[str], changes: list[Change]) -> list[Edit]:
    return [(old[low:high], new[first:last]) for low, high, first, last in changes]


def _is_sound(old: list[str], new: list[str], edits: list[Edit]) -> bool:
    """Whether the edits, made one after the other, each have one place and lead to the text."""
    lines = list(old)
    for wanted, put in edits:
        size = len(wanted)
        places = [i for i in range(len(lines) - size + 1) if lines[i : i + size] == wanted]
        if len(places) != 1:
            return False
        lines[places[0] : places[0] + size] = put
    return lines == new


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
