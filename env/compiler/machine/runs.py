"""How often the stores of a procedure run, what they compute and read, and how many run at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Call,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Select,
    Stmt,
    Store,
    Unary,
    While,
    children,
    loops,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.machine.domains import Domain, Points, count
from kernelwright.env.compiler.machine.nest import EstimateError

AT_ONCE = frozenset(kind for kind in LoopKind if kind not in (LoopKind.SERIAL, LoopKind.UNROLLED))


class Runs:
    """The stores of a procedure with their domains, and how often each runs."""

    def __init__(self, procedure: Procedure, extents: Mapping[str, int]) -> None:
        self._extents = extents
        self._counted: dict[Domain, Points] = {}
        self.is_exact = True
        self.stores: list[tuple[Store, Domain]] = []
        self.degrees: list[tuple[int, float]] = []
        self.stored: dict[str, int] = defaultdict(int)
        kinds = {loop.var: loop.kind for loop in loops(procedure)}
        for store, domain in stores_of(procedure.body, Domain()):
            number = self.number(domain)
            self.stores.append((store, domain))
            self.stored[store.tensor] += number
            at_once = {var for var, _ in domain.loops if kinds[var] in AT_ONCE}
            self.degrees.append((number, self.degree(domain, at_once)))

    def degree(self, domain: Domain, at_once: Set[str]) -> float:
        """How many iterations of a domain run at once if some of its loops do: the product of
        their mean trip counts.
        """
        found = 1.0
        for depth, (var, _) in enumerate(domain.loops):
            if var in at_once:
                runs = self.number(Domain(domain.loops[:depth]))
                found *= self.number(Domain(domain.loops[: depth + 1])) / max(1, runs)
        return max(1.0, found)

    def number(self, domain: Domain) -> int:
        """The points of a domain."""
        if domain not in self._counted:
            self._counted[domain] = count(domain, self._extents)
        found = self._counted[domain]
        self.is_exact = self.is_exact and found.is_exact
        return found.number

    def add_operations(self, store: Store, domain: Domain, into: Counter[str]) -> None:
        """Count the operations of a store, its reduction's among them."""
        number = self.number(domain)
        into += self._of(store.value, domain, number)
        if store.reduce is not None:
            into[store.reduce] += number

    def _of(self, node: Expr, domain: Domain, number: int) -> Counter[str]:
        """The operations of a value that is computed at the points of a domain; of a choice those
        of the side that is chosen.
        """
        found = Counter[str]()
        match node:
            case Load():
                return found
            case Select(condition, then, other):
                found += self._of(condition, domain, number)
                held, is_known = self._held(domain, condition)
                if is_known:
                    found += self._of(then, domain.where(condition), held)
                    refused = domain.where(Unary("not", condition))
                    return found + self._of(other, refused, number - held)
                self.is_exact = False
                return found + (self._of(then, domain, number) | self._of(other, domain, number))
            case Binary(op, _, _) | Unary(op, _):
                found[op] += number
        for child in children(node):
            found += self._of(child, domain, number)
        return found

    def _held(self, domain: Domain, condition: Expr) -> tuple[int, bool]:
        part = domain.where(condition)
        if part not in self._counted:
            self._counted[part] = count(part, self._extents)
        found = self._counted[part]
        return found.number, found.is_exact

    def loads(self, tensor: str, reader: str) -> int:
        """How often the stores of ``reader`` read a tensor."""
        total = 0
        for store, domain in self.stores:
            if store.tensor == reader:
                total += sum(self.number(d) for d in _loads(store.value, tensor, domain))
        return total


def _loads(node: Expr, tensor: str, domain: Domain) -> Iterator[Domain]:
    """Where a value reads a tensor."""
    if isinstance(node, Load) and node.tensor == tensor:
        yield domain
    if isinstance(node, Select):
        yield from _loads(node.condition, tensor, domain)
        yield from _loads(node.then, tensor, domain.where(node.condition))
        yield from _loads(node.other, tensor, domain.where(Unary("not", node.condition)))
        return
    for child in children(node):
        yield from _loads(child, tensor, domain)


def stores_of(node: Stmt, domain: Domain) -> Iterator[tuple[Store, Domain]]:
    """Every store with its domain."""
    match node:
        case Store():
            yield node, domain
        case For(var, extent, body, _):
            yield from stores_of(body, domain.inside(var, extent))
        case If(condition, then):
            yield from stores_of(then, domain.where(condition))
        case While(condition, _):
            found = f"while {print_expr(condition)}"
            raise EstimateError(f"expected loops of known extents, found {found}")
        case Block(items):
            for item in items:
                yield from stores_of(item, domain)
        case Allocate(_, body) | Call(_, body):
            yield from stores_of(body, domain)
        case _:
            return
