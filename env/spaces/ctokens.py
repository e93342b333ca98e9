"""A C text as its preprocessing tokens: what is left of it without comments and white space.

Two texts with the same tokens are the same program. Where a text has something of which that is not
certain (a line number that it may print, a macro that turns arguments into text, spellings that
compilers read in different ways) it is not read at all.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_PUNCTUATORS = (
    "... <<= >>= -> ++ -- << >> <= >= == != && || *= /= %= += -= &= ^= |= ## "
    "[ ] { } ( ) . & * + - ~ ! / % < > ^ | ? : ; = , #"
)
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\f\v\r]+|//[^\n]*|/\*[\s\S]*?\*/)"""
    r"""|(?P<line>\n)"""
    r"""|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)"""
    r"""|(?P<text>(?:u8|[uUL])?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'))"""
    r"""|(?P<name>[A-Za-z_$][\w$]*)"""
    r"""|(?P<unsure><%|%>|<:|:>|%:|/\*)"""
    rf"""|(?P<mark>{"|".join(map(re.escape, _PUNCTUATORS.split()))})""",
    re.ASCII,
)
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_RETURN = re.compile(r"\r(?!\n)")
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
# A comment that means something: values that a search may choose from.
_TUNED = re.compile(r"^[ \t]*#[ \t]*define\b[^\n]*//[ \t]*tune:", re.MULTILINE)
_HEADER = re.compile(r"[ \t]*(<[^>\n]*>|\"[^\"\n]*\")")
# What changes where the lines of a text do.
_NUMBERED = frozenset({"__LINE__", "__builtin_LINE", "assert"})
_RAW = frozenset({"R", "u8R", "uR", "UR", "LR"})


class UnsureError(ValueError):
    """A text whose tokens do not tell for certain which program it is; the message says why."""


class Token(NamedTuple):
    """A token: ``name``, ``number``, ``text`` (a literal), ``mark`` (an operator or bracket) or
    ``directive``, which is a whole line of the preprocessor, its tokens a blank apart.
    """

    kind: str
    text: str


def tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a C text.

    Raises:
        UnsureError: if they do not tell which program it is.
    """
    if _TRIGRAPH.search(text):
        raise UnsureError("a trigraph")
    if _TUNED.search(text):
        raise UnsureError("values to be tuned")
    if _RETURN.search(text):
        raise UnsureError("a carriage return")  # the end of a line to some, a blank to others
    joined = _CONTINUED.sub("", text)
    out: list[Token] = []
    at, first = 0, True
    while at < len(joined):
        kind, word, at = _next(joined, at)
        if kind == "line":
            first = True
        elif kind == "mark" and word == "#" and first:
            directive, at = _directive(joined, at)
            if directive:
                out.append(Token("directive", directive))
        elif kind != "blank":
            out.append(Token(kind, word))
            first = False
    return tuple(out)


def _next(text: str, at: int) -> tuple[str, str, int]:
    """The kind and text of what stands at a place, and where it ends."""
    found = _TOKEN.match(text, at)
    if found is None or found.lastgroup is None or found.lastgroup == "unsure":
        raise UnsureError(f"{text[at : at + 2]!r}")
    kind, word, end = found.lastgroup, found[0], found.end()
    following = text[end : end + 1]
    if kind == "number" and following == "'":
        raise UnsureError("a number with apostrophes")
    if kind == "name" and (word in _NUMBERED or (word in _RAW and following == '"')):
        raise UnsureError(f"the name {word}")
    return kind, word, end


def _directive(text: str, at: int) -> tuple[str, int]:
    """A directive behind its ``#``, and where its line ends."""
    parts: list[str] = []
    glued = False
    while at < len(text):
        if parts == ["include"] and (header := _HEADER.match(text, at)):
            parts.append(header[1])
            at = header.end()
            continue
        kind, word, at = _next(text, at)
        if kind == "line":
            break
        if kind == "blank":
            if "<" in parts and ">" in word:
                raise UnsureError("a comment, or a header's name")
            continue
        parts.append(word)
        if len(parts) == 2 and parts[0] == "define" and text[at : at + 1] == "(":
            # A macro with parameters; a blank before them would make them its text.
            parts[1], at, glued = f"{word}(", at + 1, True
    if parts and parts[0] == "line":
        raise UnsureError("the directive #line")
    if glued and "#" in parts:
        raise UnsureError("a macro that makes text of an argument")
    return " ".join(parts), at
