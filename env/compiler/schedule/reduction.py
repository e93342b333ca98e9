"""Directives about the order in which the parts of a reduction are combined: reassociate, rfactor.

LoopIR combines in the order of the loops. Another order gives the same whole numbers (they wrap, so
sums and products may be regrouped) and the same least and greatest values: a NaN anywhere is the
result, and which of two zeros of different sign is the lesser LoopIR leaves open. Floating-point
sums and products round differently, so a schedule has to say that it may regroup them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.dtypes import FLOATS, least, greatest
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
    map_statements,
    statements,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.poly.elements import point_of, written
from kernelwright.env.compiler.poly.model import build_model
from kernelwright.env.compiler.schedule.defaults import copied_name
from kernelwright.env.compiler.schedule.edit import (
    find_loop,
    finish,
    replace_loop,
    taken_names,
    tensors_of,
)
from kernelwright.env.compiler.schedule.path import (
    chain_around,
    chain_inside,
    mentions,
    path_to,
)
