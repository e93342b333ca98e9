"""Where some lines stand in a text, if they were copied badly.

Tried in turn: the lines as they are; without trailing blanks, indentation and empty lines; without
comments; whatever the line breaks; a part of one line; and at last an alignment in which lines need
only be alike. Each step knows all places that fit equally well, so that several are seen as several
and not the first of them taken.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from kernelwright.agents.lines import Lines, runs, squeezed

# An alignment is taken if its lines are so much alike on average, where a line left out on either
# side counts against it, and if no other is within the margin or it has every line right that
# stands only once.
LEAST_ALIKE = 0.75
MARGIN = 0.15
# Lines less alike than this are not the same line; those that an edit changes must be more so.
LEAST_LINE = 0.6
LEAST_CHANGED = 0.85
LEAST_ANCHOR = 6  # characters of a line that tells where it stands
SKIPPED_HERE = 0.3
SKIPPED_THERE = 0.7
# What an alignment may cost: pairs of lines, and of their characters.
MOST_PAIRS = 8_000
MOST_CHARACTER_PAIRS = 32_000_000
# So many places are told apart; that there are more says nothing new.
MOST_PLACES = 9


@dataclass(frozen=True, slots=True)
class Place:
    """Where lines were found: ``at`` has the line of the text for lines of the search, those that
    are compared; ``code`` says which lines of the text hold code. ``part`` is set where it is a
    part of one line, ``whole`` where line breaks differ, so that it must be replaced as a whole.
    """

    at: dict[int, int]
    code: tuple[bool, ...]
    is_loose: bool = False
    part: tuple[int, int] | None = None
    whole: tuple[int, int] | None = None

    @property
    def first(self) -> int:
        """The first line of it."""
        return min(self.at.values())

    def holds(self, changed: Iterable[int], search: Lines, lines: Lines) -> bool:
        """Whether lines that are to change were found, and are very much like those of the text."""
        return all(
            i in self.at
            and (
                not search.code[i]
                or _ratio(search.code[i], lines.code[self.at[i]]) >= LEAST_CHANGED
            )
            for i in changed
            if search.squeezed[i]
        )

    def span(self, low: int, high: int) -> tuple[int, int] | None:
        """The lines of the text that lines ``low`` up to ``high`` of the search stand for, or
        between which what is inserted there belongs; None if lines with code are left out.
        """
        known = sorted(self.at)
        inside = [i for i in known if low <= i < high]
        if inside:
            first, last = self.at[inside[0]], self.at[inside[-1]]
            shown = {self.at[i] for i in inside}
            hidden = [j for j in range(first, last + 1) if j not in shown and self.code[j]]
            return None if hidden else (first, last + 1)
        before = max((i for i in known if i < low), default=None)
        behind = min((i for i in known if i >= high), default=None)
        if before is None:
            assert behind is not None
            return self.at[behind], self.at[behind]
        at = self.at[before] + 1
        if behind is not None and any(self.code[at : self.at[behind]]):
            return None
        return at, at


def places(lines: Lines, search: Lines) -> tuple[Place, ...]:
    """Every place that fits by the first step by which any does."""
    code = tuple(map(bool, lines.code))
    exact = _windows(lines.raw, search.raw, skip=False)
    found = _windows(lines.squeezed, search.squeezed, skip=True)
    # Lines without indentation may have lost it, and stand anywhere.
    if len(exact) == 1 and any(line[:1] in (" ", "\t") for line in search.raw):
        found = exact
    if found:
        return tuple(Place(at, code) for at in found)
    bare = _windows(lines.code, search.code, skip=True)
    if bare:
        return tuple(Place(_with_comments(at, lines, search), code) for at in bare)
    for step in (_broken_otherwise, _parts, _alike):
        other = step(lines, search, code)
        if other:
            return other
    return ()


def _windows(text: Sequence[str], wanted: Sequence[str], *, skip: bool) -> list[dict[int, int]]:
    """Where wanted lines stand one after the other, empty ones apart if they are to be skipped."""
    here = [i for i, line in enumerate(wanted) if line or not skip]
    there = [j for j, line in enumerate(text) if line or not skip]
    if not any(wanted[i].strip() for i in here):
        return []
    found = runs([text[j] for j in there], [wanted[i] for i in here])
    return [
        dict(zip(here, there[start : start + len(here)], strict=True))
        for start in islice(found, MOST_PLACES)
    ]


def _broken_otherwise(lines: Lines, search: Lines, code: tuple[bool, ...]) -> tuple[Place, ...]:
    """The same code with other line breaks: whole lines of the text that have the words wanted."""
    wanted, text = [word for word, _ in search.words], lines.words
    if not wanted:
        return ()
    size = len(wanted)
    starts = (
        start
        for start in runs([word for word, _ in text], wanted)
        if (start == 0 or text[start - 1][1] != text[start][1])
        and (start + size == len(text) or text[start + size][1] != text[start + size - 1][1])
    )
    return tuple(_by_words(lines, search, at, code) for at in islice(starts, MOST_PLACES))


def _by_words(lines: Lines, search: Lines, start: int, code: tuple[bool, ...]) -> Place:
    """A place by words: a line of the search stands where its first word does."""
    at: dict[int, int] = {}
    for k, (_, i) in enumerate(search.words):
        at.setdefault(i, lines.words[start + k][1])
    last = lines.words[start + len(search.words) - 1][1]
    return Place(at, code, whole=(min(at.values()), last + 1))


def _parts(lines: Lines, search: Lines, code: tuple[bool, ...]) -> tuple[Place, ...]:
    """A part of a line, between words."""
    wanted = [line.strip() for line in search.raw if line.strip()]
    if len(wanted) != 1:
        return ()
    first, last = wanted[0][0].isalnum(), wanted[0][-1].isalnum()
    edges = r"(?<!\w)" * first, r"(?!\w)" * last
    pattern = re.compile(edges[0] + re.escape(wanted[0]) + edges[1])
    found = ((j, each) for j, line in enumerate(lines.raw) for each in pattern.finditer(line))
    return tuple(Place({0: j}, code, part=each.span()) for j, each in islice(found, MOST_PLACES))


def _alike(lines: Lines, search: Lines, code: tuple[bool, ...]) -> tuple[Place, ...]:
    """The best alignment of lines that are alike; two places where another is nearly as good."""
    here = [i for i, line in enumerate(search.code) if line]
    there = [j for j, line in enumerate(lines.code) if line]
    if len(here) < 2 or len(here) * len(there) > MOST_PAIRS:
        return ()
    if sum(map(len, search.code)) * sum(map(len, lines.code)) > MOST_CHARACTER_PAIRS:
        return ()
    alike = [[_ratio(search.code[i], lines.code[j]) for j in there] for i in here]
    best, pairs = _aligned(alike)
    if best < LEAST_ALIKE:
        return ()
    rest = [row[:] for row in alike]
    for a, b in pairs:
        rest[a][b] = 0.0
    second, others = _aligned(rest)
    is_sure = second < best - MARGIN or _anchored(
        pairs, [search.code[i] for i in here], [lines.code[j] for j in there]
    )
    found = [pairs] if is_sure else [pairs, others]
    ats = [{here[a]: there[b] for a, b in each} for each in found if each]
    return tuple(Place(_with_comments(at, lines, search), code, is_loose=True) for at in ats)


def _anchored(pairs: Sequence[tuple[int, int]], here: list[str], there: list[str]) -> bool:
    """Whether the lines that stand once on either side, of which there is one, all agree."""
    once = [
        (a, there.index(line))
        for a, line in enumerate(here)
        if len(line) >= LEAST_ANCHOR and here.count(line) == there.count(line) == 1
    ]
    return bool(once) and set(once) <= set(pairs)


def _with_comments(at: Mapping[int, int], lines: Lines, search: Lines) -> dict[int, int]:
    """A place found by code alone, with those lines of comments that stand in it as they are."""
    out, size = dict(at), len(search.raw)
    for i, line in enumerate(search.squeezed):
        if not line or i in out:
            continue
        before = [j for other, j in out.items() if other < i]
        behind = [j for other, j in out.items() if other > i]
        low = max(before) + 1 if before else max(0, min(behind) - size)
        high = min(behind) if behind else min(len(lines.raw), max(before) + size + 1)
        same = [j for j in range(low, high) if lines.squeezed[j] == line]
        if same:
            out[i] = same[0] if before else same[-1]
    return out


def _ratio(left: str, right: str) -> float:
    """How much alike two lines are, 0 where that is too little."""
    if left == right:
        return 1.0
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    if matcher.real_quick_ratio() < LEAST_LINE or matcher.quick_ratio() < LEAST_LINE:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= LEAST_LINE else 0.0


def _aligned(alike: Sequence[Sequence[float]]) -> tuple[float, list[tuple[int, int]]]:
    """The best alignment of all rows with columns in order, by its mean, and its pairs.

    Columns before the first pair and behind the last cost nothing.
    """
    rows, columns = len(alike), len(alike[0]) if alike else 0
    # score[a][b]: the first a rows against columns up to b, of which column b - 1 may be the last.
    score = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    move = [[""] * (columns + 1) for _ in range(rows + 1)]
    for a in range(1, rows + 1):
        score[a][0], move[a][0] = score[a - 1][0] - SKIPPED_THERE, "row"
        for b in range(1, columns + 1):
            choices = [(score[a - 1][b] - SKIPPED_THERE, "row")]
            free = a == rows
            choices.append((score[a][b - 1] - (0.0 if free else SKIPPED_HERE), "column"))
            if alike[a - 1][b - 1] > 0:
                choices.append((score[a - 1][b - 1] + alike[a - 1][b - 1], "pair"))
            score[a][b], move[a][b] = max(choices)
    a, b, pairs = rows, columns, list[tuple[int, int]]()
    while a > 0:
        step = move[a][b]
        if step == "pair":
            pairs.append((a - 1, b - 1))
        a, b = a - (step != "column"), b - (step != "row")
    return score[rows][columns] / max(rows, 1), pairs[::-1]


def nearest(lines: Lines, wanted: str, most: int = 2) -> list[int]:
    """The lines of a text that are most like one, the best first."""
    near = difflib.get_close_matches(squeezed(wanted), filter(None, lines.squeezed), most, 0.4)
    return [lines.squeezed.index(line) for line in dict.fromkeys(near)]
