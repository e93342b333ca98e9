"""Reductions: a value combined over all points of domains, in their order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from kernelwright.env.compiler.ir.dtypes import INTEGERS, whole_range
from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr
from kernelwright.env.compiler.tensor.domain import Axis, RDom
from kernelwright.env.compiler.tensor.expression import (
    Operand,
    Source,
    TensorError,
    Value,
    constant,
    merged,
)

_WORDS = {"add": "sum", "mul": "prod", "min": "min", "max": "max"}


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A value combined over domains, the first one outermost, starting from ``start``."""

    op: str
    value: Value
    domains: tuple[RDom, ...]
    start: Const

    def _alone(self, _other: object = None) -> NoReturn:
        raise TensorError(
            f"reduce_{_WORDS[self.op]}: expected the whole value of a stage, found a part of an "
            "expression: give the reduction a stage of its own and read that"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _alone
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _alone
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __neg__ = __abs__ = _alone

    @property
    def dtype(self) -> str:
        """The dtype of the result."""
        return self.value.dtype

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The loops, outermost first."""
        return tuple(axis for domain in self.domains for axis in domain.axes)

    @property
    def condition(self) -> Expr | None:
        """Where the value counts."""
        return conjunction(self.domains)

    @property
    def sources(self) -> tuple[Source, ...]:
        """What it is made of."""
        known = [d.condition.sources for d in self.domains if d.condition is not None]
        return merged(self.value.sources, *known)


def conjunction(domains: Sequence[RDom]) -> Expr | None:
    """The conditions of domains as one."""
    held: Expr | None = None
    for domain in domains:
        if domain.condition is not None:
            node = domain.condition.node
            held = node if held is None else Binary("and", held, node)
    return held


def _reduction(op: str, value: Operand, over: RDom | Sequence[RDom], start: float) -> Reduction:
    domains = (over,) if isinstance(over, RDom) else tuple(over)
    if not domains:
        raise TensorError(f"{op}: expected at least one axis")
    for domain in domains:
        if not isinstance(domain, RDom):
            raise TensorError(f"{op}: expected axes to reduce over, found {domain!r}")
    term = value.as_value()
    if term.dtype in INTEGERS and math.isinf(start):
        held = whole_range(term.dtype)
        start = held.start if start < 0 else held.stop - 1
    node = constant(start, term.dtype).node
    assert isinstance(node, Const)
    return Reduction(op, term, domains, node)


def reduce_sum(value: Operand, over: RDom | Sequence[RDom]) -> Reduction:
    """The sum over axes, in their order."""
    return _reduction("add", value, over, 0)


def reduce_prod(value: Operand, over: RDom | Sequence[RDom]) -> Reduction:
    """The product over axes, in their order."""
    return _reduction("mul", value, over, 1)


def reduce_max(value: Operand, over: RDom | Sequence[RDom]) -> Reduction:
    """The greatest over axes."""
    return _reduction("max", value, over, -math.inf)


def reduce_min(value: Operand, over: RDom | Sequence[RDom]) -> Reduction:
    """The least over axes."""
    return _reduction("min", value, over, math.inf)
