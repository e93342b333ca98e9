"""Numbers for the names of a C text's locals, so that texts that differ in those alone are equal.

Every function is read for itself: its parameters, its declarations, and how far each reaches. A
name keeps its letters where it might mean anything else too: if it stands in a directive, a label,
a tag or an attribute, if it is used where no declaration of it reaches, if a header may have it. A
function with anything in it that is not read for certain keeps all its names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kernelwright.env.compiler.ir.names import is_free
from kernelwright.env.spaces.cscopes import TYPES, WORDS, GiveUpError, Scopes
from kernelwright.env.spaces.cstatements import MEMBERS, Reader
from kernelwright.env.spaces.ctokens import NAME, Token

_TYPE = re.compile(r"\w+_t|__m(64|128|256|512)[dih]?|__int128|_Float\d+x?", re.ASCII)
# Directives after which one text is several, or text comes from elsewhere.
_MANY = ("if", "ifdef", "ifndef", "elif", "else", "endif", "include", "line")
_LITERAL = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_WORDS = "I alignas alignof bool complex errno false imaginary noreturn signgam stderr stdin stdout"
_MACROS = frozenset(f"{_WORDS} static_assert thread_local true".split())
_BEFORE = frozenset({".", "->", "goto", "&&", "struct", "union", "enum"})
_PAIRS = {")": "(", "]": "[", "}": "{"}


def without_names(tokens: Sequence[Token]) -> tuple[str, ...]:
    """The texts of tokens, with ``%0``, ``%1``, … for the locals of each function."""
    # A directive of one word would read as the word.
    texts = [f"#{t.text}" if t.kind == "directive" else t.text for t in tokens]
    directives = [token.text for token in tokens if token.kind == "directive"]
    if not all(map(_is_plain, directives)):
        return tuple(texts)
    kept = frozenset(name for text in directives for name in NAME.findall(text))
    if "_Pragma" in texts:
        words = (token.text for token in tokens if token.kind == "text")
        kept |= frozenset(name for text in words for name in NAME.findall(text))
    types = _types(tokens) - kept
    for opened, first, last in _functions(tokens):
        for at, number in _numbers(tokens, opened, first, last, types, kept).items():
            texts[at] = f"%{number}"
    return tuple(texts)


def _is_plain(directive: str) -> bool:
    """Whether a directive leaves the structure of the text as it looks."""
    word, _, rest = directive.partition(" ")
    if word == "include":
        return rest.startswith("<")
    if word != "define":
        return True
    name = NAME.match(rest)
    hides = name is None or name[0] in WORDS or _hides_member(rest)
    return not hides and "##" not in rest and _is_nested(_LITERAL.sub("", rest))


def _hides_member(macro: str) -> bool:
    """Whether a macro may make of a name that stands beside it, or that it is given, one that is no
    variable: a member, a label or a tag.
    """
    name, _, rest = macro.partition(" ")
    given = frozenset[str]()
    if name.endswith("("):
        parameters, _, rest = rest.partition(")")
        given = frozenset(parameters.split()) | {"__VA_ARGS__"}
    body = rest.split()
    if (body and body[-1] in _BEFORE) or (given and not MEMBERS.isdisjoint(body)):
        return True
    return any(
        right in given and (left in _BEFORE or left in given) for left, right in pairwise(body)
    )


def _is_nested(text: str) -> bool:
    """Whether every bracket of a text is closed in it, in order."""
    opened = list[str]()
    for sign in text:
        if sign in "([{":
            opened.append(sign)
        elif sign in _PAIRS and (not opened or opened.pop() != _PAIRS[sign]):
            return False
    return not opened


def _types(tokens: Sequence[Token]) -> frozenset[str]:
    """The names that a text's own typedefs at its outermost level define, and those that look like
    types of headers.
    """
    found = {token.text for token in tokens if token.kind == "name" and _TYPE.fullmatch(token.text)}
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.text == "{") - (token.text == "}")
        if token.text == "typedef" and depth == 0:
            found |= set(_defined(tokens, at))
    return frozenset(found)


def _defined(tokens: Sequence[Token], at: int) -> Iterator[str]:
    """What a typedef defines: the last name before its end, and before commas."""
    last, depth, attribute = "", 0, False
    for token in tokens[at + 1 :]:
        text = token.text
        if depth == 0 and text in (",", ";"):
            if last:
                yield last
            last = ""
            if text == ";":
                return
        elif text == "typedef":
            return  # this one has no end
        elif text in ("(", "[", "{"):
            if text == "(" and depth == 0 and not attribute:
                return  # a function's type
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
        elif depth == 0:
            attribute = text in ("__attribute__", "__attribute")
            if token.kind == "name" and not attribute:
                last = text


def _functions(tokens: Sequence[Token]) -> Iterator[tuple[int, int, int]]:
    """Where each function's parameters open, where its body does, and where that closes."""
    at, opened = 0, list[int]()
    latest: tuple[int, int] = (-1, -1)  # the last brackets that closed, and where
    while at < len(tokens):
        text = tokens[at].text
        if text == "(":
            opened.append(at)
        elif text == ")" and opened:
            latest = (opened.pop(), at)
        elif text == "{":
            end = _closing(tokens, at)
            if latest[1] == at - 1 and not opened and latest[0] > 0:
                before = tokens[latest[0] - 1]
                if before.kind == "name" and before.text not in TYPES | {"__attribute__"}:
                    yield latest[0], at, end
            at = end
        at += 1


def _closing(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].text == "{") - (tokens[place].text == "}")
        if depth == 0:
            return place
    return len(tokens)


def _numbers(
    tokens: Sequence[Token],
    opened: int,
    first: int,
    last: int,
    types: frozenset[str],
    kept: frozenset[str],
) -> dict[int, int]:
    """The number of the local that stands at each place of a function; none if it is not read for
    certain.
    """
    inside = tokens[opened : last + 1]
    many = any(t.kind == "directive" and t.text.split(" ")[0] in _MANY for t in inside)
    if many or last >= len(tokens):
        return {}
    scopes = Scopes(types)
    try:
        Reader(inside, scopes).function(first - opened)
    except (GiveUpError, RecursionError):
        return {}
    numbers: dict[int, int] = {}
    out: dict[int, int] = {}
    for at, declared in sorted(scopes.found):
        name = inside[at].text
        if name not in kept and name not in scopes.kept and _is_own(name):
            out[opened + at] = numbers.setdefault(declared, len(numbers))
    return out


def _is_own(name: str) -> bool:
    """Whether no header or compiler is likely to have a macro of a name. One with parameters does
    no harm: a name that is called keeps its letters.
    """
    return is_free(name) and name not in _MACROS
