"""LoopIR's expressions in C; `vectors` has those of all lanes at once.

An `Expressions` knows the tensors in scope and keeps account of the helper functions and vector
types that it has used.
"""

from __future__ import annotations

from typing import assert_never

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.codegen.choice import is_masked, select_helper
from kernelwright.env.compiler.codegen.gather import gather_helper
from kernelwright.env.compiler.codegen.hoist import is_natural
from kernelwright.env.compiler.codegen.lane_sums import lane_sum_helper
from kernelwright.env.compiler.codegen.memory import flat
from kernelwright.env.compiler.codegen.stream import fence_helper, stream_helper
from kernelwright.env.compiler.ir.dtypes import INTEGERS, ITEM_BYTES, UNSIGNED, whole_range
from kernelwright.env.compiler.ir.nodes import (
    ARITHMETIC,
    Binary,
    Cast,
    Const,
    Expr,
    Load,
    Procedure,
    Select,
    Tensor,
    Unary,
    Var,
)
from kernelwright.env.compiler.ir.simplify import simplify
from kernelwright.env.compiler.runtime.call import C_TYPES

INFIX = {
    "add": ("+", 12),
    "sub": ("-", 12),
    "mul": ("*", 13),
    "div": ("/", 13),
    "lt": ("<", 10),
    "le": ("<=", 10),
    "gt": (">", 10),
    "ge": (">=", 10),
    "eq": ("==", 9),
    "ne": ("!=", 9),
    "and": ("&&", 5),
    "or": ("||", 4),
}
# Binds tighter than any infix operator; 0 is a place where nothing needs brackets.
TIGHT, LOOSE = 15, 0
# C computes these in a wider type, so every result is cast back.
_NARROW = ("int8", "int16", "uint8", "uint16", "float16")
_MATH_NAMES = {"abs": "fabs", "round": "rint"}


