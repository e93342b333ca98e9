"""Rows that memory chooses at random, some of them none: copies read and write nothing else."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from programs import add
from test_opaque import ZERO, memory, same

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import InterpretError, interpret
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Const,
    For,
    If,
    Load,
    Procedure,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace

ONE = Const(1.0, "float64")


class Nests:
    """Nests of three loops, whose extents, guards and places read ``a`` and ``b``."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def often(self, share):
        return self.rng.random() < share

    def read(self, around):
        place = Var(str(self.rng.choice(list(around)))) if self.often(0.8) else whole(1)
        out = memory(str(self.rng.choice(("a", "b"))), place)
        return memory("a", out) if self.often(0.2) else out

    def index(self, around):
        out = self.read(around)
        if self.often(0.3):
            out = Binary(str(self.rng.choice(("min", "max", "floordiv", "mod"))), out, whole(2))
        return add(out, Var(str(self.rng.choice(list(around))))) if self.often(0.3) else out

    def guarded(self, around, body, share):
        if not self.often(share):
            return body
        left = self.read(around) if self.often(0.6) else Var(around[-1])
        test = Binary(str(self.rng.choice(("lt", "le", "eq"))), left, whole(2))
        if self.often(0.3):
            other = Binary("lt", self.read(around), whole(3))
            test = Binary(str(self.rng.choice(("and", "or"))), test, other)
        return If(test, body)

    def store(self, around):
        other = Load("y", (self.index(around),))
        value = ONE if self.often(0.6) else Binary("add", other, ONE)
        reduce = "add" if self.often(0.7) else None
        return self.guarded(around, Store("y", (self.index(around),), value, reduce), 0.4)

    def extent(self, around):
        if self.often(0.4):
            return whole(int(self.rng.integers(1, 4)))
        one = self.read(around)
        return one if self.often(0.5) else Binary("sub", one, self.read(around))

    def body(self):
        inner = For("k", self.extent("ij"), self.store("ijk"))
        inner = Block((inner, self.store("ij"))) if self.often(0.3) else inner
        inner = For("j", self.extent("i"), self.guarded("ij", inner, 0.2))
        inner = Block((inner, self.store("i"))) if self.often(0.2) else inner
        nest = For("i", whole(4), self.guarded("i", inner, 0.2))
        return Block((For("z", whole(6), Store("y", (Var("z"),), ZERO)), nest))

    def procedure(self):
        tensors = (
            Tensor("a", (whole(4),), "int64", "input"),
            Tensor("b", (whole(4),), "int64", "input"),
            Tensor("y", (whole(6),), "float64", "output"),
        )
        return verify(Procedure("f", (), tensors, self.body()))

    def inputs(self, procedure):
        """Contents of memory with which the program stays within its tensors."""
        for _ in range(20):
            top = int(self.rng.choice((2, 4, 6, 9)))
            inputs = {name: self.rng.integers(-1, top, 4) for name in "ab"}
            with suppress(InterpretError):
                interpret(procedure, inputs, {})
                yield inputs


TRACES = [
    *(f'{op}("y", "{var}", "register")' for op in ("cache_write", "cache_read") for var in "ijk"),
    *(f'scalar_replacement("y", "{var}")' for var in "ijk"),
]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.audit) for seed in (1, 2))]
)
def test_copies_of_random_rows(seed):
    nests = Nests(seed)
    accepted = single = 0
    for _ in range(30):
        procedure = nests.procedure()
        inputs = list(nests.inputs(procedure))[:4]
        for trace in TRACES:
            try:
                after = apply_trace(procedure, parse_trace(trace))
            except ScheduleError:
                continue
            accepted += 1
            single += "float64[1]  # register" in print_procedure(after)
            for each in inputs:
                same(procedure, after, each)
    assert accepted > 100, accepted
    assert single > 10, single
