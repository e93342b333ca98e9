"""Edits of C that misquote its lines as models do, with the text that each should give.

Every case begins with a true edit: some lines of a file, of which one or two are changed, with as
many around them as it takes to stand there once. What is done to its lines is done on both sides,
as by somebody who remembers them so.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelwright.agents.edit_blocks import Edit
from kernelwright.env.spaces.ctokens import tokens

# A line and whether it is one that the edit changes.
Marked = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Case:
    """An edit of a text, and what it should give; None where it is to be refused."""

    kind: str
    text: str
    edit: Edit
    wanted: str | None


def cases(texts: list[str], count: int, rng: random.Random) -> list[Case]:
    """So many cases of every kind."""
    out: list[Case] = []
    for kind, corrupt in {**CORRUPTIONS, **REFUSALS}.items():
        made = 0
        while made < count:
            case = _case(kind, rng.choice(texts), corrupt, rng)
            if case is not None and kind == "from elsewhere":
                case = replace(case, text=rng.choice(texts))
                if _stands(case):
                    continue
            if case is not None:
                out.append(case)
                made += 1
    return out


def repetitive(rng: random.Random) -> str:
    """C whose lines are all alike, as unrolled code is."""
    lines = ["void f(const float *x, float *y, int64_t n)", "{"]
    parts, kind = range(rng.choice((4, 8, 16))), rng.randrange(3)
    if kind == 0:
        lines += [f"    float s{k} = 0;" for k in parts]
        lines += ["    for (int64_t i = 0; i < n; i += 8) {"]
        lines += [f"        s{k} += x[i + {k}] * y[i + {k}];" for k in parts]
        lines += ["    }", *(f"    y[{k}] = s{k};" for k in parts)]
    for k in parts if kind == 1 else ():
        lines += [f"    // part {k}", f"    for (int64_t i = {k}; i < n; i += {len(parts)}) {{"]
        lines += [f"        float t = x[i + {k}];", f"        y[i] = t * {k}.0f;", "    }"]
    for k in parts if kind == 2 else ():
        lines += [f"    float a{k} = x[{k}];", f"    float b{k} = a{k} * a{k};"]
        lines += [f"    y[{k}] = b{k} + a{k};"]
    return "\n".join([*lines, "}", ""])


def _case(
    kind: str, text: str, corrupt: Callable[..., list[Marked] | None], rng: random.Random
) -> Case | None:
    lines = text.split("\n")
    found = _true_edit(lines, rng)
    if found is None:
        return None
    low, high, change = found
    marked = [(lines[at], at in change) for at in range(low, high)]
    search = corrupt(marked, rng)
    same = search is not None and [line for line, _ in search] == lines[low:high]
    if search is None or (same and kind in CORRUPTIONS):
        return None
    # Both sides are quoted alike; what is new is written down as it should be.
    new = {at: _changed(lines[at], rng) for at in change}
    if any(new[at] == lines[at] for at in change):
        return None
    fresh = iter([new[at] for at in sorted(change)])
    new_lines = [next(fresh) if is_changed else line for line, is_changed in search]
    wanted = [new.get(at, line) for at, line in enumerate(lines)]
    edit = Edit(tuple(line for line, _ in search), tuple(new_lines))
    return Case(kind, text, edit, None if kind in REFUSALS else "\n".join(wanted))


def _stands(case: Case) -> bool:
    """Whether the lines of an edit, or one of them that has a semicolon, are in its text."""
    flat = {"".join(line.split()) for line in case.text.split("\n")}
    return any("".join(line.split()) in flat for line in case.edit.search if ";" in line)


def _true_edit(lines: list[str], rng: random.Random) -> tuple[int, int, set[int]] | None:
    """Lines that stand once as code, and which of them change."""
    inner = [
        at for at, line in enumerate(lines) if re.search(r"[=(].*;\s*$", line) and line[:1] == " "
    ]
    if not inner:
        return None
    change = {rng.choice(inner)}
    low, high = min(change) - rng.randrange(1, 5), max(change) + 1 + rng.randrange(1, 5)
    low, high = max(low, 0), min(high, len(lines))
    flat = [" ".join(line.split()) for line in lines]
    while sum(flat[at : at + high - low] == flat[low:high] for at in range(len(flat))) > 1:
        low, high = max(low - 1, 0), min(high + 1, len(lines))
    return low, high, change


def _changed(line: str, rng: random.Random) -> str:
    """A new line in the place of one: another number or operator, or a statement more."""
    kind = rng.randrange(3)
    if kind == 0 and re.search(r"\d", line):
        return re.sub(r"\d+", lambda m: str(int(m[0]) + 3), line, count=1)
    if kind == 1 and " + " in line:
        return line.replace(" + ", " - ", 1)
    return f"{line} __builtin_prefetch(0);"


def _indentation(marked: list[Marked], rng: random.Random) -> list[Marked]:
    kind = rng.randrange(3)
    if kind == 0:
        return [(line.lstrip(), m) for line, m in marked]
    if kind == 1:
        return [("  " + line if line else line, m) for line, m in marked]
    return [(re.sub(r"^( {4})+", lambda f: "\t" * (len(f[0]) // 4), line), m) for line, m in marked]


def _trailing(marked: list[Marked], rng: random.Random) -> list[Marked]:
    return [(line + " " * rng.randrange(3), m) for line, m in marked]


def _blank(marked: list[Marked], rng: random.Random) -> list[Marked]:
    out = [(line, m) for line, m in marked if line.strip()]
    out.insert(rng.randrange(1, len(out) + 1), ("", False))
    return out


def _comment(marked: list[Marked], rng: random.Random) -> list[Marked]:
    at = rng.choice([i for i, (_, m) in enumerate(marked) if not m])
    out = [(re.sub(r"\s*(?://[^\n]*|/\*.*?\*/)", "", line), m) for line, m in marked]
    if out[at][0].strip() and not out[at][0].rstrip().endswith("\\"):
        out[at] = (f"{out[at][0]}  // the next one", False)
    return out


def _missing(marked: list[Marked], rng: random.Random) -> list[Marked] | None:
    """A line of the surroundings that has no semicolon is left out."""
    able = [i for i, (line, m) in enumerate(marked) if not m and line.strip() and ";" not in line]
    if not able or len(marked) < 4:
        return None
    gone = rng.choice(able)
    return [each for i, each in enumerate(marked) if i != gone]


def _variable(marked: list[Marked], rng: random.Random) -> list[Marked] | None:
    """A variable of one line of the surroundings has another name."""
    able = [
        (i, name)
        for i, (line, m) in enumerate(marked)
        if not m
        for name in re.findall(r"\b[a-z]\w*\b(?!\s*\()", line)
        if name not in ("for", "if", "float", "const", "int64_t", "int", "double", "return", "else")
    ]
    if len(marked) < 3 or not able:
        return None
    at, name = rng.choice(able)
    new = name + rng.choice(("0", "_", "x", "s"))
    return [
        (re.sub(rf"\b{name}\b", new, line) if i == at else line, m)
        for i, (line, m) in enumerate(marked)
    ]


def _spacing(marked: list[Marked], rng: random.Random) -> list[Marked]:
    tight = rng.random() < 0.5

    def respaced(line: str) -> str:
        body = line.lstrip()
        pad = line[: len(line) - len(body)]
        other = re.sub(r" ([-+*/<=]|[-+*/]=) ", r"\1", body) if tight else body.replace("(", "( ")
        return pad + other

    return [(line if '"' in line else respaced(line), m) for line, m in marked]


def _breaks(marked: list[Marked], rng: random.Random) -> list[Marked] | None:
    """Two lines of the surroundings are one, or one is two."""
    out = list(marked)
    for i in rng.sample(range(len(out) - 1), len(out) - 1):
        (one, a), (two, b) = out[i], out[i + 1]
        plain = not re.search(r"#|//|\\$", one) and not two.lstrip().startswith("#")
        if not a and not b and one.strip() and two.strip() and plain:
            out[i : i + 2] = [(f"{one} {two.strip()}", False)]
            return out
    return None


def _elided(marked: list[Marked], rng: random.Random) -> list[Marked] | None:
    able = [i for i, (_, m) in enumerate(marked) if not m and 0 < i < len(marked) - 1]
    if not able:
        return None
    dots = rng.choice(
        ("...", "// ...", "    // ... existing code ...", "/* rest of the loop */", "…")
    )
    out = list(marked)
    out[rng.choice(able)] = (dots, False)
    return out


def _stale(marked: list[Marked], rng: random.Random) -> list[Marked] | None:
    """The line that changes is quoted with a number or a name that it no longer has."""
    at = next(i for i, (_, m) in enumerate(marked) if m)
    line = marked[at][0]
    names = re.findall(r"(?<![\w.])(?:[a-z]\w*|\d+)\b(?!\s*\()", line)
    if not names:
        return None
    name = rng.choice(names)
    new = str(int(name) + 1) if name.isdigit() else f"{name}_"
    out = list(marked)
    out[at] = (re.sub(rf"(?<![\w.]){name}\b", new, line, count=1), True)
    return out


CORRUPTIONS: dict[str, Callable[..., list[Marked] | None]] = {
    "indentation": _indentation,
    "trailing blanks": _trailing,
    "blank lines": _blank,
    "spacing": _spacing,
    "comment": _comment,
    "line left out": _missing,
    "variable renamed": _variable,
    "line breaks": _breaks,
    "changed line misquoted": _stale,
}
REFUSALS: dict[str, Callable[..., list[Marked] | None]] = {
    "elided": _elided,
    "from elsewhere": lambda marked, rng: marked,
}


def is_wanted(case: Case, found: str) -> bool:
    """Whether a text is what a case should give, up to blanks and comments."""
    return case.wanted is not None and _code(found) == _code(case.wanted)


def _code(text: str) -> list[str]:
    return [token.text for token in tokens(text.replace("assert", "asserted"))]
