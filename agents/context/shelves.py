"""Which passages a question is given: each kind stands on a shelf of its own and has its share, so
that many of one kind crowd out no other.

Winners are taken in the order of their worth, those not tried yet before those that were, and of
near-equal ones one. The first is shown to every question, those that follow it by turns. Everything
else is taken by its words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import cycle, islice

from kernelwright.agents.context.library import Library, Passage
from kernelwright.agents.context.variety import Marks, apart

WINNER, PAGE, DIRECTIVE, OTHER = "winner", "page", "directive", "other"
# Whose turn it is when passages are taken; a shelf that has no more gives its turn away.
TURNS = (WINNER, PAGE, WINNER, DIRECTIVE, OTHER)
MOST_OF_A_SHELF = 400
# Programs that share more than this of their marks are near-equal.
ALIKE = 0.6
# So many winners after the first have their turn.
BY_TURNS = 8


def shelf_of(passage: Passage) -> str:
    """Where a passage stands; winners that were found for something else are ``other``."""
    if passage.apart is not None:
        return WINNER
    return passage.source if passage.source in (PAGE, DIRECTIVE) else OTHER


def as_many_as_fit(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """The first of each shelf, each passage once, in order."""
    room = dict.fromkeys(TURNS, MOST_OF_A_SHELF)
    kept = dict[str, Passage]()
    for each in passages:
        shelf = shelf_of(each)
        if room[shelf] and each.id not in kept:
            kept[each.id] = each
            room[shelf] -= 1
    return tuple(kept.values())


class Shelves:
    """Passages by kind, each kind with an index of its own: how common a word is among winners says
    nothing of pages.

    Raises:
        NoFullTextError: if there is no full-text search.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = {p.id: p for p in passages}
        self._winners = [p for p in self._passages.values() if shelf_of(p) == WINNER]
        self._libraries = {
            shelf: Library([p for p in self._passages.values() if shelf_of(p) == shelf])
            for shelf in dict.fromkeys(TURNS)
            if shelf != WINNER
        }

    def get(self, ids: Iterable[str]) -> list[Passage]:
        """The passages of these ids, as far as they are here."""
        return [self._passages[each] for each in ids if each in self._passages]

    def find(
        self,
        texts: Sequence[str],
        most: int,
        *,
        tried: Collection[str] = (),
        parent: str | None = None,
        turn: int = 0,
    ) -> list[Passage]:
        """The passages for a question, by turns from the shelves.

        Args:
            texts: what the question is about, the most telling first.
            most: how many at most.
            tried: the programs that the search knows already, as passages have their texts.
            parent: the program to improve; what is near-equal to it comes last.
            turn: a number that grows from ask to ask.
        """
        shelves: dict[str, Iterator[Passage]] = {
            shelf: iter(library.find(texts, most)) for shelf, library in self._libraries.items()
        }
        fresh = sorted(self._winners, key=lambda winner: winner.text in tried)
        if len(fresh) <= most:  # all are shown, or as many as pages leave room for
            turn, parent = 0, None
        told = list(varied(fresh, () if parent is None else (parent,)))
        following = told[1 : 1 + BY_TURNS]
        shift = turn * max(1, most // 2) % max(1, len(following))
        told[1 : 1 + BY_TURNS] = following[shift:] + following[:shift]
        shelves[WINNER] = iter(told)
        return list(islice(_by_turns(shelves), most))


def _by_turns(shelves: dict[str, Iterator[Passage]]) -> Iterator[Passage]:
    for shelf in cycle(TURNS):
        if shelf in shelves:
            found = next(shelves[shelf], None)
            if found is None:
                del shelves[shelf]
            else:
                yield found
        if not shelves:
            return


def varied(winners: Iterable[Passage], but: Iterable[str] = ()) -> Iterator[Passage]:
    """Winners in order, those that are near-equal to an earlier one or to a program in ``but``
    last.
    """
    chosen, alike = [_marks(text) for text in but], list[Passage]()
    for winner in winners:
        own = _marks(winner.text)
        if any(1 - apart(own, other) > ALIKE for other in chosen):
            alike.append(winner)
        else:
            chosen.append(own)
            yield winner
    yield from alike


def _marks(text: str) -> Marks:
    """What a program is told from others by: its lines, or where it is one line what stands between
    its commas.
    """
    lines = text.strip().splitlines()
    parts = lines if len(lines) > 1 else text.strip(" {}").split(",")
    return frozenset(filter(None, (part.strip() for part in parts)))