class Expressions:
    """Writes expressions of one procedure."""

    def __init__(self, procedure: Procedure) -> None:
        self.tensors: dict[str, Tensor] = {t.name: t for t in procedure.tensors}
        self._helpers: set[str] = set()
        # Whether anything is stored past the caches.
        self.streams = False
        self._vectors: set[tuple[str, int]] = set()
        # Temporaries in local variables, with how many elements each of those holds.
        self.registers: dict[str, int] = {}

    def preamble(self, lines: list[str]) -> list[str]:
        """The types and helpers that ``lines`` use."""
        out = []
        for dtype, lanes in sorted(self._vectors):
            if not any(names.vector_type(dtype, lanes) in line for line in lines):
                continue  # asked for by a store that then had no vector form
            size, name = ITEM_BYTES[dtype] * lanes, names.vector_type(dtype, lanes)
            attributes = f"vector_size({size}), aligned({ITEM_BYTES[dtype]}), may_alias"
            out.append(f"typedef {C_TYPES[dtype]} {name} __attribute__(({attributes}));")
        return [*out, *sorted(self._helpers), ""] if out or self._helpers else []

    def scalar(self, node: Expr, outer: int = TIGHT) -> str:
        """An expression for one lane; ``outer`` is how tightly what surrounds it binds."""
        match node:
            case Const(value, dtype):
                return _literal(value, dtype)
            case Var(name):
                return name
            case Load(tensor, indices):
                return self.element(tensor, indices)
            case Binary("min" | "max" as op, left, right):
                helper = self.extremum(op, self._dtype(left))
                return f"{helper}({self.scalar(left, LOOSE)}, {self.scalar(right, LOOSE)})"
            case Binary("floordiv" | "mod" as op, left, Const(value, "int64")) if (
                value > 0 and is_natural(left)
            ):
                sign = "/" if op == "floordiv" else "%"
                text = f"{_wide(left)}{self.scalar(left, 14 if _wide(left) else 13)} {sign} {value}"
                return f"({text})" if outer > 13 else text
            case Binary("floordiv" | "mod" as op, left, Const(value, "int64")) if (
                value > 0 and not int(value) & (int(value) - 1)
            ):
                # Towards minus infinity, as C's own shift and mask of a signed number are here.
                first = self.scalar(left, 14)
                if op == "floordiv":
                    return f"({first} >> {int(value).bit_length() - 1})"
                return f"({first} & {int(value) - 1})"
            case Binary("floordiv" | "mod" as op, left, right):
                helper = self._integer_helper(op, self._dtype(left))
                return f"{helper}({self.scalar(left, LOOSE)}, {self.scalar(right, LOOSE)})"
            case Binary("pow", left, right):
                return self._function("pow", (left, right), self._dtype(left))
            case Binary(op, left, right) if op in ARITHMETIC and self._dtype(left) in _NARROW:
                return self._narrow(
                    f"{self._wider(left)} {INFIX[op][0]} {self._wider(right)}", node
                )
            case Binary(op, left, right):
                sign, level = INFIX[op]
                first = _wide(left) + self.scalar(left, TIGHT if _wide(left) else level)
                text = f"{first} {sign} {self.scalar(right, level + 1)}"
                return f"({text})" if level < outer else text
            case Unary(op, operand):
                return self._unary(op, operand)
            case Cast("bool", operand):
                return f"({self.scalar(operand, 10)} != 0)"
            case Cast(dtype, operand):
                return f"(({C_TYPES[dtype]}){self.scalar(operand)})"
            case Select(condition, then, other):
                dtype = self._dtype(then)
                if is_masked(node, dtype, self.tensors, self.registers):
                    self._helpers.add(select_helper(dtype))
                    of = ", ".join(self.scalar(part, LOOSE) for part in (condition, then, other))
                    return f"{names.select(dtype)}({of})"
                parts = [self.scalar(part) for part in (condition, then, other)]
                return f"({parts[0]} ? {_wide(then)}{parts[1]} : {parts[2]})"
            case _:
                assert_never(node)

    def _unary(self, op: str, operand: Expr) -> str:
        dtype = self._dtype(operand)
        if op == "neg" and dtype in _NARROW:
            return self._narrow(f"-{self._wider(operand)}", operand)
        if op == "neg":
            return f"(-{_wide(operand)}{self.scalar(operand)})"
        if op == "not":
            return f"(!{self.scalar(operand)})"
        if op == "abs" and dtype in UNSIGNED:
            return self.scalar(operand)
        if op == "abs" and dtype in INTEGERS:
            text = self.scalar(operand)
            absolute = f"({text} < 0 ? -{text} : {text})"
            return self._narrow(absolute, operand) if dtype in _NARROW else absolute
        return self._function(_MATH_NAMES.get(op, op), (operand,), dtype)

    def _function(self, name: str, operands: tuple[Expr, ...], dtype: str) -> str:
        """A call of <math.h>; float16 goes through float, whose error is far below its own."""
        if dtype == "float64":
            return f"{name}({', '.join(self.scalar(operand, LOOSE) for operand in operands)})"
        if dtype == "float32":
            return f"{name}f({', '.join(self.scalar(operand, LOOSE) for operand in operands)})"
        text = f"{name}f({', '.join(self._wider(operand) for operand in operands)})"
        return self._narrow(text, operands[0])

    def _wider(self, node: Expr) -> str:
        """An operand in the type that C computes with."""
        text = self.scalar(node)
        return f"(float){text}" if self._dtype(node) == "float16" else text

    def _narrow(self, text: str, node: Expr) -> str:
        """A result rounded or wrapped to the dtype of an expression."""
        return f"(({C_TYPES[self._dtype(node)]})({text}))"

    def _dtype(self, node: Expr) -> str:
        match node:
            case Const(_, dtype) | Cast(dtype, _):
                return dtype
            case Var():
                return "int64"
            case Load(tensor, _):
                return self.tensors[tensor].dtype
            case Binary(op, left, _):
                return self._dtype(left) if op in ARITHMETIC else "bool"
            case Unary(_, operand):
                return self._dtype(operand)
            case Select(_, then, _):
                return self._dtype(then)
            case _:
                assert_never(node)

    def flat(self, tensor: str, indices: tuple[Expr, ...]) -> Expr:
        """The row-major offset of an element."""
        return flat(self.tensors[tensor], indices)

    def element(self, tensor: str, indices: tuple[Expr, ...]) -> str:
        """One element, to read or to write."""
        if tensor in self.registers:
            return self._register(tensor, self.flat(tensor, indices))
        return f"{tensor}[{self.scalar(self.flat(tensor, indices), LOOSE)}]"

    def register_variables(self, tensor: Tensor, count: int) -> str:
        """The declaration of a temporary in local variables."""
        lanes = self.registers[tensor.name]
        kind = C_TYPES[tensor.dtype]
        if lanes > 1:
            kind = self.vector_type(tensor.dtype, lanes)
        return f"{kind} {', '.join(self.variables(tensor, count, 'register'))};"

    def variables(self, tensor: Tensor, count: int, memory: str) -> list[str]:
        """The names in C of a temporary of ``count`` elements."""
        if memory != "register":
            return [tensor.name]
        lanes = self.registers[tensor.name]
        return [names.register(tensor.name, i) for i in range(-(-count // lanes))]

    def _register(self, tensor: str, offset: Expr) -> str:
        """The element at an offset, in the local variable that holds it."""
        place, lanes = simplify(offset), self.registers[tensor]
        assert isinstance(place, Const)
        number, lane = divmod(int(place.value), lanes)
        name = names.register(tensor, number)
        return name if lanes == 1 else f"{name}[{lane}]"

    def extremum(self, op: str, dtype: str) -> str:
        """The helper that computes ``min`` or ``max``."""
        name = names.minimum(dtype) if op == "min" else names.maximum(dtype)
        c_type, sign = C_TYPES[dtype], "<" if op == "min" else ">"
        # NumPy's minimum and maximum: a NaN on either side is the result.
        nan = "" if dtype in INTEGERS else "a != a || "
        self._helpers.add(
            f"static inline {c_type} {name}({c_type} a, {c_type} b) "
            f"{{ return {nan}a {sign} b ? a : b; }}"
        )
        return name

    def stream(self, dtype: str, lanes: int) -> str:
        """The helper that stores a vector past the caches."""
        self._helpers |= {stream_helper(dtype, lanes), fence_helper()}
        self.streams = True
        return names.stream(dtype, lanes)

    def gather(self, dtype: str, lanes: int) -> str:
        """The helper that reads the elements at a vector of places."""
        self._helpers.add(gather_helper(dtype, lanes))
        return names.gather(dtype, lanes)

    def lane_sum(self, tensor: str, count: int) -> str:
        """The sum of all lanes of the first vectors of a temporary in registers."""
        dtype, lanes = self.tensors[tensor].dtype, self.registers[tensor]
        self.vector_type(dtype, lanes)
        self._helpers.add(lane_sum_helper(dtype, lanes))
        vectors = " + ".join(names.register(tensor, i) for i in range(count))
        return f"{names.lane_sum(dtype, lanes)}({vectors})"

    def _integer_helper(self, op: str, dtype: str) -> str:
        name = names.floor_division(dtype) if op == "floordiv" else names.modulo(dtype)
        # -1 apart: the least number divided by it traps.
        body = {
            "floordiv": "b == -1 ? -a : a / b - (a % b != 0 && (a % b < 0) != (b < 0))",
            "mod": "b == -1 ? 0 : a % b + (a % b != 0 && (a % b < 0) != (b < 0)) * b",
        }[op]
        if dtype in UNSIGNED:
            body = "a / b" if op == "floordiv" else "a % b"
        c_type = C_TYPES[dtype]
        self._helpers.add(
            f"static inline {c_type} {name}({c_type} a, {c_type} b) {{ return {body}; }}"
        )
        return name

    def helper(self, text: str) -> None:
        """A function that the statements use."""
        self._helpers.add(text)

    def vector_type(self, dtype: str, lanes: int) -> str:
        """The type of vectors, declared where it is used."""
        self._vectors.add((dtype, lanes))
        return names.vector_type(dtype, lanes)


def _wide(node: Expr) -> str:
    """The cast that makes C compute a bare whole constant in 64 bits, where its own ``int`` is
    short.
    """
    is_bare = isinstance(node, Const) and node.dtype == "int64" and abs(int(node.value)) >= 1 << 15
    return "(int64_t)" if is_bare else ""


def _literal(value: float | int | bool, dtype: str) -> str:
    if dtype == "bool":
        return "1" if value else "0"
    if dtype in INTEGERS:
        if dtype in ("int32", "int64") and value == whole_range(dtype).start:
            return f"{dtype.upper()}_MIN"
        # C's own integers are int; a number of another width has its type.
        typed = "" if dtype in ("int32", "int64") else f"({C_TYPES[dtype]})"
        return f"{typed}{value}" if value >= 0 and not typed else f"({typed}{value})"
    number = float(value)
    if number != number:
        text = "NAN"
    elif number in (float("inf"), float("-inf")):
        text = "INFINITY" if number > 0 else "(-INFINITY)"
    else:
        # Hexadecimal is exact; decimal reads better where it is exact too.
        text = (
            repr(number)
            if float(repr(number)) == number and len(repr(number)) < 12
            else number.hex()
        )
    if dtype == "float16":
        return f"((_Float16){text})"
    suffix = "f" if dtype == "float32" and text[0] not in "NI(" else ""
    return f"({text}{suffix})" if text.startswith("-") else f"{text}{suffix}"
