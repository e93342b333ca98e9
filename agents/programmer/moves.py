"""Edits of C that keep its meaning up to rounding: what a programmer tries on a loop nest.

An edit is offered only where the text shows that it is sound: the tests on names and indices
refuse too much rather than too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelwright.agents.programmer.ctext import Loop, all_loops, blanked, flush, loops, replaced

UNROLL = (2, 4, 8, 16)
CHAINS = (4, 8, 16)
JAM = (2, 4, 8)
# What still fits an answer.
MOST_TEXT = 8000
_SCALAR_WRITE = re.compile(r"(?<![\w\].>])([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)")
_SCALAR_STEP = re.compile(r"(?:\+\+|--)\s*\w+|(?<![\w\]])[A-Za-z_]\w*\s*(?:\+\+|--)")
_ELEMENT_STEP = re.compile(r"\]\s*(?:\+\+|--)")
_ELEMENT_WRITE = re.compile(r"(\w+)\[([^\[\]]*)\]\s*[-+*/]?=(?!=)")
_NESTED_WRITE = re.compile(r"\w+\[[^\[\]]*\[.*\]\s*[-+*/%&|^]?=(?!=)")
_DECLARED = re.compile(r"\b(?:float|double|int64_t|int32_t|int|long|size_t)\s+(\w+)\s*=")
_GREATEST = re.compile(r"if \((?P<e>.+) > (?P<s>\w+)\) (?P=s) = (?P=e);")


@dataclass(frozen=True, slots=True)
class Move:
    """An edit: what it is called, the text after it, how much it promises, and the lines on which
    the loop that it changes begins and ends, pragmas included.
    """

    name: str
    text: str
    promise: float
    lines: tuple[int, int] = (0, 0)


def moves(text: str, spans: list[tuple[int, int]]) -> list[Move]:
    """Every edit of a loop that lies in one of the spans, in the order of the text; none that only
    moves lines to the side.
    """
    out, words = [], text.split()
    for loop in all_loops(text):
        if any(low <= loop.start and loop.end <= high for low, high in spans):
            lines = text.count("\n", 0, loop.start) + 1, text.count("\n", 0, loop.end) + 1
            out += [replace(move, lines=lines) for move in _moves_of(text, loop)]
    return [m for m in out if len(m.text) <= MOST_TEXT and m.text.split() != words]


def _moves_of(text: str, loop: Loop) -> Iterator[Move]:
    before = text[: loop.start]
    if loop.is_innermost:
        yield from _unrolled(text, loop)
    if not loop.var:
        return
    if loop.is_innermost:
        yield from _chains(text, before, loop)
        yield from _reciprocal(text, before, loop)
        yield from _pragmas(text, loop)
    else:
        yield from _jam(text, loop)


def _unrolled(text: str, loop: Loop) -> Iterator[Move]:
    statement = flush(text[loop.head : loop.end], loop.width)
    for times in UNROLL:
        new = f"#pragma GCC unroll {times}\n{statement}"
        yield Move(f"unroll by {times}", replaced(text, loop, new), 0.1)


def _pragmas(text: str, loop: Loop) -> Iterator[Move]:
    statement = flush(text[loop.head : loop.end], loop.width)
    if not is_independent(loop.body):
        return
    summed = accumulator(loop.body)
    written = scalars_written(loop.body)
    if not written:
        new = f"#pragma GCC ivdep\n{statement}"
        yield Move("no dependence", replaced(text, loop, new), 0.15)
        new = f"#pragma omp simd\n{statement}"
        yield Move("simd", replaced(text, loop, new), 0.2)
    elif summed is not None and written == {summed}:
        new = f"#pragma omp simd reduction(+ : {summed})\n{statement}"
        yield Move("simd reduction", replaced(text, loop, new), 0.4)


def _chains(text: str, before: str, loop: Loop) -> Iterator[Move]:
    """A reduction in several accumulators, so that one addition need not wait for the last."""
    if not loop.is_straight:
        return
    top = _GREATEST.fullmatch(" ".join(loop.body.split()))
    name = top["s"] if top else accumulator(loop.body)
    kind = _float_type(before, name) if name else None
    if name is None or kind is None or not (top or scalars_written(loop.body) == {name}):
        return
    if top and re.search(rf"\b{name}\b", top["e"]):
        return
    body = loop.code
    for count in CHAINS:
        parts = [f"{name}_{i}" for i in range(count)]
        start = name if top else "0"
        lines = [f"{kind} {', '.join(f'{part} = {start}' for part in parts)};"]
        copies = [
            f"const {loop.type} {loop.var} = {loop.var}_0 + {i};\n"
            + re.sub(rf"\b{name}\b", part, body)
            for i, part in enumerate(parts)
        ]
        lines.append(_blocked(loop, count, copies, re.sub(rf"\b{name}\b", parts[0], body)))
        if top:
            lines += [f"if ({part} > {name}) {name} = {part};" for part in parts]
        else:
            lines.append(f"{name} += {_tree(parts)};")
        new = "{\n" + _indent("\n".join(lines)) + "\n}"
        yield Move(f"{count} chains", replaced(text, loop, new), 1.0)


def _reciprocal(text: str, before: str, loop: Loop) -> Iterator[Move]:
    """One division before the loop instead of one in every iteration."""
    body = blanked(loop.body)
    for name in sorted(set(re.findall(r"/=?\s*([A-Za-z_]\w*)\b(?![\w(\[.])", body))):
        kind = _float_type(before, name)
        if kind is None or name in scalars_written(loop.body):
            continue
        inverse = f"{name}_inverse"
        new = re.sub(
            rf"/=\s*{name}\b", f"*= {inverse}", flush(text[loop.start : loop.end], loop.width)
        )
        new = re.sub(rf"/\s*{name}\b", f"* {inverse}", new)
        new = f"{{\n    const {kind} {inverse} = 1 / {name};\n{_indent(new)}\n}}"
        if not re.search(rf"\b{inverse}\b", text):
            yield Move("reciprocal", replaced(text, loop, new), 0.8)


def _jam(text: str, loop: Loop) -> Iterator[Move]:
    """Several iterations of an outer loop in one pass of the inner one (unroll and jam): what the
    inner statement updates is then loaded and stored once for all of them.
    """
    inner = loops(loop.body)
    if len(inner) != 1 or (inner[0].start, inner[0].end) != (0, len(loop.body)):
        return
    (inside,) = inner
    update = re.fullmatch(r"(\w+)\[([^\[\]]*)\] \+= ([^;]*);", " ".join(inside.body.split()))
    if update is None or not inside.is_innermost:
        return
    target, index, value = update.groups()
    depends = rf"\b{loop.var}\b"
    if re.search(depends, f"{index} {inside.first} {inside.bound}") or re.search(
        rf"\b{target}\b", value
    ):
        return
    for count in JAM:
        counter = f"const {loop.type} {loop.var} = {loop.var}_0"
        copies = "\n".join(
            f"{{\n    {counter} + {i};\n{_indent(inside.code)}\n}}" for i in range(count)
        )
        head = f"for ({inside.type} {inside.var} = {inside.first}; {inside.var} < {inside.bound}; "
        nest = f"{head}{inside.var}++) {{\n{_indent(copies)}\n}}"
        new = "{\n" + _indent(_blocked(loop, count, [nest], loop.code)) + "\n}"
        yield Move(f"jam {count}", replaced(text, loop, new), 1.2)


def _blocked(loop: Loop, count: int, copies: list[str], rest: str) -> str:
    """A loop over blocks of iterations that runs the copies, and one over what is left."""
    var, kind = f"{loop.var}_0", loop.type
    many = len(copies) > 1
    inside = "\n".join(f"{{\n{_indent(copy)}\n}}" for copy in copies) if many else copies[0]
    again = f"const {kind} {loop.var} = {var};\n{rest}"
    return (
        f"{kind} {var} = {loop.first};\n"
        f"for (; {var} + {count} <= {loop.bound}; {var} += {count}) {{\n{_indent(inside)}\n}}\n"
        f"for (; {var} < {loop.bound}; {var}++) {{\n{_indent(again)}\n}}"
    )


def accumulator(body: str) -> str | None:
    """The one scalar that a loop body adds to, and does not use otherwise."""
    plain = blanked(body)
    found = set(re.findall(r"(?<![\w\].>])([A-Za-z_]\w*)\s*\+=", plain))
    name = found.pop() if len(found) == 1 else None
    once = name is not None and len(re.findall(rf"\b{name}\b", plain)) == 1
    return name if once else None


def scalars_written(body: str) -> set[str]:
    """Scalars that a body changes and does not declare."""
    plain = blanked(body)
    written = set(_SCALAR_WRITE.findall(plain)) - set(_DECLARED.findall(plain))
    return written | {"?"} if _SCALAR_STEP.search(plain) else written


def is_independent(body: str) -> bool:
    """Whether no iteration reads what another writes, as far as the indices show: what is written
    is read at the same index only, and no index is itself read from memory.
    """
    plain = blanked(body)
    if (
        _NESTED_WRITE.search(plain)
        or _ELEMENT_STEP.search(plain)
        or re.search(r"\*\s*\w+\s*=", plain)
    ):
        return False
    for name, index in _ELEMENT_WRITE.findall(plain):
        at = {" ".join(i.split()) for i in re.findall(rf"\b{name}\[([^\[\]]*)\]", plain)}
        others = len(re.findall(rf"\b{name}\b", plain)) - len(
            re.findall(rf"\b{name}\[[^\[\]]*\]", plain)
        )
        if at != {" ".join(index.split())} or others:
            return False
    return True


def _float_type(before: str, name: str) -> str | None:
    found = re.findall(rf"\b(float|double)\s+{name}\s*=", blanked(before))
    return found[-1] if found else None


def _tree(parts: list[str]) -> str:
    while len(parts) > 1:
        parts = [f"({a} + {b})" for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0].removeprefix("(").removesuffix(")")


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" if line else line for line in text.splitlines())
