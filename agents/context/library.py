"""Passages that may be worth knowing, found by their words: full-text search in memory (SQLite's
FTS5, ranked by BM25: Robertson and Zaragoza, The probabilistic relevance framework, 2009).
"""

from __future__ import annotations

import re
import sqlite3
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelwright.agents.chat import digest
from kernelwright.agents.context.safe import clean, one_line

MOST_TEXT = 1500
MOST_TITLE = 160
# Words of a query; what comes first matters most.
MOST_WORDS = 48
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]+")
# A name that is called: ``reorder(`` and no part of ``reorder_storage(``.
_CALL = re.compile(r"\b([A-Za-z]\w*)\(")
# Words of C and of prompts that are everywhere.
_COMMON = frozenset(
    [
        "the",
        "and",
        "for",
        "are",
        "not",
        "that",
        "this",
        "with",
        "from",
        "one",
        "its",
        "has",
        "was",
        "but",
        "all",
        "can",
        "into",
        "than",
        "then",
        "void",
        "const",
        "int",
        "float",
        "double",
        "return",
        "static",
        "restrict",
        "size",
        "int64",
        "uint64",
        "int32",
        "true",
        "false",
        "none",
        "null",
        "text",
        "if",
        "else",
        "while",
        "include",
        "define",
        "expected",
        "found",
    ]
)


class NoFullTextError(RuntimeError):
    """This Python's SQLite was built without FTS5."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that may be shown: where it is from (``directive``, ``page``, ``run`` or ``cache``),
    what it is called, and what it says.

    ``apart`` is of a winner: how far its shape and device are from the campaign's, in doublings of
    an extent; None of anything else, and of a winner of another problem or in another language.
    """

    source: str
    title: str
    text: str
    apart: float | None = None

    @property
    def id(self) -> str:
        """The hash of its content."""
        return digest([self.source, self.title, self.text])[:16]


def passage(source: str, title: str, text: str, apart: float | None = None) -> Passage:
    """A passage of a text of any length and content."""
    return Passage(source, one_line(title, MOST_TITLE), bounded(text), apart)


def bounded(text: str) -> str:
    """A text of any length and content as a passage has it."""
    return clean(text.strip(), MOST_TEXT)


def check_full_text() -> None:
    """See that there is full-text search.

    Raises:
        NoFullTextError: if there is none.
    """
    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE VIRTUAL TABLE found USING fts5(title, text)")
    except sqlite3.OperationalError as error:
        version = sqlite3.sqlite_version
        raise NoFullTextError(f"SQLite {version} of this Python: {error}") from None
    finally:
        database.close()


class Library:
    """Passages with an index. The order of equals is that of the passages.

    Raises:
        NoFullTextError: if there is no full-text search.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = {p.id: p for p in passages}
        self._called = {
            call[1]: p for p in self._passages.values() if (call := _CALL.match(p.title))
        }
        check_full_text()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._database.close)
        self._database.execute(
            "CREATE VIRTUAL TABLE found USING fts5(id UNINDEXED, title, text,"
            " tokenize = 'porter unicode61')"
        )
        self._database.executemany(
            "INSERT INTO found VALUES (?, ?, ?)",
            [(p.id, p.title, p.text) for p in self._passages.values()],
        )

    def __len__(self) -> int:
        return len(self._passages)

    def get(self, ids: Iterable[str]) -> list[Passage]:
        """The passages of these ids, as far as they are here."""
        return [self._passages[each] for each in ids if each in self._passages]

    def find(self, texts: Iterable[str], most: int) -> list[Passage]:
        """The passages that share the rarest words with some texts, the best first; before them
        those whose title is a call of a name that the texts call.

        Args:
            texts: what the search is about, the most telling first.
            most: how many at most.
        """
        texts = list(texts)
        words = words_of(texts)
        if not words or most < 1:
            return []
        names = dict.fromkeys(name for text in texts for name in _CALL.findall(text))
        named = [self._called[name] for name in names if name in self._called][:most]
        # Quoted, so that no word is an operator. A title's word counts four times.
        query = " OR ".join(f'"{word}"' for word in words)
        rows = self._database.execute(
            "SELECT id FROM found WHERE found MATCH ?"
            " ORDER BY round(bm25(found, 0.0, 4.0, 1.0), 6), rowid LIMIT ?",
            (query, most),
        ).fetchall()
        ranked = self.get(each for (each,) in rows)
        return [*named, *(each for each in ranked if each not in named)][:most]


def words_of(texts: Iterable[str]) -> list[str]:
    """The telling words of some texts, in order, each once."""
    found: dict[str, None] = {}
    for text in texts:
        for word in _WORD.findall(text):
            lower = word.lower()
            if len(lower) > 2 and lower not in _COMMON:
                found.setdefault(lower)
            if len(found) == MOST_WORDS:
                return list(found)
    return list(found)
