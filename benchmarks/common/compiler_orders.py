"""Rows of the compiler's table: refusals confirmed and acceptances checked by brute force.

Small random programs and small problems are run statement by statement (`brute`), and every pair of
instances that must stay in order is compared with the order that a directive gives them. The order
is written here from the directive's definition, not taken from the compiler; that can be done for
the directives of `OPS`. Of all others, what a refusal says is looked at: whether the two iterations
that it names depend on each other, or the one does what it is said to do (`compiler_evidence`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from brute import Instance, Time, carried, instances, pairs, small_arrays, turned_around
from table import Row

from kernelwright.configs.resolve import resolve
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Expr,
    For,
    Load,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
    loops,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.schedule.proposals import proposals
from kernelwright.env.compiler.schedule.trace import apply, print_trace
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.program import definition_of
from kernelwright.env.types import Directive

SIZE = 24
WANTED = 500
OPS = (
    "parallel",
    "vectorize",
    "reorder",
    "reverse",
    "unimodular",
    "unroll_and_jam",
    "fission",
    "merge",
    "tile",
    "wavefront",
    "bind",
)
TINY = {
    "blur": {"h": 3, "w": 4},
    "box4": {"h": 2, "w": 2},
    "column_sum": {"rows": 3, "cols": 4},
    "gauss_seidel": {"h": 5, "w": 5, "t": 2},
    "histogram": {"n": 6, "bins": 3},
    "jacobi1d": {"n": 6, "t": 3},
    "jacobi2d": {"h": 4, "w": 5, "t": 2},
    "matmul": {"m": 3, "n": 4, "k": 3},
    "prefix_sum": {"n": 6},
    "softmax": {"rows": 2, "cols": 4},
    "transpose": {"rows": 3, "cols": 4},
}


@dataclass(slots=True)
class Tally:
    """What came of the trials."""

    refused: int = 0
    confirmed: int = 0
    legal: int = 0
    accepted: int = 0
    wrongly_accepted: list[str] = field(default_factory=list)
    unconfirmed: list[str] = field(default_factory=list)
    kept_back: list[str] = field(default_factory=list)
    formal: Counter[str] = field(default_factory=Counter)
    by_op: Counter[str] = field(default_factory=Counter)


def refusals() -> Iterator[Row]:
    """Random directives on random programs until enough were refused and enough were legal."""
    tally = Tally()
    rng = np.random.default_rng(0)
    while tally.refused < WANTED or tally.legal < WANTED:
        procedure = random_program(rng) if rng.random() < 0.7 else tiny_problem(rng)
        found = instances(procedure, small_arrays(procedure, rng))
        for op in OPS:
            offered = list(proposals(procedure, op))
            for index in rng.permutation(len(offered))[:2]:
                examine(procedure, found, offered[index], tally)
    shown = ", ".join(f"{op} {count}" for op, count in sorted(tally.by_op.items()))
    confirmed = f"{tally.confirmed} of {tally.refused} ({shown})"
    yield (
        f"refused schedules (>= {WANTED}) whose counterexample brute force confirms",
        "100%",
        confirmed + some(tally.unconfirmed),
        tally.confirmed == tally.refused,
    )
    share = tally.accepted / tally.legal
    yield (
        f"legal by brute force (>= {WANTED}) and not refused",
        ">= 99%",
        f"{tally.accepted} of {tally.legal} ({100 * share:.1f}%)"
        + some(tally.kept_back)
        + "".join(f"; not counted: {count} {why}" for why, count in tally.formal.most_common()),
        share >= 0.99,
    )
    yield (
        "illegal by brute force and accepted",
        "0",
        f"{len(tally.wrongly_accepted)}" + some(tally.wrongly_accepted),
        not tally.wrongly_accepted,
    )


def some(texts: list[str]) -> str:
    """The first of some texts, for a row."""
    return f": {' / '.join(texts[:3])}" if texts else ""


def examine(
    procedure: Procedure, found: list[Instance], directive: Directive, tally: Tally
) -> None:
    """One directive on one program: what the compiler says, and what is true."""
    order = order_of(procedure, directive)
    if order is None:
        return
    broken = order(found)
    name = f"{print_trace((directive,)).strip()} on {procedure.name}"
    try:
        apply(procedure, directive)
    except ScheduleError as error:
        if error.conflict is None and broken is None:
            tally.formal[_form(directive.op, error)] += 1
        if error.conflict is None:
            return  # not a matter of dependences: what the directive asks of a nest is not there
        tally.refused += 1
        tally.by_op[directive.op] += 1
        if broken is None:
            tally.legal += 1
            tally.kept_back.append(f"{name}: {error}")
            tally.unconfirmed.append(f"{name}: {error}")
        elif _is_true(error, found, procedure, directive):
            tally.confirmed += 1
        else:
            tally.unconfirmed.append(f"{name}: {error}")
        return
    if broken is None:
        tally.legal += 1
        tally.accepted += 1
    else:
        tally.wrongly_accepted.append(f"{name}: {broken[0].loops} before {broken[1].loops}")


# What a directive asks of a nest before dependences come in: words of its refusal, and for the row.
FORMS = (
    ("merge", "expected one extent", "merge of loops of two extents"),
    ("unroll_and_jam", "expected at least", "unroll_and_jam by more than the loop has"),
    ("bind", "expected", "bind of a loop where its level may not stand"),
)


def _form(op: str, error: ScheduleError) -> str:
    for known, words, shown in FORMS:
        if op == known and error.reason.startswith(words):
            return shown
    return f"{op}: {error.reason}"


Order = Callable[[list[Instance]], tuple[Instance, Instance] | None]


def order_of(procedure: Procedure, directive: Directive) -> Order | None:
    """What the order that a directive gives breaks; None where the definition below does not reach
    (nests that are not perfect).
    """
    op, loop, args = directive.op, directive.target, directive.args
    if op in ("parallel", "vectorize"):
        return (lambda found: carried(found, loop)) if not args else None
    if op == "bind":
        # Threads of a block may wait for each other; blocks may not.
        return (lambda found: carried(found, loop)) if "block" in str(args[0]) else None
    time = _time_of(procedure, op, loop, args)
    return None if time is None else lambda found: turned_around(found, time)


def _time_of(
    procedure: Procedure, op: str, loop: str, args: tuple[object, ...]
) -> Callable[[Instance], Time] | None:
    if op == "reverse":
        return lambda each: _replaced(each, {loop: lambda values: -values[loop]})
    if op == "reorder":
        wanted = (loop, *map(str, args))
        places = [each.var for each in loops(procedure) if each.var in wanted]
        moved = dict(zip(places, wanted, strict=True))
        return lambda each: _replaced(
            each, {old: lambda values, new=new: values[new] for old, new in moved.items()}
        )
    if op == "wavefront" and len(args) == 1:
        inner = str(args[0])
        return lambda each: _replaced(
            each,
            {
                loop: lambda values: values[loop] + values[inner],
                inner: lambda values: values[loop],
            },
        )
    if op == "tile" and len(args) == 3:
        return lambda each: _tiled(each, loop, str(args[0]), int(str(args[1])), int(str(args[2])))
    if op == "unimodular" and len(args) == 5:
        inner, (a, b, c, d) = str(args[0]), (int(str(value)) for value in args[1:])
        return lambda each: _replaced(
            each,
            {
                loop: lambda values: a * values[loop] + b * values[inner],
                inner: lambda values: c * values[loop] + d * values[inner],
            },
        )
    if op == "unroll_and_jam":
        chain = _perfect(procedure, loop)
        if chain is None or len(chain) < 2:
            return None
        return lambda each: _jammed(each, chain, int(str(args[0])))
    if op == "fission":
        return lambda each: _cut(each, loop, int(str(args[0])))
    if op == "merge":
        return lambda each: _joined(each, loop, str(args[0]), procedure)
    return None


def _replaced(each: Instance, values: dict[str, Callable[[dict[str, int]], int]]) -> Time:
    """The time with the values of some loops replaced, if the instance is inside all of them."""
    known = dict(each.loops)
    if not set(values) <= set(known):
        return each.time
    time = list(each.time)
    for name, place in _places(each).items():
        if name in values:
            time[place] = values[name](known)
    return tuple(time)


def _places(each: Instance) -> dict[str, int]:
    """Where in the time the value of each loop stands."""
    return {name: place for (name, _), place in zip(each.loops, each.loop_places, strict=True)}


def _perfect(procedure: Procedure, loop: str) -> list[str] | None:
    """The loops from one inward down to a single store, None if the nest is not perfect."""
    node: Stmt = next(each for each in loops(procedure) if each.var == loop)
    chain = []
    while isinstance(node, For):
        chain.append(node.var)
        node = node.body
    return chain if isinstance(node, Store) else None


def _jammed(each: Instance, chain: list[str], factor: int) -> Time:
    """The outer loop in blocks, the inner loops, then the copies within a block."""
    if not set(chain) <= {name for name, _ in each.loops}:
        return each.time
    places = _places(each)
    time = list(each.time)
    value = time[places[chain[0]]]
    time[places[chain[0]]] = value // factor
    innermost = places[chain[-1]]
    return (*time[: innermost + 1], value % factor, *time[innermost + 1 :])


def _tiled(each: Instance, loop: str, inner: str, rows: int, columns: int) -> Time:
    """Both loops in blocks, outside, then both within a block."""
    known = dict(each.loops)
    if not {loop, inner} <= set(known):
        return each.time
    places, time = _places(each), list(each.time)
    i, j = known[loop], known[inner]
    time[places[loop]], time[places[inner]] = i // rows, j // columns
    at = places[inner]
    return (*time[: at + 1], i % rows, j % columns, *time[at + 1 :])


def _cut(each: Instance, loop: str, at: int) -> Time:
    """The side of the cut before the loop's value."""
    if loop not in dict(each.loops):
        return each.time
    place = _places(each)[loop]
    # Behind the value stand a zero and the place in the body.
    side = int(each.time[place + 2] >= at)
    return (*each.time[:place], side, *each.time[place:])


