"""Quick proofs that dependences are kept: interval arithmetic on the distances between two
iterations that touch one element, before isl is asked.

Two accesses of a tensor meet where their indices are equal: one linear equation an axis, over the
distances along the loops around both and the other loop variables. Ranges of the variables are
narrowed by each equation in turn (bounds consistency; Banerjee, Dependence Analysis for
Supercomputing, 1988, has the test for one equation), and an equation whose factors share a divisor
that its number has not is never true. An empty range proves that the two never meet.

Of a term that is not linear only this is known: where the variables in it have not changed, neither
has it. That goes for memory that nobody writes, too. So an answer is "surely" or "not known", and
only then is the exact one needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, zip_longest
from math import inf
from typing import TypeAlias

from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, Load, Var, walk
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.model import Instance, Model, Position, changing_tensors
from kernelwright.env.compiler.poly.narrowing import Factors, Name, System, Term
from kernelwright.env.compiler.poly.sums import linear

# How many pairs of accesses are looked at before isl is quicker.
MAX_PAIRS = 600


@dataclass(frozen=True, slots=True)
class _Form:
    """A sum of multiples of terms."""

    number: int
    factors: Mapping[Term, int]


_ZERO = _Form(0, {})
_Times: TypeAlias = Mapping[str, list[_Form] | None]


@dataclass(frozen=True, slots=True)
class _Touch:
    """An access of an instance: linear indices, None where they are not; whether it writes, and
    whether it is a load of an expression.
    """

    instance: Instance
    tensor: str
    indices: tuple[_Form | None, ...]
    is_write: bool
    is_load: bool


def carries_nothing(model: Model, loop: str) -> bool:
    """Whether surely no two iterations of one run of a loop touch an element that one of them
    writes.
    """
    inside = [i for i in model.instances if loop in i.variables]
    meetings = _meetings(inside, run=loop)
    if meetings is None:
        return False
    for first, second in meetings:
        system = _system(first, second)
        for outer in first.instance.variables[: first.instance.variables.index(loop)]:
            system.within(("d", outer), 0, 0)
        for low, high in ((1, inf), (-inf, -1)):
            apart = system.copy()
            apart.within(("d", loop), low, high)
            if not apart.holds_nothing():
                return False
    return True


def meets_within(model: Model, tensor: str, places: Mapping[str, tuple[str | int, ...]]) -> bool:
    """Whether surely no two iterations touch an element of a tensor, one of them writing, unless
    they are at one place: loop variables and numbers by instance name, equally many.
    """
    meetings = _meetings(model.instances, tensor)
    if meetings is None:
        return False
    for first, second in meetings:
        system = _system(first, second)
        ends = first.instance, second.instance
        apart = _differences(ends, [_forms(end, places[end.name]) for end in ends])
        if apart is None:
            return False
        for factors, number in apart:
            for sign in (1, -1):
                other = system.copy()
                _bounded(other, factors, number, sign)
                if not other.holds_nothing():
                    return False
    return True


def touched_only_after(model: Model, instance: Instance, shared: tuple[str, ...]) -> bool:
    """Whether surely nothing else touches what an instance writes before it does, or at its time,
    in the same iteration of the ``shared`` loops.
    """
    meetings = _meetings(model.instances, instance.store.tensor)
    if meetings is None or instance.store.reduce is not None:
        return False
    for one, other in meetings:
        for begin, touch in ((one, other), (other, one)):
            is_itself = touch.instance is instance and touch.is_write
            if begin.instance is not instance or not begin.is_write or is_itself:
                continue
            system = _system(touch, begin)
            for loop in shared:
                system.within(("d", loop), 0, 0)
            ends = touch.instance, begin.instance
            times = _differences(ends, [_forms(end, end.position) for end in ends])
            if times is None:
                return False
            _define(system, [name for factors, _ in times for name in factors], _common(*ends))
            cases = _cases(system, times, 1, strict=False)
            if not all(case.holds_nothing() for case in cases):
                return False
    return True


def keeps_order(
    model: Model, positions: Mapping[str, Position], may_swap: Mapping[str, int]
) -> bool:
    """Whether surely no pair that touches one element, one of them writing, is turned around where
    ``positions`` replaces places in time by instance name. Reductions of instances with one number
    in ``may_swap`` commute.
    """
    meetings = _meetings(model.instances)
    if meetings is None:
        return False
    old = {i.name: _forms(i, i.position) for i in model.instances}
    new = {
        **old,
        **{i.name: _forms(i, positions[i.name]) for i in model.instances if i.name in positions},
    }
    for one, other in meetings:
        groups = [may_swap.get(touch.instance.name) for touch in (one, other)]
        commute = groups[0] is not None and groups[0] == groups[1]
        if commute and not (one.is_load or other.is_load):
            continue
        if not (_keeps(one, other, old, new) and _keeps(other, one, old, new)):
            return False
    return True


def _keeps(first: _Touch, second: _Touch, old: _Times, new: _Times) -> bool:
    """Whether surely no iteration of the first instance that meets a later one of the second runs
    at its time or after it in the new order.
    """
    system = _system(first, second)
    if system.holds_nothing():
        return True
    ends = first.instance, second.instance
    was = _differences(ends, [old[end.name] for end in ends])
    if was is None:
        return False
    common = _common(*ends)
    _define(system, [name for factors, _ in was for name in factors], common)
    earlier = list(_cases(system, was, 1, strict=True))
    if not earlier:
        return True
    now = _differences(ends, [new[end.name] for end in ends])
    if now is None:
        return False
    for before in earlier:
        _define(before, [name for factors, _ in now for name in factors], common)
        for after in _cases(before, now, -1, strict=False):
            if not after.holds_nothing():
                return False
    return True


def _cases(
    system: System, differences: Sequence[tuple[Factors, int]], sign: int, *, strict: bool
) -> Iterator[System]:
    """The ways in which a vector can be positive (``sign`` 1) or negative in lexicographic order,
    and in which it can be 0 where that is not excluded; those that surely cannot be are left out.
    """
    current = system
    for factors, number in differences:
        if not factors:
            # The places differ by a number, whatever the iteration.
            if number * sign > 0:
                yield current
            if number:
                return
            continue
        here = current.copy()
        _bounded(here, factors, number, sign)
        if not here.holds_nothing():
            yield here
        current = current.copy()
        _bounded(current, factors, number, 0)
        if current.holds_nothing():
            return
    if not strict:
        yield current


def _bounded(system: System, factors: Factors, number: int, sign: int) -> None:
    """Ask that a sum is at least 1, at most -1, or 0."""
    low, high = {1: (1, inf), -1: (-inf, -1), 0: (0, 0)}[sign]
    if number == 0 and len(factors) == 1:
        ((name, factor),) = factors.items()
        if factor == 1:
            system.within(name, low, high)
            return
    apart: Name = ("t", str(len(system.equations)))
    system.within(apart, low, high)
    system.equal({**factors, apart: -1}, number)


def _differences(
    ends: tuple[Instance, Instance], times: Sequence[list[_Form] | None]
) -> list[tuple[Factors, int]] | None:
    """The second instance's place less the first's, part by part; None if a part is not known."""
    common = _common(*ends)
    first, second = times
    if first is None or second is None:
        return None
    out = []
    for before, after in zip_longest(first, second, fillvalue=_ZERO):
        factors: Factors = {}
        _add(factors, before.factors, ends[0], common, is_first=True)
        _add(factors, after.factors, ends[1], common, is_first=False)
        kept = {name: factor for name, factor in factors.items() if factor}
        out.append((kept, after.number - before.number))
    return out


def _forms(instance: Instance, position: Position) -> list[_Form] | None:
    """A place in time part by part, None if a part reads memory or is another instance's loop."""
    out = []
    for part in position:
        if isinstance(part, str):
            form = _Form(0, {part: 1}) if part in instance.variables else None
        else:
            form = _Form(part, {}) if isinstance(part, int) else _form(part)
        if form is None:
            return None
        out.append(form)
    return out


