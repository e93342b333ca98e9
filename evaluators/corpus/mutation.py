"""Textual mutation operators: each changes one place of a plain C kernel in one way that
programmers and models get wrong (DeMillo, Lipton and Sayward, Hints on test data selection,
Computer 11(4), 1978; the arithmetic ones are of numerical kernels).

They know the shape of the catalogue's plain loops and no more: ``for (int64_t v = a; v < b; v++)``,
accumulation by ``+=``, one statement a line. An operator that finds no place gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_FOR = re.compile(r"for \(int64_t (\w+) = (\w[^;]*); (\w+) < ([^;]+); \1\+\+\)")
_SUM = re.compile(r"^(?P<indent> *)(?P<target>\S+) \+= (?P<term>.+);$", re.MULTILINE)
_STORE = re.compile(r"^(?P<indent> *)(?P<target>\w+\[.+\]) = (?P<value>.+);$", re.MULTILINE)
_SUBSCRIPT = re.compile(r"\[([^\[\]]+)\]")
_STRIDED = re.compile(r"(?<!\w)(\w+) \* (\w+) \+ (\w+)\]")
_CONSTANT = re.compile(r"\d+\.?\d*(?:e-\d+)?f\b|(?<=/ )\d+(?=;)|(?<=\()1(?= \+)")

# Rounding to fewer digits by adding and taking away a multiple (Veltkamp's splitting): 11 digits
# for half precision, 8 for bfloat16, 24 for float.
_ROUNDERS = {
    "half": "static TYPE rounded(TYPE v)\n"
    "{\n    volatile TYPE big = v * ((TYPE)1 + (TYPE)(1ull << (DIGITS - 11)));\n"
    "    volatile TYPE rest = big - v;\n    return big - rest;\n}\n",
    "bfloat16": "static TYPE rounded(TYPE v)\n"
    "{\n    volatile TYPE big = v * ((TYPE)1 + (TYPE)(1ull << (DIGITS - 8)));\n"
    "    volatile TYPE rest = big - v;\n    return big - rest;\n}\n",
    "float": "static TYPE rounded(TYPE v) { return (float)v; }\n",
}
_DIGITS = {"float": "24", "double": "53"}

Edit = tuple[int, int, str]
Edits = Callable[[str], Iterator[Edit]]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A changed text: which operator made it, at which of its places, and what was changed."""

    operator: str
    place: int
    text: str
    changed: str


def mutations(text: str, element: str) -> tuple[Mutation, ...]:
    """Every mutation of a plain C kernel, operator by operator.

    Args:
        text: the kernel.
        element: the C type of its elements; rounding to fewer digits is for ``float`` and
            ``double``.
    """
    out = []
    for operator, edits in OPERATORS.items():
        for place, (start, end, new) in enumerate(edits(text)):
            changed = f"{text[start:end].strip()} -> {new.strip()}"
            out.append(
                Mutation(
                    operator, place, text[:start] + new + text[end:], " ".join(changed.split())
                )
            )
    for name, rounder in _ROUNDERS.items():
        if element not in _DIGITS or (name == "float" and element != "double"):
            continue
        helper = rounder.replace("TYPE", element).replace("DIGITS", _DIGITS[element])
        for place, (start, end, new) in enumerate(_rounding(text)):
            changed = _after_includes(text[:start] + new + text[end:], helper)
            out.append(Mutation(f"{name}_precision", place, changed, new.strip()))
    return tuple(out)


def _after_includes(text: str, helper: str) -> str:
    """The text with a function in front of the kernel."""
    at = text.index("\n\n") + 2 if text.startswith("#include") else 0
    return f"{text[:at]}{helper}\n{text[at:]}"


