"""Loop nests as a prompt prints them, and register tiles of them as directives."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelwright.agents.dialects.fences import blocks
from kernelwright.agents.programmer.background import Machine

_LOOP = re.compile(r"^( *)for (\w+) in (\d+):")
_STORE = re.compile(r"^( *)(\w+)\[(.*?)\] (\+=|\*=|min=|max=|=) (.*)$")
# A split by the names that `write` gives: what is left inside is a row, a width or lanes.
_CUT = re.compile(r"split\('(\w+)', (\d+), '\w+', '\w+_(\w)'\)")


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops around one store, outermost first, with what the store and its value are indexed by."""

    loops: tuple[tuple[str, int], ...]
    indices: tuple[str, ...]
    reduces: bool
    value: str

    @property
    def names(self) -> tuple[str, ...]:
        """The loops' names."""
        return tuple(name for name, _ in self.loops)

    @property
    def reduction(self) -> tuple[str, ...]:
        """Loops that the stored element does not depend on."""
        used = set(re.findall(r"\w+", " ".join(self.indices)))
        return tuple(name for name in self.names if name not in used)


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions for a whole procedure: rows and vectors of the register tile, lanes, the order of
    blocks, threads.
    """

    rows: int
    vectors: int
    lanes: int
    across: bool
    threads: bool

    @property
    def held(self) -> int:
        """Vectors in registers."""
        return self.rows * self.vectors

    def promise(self, machine: Machine) -> float:
        """How good it looks before anything is known, in log2 of speed."""
        return machine.hope(self.held, self.lanes) + 0.5 * self.threads

    def apart(self, other: Plan) -> int:
        """In how many decisions two differ."""
        pairs = ((self.rows, other.rows), (self.vectors, other.vectors), (self.lanes, other.lanes))
        ways = (self.across, other.across), (self.threads, other.threads)
        return sum(x != y for x, y in (*pairs, *ways))


def read_nests(rules: str) -> list[Nest]:
    """The nests of the printed procedure, in order."""
    shown = blocks(rules)
    stack: list[tuple[int, str, int]] = []
    out = []
    for line in (shown[0].text if shown else "").splitlines():
        depth = len(line) - len(line.lstrip())
        stack = [entry for entry in stack if entry[0] < depth]
        loop, store = _LOOP.match(line), _STORE.match(line)
        if loop:
            stack.append((depth, loop[2], int(loop[3])))
        elif store:
            indices = tuple(part.strip() for part in store[3].split(","))
            loops = tuple((name, extent) for _, name, extent in stack)
            out.append(Nest(loops, indices, store[4] != "=", store[5]))
    return out


def read_plan(text: str) -> Plan | None:
    """The plan that a schedule carries out; None if it has none that `write` would."""
    cuts = {m[3]: (m[1], int(m[2])) for m in _CUT.finditer(text)}
    width = cuts.get("w")
    if width is None:
        return None
    _, rows = cuts.get("r", ("", 1))
    _, lanes = cuts.get("v", width)
    across = re.search(rf"reorder\(.*'{width[0]}_o', '\w+_o'", text) is not None
    return Plan(rows, max(width[1] // lanes, 1), lanes, across, "parallel(" in text)


def write(plan: Plan, nests: list[Nest]) -> str:
    """A plan as directives, nest by nest."""
    return "".join(_write_nest(plan, nest) for nest in nests)


def _write_nest(plan: Plan, nest: Nest) -> str:
    unit = nest.indices[-1]
    extents = dict(nest.loops)
    spatial = [name for name in nest.names if name not in nest.reduction]
    if unit not in extents or not spatial:
        return ""
    outer = next((n for n in spatial if n != unit), None)
    if _sums_along_memory(nest, unit):
        return _many_chains(plan, nest, unit)
    out, order = [], []
    if outer is not None and nest.reduction and plan.rows > 1 and extents[outer] >= plan.rows:
        out.append(f"split('{outer}', {plan.rows}, '{outer}_o', '{outer}_r')")
        order += [f"{outer}_o", f"{outer}_r"]
    width = plan.lanes * plan.vectors
    if extents[unit] < plan.lanes:
        return ""
    if width > extents[unit]:
        width = plan.lanes
    out.append(f"split('{unit}', {width}, '{unit}_o', '{unit}_w')")
    several = width > plan.lanes
    if several:
        out.append(f"split('{unit}_w', {plan.lanes}, '{unit}_u', '{unit}_v')")
    lanes = f"{unit}_v" if several else f"{unit}_w"
    if nest.reduction and len(nest.loops) == len(spatial) + len(nest.reduction):
        blocks_ = [f"{unit}_o"]
        if order:
            blocks_ = [f"{unit}_o", order[0]] if plan.across else [order[0], f"{unit}_o"]
        rest = [n for n in spatial if n not in (unit, outer if order else None)]
        inner = ([order[1]] if order else []) + ([f"{unit}_u"] if several else [])
        names = [*rest, *blocks_, *nest.reduction, *inner, lanes]
        out.append(f"reorder({', '.join(map(repr, names))})")
    if order:
        out.append(f"unroll('{order[1]}')")
    if several:
        out.append(f"unroll('{unit}_u')")
    out.append(f"vectorize('{lanes}')")
    if plan.threads:
        first = order[0] if order else (spatial[0] if spatial[0] != unit else f"{unit}_o")
        out.append(f"parallel('{first}')")
    return "".join(f"{line}\n" for line in out)


def _sums_along_memory(nest: Nest, unit: str) -> bool:
    """Whether what lies next to each other in memory is summed up: lanes along the stored elements
    would then gather.
    """
    last = [part.rpartition(",")[2] for part in re.findall(r"\[([^\[\]]*)\]", nest.value)]
    words = [set(re.findall(r"\w+", part)) for part in last]
    along = any(word & set(nest.reduction) for word in words)
    return along and not any(unit in word for word in words)


def _many_chains(plan: Plan, nest: Nest, unit: str) -> str:
    """Several sums side by side, where one would wait for itself."""
    extents = dict(nest.loops)
    rows = plan.rows * plan.vectors
    if rows < 2 or rows > 64 or extents[unit] < rows or not nest.reduction:
        return ""
    names = [f"{unit}_o", *nest.reduction, f"{unit}_r"]
    listed = ", ".join(map(repr, names))
    return (
        f"split('{unit}', {rows}, '{unit}_o', '{unit}_r')\nreorder({listed})\nunroll('{unit}_r')\n"
    )
