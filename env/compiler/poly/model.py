"""A procedure as isl sees it: for each store its iteration domain, the elements it reads and
writes, and when it runs.

Instances are named S0, S1, … in program order. What is not affine (an index loaded from memory, a
product of variables) is covered from above: such an access may touch any element, such a condition
holds everywhere; a `While` is a loop whose extent is of that kind (`ir.whiles`). So an analysis can
refuse too much, never too little. A temporary has, in front of its own indices, those of the loops
around its allocation: every iteration has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TypeAlias, assert_never

import islpy as isl

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Const,
    Expr,
    For,
    If,
    Load,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    Unary,
    Var,
    While,
    walk,
)
from kernelwright.env.compiler.ir.whiles import Numbers, as_loop

_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=", "ne": "!="}
# Loop variables by name, places among siblings, and affine expressions where an order has them.
# Time vectors have one length, so that isl can compare any two.
Position = tuple[str | int | Expr, ...]


def isl_name(variable: str) -> str:
    """A variable's or extent's name in isl's texts, where ``floor`` or ``and`` alone mean
    something. isl drops primes: a `While`'s variable begins with another letter instead.
    """
    return f"w_{variable[:-1]}" if variable.endswith("'") else f"v_{variable}"


def variable_name(name: str) -> str:
    """The variable or extent that isl knows by a name."""
    return f"{name.removeprefix('w_')}'" if name.startswith("w_") else name.removeprefix("v_")


@dataclass(frozen=True, slots=True)
class Instance:
    """A store with what surrounds it: loops from the outside in, its domain's conditions, and its
    place in program order.

    ``position`` alternates places among siblings and loop variables (the 2d+1 form of Kelly and
    Pugh, 1995).
    """

    name: str
    store: Store
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]
    position: Position
    private: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """The loop variables, outermost first."""
        return tuple(loop.var for loop in self.loops)

    @property
    def tuple_text(self) -> str:
        """``S0[v_i, v_j]``."""
        return f"{self.name}[{', '.join(map(isl_name, self.variables))}]"

    @property
    def is_affine(self) -> bool:
        """Whether it is known exactly when it runs and which elements it writes."""
        numbers = (*(loop.extent for loop in self.loops), *self.store.indices)
        return all(affine_text(each) is not None for each in numbers) and all(
            condition_text(condition) is not None for condition in self.conditions
        )


# An instance, a tensor that it touches, and where.
Access: TypeAlias = tuple[Instance, str, tuple[Expr, ...]]


@dataclass(frozen=True)
class Model:
    """All instances of a procedure, and its extents (isl's parameters)."""

    instances: tuple[Instance, ...]
    extents: tuple[str, ...]

    @property
    def parameters(self) -> str:
        """The parameter list that opens every isl text."""
        return f"[{', '.join(map(isl_name, self.extents))}] -> " if self.extents else ""

    @cached_property
    def domain(self) -> isl.UnionSet:
        """The iteration domain of every instance."""
        parts = []
        for instance in self.instances:
            limits = [
                text
                for loop in instance.loops
                for text in (f"0 <= {isl_name(loop.var)}", _less(loop.var, loop.extent))
                if text is not None
            ]
            known = [condition_text(c) for c in instance.conditions]
            held = " and ".join([*limits, *(text for text in known if text is not None)])
            parts.append(f"{instance.tuple_text} : {held}" if held else instance.tuple_text)
        return isl.UnionSet(f"{self.parameters}{{ {'; '.join(parts)} }}")

    def writes(self, tensor: str | None = None) -> isl.UnionMap:
        """Instance → elements it writes, of one tensor or of all."""
        return self.touched(access for access in self.written if tensor in (None, access[1]))

    def reads(self, tensor: str | None = None) -> isl.UnionMap:
        """Instance → elements it reads, of one tensor or of all; a reduction reads what it
        combines with.
        """
        return self.touched(access for access in self.read if tensor in (None, access[1]))

    def loads(self) -> isl.UnionMap:
        """Instance → elements that its expressions read: not those that it combines with."""
        return self.touched(access for i in self.instances for access in _loads(i))

    @property
    def written(self) -> tuple[Access, ...]:
        """What instances write."""
        return tuple((i, i.store.tensor, i.store.indices) for i in self.instances)

    @property
    def read(self) -> tuple[Access, ...]:
        """What instances read, with what they combine with."""
        return tuple(access for i in self.instances for access in _reads(i))

    def touched(self, accesses: Iterable[Access]) -> isl.UnionMap:
        """Instance → elements of its accesses."""
        parts = []
        for instance, tensor, indices in accesses:
            spans = _spans(instance.loops)
            texts = [affine_text(_chosen(index, spans)) for index in indices]
            free = [text if text is not None else f"any{k}" for k, text in enumerate(texts)]
            own = map(isl_name, dict(instance.private).get(tensor, ()))
            # Free names in the range of an isl map are unconstrained, which is what "any" means.
            parts.append(f"{instance.tuple_text} -> t_{tensor}[{', '.join([*own, *free])}]")
        text = f"{self.parameters}{{ {'; '.join(dict.fromkeys(parts))} }}"
        return isl.UnionMap(text).intersect_domain(self.domain)

    def order(self, positions: Mapping[str, Position] | None = None) -> isl.UnionMap:
        """Instance → time; ``positions`` replaces the program's own by instance name."""
        chosen = {i.name: (positions or {}).get(i.name, i.position) for i in self.instances}
        length = max((len(p) for p in chosen.values()), default=1)
        parts = []
        for instance in self.instances:
            place = [time_text(part) for part in chosen[instance.name]]
            padded = ", ".join([*place, *["0"] * (length - len(place))])
            parts.append(f"{instance.tuple_text} -> [{padded}]")
        text = f"{self.parameters}{{ {'; '.join(parts)} }}"
        return isl.UnionMap(text).intersect_domain(self.domain)


_Spans = Mapping[str, tuple[int, int]]


def _spans(loops: tuple[For, ...]) -> _Spans:
    """The least and the greatest values of loops of constant extents."""
    sizes = [(loop.var, loop.extent) for loop in loops]
    return {var: (0, int(e.value) - 1) for var, e in sizes if isinstance(e, Const) and e.value}


def _chosen(node: Expr, spans: _Spans) -> Expr:
    """An index with the operands that decide a minimum or maximum in the place of those that ranges
    of loops decide: each is a case less for isl.
    """
    match node:
        case Binary("min" | "max" as op, left, right):
            left, right = _chosen(left, spans), _chosen(right, spans)
            one, other = _span(left, spans), _span(right, spans)
            if one is not None and other is not None:
                lesser, greater = (left, right) if op == "min" else (right, left)
                if one[1] <= other[0]:
                    return lesser
                if other[1] <= one[0]:
                    return greater
            return Binary(op, left, right)
        case Binary(op, left, right):
            return Binary(op, _chosen(left, spans), _chosen(right, spans))
    return node


def _span(node: Expr, spans: _Spans) -> tuple[int, int] | None:
    """Numbers between which a whole-number expression lies, None if none are known."""
    match node:
        case Const(value, "int64"):
            return int(value), int(value)
        case Var(name):
            return spans.get(name)
        case Binary("floordiv" | "mod" as op, left, Const(value, "int64")) if int(value) > 0:
            inside = _span(left, spans)
            if op == "mod":
                return 0, int(value) - 1
            return None if inside is None else (inside[0] // int(value), inside[1] // int(value))
        case Binary(op, left, right) if op in _EXTREMES:
            one, other = _span(left, spans), _span(right, spans)
            if one is None or other is None:
                return None
            ends = [_EXTREMES[op](a, b) for a in one for b in other]
            return min(ends), max(ends)
    return None


_EXTREMES: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min": min,
    "max": max,
}


def time_text(part: str | int | Expr) -> str:
    """A component of a position in isl's words.

    Raises:
        ValueError: if it is an expression that is not affine.
    """
    if isinstance(part, str | int):
        return isl_name(part) if isinstance(part, str) else str(part)
    text = affine_text(part)
    if text is None:
        raise ValueError(f"expected an affine time, found {part}")
    return text


def _less(var: str, extent: Expr) -> str | None:
    text = affine_text(extent)
    return None if text is None else f"{isl_name(var)} < {text}"


def _reads(instance: Instance) -> Iterator[Access]:
    store = instance.store
    if store.reduce is not None:
        yield instance, store.tensor, store.indices
    yield from _loads(instance)


def _loads(instance: Instance) -> Iterator[Access]:
    store = instance.store
    extents = [loop.extent for loop in instance.loops]
    for root in (store.value, *store.indices, *instance.conditions, *extents):
        for node in walk(root):
            if isinstance(node, Load):
                yield instance, node.tensor, node.indices


def affine_text(node: Expr) -> str | None:
    """A whole-number expression in isl's words, None if it is not (quasi-)affine."""
    match node:
        case Const(value, "int64"):
            return str(value)
        case Var(name):
            return isl_name(name)
        case Binary("add" | "sub" as op, left, right):
            a, b = affine_text(left), affine_text(right)
            sign = "+" if op == "add" else "-"
            return None if a is None or b is None else f"({a} {sign} {b})"
        case Binary("mul", left, right):
            factor, other = (left, right) if isinstance(left, Const) else (right, left)
            text = affine_text(other)
            return f"({factor.value} * {text})" if isinstance(factor, Const) and text else None
        case Binary("floordiv", left, Const(value, "int64")) if int(value) > 0:
            text = affine_text(left)
            return None if text is None else f"floor(({text}) / {value})"
        case Binary("mod", left, Const(value, "int64")) if int(value) > 0:
            text = affine_text(left)
            return None if text is None else f"(({text}) mod {value})"
        case Binary("min" | "max" as op, left, right):
            a, b = affine_text(left), affine_text(right)
            return None if a is None or b is None else f"{op}({a}, {b})"
    return None


def condition_text(node: Expr) -> str | None:
    """A condition in isl's words, None if it is not affine."""
    match node:
        case Const(value, "bool"):
            return "true" if value else "false"
        case Binary("and" | "or" as op, left, right):
            a, b = condition_text(left), condition_text(right)
            return None if a is None or b is None else f"(({a}) {op} ({b}))"
        case Unary("not", operand):
            a = condition_text(operand)
            return None if a is None else f"(not ({a}))"
        case Binary(op, left, right) if op in _COMPARE:
            a, b = affine_text(left), affine_text(right)
            return None if a is None or b is None else f"{a} {_COMPARE[op]} {b}"
    return None


def changing_tensors(instances: Iterable[Instance], run: str | None = None) -> frozenset[str]:
    """The tensors whose elements are not the same numbers throughout, in one ``run`` of a loop or
    in the whole program: those that instances write, and temporaries that begin anew. The instances
    are all of those that run meanwhile.
    """
    return frozenset(
        name
        for each in instances
        for name, own in ((each.store.tensor, (run,)), *each.private)
        if run is None or run in own
    )


def mattering(loops: tuple[For, ...], roots: tuple[Expr, ...]) -> tuple[For, ...]:
    """The loops that some expressions depend on, and those that may not run at all: the others
    change nothing, and each costs isl a variable to eliminate.
    """
    names = {node.name for root in roots for node in walk(root) if isinstance(node, Var)}
    kept = []
    for loop in reversed(loops):
        always = isinstance(loop.extent, Const) and loop.extent.value > 0
        if loop.var in names or not always:
            names |= {node.name for node in walk(loop.extent) if isinstance(node, Var)}
            kept.append(loop)
    return tuple(reversed(kept))


def build_model(procedure: Procedure) -> Model:
    """The model of a procedure."""
    found: list[Instance] = []
    _collect(procedure.body, (), (), (0,), (), found, count())
    return Model(tuple(found), procedure.extents)


def _collect(
    node: Stmt,
    around: tuple[For, ...],
    conditions: tuple[Expr, ...],
    position: Position,
    private: tuple[tuple[str, tuple[str, ...]], ...],
    found: list[Instance],
    numbers: Numbers,
) -> None:
    match node:
        case Store():
            name = f"S{len(found)}"
            found.append(Instance(name, node, around, conditions, position, private))
        case For(var, _, body, _):
            _collect(
                body, (*around, node), conditions, (*position, var, 0), private, found, numbers
            )
        case If(condition, then):
            _collect(then, around, (*conditions, condition), position, private, found, numbers)
        case While(condition, body):
            loop = as_loop(numbers)
            inside = (*around, loop), (*conditions, condition), (*position, loop.var, 0)
            _collect(body, *inside, private, found, numbers)
        case Block(items):
            for place, item in enumerate(items):
                _collect(item, around, conditions, (*position, place), private, found, numbers)
        case Allocate(tensor, body):
            own = (tensor.name, tuple(loop.var for loop in around))
            _collect(body, around, conditions, position, (*private, own), found, numbers)
        case Call(_, body):
            _collect(body, around, conditions, position, private, found, numbers)
        case Barrier() | Prefetch():
            pass
        case _:
            assert_never(node)
