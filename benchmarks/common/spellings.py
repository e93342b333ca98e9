"""Pairs of programs whose truth is known: the same in another spelling, or another program.

C is respelled and changed as text, by patterns that know nothing of the forms that are measured
with it; loop nests are told apart by running them and noting every access in order.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Const,
    Expr,
    For,
    If,
    Load,
    Procedure,
    Stmt,
    Store,
    Var,
    walk,
)
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.types import Candidate, Directive, Language

HONEST = Path(__file__).resolve().parents[2] / "evaluators" / "corpus" / "honest"
_DECLARED = re.compile(
    r"\b(?:int64_t|int32_t|int|size_t|float|double)\s+(?:\*\s*)?(?:restrict\s+)?(\w+)\s*(?=[=,;)[])"
)
_WORD = re.compile(r"\b[A-Za-z_]\w*")
_LITERAL = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", re.DOTALL)
_OPERATORS = {
    "+": "-",
    "-": "+",
    "*": "+",
    "<": "<=",
    "+=": "-=",
    "<=": "<",
    "++": "--",
    "/": "*",
    ">": "<",
    "&": "|",
}
_SIGNS = re.compile(r"(?<=[\w)\] ])(\+=|<=|\+\+|[-+*<>/&])(?=[ \w(;)])")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


def texts() -> list[tuple[str, str]]:
    """The C of the honest corpus with the headers that it leaves to its reader, by name."""
    head = "#include <stdint.h>\n#include <math.h>\n#include <stdlib.h>\n"
    return [(path.stem, head + path.read_text()) for path in sorted(HONEST.glob("*.c"))]


def locals_of(text: str) -> list[str]:
    """Names that are declared in functions and mean nothing else anywhere in the text."""
    lines = re.sub(r"\\\n", " ", text).split("\n")
    fixed = "\n".join(
        line
        for line in lines
        if line.lstrip().startswith("#") or (line.startswith("static") and "(" not in line)
    )
    fixed += " ".join(_LITERAL.findall(text))
    taken = set(_WORD.findall(fixed)) | set(re.findall(r"(?:\.|->|goto|struct)\s*(\w+)", text))
    taken |= set(re.findall(r"(\w+)\s*\(", text))
    return [name for name in dict.fromkeys(_DECLARED.findall(text)) if name not in taken]


def renamed(text: str, rng: random.Random) -> str:
    """The text with other names for locals: new ones, or their own in another order."""
    names = locals_of(text)
    others = [f"{rng.choice('abqtuvw')}_{rng.randrange(100)}{n}" for n in range(len(names))]
    if rng.random() < 0.5:
        others = rng.sample(names, len(names))
    table = dict(zip(names, others, strict=True))
    parts = _split(text)
    return "".join(
        part if silent else _WORD.sub(lambda m: table.get(m[0], m[0]), part)
        for part, silent in parts
    )


def respaced(text: str, rng: random.Random) -> str:
    """The text with other blanks, line breaks and comments."""
    out = []
    for part, silent in _split(text):
        if silent:
            comment = part.startswith(("//", "/*"))
            out.append("" if comment and rng.random() < 0.7 else part)
            continue
        lines = []
        for line in part.split("\n"):
            if line.lstrip().startswith("#") or line.endswith("\\"):
                lines.append(line + " " * rng.randrange(2))
                continue
            line = " " * rng.choice((0, 1, 2, 4, 7)) + line.strip()
            line = re.sub(" ", lambda _: rng.choice((" ", "  ", " /* so */ ", "\t", " ")), line)
            line = re.sub(r"([;{}])", lambda m: m[0] + rng.choice(("", " ", "\n")), line)
            lines.append(line + rng.choice(("", "  ", " // here\n", "\n", " /* and\nthere */")))
        out.append("\n".join(lines))
    return "".join(out)


def _split(text: str) -> list[tuple[str, bool]]:
    """The text in pieces, those of comments and literals marked."""
    out, at = [], 0
    for found in _LITERAL.finditer(text):
        out += [(text[at : found.start()], False), (found[0], True)]
        at = found.end()
    return [*out, (text[at:], False)]


def changed(text: str, rng: random.Random) -> str:
    """The text with one name, operator or number another, or without a statement."""
    names = locals_of(text)
    body = text.index("{") if "{" in text else 0
    kind = rng.choice(("name", "name", "sign", "number", "statement"))
    if kind == "name" and len(names) > 1:
        pattern = "|".join(rf"(?<![\w.>])(?:{name})(?!\w)" for name in names)
        places = [
            m for m in re.finditer(pattern, text) if m.start() > body and not _declares(text, m)
        ]
        found = rng.choice(places) if places else None
        new = rng.choice([name for name in names if found is None or name != found[0]])
    elif kind == "sign":
        places = [m for m in _SIGNS.finditer(text) if m.start() > body]
        found = rng.choice(places) if places else None
        new = "" if found is None else _OPERATORS[found[0]]
    elif kind == "number":
        places = [m for m in _NUMBER.finditer(text) if m.start() > body]
        found = rng.choice(places) if places else None
        new = "" if found is None else str(int(found[0]) + rng.choice((1, 2, 7)))
    else:
        places = [
            m for m in re.finditer(r"(?<=\n)[ \t]*[^\n{}]*[=+)];(?=\n)", text) if m.start() > body
        ]
        found, new = (rng.choice(places) if places else None), ""
    if found is None:
        return text
    return text[: found.start()] + new + text[found.end() :]


def _declares(text: str, place: re.Match[str]) -> bool:
    return any(m.span(1) == place.span() for m in _DECLARED.finditer(text))


def nest_facts(procedure: Procedure) -> tuple[object, ...]:
    """What tells loop nests apart: the loops with depth, kind and extent, and every element that is
    written or read, in order.
    """
    outline: list[object] = []
    touched: list[object] = []

    def shape(node: Stmt, depth: int) -> None:
        match node:
            case For(_, extent, body, kind):
                outline.append((depth, str(kind), str(extent)))
                shape(body, depth + 1)
            case If(_, then):
                outline.append((depth, "if"))
                shape(then, depth + 1)
            case Block(items):
                for item in items:
                    shape(item, depth)

    shape(procedure.body, 0)
    _touch(procedure.body, {}, touched)
    return (*outline, *touched)


def _touch(node: Stmt, values: dict[str, int], out: list[object]) -> None:
    match node:
        case Store(tensor, indices, value, _):
            loads = [n for n in walk(value) if isinstance(n, Load)]
            reads = [(n.tensor, *(_whole(i, values) for i in n.indices)) for n in loads]
            out.append((tensor, *(_whole(i, values) for i in indices), *reads))
        case For(var, extent, body, _):
            for number in range(_whole(extent, values)):
                _touch(body, {**values, var: number}, out)
        case If(condition, then):
            if _whole(condition, values):
                _touch(then, values, out)
        case Block(items):
            for item in items:
                _touch(item, values, out)


def _whole(node: Expr, values: dict[str, int]) -> int:
    match node:
        case Const(value, _):
            return int(value)
        case Var(name):
            return values[name]
        case Binary(op, left, right):
            a, b = _whole(left, values), _whole(right, values)
            found = {
                "add": a + b,
                "sub": a - b,
                "mul": a * b,
                "floordiv": a // b if b else 0,
                "mod": a % b if b else 0,
                "min": min(a, b),
                "max": max(a, b),
                "lt": a < b,
                "and": a and b,
            }
            return int(found[op])
    raise ValueError(f"expected whole numbers, found {node}")


def other_schedules(
    space: ScheduleSpace, rng: np.random.Generator
) -> Iterator[tuple[Candidate, Candidate]]:
    """Schedules with neighbours without end; some of the pairs are the same nest."""
    while True:
        one = space.sample(rng)
        other = space.mutate(one, rng)
        if other is not None:
            yield one, other


def same_schedules(
    space: ScheduleSpace, rng: np.random.Generator
) -> Iterator[tuple[Candidate, Candidate]]:
    """Schedules and the same in another order, with other names or with defaults written out, as
    far as they stay legal.
    """
    while True:
        one = space.sample(rng)
        trace = [step for step in one.payload if isinstance(step, Directive)]
        if len(trace) < 2:
            continue
        kind = int(rng.integers(3))
        if kind == 0:
            place = int(rng.integers(len(trace) - 1))
            trace[place], trace[place + 1] = trace[place + 1], trace[place]
        elif kind == 1:
            trace = _with_names(trace, rng)
        else:
            trace = [_written_out(step) for step in trace]
        other = Candidate(Language.SCHEDULE, tuple(trace))
        if other != one and not space.check(other):
            yield one, other


def _with_names(trace: list[Directive], rng: np.random.Generator) -> list[Directive]:
    """Other names for the loops that splits make."""
    table: dict[str, str] = {}
    out = []
    for step in trace:
        target = table.get(step.target, step.target)
        args = tuple(table.get(a, a) if isinstance(a, str) else a for a in step.args)
        if step.op == "split":
            factor, *names = step.args
            usual = [str(n) for n in names[:2]] or [f"{step.target}o", f"{step.target}i"]
            new = [f"{name}_{int(rng.integers(10))}x" for name in usual]
            table.update(zip(usual, new, strict=False))
            args = (factor, *new, *names[2:])
        out.append(Directive(step.op, target, args))
    return out


def _written_out(step: Directive) -> Directive:
    if step.op == "split" and len(step.args) == 1:
        return Directive("split", step.target, (*step.args, f"{step.target}o", f"{step.target}i"))
    return step


def scoped(rng: random.Random) -> Iterator[str]:
    """Texts without end that have one shape, a function of nested scopes, and names drawn anew: few
    names, so that most hide others, and some of them globals.
    """
    slots = [0]

    def name() -> str:
        slots[0] += 1
        return f"\x01{slots[0]}\x02"

    def expression() -> str:
        return rng.choice(
            (f"{name()} + {name()}", f"{name()} * 3", f"F({name()})", f"g.a - {name()}", "7")
        )

    def statement(depth: int) -> str:
        kind = rng.randrange(11 if depth else 3)
        if kind == 0:
            return f"int {name()} = {expression()};"
        if kind in (1, 2):
            return f"{name()} = {expression()};"
        inner, other = plain(depth - 1), plain(depth - 1)
        if kind in (3, 4):
            return body(depth - 1)
        if kind in (5, 6):
            return f"for (int {name()} = 0, {name()} = 2; {name()} < 3; {name()}++) {inner}"
        if kind == 7:
            return f"if ({expression()}) {inner} else {other}"
        if kind == 8:
            return f"do {inner} while ({expression()} > 9);"
        if kind == 9:
            return f"switch ({name()}) {{ case 1: {other} break; default: {inner} }}"
        return f"while ({expression()} > 9) {inner}"

    def plain(depth: int) -> str:
        """A statement that is no declaration."""
        while (found := statement(max(depth, 0))).startswith("int "):
            pass
        return found

    def body(depth: int) -> str:
        return f"{{ {' '.join(statement(depth) for _ in range(rng.randrange(1, 4)))} }}"

    head = "struct s { int a, b; } g; int a, b;\n" + rng.choice(
        ("", "#define F(x) (x + 1)\n", f"#define F(x) (x + {rng.choice('abcd')})\n")
    )
    head += "" if "define" in head else "int F(int a) { return a; }\n"
    lines = " ".join(statement(3) for _ in range(rng.randrange(2, 6)))
    shape = f"{head}int f(int {name()}, int {name()})\n{{ {lines} return {name()}; }}\n"
    chosen: dict[str, str] = {}
    while True:
        kind = rng.randrange(3) if chosen else 0
        if kind == 0:
            chosen = {str(slot): rng.choice("abcd") for slot in range(1, slots[0] + 1)}
        elif kind == 1:
            chosen[rng.choice(list(chosen))] = rng.choice("abcd")
        else:
            table = dict(zip("abcd", rng.sample("abcd", 4), strict=True))
            chosen = {slot: table[name] for slot, name in chosen.items()}
        yield _filled(shape, chosen)


def _filled(shape: str, names: dict[str, str]) -> str:
    return re.sub("\x01(\\d+)\x02", lambda slot: names[slot[1]], shape)