def _joined(each: Instance, loop: str, other: str, procedure: Procedure) -> Time:
    """Both loops at the place of the first, their bodies one after the other."""
    for number, name in enumerate((loop, other)):
        if name in dict(each.loops):
            place = _places(each)[name]
            time = each.time
            # In front of the value stands the place among the siblings.
            sibling = time[place - 1] - number
            return (*time[: place - 1], sibling, time[place], number, *time[place + 1 :])
    return each.time


def _is_true(
    error: ScheduleError, found: list[Instance], procedure: Procedure, directive: Directive
) -> bool:
    """Whether the refusal names two iterations that exist, in this order, that touch one element,
    and that the directive would not keep in order.
    """
    shown = points_of(error)
    for first, second in pairs(found):
        if [first.loops, second.loops] == shown:
            order = order_of(procedure, directive)
            if order is not None and order([first, second]) is not None:
                return True
    return False


def points_of(error: ScheduleError) -> list[tuple[tuple[str, int], ...]]:
    """The iterations that a refusal names."""
    text = str(error.conflict).partition("iteration")[2]
    return [
        tuple((name, int(value)) for name, value in re.findall(r"(\w+)=(-?\d+)", point))
        for point in re.findall(r"\(([^()]*=[^()]*)\)", text)
    ]


