"""The text of index notation.

    assignment  =  access "=" sum
    sum         =  product { ("+" | "-") product }
    product     =  factor { "*" factor }
    factor      =  "-" factor  |  "(" sum ")"  |  number  |  access
    access      =  name [ "(" [ name { "," name } ] ")" ]      or in square brackets

Operators associate to the left, so that a tree has one shortest text (`print_assignment`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from kernelwright.env.compiler.sparse.notation import (
    Access,
    Add,
    Assignment,
    Expression,
    Literal,
    Mul,
    Neg,
    NotationError,
    Operand,
    Sub,
    Tensor,
    access_text,
    operand,
    variables,
)

# Operations above one another in an expression, at most: all that walks trees recurses.
DEPTH = 100

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
TOKEN = re.compile(
    rf"(?P<space>[ \t\r\n]+)|(?P<name>{NAME})"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<sign>\*\*|\+=|-=|\*=|/=|==|[-+*/=(),\[\]])"
)
CLOSING = {"(": ")", "[": "]"}
REASONS = {
    "/": "division is not in index notation",
    "**": "a power is written as a product",
    "+=": "the target is assigned, and sums are Einstein's: write =",
    "-=": "the target is assigned: write =",
    "*=": "the target is assigned: write =",
    "/=": "the target is assigned: write =",
}


def parse(text: str) -> Assignment:
    """The assignment of a text: ``y(i) = A(i,j) * x(j)``.

    Raises:
        NotationError: if it is none, or has no meaning; with a caret at the place.
    """
    return _Parser(text, list(_tokens(text))).assignment()


def parse_expression(text: str) -> Expression:
    """The expression of a text: ``A(i,j) * x(j)``.

    Raises:
        NotationError: if it is none, or has no meaning; with a caret at the place.
    """
    return _Parser(text, list(_tokens(text))).alone()


def assign(target: Access | Tensor, value: Operand) -> Assignment:
    """A checked assignment from Python operators; a tensor alone is a scalar.

    Raises:
        NotationError: see `check`.
    """
    place = operand(target)
    if not isinstance(place, Access):
        raise NotationError(f"expected an element of a tensor to assign to, found {target!r}")
    assignment = Assignment(place, operand(value))
    check(assignment)
    return assignment


def check(assignment: Assignment) -> None:
    """Check a tree that was built by hand.

    Raises:
        NotationError: if no text means it.
    """
    _check_leaf(assignment.target)
    pending: list[tuple[Expression, int]] = [(assignment.expression, 0)]
    while pending:
        node, depth = pending.pop()
        if depth > DEPTH:
            raise NotationError(f"expected at most {DEPTH} operations in one another, found more")
        match node:
            case Neg(inner):
                pending.append((inner, depth + 1))
            case Add(left, right) | Sub(left, right) | Mul(left, right):
                pending += [(left, depth + 1), (right, depth + 1)]
            case _:
                _check_leaf(node)
    parse(print_assignment(assignment))


def print_assignment(assignment: Assignment) -> str:
    """The shortest text of a tree: `parse` gives the tree again."""
    return f"{access_text(assignment.target)} = {print_expression(assignment.expression)}"


def print_expression(expression: Expression) -> str:
    """The right-hand side in text, with the parentheses that it needs."""
    return _printed(expression, 0)


def _printed(node: Expression, least: int) -> str:
    """In parentheses where the operator binds less than ``least`` (sum 0, product 1, factor 2)."""
    match node:
        case Literal(value):
            whole = value < 1e16 and value == int(value)
            return str(int(value)) if whole else repr(float(value))
        case Access():
            return access_text(node)
        case Neg(inner):
            return f"-{_printed(inner, 2)}"
        case Mul(left, right):
            text, binds = f"{_printed(left, 1)} * {_printed(right, 2)}", 1
        case Add(left, right):
            text, binds = f"{_printed(left, 0)} + {_printed(right, 1)}", 0
        case Sub(left, right):
            text, binds = f"{_printed(left, 0)} - {_printed(right, 1)}", 0
    return text if binds >= least else f"({text})"


def _check_leaf(node: object) -> None:
    match node:
        case Literal(value):
            if not math.isfinite(value) or math.copysign(1, value) < 0:
                raise NotationError(f"expected a finite number that is not negative, found {value}")
        case Access(tensor, names):
            for name in (tensor, *names):
                if not re.fullmatch(NAME, name):
                    raise NotationError(f"expected a name, found {name!r}")
        case _:
            raise NotationError(f"expected a node of index notation, found {node!r}")


def _fail(text: str, at: int, expected: str, found: str) -> NoReturn:
    """Point into the line of the text that the place is in."""
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    line = re.split(r"[\r\n]", text[start:], maxsplit=1)[0]
    caret = "".join("\t" if c == "\t" else " " for c in line[: at - start]) + "^"
    raise NotationError(f"{line}\n{caret}\nexpected {expected}, found {found}")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class _Place:
    """An access and where it and its indices are in the text."""

    access: Access
    at: int
    indices: tuple[int, ...]


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            _fail(text, at, "a name, a number or one of = + - * ( ) [ ] ,", repr(text[at]))
        if found.lastgroup != "space":
            yield _Token(str(found.lastgroup), found.group(), at)
        at = found.end()
    yield _Token("end", "the end", len(text))


@dataclass(slots=True)
class _Parser:
    text: str
    tokens: list[_Token]
    next: int = 0
    nested: int = 0
    places: list[_Place] = field(default_factory=list)

    def assignment(self) -> Assignment:
        if len(self.tokens) == 1:
            self.fail("an assignment")
        target = self.access("the target")
        self.take("=")
        expression, _ = self.sum()
        if self.token.kind != "end":
            self.fail("+, -, * or the end")
        assignment = Assignment(target, expression)
        self.check_names()
        self.check_target(assignment)
        return assignment

    def alone(self) -> Expression:
        if len(self.tokens) == 1:
            self.fail("an expression")
        expression, _ = self.sum()
        if self.token.kind != "end":
            self.fail("+, -, * or the end")
        self.check_names()
        return expression

    @property
    def token(self) -> _Token:
        return self.tokens[self.next]

    def fail(self, expected: str) -> NoReturn:
        token = self.token
        reason = f" ({REASONS[token.text]})" if token.text in REASONS else ""
        _fail(self.text, token.at, expected, f"{token.text}{reason}")

    def take(self, sign: str) -> None:
        if self.token.text != sign:
            self.fail(sign)
        self.next += 1

    def name(self, expected: str) -> _Token:
        token = self.token
        if token.kind != "name":
            self.fail(expected)
        self.next += 1
        return token

    # Expressions, each with the operations above one another in it.

    def sum(self) -> tuple[Expression, int]:
        left, depth = self.product()
        while (sign := self.token).text in ("+", "-"):
            self.next += 1
            right, other = self.product()
            left = Add(left, right) if sign.text == "+" else Sub(left, right)
            depth = self.above(sign, max(depth, other))
        return left, depth

    def product(self) -> tuple[Expression, int]:
        left, depth = self.factor()
        while (sign := self.token).text == "*":
            self.next += 1
            right, other = self.factor()
            left, depth = Mul(left, right), self.above(sign, max(depth, other))
        return left, depth

    def factor(self) -> tuple[Expression, int]:
        token = self.token
        if token.text not in ("-", "("):
            return self.leaf(), 0
        self.next += 1
        # Parentheses alone make no node, but they recurse too.
        self.nested = self.above(token, self.nested)
        if token.text == "-":
            inner, depth = self.factor()
            inner, depth = Neg(inner), self.above(token, depth)
        else:
            inner, depth = self.sum()
            if self.token.text != ")":
                self.fail("+, -, * or )")
            self.next += 1
        self.nested -= 1
        return inner, depth

    def above(self, token: _Token, depth: int) -> int:
        if depth >= DEPTH:
            _fail(self.text, token.at, f"at most {DEPTH} operations in one another", "one more")
        return depth + 1

    def leaf(self) -> Expression:
        token = self.token
        if token.kind != "number":
            return self.access("a tensor, a number, - or (")
        value = float(token.text)
        if not math.isfinite(value):
            self.fail("a finite number")
        self.next += 1
        return Literal(value)

    def access(self, expected: str) -> Access:
        name = self.name(expected)
        found: list[_Token] = []
        if (bracket := CLOSING.get(self.token.text)) is not None:
            self.next += 1
            if self.token.text != bracket:
                found.append(self.name(f"an index or {bracket}"))
                while self.token.text == ",":
                    self.next += 1
                    found.append(self.name("an index"))
                if self.token.text != bracket:
                    self.fail(f", or {bracket}")
            self.next += 1
        access = Access(name.text, tuple(token.text for token in found))
        self.places.append(_Place(access, name.at, tuple(token.at for token in found)))
        return access

    # What every access has to be beside the others.

    def check_names(self) -> None:
        orders: dict[str, int] = {}
        names = {place.access.tensor for place in self.places}
        for place in self.places:
            access = place.access
            order = orders.setdefault(access.tensor, len(access.indices))
            if order != len(access.indices):
                expected = f"{order} indices of {access.tensor} as before"
                _fail(self.text, place.at, expected, f"{len(access.indices)}")
            for n, (index, at) in enumerate(zip(access.indices, place.indices, strict=True)):
                if index in names:
                    _fail(self.text, at, "an index", f"{index}, which is a tensor")
                if index in access.indices[:n]:
                    found = f"{index} again (a diagonal is not one loop over stored elements)"
                    _fail(self.text, at, f"another index of {access.tensor}", found)

    def check_target(self, assignment: Assignment) -> None:
        target, *operands = self.places
        for place in operands:
            if place.access.tensor == target.access.tensor:
                found = f"the target {target.access.tensor}"
                _fail(self.text, place.at, "an operand", found)
        known = variables(assignment.expression)
        for index, at in zip(target.access.indices, target.indices, strict=True):
            if index not in known:
                found = f"{index}, which no operand has"
                _fail(self.text, at, "an index of an operand", found)