def _rewritten(pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> Edits:
    """The operator that rewrites each match of a pattern in turn."""

    def edits(text: str) -> Iterator[Edit]:
        for match in pattern.finditer(text):
            yield match.start(), match.end(), replacement(match)

    return edits


def _header(start: str | None = None, test: str | None = None, step: str = "{v}++") -> Edits:
    """The operator that rewrites loop headers; ``{v}``, ``{a}`` and ``{b}`` are variable, start and
    bound.
    """

    def change(match: re.Match[str]) -> str:
        v, a, _, b = match.groups()
        parts = (start or "{a}", test or "{v} < {b}", step)
        first, then, last = (part.format(v=v, a=a, b=b) for part in parts)
        return f"for (int64_t {v} = {first}; {then}; {last})"

    return _rewritten(_FOR, change)


def _loops_around(text: str, at: int) -> list[tuple[str, str]]:
    """Variable and bound of the loops whose header stands before a place and that is indented more,
    outermost first.
    """
    indent = _indent(text, at)
    out: list[tuple[str, str, int]] = []
    for match in _FOR.finditer(text, 0, at):
        depth = _indent(text, match.start())
        out = [loop for loop in out if loop[2] < depth]
        if depth < indent:
            out.append((match[1], match[4], depth))
    return [(variable, bound) for variable, bound, _ in out]


def _indent(text: str, at: int) -> int:
    line = text[text.rfind("\n", 0, at) + 1 :]
    return len(line) - len(line.lstrip(" "))


def _guarded_sum(condition: str) -> Edits:
    """The operator that adds a term only where a condition on its loop holds."""

    def edits(text: str) -> Iterator[Edit]:
        for match in _SUM.finditer(text):
            at = match.start() + len(match["indent"])
            loops = _loops_around(text, at)
            if loops:
                v, b = loops[-1]
                guard = condition.format(v=v, b=b)
                yield match.start(), match.end(), f"{match['indent']}if ({guard})\n{match[0]}"

    return edits


def _spoiled_store(value: str, outermost: bool = True) -> Edits:
    """The operator that stores something else for one iteration of a loop around it."""

    def edits(text: str) -> Iterator[Edit]:
        for match in _STORE.finditer(text):
            loops = _loops_around(text, match.start() + len(match["indent"]))
            if loops and match["value"] != "0":
                v, b = loops[0 if outermost else -1]
                new = value.format(v=v, b=b, value=match["value"])
                yield match.start(), match.end(), f"{match['indent']}{match['target']} = {new};"

    return edits


def _rounding(text: str) -> Iterator[Edit]:
    """Sums and stores that are rounded to fewer digits."""
    for match in _SUM.finditer(text):
        target, term = match["target"], match["term"]
        yield match.start(), match.end(), f"{match['indent']}{target} = rounded({target} + {term});"
    for match in _STORE.finditer(text):
        if match["value"] != "0":
            new = f"{match['indent']}{match['target']} = rounded({match['value']});"
            yield match.start(), match.end(), new


def _constant(match: re.Match[str]) -> str:
    """The same number, a thousandth too large."""
    return f"{float(match[0].rstrip('f')) * 1.001:.9g}f"


def _expressions(pattern: str, replacement: str) -> Edits:
    """The operator that rewrites a piece of arithmetic outside loop headers, declarations of the
    function and sizes.
    """
    compiled = re.compile(pattern)

    def edits(text: str) -> Iterator[Edit]:
        body = text.index("{")
        for match in compiled.finditer(text, body):
            line = text[text.rfind("\n", 0, match.start()) + 1 : text.find("\n", match.end())]
            if "for (" not in line and "malloc" not in line:
                yield match.start(), match.end(), match.expand(replacement)

    return edits


def _removed(pattern: str) -> Edits:
    return _rewritten(re.compile(pattern, re.MULTILINE), lambda match: f"{match[1]};")


OPERATORS: dict[str, Edits] = {
    "first_iteration_dropped": _header(start="{a} + 1"),
    "last_iteration_dropped": _header(test="{v} < ({b}) - 1"),
    "one_iteration_too_many": _header(test="{v} <= {b}"),
    "every_other_iteration": _header(step="{v} += 2"),
    "tail_dropped": _header(test="{v} < ({b}) / 8 * 8"),
    "second_half_dropped": _header(test="{v} < ({b} + 1) / 2"),
    "middle_iteration_dropped": _header(step="{v} += {v} == ({b}) / 2 - 1 ? 2 : 1"),
    "middle_term_dropped": _guarded_sum("{v} != ({b}) / 2"),
    "last_term_dropped": _guarded_sum("{v} != ({b}) - 1"),
    "sum_overwritten": _expressions(r" \+= ", " = "),
    "sum_subtracted": _expressions(r" \+= ", " -= "),
    "plus_to_minus": _expressions(r" \+ ", " - "),
    "minus_to_plus": _expressions(r" - ", " + "),
    "product_to_sum": _expressions(r"(\]|\)) \* ", r"\1 + "),
    "quotient_to_product": _expressions(r" / ", " * "),
    "comparison_turned": _expressions(r" > ", " < "),
    "subscript_after": _rewritten(_SUBSCRIPT, lambda match: f"[{match[1]} + 1]"),
    "subscripts_swapped": _rewritten(_STRIDED, lambda m: f"{m[3]} * {m[2]} + {m[1]}]"),
    "stride_too_short": _rewritten(_STRIDED, lambda m: f"{m[1]} * ({m[2]} - 1) + {m[3]}]"),
    "starts_at_one": _expressions(r"(?<== )0;", "1;"),
    "not_initialised": _removed(r"^( +)\w+\[.+\] = 0;$"),
    "constant_changed": _rewritten(_CONSTANT, _constant),
    "one_row_zero": _spoiled_store("{v} == ({b}) / 2 ? 0 : {value}"),
    "one_element_nudged": _spoiled_store("({value}) * ({v} == ({b}) - 1 ? 1.001f : 1)", False),
}
