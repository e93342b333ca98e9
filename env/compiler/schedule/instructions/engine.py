"""A matrix engine that no one has built: 16 by 16 units that multiply two tiles of a scratchpad
into an accumulator memory, in the manner of systolic accelerators (NKI's tensor engine with SBUF
and PSUM). It shows how an accelerator is declared: its memories are scopes, its instructions have a
meaning, and no C.

A tile of A lies in the scratchpad as columns, as the engine reads it: ``S[k, m]``.
"""

from __future__ import annotations

from kernelwright.env.compiler.ir.nodes import Const, Procedure, Store
from kernelwright.env.compiler.schedule.instruction import Instruction
from kernelwright.env.compiler.schedule.instructions.write import accumulate, load, under, window

SIZE = 16
_TILE = (SIZE, SIZE)
_TARGET = "matrix engine"
_PLACE = load("S", "i", "j").indices

LOAD = Instruction(
    Procedure(
        "engine_load",
        (),
        (window("X", _TILE, "float32"), window("S", _TILE, "float32", written=True)),
        under(Store("S", _PLACE, load("X", "i", "j")), i=SIZE, j=SIZE),
    ),
    target=_TARGET,
    scopes=(("X", ("auto", "heap")), ("S", ("scratchpad",))),
    contiguous=("S",),
)
ZERO = Instruction(
    Procedure(
        "engine_zero",
        (),
        (window("S", _TILE, "float32", written=True),),
        under(Store("S", _PLACE, Const(0.0, "float32")), i=SIZE, j=SIZE),
    ),
    target=_TARGET,
    scopes=(("S", ("accumulator",)),),
    contiguous=("S",),
)
MATMUL = Instruction(
    Procedure(
        "engine_matmul",
        (),
        (
            window("A", _TILE, "float32"),
            window("B", _TILE, "float32"),
            window("P", _TILE, "float32", written=True),
        ),
        under(
            accumulate(load("P", "m", "n"), load("A", "k", "m"), load("B", "k", "n")),
            k=SIZE,
            m=SIZE,
            n=SIZE,
        ),
    ),
    target=_TARGET,
    scopes=(("A", ("scratchpad",)), ("B", ("scratchpad",)), ("P", ("accumulator",))),
    contiguous=("A", "B", "P"),
)
STORE = Instruction(
    Procedure(
        "engine_store",
        (),
        (window("S", _TILE, "float32"), window("Y", _TILE, "float32", written=True)),
        under(Store("Y", _PLACE, load("S", "i", "j")), i=SIZE, j=SIZE),
    ),
    target=_TARGET,
    scopes=(("S", ("accumulator",)), ("Y", ("auto", "heap"))),
    contiguous=("S",),
)
