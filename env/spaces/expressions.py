"""Constraint expressions: arithmetic over knob names, evaluated for one configuration or for arrays
of them.

The language is the part of Python's expression syntax that a reader of a tuning script expects:
numbers, names, ``+ - * / // % **``, comparisons (chained too), ``and or not``, ``a if c else b``,
``min max abs ceil floor log2``. There is no attribute, no subscript and no other call, so an
expression from a campaign file cannot reach anything.
"""

from __future__ import annotations

import ast
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.protocols import Violation
from kernelwright.env.types import Scalar

_BINARY = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
_COMPARE = {
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
_CALLS = {
    "min": np.minimum,
    "max": np.maximum,
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "log2": np.log2,
}
MAX_TEXT = 10_000
_TWO_ARGUMENTS = ("min", "max")


class ExpressionError(ValueError):
    """An expression that is not in the language, or names what does not exist."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression; ``names`` are the variables it reads.

    Raises:
        ExpressionError: if the text is not in the language; the message says which part.
    """

    text: str
    names: frozenset[str] = field(init=False, compare=False, repr=False)
    _body: ast.expr = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.text) > MAX_TEXT:
            raise ExpressionError(f"expected at most {MAX_TEXT} characters, found {len(self.text)}")
        try:
            body = ast.parse(self.text.strip(), mode="eval").body
            names: set[str] = set()
            _verify(body, self.text, names)
        except ExpressionError:
            raise
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            message = getattr(error, "msg", None) or str(error)
            raise ExpressionError(f"{self.text!r:.200}: not an expression: {message}") from None
        object.__setattr__(self, "names", frozenset(names))
        object.__setattr__(self, "_body", body)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The value for scalars, or the array of values for arrays of equal shape."""
        return _evaluate(self._body, values)


def _verify(node: ast.expr, text: str, names: set[str]) -> None:
    def no(what: str) -> ExpressionError:
        return ExpressionError(f"{text!r}: {what} is not part of the constraint language")

    match node:
        case ast.Constant(value):
            if not isinstance(value, bool | int | float | str):
                raise no(f"the constant {value!r}")
            if isinstance(value, int) and abs(value) > 2**53:
                raise no("a number above 2^53")
        case ast.Name(name):
            names.add(name)
        case ast.BinOp(left, op, right):
            if type(op) not in _BINARY:
                raise no(f"the operator {type(op).__name__}")
            _verify(left, text, names)
            _verify(right, text, names)
        case ast.UnaryOp(op, operand):
            if not isinstance(op, ast.USub | ast.UAdd | ast.Not):
                raise no(f"the operator {type(op).__name__}")
            _verify(operand, text, names)
        case ast.BoolOp(_, parts):
            for part in parts:
                _verify(part, text, names)
        case ast.Compare(left, ops, rights):
            for comparison in ops:
                if type(comparison) not in _COMPARE:
                    raise no(f"the comparison {type(comparison).__name__}")
            for part in (left, *rights):
                _verify(part, text, names)
        case ast.IfExp(test, then, other):
            for part in (test, then, other):
                _verify(part, text, names)
        case ast.Call(ast.Name(name), arguments, []):
            if name not in _CALLS:
                raise no(f"the function {name!r}")
            if len(arguments) != 1 + (name in _TWO_ARGUMENTS):
                raise ExpressionError(
                    f"{text!r}: {name} takes {1 + (name in _TWO_ARGUMENTS)} argument(s)"
                )
            for part in arguments:
                _verify(part, text, names)
        case _:
            raise no(type(node).__name__)


def _evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return values[name]
        case ast.BinOp(left, op, right):
            return _BINARY[type(op)](_evaluate(left, values), _evaluate(right, values))
        case ast.UnaryOp(ast.Not(), operand):
            return np.logical_not(_true(_evaluate(operand, values)))
        case ast.UnaryOp(ast.USub(), operand):
            return np.negative(_evaluate(operand, values))
        case ast.UnaryOp(_, operand):
            return _evaluate(operand, values)
        case ast.BoolOp(op, parts):
            join = np.logical_and if isinstance(op, ast.And) else np.logical_or
            out = _true(_evaluate(parts[0], values))
            for part in parts[1:]:
                out = join(out, _true(_evaluate(part, values)))
            return out
        case ast.Compare(left, ops, rights):
            sides = [_evaluate(side, values) for side in (left, *rights)]
            out = None
            for comparison, a, b in zip(ops, sides, sides[1:], strict=False):
                step = _COMPARE[type(comparison)](a, b)
                out = step if out is None else np.logical_and(out, step)
            return out
        case ast.IfExp(test, then, other):
            return np.where(
                _true(_evaluate(test, values)), _evaluate(then, values), _evaluate(other, values)
            )
        case ast.Call(ast.Name(name), arguments):
            return _CALLS[name](*(_evaluate(part, values) for part in arguments))
    raise AssertionError(f"unverified node {ast.dump(node)}")


def _true(value: Any) -> Any:
    """A value as a condition: what is not a number (``a % b`` with b = 0) is not true, so a rule
    that comes to nothing does not hold.
    """
    some = np.asarray(value)
    return (some != 0) & ~np.isnan(some) if some.dtype.kind == "f" else value


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule that every configuration of a space obeys.

    ``text`` is an expression over knobs, ``where`` (names with their own expressions, in order) and
    ``constants``. ``reason`` is a format string over the same names, shown for a rejected
    configuration: ``"{regs:.0f} registers a thread, at most {max_regs}"``.
    """

    code: str
    text: str
    reason: str
    where: tuple[tuple[str, str], ...] = ()
    constants: tuple[tuple[str, Scalar], ...] = ()
    _parsed: tuple[Expression, tuple[tuple[str, Expression], ...]] = field(
        init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        for _, name, layout, _ in string.Formatter().parse(self.reason):
            if name is not None and not (name.isidentifier() and "{" not in (layout or "")):
                raise ExpressionError(f"{self.reason!r}: expected {{name}} or {{name:format}}")
        where = tuple((name, Expression(text)) for name, text in self.where)
        object.__setattr__(self, "_parsed", (Expression(self.text), where))

    @property
    def parsed(self) -> tuple[Expression, tuple[tuple[str, Expression], ...]]:
        """The rule, and the definitions that it stands on in order."""
        return self._parsed

    def check_names(self, knobs: frozenset[str]) -> None:
        """Refuse names that are neither knobs nor defined here.

        Raises:
            ExpressionError: naming the unknown name and the known ones.
        """
        known = knobs | {name for name, _ in self.constants}
        expression, where = self._parsed
        for name, definition in (*where, ("", expression)):
            unknown = sorted(definition.names - known)
            if unknown:
                listed = ", ".join(sorted(known))
                raise ExpressionError(
                    f"{definition.text!r}: unknown name {unknown[0]!r}; known: {listed}"
                )
            known = known | {name}

    def _evaluate(self, columns: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Any], Any]:
        """Every defined name, and the rule, over columns of one length.

        Numbers are float64: exact for whole numbers up to 2^53, and without the silent overflow of
        fixed-width integers or the unbounded time of Python's.
        """
        scope: dict[str, Any] = {**dict(self.constants)}
        for name, column in columns.items():
            scope[name] = column.astype(np.float64) if column.dtype.kind in "biuf" else column
        try:
            with np.errstate(all="ignore"):
                for name, expression in self._parsed[1]:
                    scope[name] = expression(scope)
                return scope, self._parsed[0](scope)
        except (TypeError, ValueError, RecursionError) as error:
            raise ExpressionError(f"{self.text!r:.200}: cannot be evaluated: {error}") from None

    def holds(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Where the rule holds, for columns of knob values of one length.

        Raises:
            ExpressionError: if it mixes text and numbers.
        """
        out = np.asarray(_true(self._evaluate(columns)[1]), dtype=bool)
        length = len(next(iter(columns.values())))
        return np.broadcast_to(out, (length,)).copy()

    def explain(self, values: Mapping[str, Scalar]) -> Violation:
        """The violation that a configuration breaking this rule gets."""
        columns = {name: np.array([value]) for name, value in values.items()}
        scope, _ = self._evaluate(columns)
        known = {name: _plain(value) for name, value in scope.items()} | dict(values)
        return Violation(self.code, self.reason.format(**known))


def own_rule(text: str, names: frozenset[str]) -> Constraint:
    """A constraint over knobs of these names whose own text is the reason that is shown.

    Raises:
        ExpressionError: if it is no expression over them.
    """
    used = sorted(Expression(text).names & names)
    shown = ", ".join(f"{name} = {{{name}}}" for name in used)
    plain = text.replace("{", "(").replace("}", ")")
    rule = Constraint("constraint", text, f"expected {plain}, found {shown}")
    rule.check_names(names)
    return rule


def _plain(value: Any) -> Any:
    """A scalar as a reader writes it: 3, not 3.0 nor an array of it."""
    scalar = np.asarray(value).reshape(-1)[0].item()
    return int(scalar) if isinstance(scalar, float) and scalar.is_integer() else scalar
