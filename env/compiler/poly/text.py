"""Expressions in isl's words that may hold what is not affine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.env.compiler.ir.dtypes import INTEGERS, whole_range
from kernelwright.env.compiler.ir.nodes import Binary, Cast, Const, Expr, Load, Select
from kernelwright.env.compiler.poly.model import affine_text, condition_text

# Integer dtypes whose whole range may be meant as a region.
_SHORT = ("int8", "int16", "uint8", "uint16")


@dataclass(slots=True)
class Text:
    """Expressions in isl's words, with a variable of its own for each part that is not affine, and
    what is known of these.
    """

    dtypes: Mapping[str, str]
    anything: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)

    def of(self, node: Expr) -> str:
        """The text of an expression."""
        known = affine_text(node)
        if known is not None:
            return known
        match node:
            case Binary("add" | "sub" as op, left, right):
                return f"({self.of(left)} {'+' if op == 'add' else '-'} {self.of(right)})"
            case Binary("min" | "max" as op, left, right):
                return f"{op}({self.of(left)}, {self.of(right)})"
            case Binary("mul", left, Const(value, _)) | Binary("mul", Const(value, _), left):
                return f"({value} * {self.of(left)})"
            case Binary("floordiv", left, Const(value, _)) if int(value) > 0:
                return f"floor(({self.of(left)}) / {value})"
            case Binary("mod", left, Const(value, _)) if int(value) > 0:
                return f"(({self.of(left)}) mod {value})"
            case Select(condition, then, other):
                return self._choice(condition_text(condition), self.of(then), self.of(other))
            case Cast("int64", operand):
                return self._held(operand)
        return self._new()

    def _new(self) -> str:
        self.anything.append(f"any{len(self.anything)}")
        return self.anything[-1]

    def _choice(self, condition: str | None, then: str, other: str) -> str:
        name = self._new()
        if condition is None:
            self.limits.append(f"({name} = {then} or {name} = {other})")
        else:
            held = f"(({condition}) and {name} = {then})"
            self.limits.append(f"({held} or ((not ({condition})) and {name} = {other}))")
        return name

    def _held(self, operand: Expr) -> str:
        """Any value of an operand that becomes a whole number."""
        if isinstance(operand, Cast) and operand.dtype in INTEGERS:
            dtype: str | None = operand.dtype
        else:
            dtype = self.dtypes.get(operand.tensor) if isinstance(operand, Load) else None
        name = self._new()
        if dtype in _SHORT:
            held = whole_range(dtype)
            self.limits.append(f"{held.start} <= {name} < {held.stop}")
        return name
