"""A `While` as analyses see it: a loop with a variable of its own, which nothing mentions and no
name of a program can be, and an extent of which nothing is known. Its condition holds where an
iteration begins, and what is in the body reads it, as it does that of a guard.

That is from above: there may be any number of iterations, and every one reads what the condition
reads. So an analysis can refuse too much, never too little.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from math import inf

from kernelwright.env.compiler.ir.nodes import (
    Cast,
    Const,
    Expr,
    For,
    If,
    Procedure,
    Stmt,
    While,
    map_statements,
    statements,
)
from kernelwright.env.compiler.ir.simplify import EMPTY

# No number, nor anything that arithmetic on numbers could make of one.
UNKNOWN: Expr = Cast("int64", Const(inf, "float64"))
# Numbers for the `While`s of a program, in its order.
Numbers = Iterator[int]


def as_loop(numbers: Numbers) -> For:
    """The loop that the next `While` of a program is to analyses, without its body.

    No name of a program ends with a prime.
    """
    return For(f"while{next(numbers)}'", UNKNOWN, EMPTY)


def written_as_loops(procedure: Procedure) -> Procedure:
    """The procedure with such loops around guards in the places of its `While`s: for estimates,
    which need the names alone.
    """
    numbers = count()

    def as_loops(node: Stmt) -> Stmt:
        if not isinstance(node, While):
            return node
        return replace(as_loop(numbers), body=If(node.condition, node.body))

    return replace(procedure, body=map_statements(procedure.body, lambda e: e, as_loops))


def has_while(node: Stmt) -> bool:
    """Whether a `While` is in a statement."""
    return any(isinstance(each, While) for each in statements(node))