def _add(
    total: Factors,
    factors: Mapping[Term, int],
    instance: Instance,
    common: frozenset[str],
    *,
    is_first: bool,
) -> None:
    """Add a form at the second of two iterations, or subtract one at the first. A term of common
    loops has in the second its value in the first plus the distance. What has no loop in it is the
    same in both.
    """
    sign, side = (-1, "x") if is_first else (1, "y")
    for term, factor in factors.items():
        around = _variables(term) & set(instance.variables)
        if not around <= common:
            _plus(total, (side, term), sign * factor)
        elif around:
            _plus(total, ("x", term), sign * factor)
            if not is_first:
                _plus(total, ("d", term), factor)
        else:
            _plus(total, ("n", term), sign * factor)


def _variables(term: Term) -> set[str]:
    if isinstance(term, str):
        return {term}
    return {node.name for node in walk(term) if isinstance(node, Var)}


def _define(system: System, names: Collection[Name], common: frozenset[str]) -> None:
    """Say what is known of distances of terms that are not linear: with numerator f and divisor c,
    that of f is c times that of the quotient plus that of the remainder; and what depends on
    variables that do not change does not change.
    """
    for side, term in names:
        if side != "d" or isinstance(term, str):
            continue
        match term:
            case Binary("floordiv" | "mod", left, Const(value, "int64")) if int(value) > 0:
                inside, divisor = _form(left), int(value)
                if inside is not None and all(isinstance(each, str) for each in inside.factors):
                    by = whole(divisor)
                    quotient = ("d", Binary("floordiv", left, by))
                    rest = ("d", Binary("mod", left, by))
                    moved: Factors = {("d", v): n for v, n in inside.factors.items() if v in common}
                    system.within(rest, 1 - divisor, divisor - 1)
                    system.equal({**moved, quotient: -divisor, rest: -1}, 0)
        system.function(("d", term), tuple(("d", name) for name in _variables(term) & common))