def tiny_problem(rng: np.random.Generator) -> Procedure:
    """A problem of a size at which every pair can be looked at."""
    name = sorted(TINY)[rng.integers(len(TINY))]
    problem = resolve(PROBLEMS, name)(**TINY[name])
    return definition_of(problem, problem.workloads[0])


def random_program(rng: np.random.Generator) -> Procedure:
    """One or two nests of up to three loops over two-dimensional tensors, with affine accesses."""
    tensors = [
        Tensor(name, (whole(SIZE), whole(SIZE)), "float64", role)
        for name, role in (("x", "input"), ("p", "output"), ("q", "output"))
    ]
    extent = int(rng.integers(2, 5))
    nests = []
    for number in range(int(rng.integers(1, 3))):
        names = [f"{letter}{number}" for letter in "ijk"[: int(rng.integers(1, 4))]]
        stores = [_random_store(names, rng) for _ in range(int(rng.integers(1, 3)))]
        body: Stmt = stores[0] if len(stores) == 1 else Block(tuple(stores))
        for place, name in enumerate(reversed(names)):
            count = extent if place == len(names) - 1 else int(rng.integers(2, 5))
            body = For(name, whole(count), body)
        nests.append(body)
    whole_body: Stmt = nests[0] if len(nests) == 1 else Block(tuple(nests))
    return verify(Procedure("random", (), tuple(tensors), whole_body))


def _random_store(names: list[str], rng: np.random.Generator) -> Store:
    def index() -> Expr:
        node: Expr = whole(int(rng.integers(2, 5)))
        for name in names:
            factor = int(rng.choice((-1, 0, 0, 1, 1, 1)))
            if factor and rng.random() < 0.7:
                op = "add" if factor > 0 else "sub"
                node = Binary(op, node, Var(name))
        return Binary("add", node, whole(SIZE // 2))

    def element() -> tuple[str, tuple[Expr, ...]]:
        return str(rng.choice(("p", "q"))), (index(), index())

    tensor, place = element()
    value: Expr = Load("x", (index(), index()))
    for _ in range(int(rng.integers(0, 3))):
        value = Binary("add", value, Load(*element()))
    reduce = "add" if rng.random() < 0.3 else None
    return Store(tensor, place, value, reduce)


GROUPS = {"refusals": refusals}
