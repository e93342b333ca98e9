"""LoopIR's expressions in C for all lanes of a vectorized loop at once, as GCC vectors."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.codegen.expression import INFIX, LOOSE, TIGHT, Expressions
from kernelwright.env.compiler.codegen.gather import can_gather
from kernelwright.env.compiler.ir.linear import step_of
from kernelwright.env.compiler.ir.nodes import Binary, Cast, Const, Expr, Load, Unary, substitute
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.simplify import simplify, whole

_VECTOR_OPS = ("add", "sub", "mul", "div")


@dataclass(frozen=True, slots=True)
class Lanes:
    """The vectorized loop being written: its variable and how many lanes it has."""

    var: str
    count: int


class Vectors:
    """Writes vectors beside the expressions of single lanes."""

    def __init__(self, scalars: Expressions) -> None:
        self._scalars = scalars

    def exist(self, dtype: str, lanes: Lanes) -> bool:
        """Whether C has a vector type of that many lanes."""
        return dtype not in ("bool", "float16") and lanes.count in (2, 4, 8, 16, 32, 64)

    def value(self, node: Expr, lanes: Lanes, dtype: str, outer: int = TIGHT) -> str | None:
        """An expression for all lanes, None if it has no vector form."""
        kind = self._scalars.vector_type(dtype, lanes.count)
        if not mentions(node, lanes.var):
            # x - 0 is x for every x, -0 included; x + 0 is not.
            return f"({self._scalars.scalar(node)} - ({kind}){{}})"
        match node:
            case Load(tensor, indices):
                if self._scalars.tensors[tensor].dtype != dtype:
                    return None
                place = self._scalars.flat(tensor, indices)
                if step_of(place, lanes.var) == 1:
                    return self.element(tensor, indices, lanes, const="const ")
                gathered = self._gathered(tensor, place, lanes)
                if gathered is not None:
                    return gathered
                parts = [
                    self._scalars.scalar(_at(node, lanes.var, i), LOOSE) for i in range(lanes.count)
                ]
                return f"({kind}){{{', '.join(parts)}}}"
            case Binary(op, left, right) if op in _VECTOR_OPS:
                sign, level = INFIX[op]
                a = self._operand(left, lanes, dtype, level)
                b = self._operand(right, lanes, dtype, level + 1)
                if a is None or b is None:
                    return None
                return f"({a} {sign} {b})" if level < outer else f"{a} {sign} {b}"
            case Unary("neg", operand):
                text = self.value(operand, lanes, dtype)
                return None if text is None else f"(-{text})"
        return None

    def _gathered(self, tensor: str, place: Expr, lanes: Lanes) -> str | None:
        """The elements at places that lie side by side in memory; None if these are no such."""
        match place:
            case Cast("int64", Load(places, indices)) if not (
                {tensor, places} & self._scalars.registers.keys()
            ):
                dtype, of = (self._scalars.tensors[name].dtype for name in (tensor, places))
                beside = step_of(self._scalars.flat(places, indices), lanes.var) == 1
                if beside and can_gather(dtype, of, lanes.count):
                    at = self.element(places, indices, lanes, const="const ")
                    return f"{self._scalars.gather(dtype, lanes.count)}({tensor}, {at})"
        return None

    def _operand(self, node: Expr, lanes: Lanes, dtype: str, outer: int) -> str | None:
        """An operand of a vector operation; C broadcasts a scalar beside a vector."""
        if mentions(node, lanes.var):
            return self.value(node, lanes, dtype, outer)
        return self._scalars.scalar(node, outer)

    def element(self, tensor: str, indices: tuple[Expr, ...], lanes: Lanes, *, const: str) -> str:
        """The elements of all lanes, which lie side by side, to read or to write."""
        if tensor in self._scalars.registers:
            first = simplify(substitute(self._scalars.flat(tensor, indices), {lanes.var: whole(0)}))
            assert isinstance(first, Const)
            return names.register(tensor, int(first.value) // self._scalars.registers[tensor])
        kind = self._scalars.vector_type(self._scalars.tensors[tensor].dtype, lanes.count)
        return f"*({const}{kind} *)({self.first_lane(tensor, indices, lanes)})"

    def first_lane(self, tensor: str, indices: tuple[Expr, ...], lanes: Lanes) -> str:
        """The address of the first lane's element."""
        first = simplify(substitute(self._scalars.flat(tensor, indices), {lanes.var: whole(0)}))
        return f"{tensor} + {self._scalars.scalar(first, 12)}"


def _at(node: Expr, var: str, value: int) -> Expr:
    return simplify(substitute(node, {var: whole(value)}))
