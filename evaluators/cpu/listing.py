"""What a compiler made of a kernel, read from its assembly (x86-64 in AT&T's syntax): the vectors
that it computes on, spills, calls, and the instructions of the innermost loops.

Counts are of instructions as they are written, not as often as they run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

MOST_LOOPS = 6
MOST_REMARKS = 10
# Where the judge's own call of a kernel stands.
CALLER = "kw_call.c"
_LABEL = re.compile(r"^([.\w$]+):")
_INSTRUCTION = re.compile(r"^\s+([a-z][a-z0-9.]*)(?:\s+(.*?))?\s*(?:#.*)?$")
_LINE = re.compile(r"^\s+\.loc\s+\d+\s+(\d+)")
_FLOAT = re.compile(
    r"^v?(?:fn?m(?:add|sub)(?:\d{3})?|add|sub|mul|div|sqrt|max|min|rcp\w*|rsqrt\w*)([ps])([shd])$"
)
_WHOLE = re.compile(r"^vp(?:add|sub|mul\w*?|max\w*?|min\w*?|sra\w*?|srl\w*?|sll\w*?)[bwdq]$")
_FMA = re.compile(r"^vfn?m(?:add|sub)")
_MOVE = re.compile(r"^v?mov")
_STACK = re.compile(r"\(%r[sb]p[,)]")
_REGISTER = re.compile(r"%([xyz])mm\d+")
_BITS = {"x": 128, "y": 256, "z": 512}
# A note of gcc's or a remark of clang's: the file and line, whether it worked, and what is said.
_REMARK = re.compile(r"^([^:]*):(\d+):\d+: (?:(optimized|missed): +|remark: )(.*)$")


@dataclass(frozen=True, slots=True)
class Counts:
    """Instructions of a stretch of code: all, vector and scalar floating-point and whole-number
    arithmetic, multiply-adds among them, loads, stores, moves of vector registers to and from the
    stack; the widest vector computed on in bits, 0 for none; and the functions that are called.
    """

    instructions: int = 0
    vector: int = 0
    scalar: int = 0
    fma: int = 0
    loads: int = 0
    stores: int = 0
    spills: int = 0
    bits: int = 0
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """An innermost loop; ``line`` is the first source line in it, 0 where it is not known."""

    line: int
    counts: Counts


@dataclass(frozen=True, slots=True)
class Listing:
    """What is read from the assembly of a translation unit."""

    whole: Counts
    loops: tuple[Loop, ...]

    def facts(self) -> tuple[tuple[str, float], ...]:
        """The figures of the whole by name."""
        whole = self.whole
        arithmetic = whole.vector + whole.scalar
        return (
            ("vector_bits", float(whole.bits)),
            ("vector_share", whole.vector / arithmetic if arithmetic else 0.0),
            ("fma", float(whole.fma)),
            ("spills", float(whole.spills)),
            ("calls", float(len(whole.calls))),
        )

    def text(self) -> str:
        """The innermost loops in words, one a line."""
        lines = [_in_words(loop) for loop in self.loops[:MOST_LOOPS]]
        more = len(self.loops) - MOST_LOOPS
        return "\n".join([*lines, *([f"and {more} more loops"] if more > 0 else [])])


def read_listing(assembly: str) -> Listing:
    """The counts of an assembly text, and those of its innermost loops that compute or call.

    A loop is from a label to the last jump back to it; an innermost one has no other in it.
    """
    code: list[tuple[str, str, int]] = []
    labels: dict[str, int] = {}
    line = 0
    for text in assembly.splitlines():
        label, place = _LABEL.match(text), _LINE.match(text)
        if label:
            labels[label[1]] = len(code)
        elif place:
            line = int(place[1])
        elif (found := _INSTRUCTION.match(text)) and not text.lstrip().startswith("."):
            code.append((found[1], found[2] or "", line))
    ends: dict[int, int] = {}
    for place_, (name, operands, _) in enumerate(code):
        start = labels.get(operands) if name.startswith("j") else None
        if start is not None and start <= place_:
            ends[start] = place_ + 1
    spans = sorted(ends.items())
    inner = [s for s in spans if not any(_is_inside(other, s) for other in spans)]
    loops = [Loop(code[a][2], _counts(code[a:b])) for a, b in inner]
    telling = [x for x in loops if x.counts.vector or x.counts.scalar or x.counts.calls]
    return Listing(_counts(code), tuple(telling))


def _is_inside(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one != other and other[0] <= one[0] and one[1] <= other[1]


def _counts(code: Sequence[tuple[str, str, int]]) -> Counts:
    found: Counter[str] = Counter()
    bits, calls = 0, list[str]()
    for name, operands, _ in code:
        registers = _REGISTER.findall(operands)
        width = max((_BITS[kind] for kind in registers), default=0)
        is_float = _FLOAT.match(name)
        if is_float or (_WHOLE.match(name) and width):
            is_vector = not is_float or is_float[1] == "p"
            found["vector" if is_vector else "scalar"] += 1
            bits = max(bits, width if is_vector else 0)
            found["fma"] += bool(_FMA.match(name))
        if name.startswith("call"):
            calls.append(operands.partition("@")[0].strip("*"))
        found["spills"] += bool(registers and _MOVE.match(name) and _STACK.search(operands))
        if "(" in operands and not name.startswith(("lea", "nop", "prefetch", "call", "j")):
            is_store = operands.rstrip().endswith(")") and bool(_MOVE.match(name))
            found["stores" if is_store else "loads"] += 1
    return Counts(
        instructions=len(code),
        vector=found["vector"],
        scalar=found["scalar"],
        fma=found["fma"],
        loads=found["loads"],
        stores=found["stores"],
        spills=found["spills"],
        bits=bits,
        calls=tuple(calls),
    )


def _in_words(loop: Loop) -> str:
    c = loop.counts
    where = f"loop at line {loop.line}" if loop.line else "loop"
    parts = [f"{c.instructions} instructions"]
    if c.vector:
        parts.append(f"{c.vector} on vectors of up to {c.bits} bits")
    if c.scalar:
        parts.append(f"{c.scalar} on single values")
    if c.fma:
        parts.append(f"{c.fma} multiply-adds among them")
    parts.append(f"{c.loads} loads, {c.stores} stores")
    if c.spills:
        parts.append(f"{c.spills} spills")
    if c.calls:
        parts.append(f"calls {', '.join(dict.fromkeys(c.calls))}")
    return f"{where}: {'; '.join(parts)}"


def remarks(log: str, ours: Collection[str] = (CALLER,)) -> str:
    """What a compiler says of its vectorizing, one remark a line with the source's line, each once;
    that something cannot be without why is left out, and what is said of ``ours``.
    """
    found: dict[str, None] = {}
    for line in log.splitlines():
        said = _REMARK.search(line)
        if said is None or said[1] in ours or said[4].startswith("couldn't vectorize"):
            continue
        word = "" if said[3] != "missed" or said[4].startswith("not ") else "missed: "
        found.setdefault(f"line {said[2]}: {word}{said[4]}")
    lines = list(found)
    more = len(lines) - MOST_REMARKS
    return "\n".join([*lines[:MOST_REMARKS], *([f"and {more} more remarks"] if more > 0 else [])])