def _plus(total: Factors, name: Name, factor: int) -> None:
    total[name] = total.get(name, 0) + factor


def _system(first: _Touch, second: _Touch) -> System:
    """The equations of two accesses of one tensor that meet."""
    system = System()
    one, other = first.instance, second.instance
    common = _common(one, other)
    for side, instance in (("x", one), ("y", other)):
        for loop in instance.loops:
            if side == "x" or loop.var not in common:
                system.within((side, loop.var), 0, _last(loop.extent))
    for loop in one.loops:
        if loop.var in common:
            last = _last(loop.extent)
            system.within(("d", loop.var), -last, last)
    private = (dict(i.private).get(first.tensor, ()) for i in (one, other))
    for variable in set.intersection(*map(set, private)):
        # Every iteration of the loops around its allocation has a temporary of its own.
        system.within(("d", variable), 0, 0)
    for a, b in zip(first.indices, second.indices, strict=True):
        if a is not None and b is not None:
            factors: Factors = {}
            _add(factors, a.factors, one, common, is_first=True)
            _add(factors, b.factors, other, common, is_first=False)
            system.equal(factors, b.number - a.number)
            _define(system, factors, common)
    return system


def _common(first: Instance, second: Instance) -> frozenset[str]:
    """The loops around both instances."""
    return frozenset(first.variables) & frozenset(second.variables)


def _last(extent: Expr) -> float:
    """The last value of a loop, infinite where no number bounds it."""
    if isinstance(extent, Const):
        return max(int(extent.value) - 1, 0)
    if isinstance(extent, Binary) and extent.op == "min":
        return min(_last(extent.left), _last(extent.right))
    return inf


def _meetings(
    instances: Sequence[Instance], tensor: str | None = None, *, run: str | None = None
) -> list[tuple[_Touch, _Touch]] | None:
    """Pairs of accesses of one tensor, one of which writes; None if there are too many. They are
    asked about for one ``run`` of a loop or for the whole program.
    """
    by_tensor: dict[str, dict[object, _Touch]] = {}
    changing = changing_tensors(instances, run)
    for instance in instances:
        for touch in _touches(instance, changing):
            if tensor not in (None, touch.tensor):
                continue
            indices = tuple(
                None if i is None else (i.number, frozenset(i.factors.items()))
                for i in touch.indices
            )
            # What an instance combines with is the element that it writes.
            key = instance.name, indices, touch.is_load
            by_tensor.setdefault(touch.tensor, {}).setdefault(key, touch)
    found: list[tuple[_Touch, _Touch]] = []
    for touches in by_tensor.values():
        written = any(touch.is_write for touch in touches.values())
        if written and len(found) + len(touches) ** 2 // 2 > MAX_PAIRS:
            return None
        pairs = combinations_with_replacement(touches.values(), 2) if written else ()
        found += [pair for pair in pairs if pair[0].is_write or pair[1].is_write]
    return found


def _touches(instance: Instance, changing: frozenset[str]) -> Iterator[_Touch]:
    store = instance.store
    forms = tuple(_form(index, changing) for index in store.indices)
    yield _Touch(instance, store.tensor, forms, is_write=True, is_load=False)
    extents = [loop.extent for loop in instance.loops]
    for root in (store.value, *store.indices, *instance.conditions, *extents):
        for node in walk(root):
            if isinstance(node, Load):
                forms = tuple(_form(index, changing) for index in node.indices)
                yield _Touch(instance, node.tensor, forms, is_write=False, is_load=True)


def _form(node: Expr, changing: frozenset[str] | None = None) -> _Form | None:
    """A whole number as a sum, None if it reads ``changing`` tensors (None: any memory)."""
    total = linear(node)
    factors: dict[Term, int] = {}
    for term, factor in total.terms:
        if isinstance(term, Var):
            factors[term.name] = factor
        elif any(
            isinstance(part, Load) and (changing is None or part.tensor in changing)
            for part in walk(term)
        ):
            return None
        else:
            factors[term] = factor
    return _Form(total.constant, factors)
