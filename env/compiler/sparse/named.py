"""Formats as text: by name, or level by level.

    csr    bcsr(4,4)    csf(2,0,1)    coo3    csr:int64
    dense(i) compressed(j)
    dense(i) dense(j/4) padded(2, int8)(j%4)

In words, a level is its kind, its parameters in brackets where it has any, and its dimension in
brackets; modes are i, j, k, … A name is followed by its parameters in brackets, or by a number of
modes; behind a colon comes the dtype of indices where it is not int32. Blanks do not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module

from kernelwright.env.compiler.errors import did_you_mean
from kernelwright.env.compiler.sparse.format import (
    LETTERS,
    Diagonal,
    Dimension,
    Format,
    FormatError,
    Inner,
    Mode,
    Outer,
)
from kernelwright.env.compiler.sparse.levels import LEVELS
from kernelwright.env.compiler.sparse.levels.base import Level, StorageError


@dataclass(frozen=True, slots=True)
class Named:
    """A format by name. ``words`` are its levels for a number of modes and parameters; ``reads``
    finds the parameters in a format that may be this one, in which ``build`` then confirms them.
    """

    meaning: str
    words: Callable[[int, tuple[int, ...]], str]
    orders: tuple[int, ...]
    parameters: str = ""
    reads: Callable[[Format], tuple[int, ...]] = lambda form: ()


def _all(kind: str) -> Callable[[int, tuple[int, ...]], str]:
    return lambda order, _: " ".join(f"{kind}({LETTERS[mode]})" for mode in range(order))


def _fixed(words: str) -> Callable[[int, tuple[int, ...]], str]:
    return lambda order, parameters: words.format(*parameters)


def _coo(order: int, parameters: tuple[int, ...]) -> str:
    kinds = ["compressed", *["singleton"] * (order - 1)]
    kept = ["(nonunique)"] * (order - 1) + [""]
    lines = zip(kinds, kept, LETTERS, strict=False)
    return " ".join(f"{kind}{word}({letter})" for kind, word, letter in lines)


def _csf(order: int, parameters: tuple[int, ...]) -> str:
    modes = parameters or tuple(range(order))
    return " ".join(f"compressed({_letter(mode)})" for mode in modes)


def _hash(order: int, parameters: tuple[int, ...]) -> str:
    kinds = ["dense"] * (order - 1) + ["hashed"]
    return " ".join(f"{kind}({letter})" for kind, letter in zip(kinds, LETTERS, strict=False))


def _ell(places: str) -> Callable[[int, tuple[int, ...]], str]:
    def words(order: int, parameters: tuple[int, ...]) -> str:
        inside = ",".join([*map(str, parameters), *([places] if places else [])])
        return f"dense(i) padded{f'({inside})' if inside else ''}(j)"

    return words


def _letter(mode: int) -> str:
    if mode >= len(LETTERS):
        raise FormatError(f"expected a mode from 0 to {len(LETTERS) - 1}, found {mode}")
    return LETTERS[mode]


def _blocks(form: Format) -> tuple[int, ...]:
    return tuple(d.size for _, d in form.levels if isinstance(d, Inner))


def _width(form: Format) -> tuple[int, ...]:
    widths = [getattr(kind, "width", None) for kind, _ in form.levels]
    return tuple(width for width in widths if width is not None)


def _modes(form: Format) -> tuple[int, ...]:
    modes = tuple(d.mode for _, d in form.levels if isinstance(d, Mode))
    return () if modes == tuple(range(len(modes))) else modes


MATRIX = (2,)
ANY = tuple(range(1, len(LETTERS) + 1))

# The first that a format is gives it its name.
NAMED: dict[str, Named] = {
    "dense": Named("every element", _all("dense"), ANY),
    "sv": Named("a sparse vector", _fixed("compressed(i)"), (1,)),
    "csr": Named("compressed rows", _fixed("dense(i) compressed(j)"), MATRIX),
    "csc": Named("compressed columns", _fixed("dense(j) compressed(i)"), MATRIX),
    "dcsr": Named("rows that are not empty", _fixed("compressed(i) compressed(j)"), MATRIX),
    "dcsc": Named("columns that are not empty", _fixed("compressed(j) compressed(i)"), MATRIX),
    "coo": Named("a list of coordinates", _coo, ANY[1:]),
    "csf": Named("a tree, in an order of modes", _csf, ANY[2:], "modes", _modes),
    "bcsr": Named(
        "dense blocks in compressed rows of blocks",
        _fixed("dense(i/{0}) compressed(j/{1}) dense(i%{0}) dense(j%{1})"),
        MATRIX,
        "rows,columns",
        _blocks,
    ),
    "ell": Named("rows of one length", _ell(""), MATRIX, "width", _width),
    "ellslots": Named("rows of one length, columns first", _ell("slots"), MATRIX, "width", _width),
    "nm": Named(
        "n in every m of a row",
        _fixed("dense(i) dense(j/{1}) padded({0},int8)(j%{1})"),
        MATRIX,
        "n,m",
        lambda form: _width(form) + _blocks(form),
    ),
    "dia": Named("diagonals", _fixed("compressed(j-i) dense(i) offset(j)"), MATRIX),
    "hash": Named("a table below the last but one mode", _hash, ANY),
}

_NAME = re.compile(r"([a-z]+)(\d*)(?:\(([\d,]*)\))?")
_LEVEL = re.compile(r"([a-z]+)(?:\(([a-z0-9,]*)\))?\(([^()]*)\)")
_BLOCK = re.compile(r"([a-z])([/%])(\d+)")
_DIAGONAL = re.compile(r"([a-z])-([a-z])")


def format_text(form: Format) -> str:
    """A format as text, by name where it has one: `parse_format` gives the format back."""
    suffix = "" if form.index_dtype == "int32" else f":{form.index_dtype}"
    plain = replace(form, index_dtype="int32")
    for name, row in NAMED.items():
        if form.order not in row.orders:
            continue
        parameters = row.reads(form)
        try:
            same = _build(name, form.order, parameters) == plain
        except FormatError:
            continue
        if same:
            usual = _usual_order(row)
            many = str(form.order) if form.order != usual and not parameters else ""
            inside = f"({','.join(map(str, parameters))})" if parameters else ""
            return f"{name}{many}{inside}{suffix}"
    return form.words + suffix


def parse_format(text: str, order: int | None = None) -> Format:
    """The format that a text says; ``order`` is the number of modes of the tensor, where it is
    known.

    Raises:
        FormatError: where the text is none, or one for another number of modes.
    """
    whole, colon, dtype = "".join(text.split()).partition(":")
    match = _NAME.fullmatch(whole)
    if match and match[1] not in LEVELS | dict.fromkeys(NAMED):
        raise FormatError(
            f"{text!r}: expected a format, {', '.join(NAMED)} or levels in words, found "
            f"{match[1]!r}{did_you_mean(match[1], NAMED)}"
        )
    form = _by_name(text, match, order) if match and match[1] in NAMED else _in_words(text, whole)
    if order is not None and form.order != order:
        raise FormatError(f"{text!r}: expected a format of {order} modes, found {form.order}")
    return replace(form, index_dtype=dtype) if colon else form


def as_format(form: Format | str, order: int | None = None) -> Format:
    """A format, from its text where it is one.

    Raises:
        FormatError: see `parse_format`.
    """
    return parse_format(form, order) if isinstance(form, str) else form


def _usual_order(row: Named) -> int:
    return 2 if 2 in row.orders else row.orders[0]


def _by_name(text: str, match: re.Match[str], order: int | None) -> Format:
    name, many, inside = match[1], match[2], match[3]
    row = NAMED[name]
    parameters = tuple(int(word) for word in inside.split(",") if word) if inside else ()
    if name == "csf" and parameters:
        wanted = len(parameters)
    elif many:
        wanted = int(many)
    else:
        wanted = order if order in row.orders else _usual_order(row)
    if wanted not in row.orders:
        found = f"expected {_span(row.orders)} modes, found {wanted}"
        raise FormatError(f"{text!r}: {name}: {found}")
    return _build(name, wanted, parameters, text)


def _span(orders: tuple[int, ...]) -> str:
    return str(orders[0]) if len(orders) == 1 else f"{orders[0]} to {orders[-1]}"


def _build(name: str, order: int, parameters: tuple[int, ...], text: str = "") -> Format:
    row = NAMED[name]
    names = tuple(word for word in row.parameters.split(",") if word)
    is_optional = names in (("width",), ("modes",))
    counts = {len(names)} | ({0} if is_optional else set()) | ({order} if name == "csf" else set())
    if len(parameters) not in counts:
        expected = f"parameters ({row.parameters})" if names else "no parameters"
        raise FormatError(f"{text or name!r}: {name}: expected {expected}, found {parameters}")
    words = row.words(order, parameters)
    return _in_words(text or words, "".join(words.split()))


def _in_words(text: str, words: str) -> Format:
    levels: list[tuple[Level, Dimension]] = []
    place = 0
    while place < len(words):
        match = _LEVEL.match(words, place)
        if match is None:
            raise FormatError(
                f"{text!r}: expected a level such as compressed(j), found {words[place:]!r}"
            )
        levels.append((_kind(text, match[1], match[2]), _dimension(text, match[3])))
        place = match.end()
    if not levels:
        raise FormatError(f"{text!r}: expected a format, found nothing")
    return Format(tuple(levels))


def _kind(text: str, name: str, parameters: str | None) -> Level:
    if name not in LEVELS:
        raise FormatError(
            f"{text!r}: expected a level kind ({', '.join(LEVELS)}), found {name!r}"
            f"{did_you_mean(name, LEVELS)}"
        )
    module, _, attribute = LEVELS[name].partition(":")
    kind: type[Level] = getattr(import_module(module), attribute)
    try:
        return kind.read([word for word in (parameters or "").split(",") if word])
    except StorageError as error:
        raise FormatError(f"{text!r}: {error}") from None


def _dimension(text: str, words: str) -> Dimension:
    if len(words) == 1 and words in LETTERS:
        return Mode(LETTERS.index(words))
    if (match := _BLOCK.fullmatch(words)) and match[1] in LETTERS:
        part = Outer if match[2] == "/" else Inner
        return part(LETTERS.index(match[1]), int(match[3]))
    if (match := _DIAGONAL.fullmatch(words)) and match[1] in LETTERS and match[2] in LETTERS:
        return Diagonal(LETTERS.index(match[2]), LETTERS.index(match[1]))
    raise FormatError(
        f"{text!r}: expected a dimension such as i, i/4, i%4 or j-i over the modes {LETTERS[0]} to "
        f"{LETTERS[-1]}, found {words!r}"
    )
