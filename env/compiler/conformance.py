"""A declared instruction does what it means: its C, called by generated code on parts of larger
arrays, against its meaning, interpreted.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.dtypes import FLOATS, UNSIGNED
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Call,
    Expr,
    For,
    Load,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
    loops,
    map_expression,
    map_statements,
    statements,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS
from kernelwright.env.compiler.schedule.instruction import Instruction

# What the extents of an instruction are tried with, none at all among them.
EXTENTS = (0, 1, 7)
# A window begins behind the first row and column of its array, and ends before the last ones.
BEFORE, AROUND = 1, 3
# How far the elements of a last axis are apart that need not lie side by side.
APART = 2


class ConformanceError(CompilerError):
    """An instruction whose C does something else than it means."""


def verify_instruction(
    instruction: Instruction,
    cache: BuildCache,
    *,
    toolchain: str | None = None,
    flags: tuple[str, ...] = DEFAULT_FLAGS,
    seed: int = 0,
) -> None:
    """Run an instruction's C and its meaning on random values and compare everything, what lies
    around the windows too.

    Whole numbers must be equal. Floating-point results may differ by one unit of rounding for every
    step of the meaning, relative to what it gives on absolute values (the bound of any order of a
    sum of products: Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).

    Raises:
        ConformanceError: at the first element that differs.
        BuildError: if there is no compiler, or it refuses.
    """
    names = instruction.semantics.extents
    for values in product(EXTENTS, repeat=len(names)):
        sizes = dict(zip(names, values, strict=True))
        around = surrounded(instruction, sizes)
        kernel = compile_procedure(around, cache=cache, toolchain=toolchain, flags=flags)
        given = _random(around, np.random.default_rng(seed))
        wanted, found = interpret(around, given), kernel(given)
        greatest = interpret(around, {name: np.abs(array) for name, array in given.items()})
        steps = _steps(instruction, sizes)
        for name, array in wanted.items():
            unit = np.finfo(array.dtype).eps if array.dtype.name in FLOATS else 0
            # Through float64: the difference of unsigned numbers is none of theirs.
            bound = (steps + 2) * float(unit) * np.abs(greatest[name].astype(np.float64))
            difference = np.abs(found[name].astype(np.float64) - array.astype(np.float64))
            wrong = np.argwhere(~(difference <= bound))
            if len(wrong):
                place = tuple(wrong[0].tolist())
                raise ConformanceError(
                    f"{instruction.name} with {sizes}: {name}{list(place)} is "
                    f"{found[name][place]}, expected {array[place]}"
                )


def surrounded(instruction: Instruction, sizes: Mapping[str, int]) -> Procedure:
    """A procedure that calls an instruction once, on windows inside larger arrays; those that it
    wants in a memory of their own are copied there and back.

    Every window has an input ``NAME_given``, and where it is written an output ``NAME_result``.
    """
    arguments: list[Tensor] = []
    tiles: list[Tensor] = []
    before: list[Stmt] = []
    after: list[Stmt] = []
    places: dict[str, str] = {}
    for window in instruction.windows:
        axes = tuple(_number(extent, sizes) for extent in window.shape)
        step = _step(instruction, window.name)
        sizes_there = [*axes[:-1], *(size * step for size in axes[-1:])]
        shape = tuple(whole(size + AROUND) for size in sizes_there)
        given = Tensor(f"{window.name}_given", shape, window.dtype, "input")
        result = Tensor(f"{window.name}_result", shape, window.dtype, "output")
        arguments.append(given)
        is_written = window.role == "output"
        if is_written:
            arguments.append(result)
        scopes = dict(instruction.scopes).get(window.name, ("auto",))
        if "auto" in scopes:
            places[window.name] = result.name if is_written else given.name
            if is_written:
                before.append(_copy(result, given, "in"))
            continue
        tile = Tensor(f"{window.name}_tile", shape, window.dtype, scope=scopes[0])
        tiles.append(tile)
        places[window.name] = tile.name
        before.append(_copy(tile, given, "in"))
        if is_written:
            after.append(_copy(result, tile, "out"))
    meaning = _moved(instruction, places, sizes)
    body: Stmt = Block((*before, Call(instruction.name, meaning), *after))
    for tile in tiles:
        body = Allocate(tile, body)
    return Procedure(f"check_{instruction.name}", (), tuple(arguments), body)


def _number(extent: Expr, sizes: Mapping[str, int]) -> int:
    value = sizes[extent.name] if isinstance(extent, Var) else getattr(extent, "value", None)
    assert isinstance(value, int)
    return value


def _copy(target: Tensor, source: Tensor, ending: str) -> Stmt:
    """All elements of a tensor from another of the same shape."""
    names = tuple(f"{target.name}_{axis}_{ending}" for axis in range(len(target.shape)))
    place = tuple(Var(name) for name in names)
    body: Stmt = Store(target.name, place, Load(source.name, place))
    for name, extent in reversed(list(zip(names, target.shape, strict=True))):
        body = For(name, extent, body)
    return body


def _step(instruction: Instruction, window: str) -> int:
    return 1 if window in instruction.contiguous else APART


def _moved(instruction: Instruction, places: Mapping[str, str], sizes: Mapping[str, int]) -> Stmt:
    """The meaning on other tensors, away from their corner, with numbers for extents."""

    def moved(window: str, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        apart = whole(_step(instruction, window))
        scaled = (*indices[:-1], *(Binary("mul", index, apart) for index in indices[-1:]))
        return tuple(Binary("add", index, whole(BEFORE)) for index in scaled)

    def part(node: Expr) -> Expr:
        match node:
            case Var(name) if name in sizes:
                return whole(sizes[name])
            case Load(tensor, indices):
                return Load(places[tensor], moved(tensor, indices))
        return node

    def statement(node: Stmt) -> Stmt:
        if not isinstance(node, Store):
            return node
        there = moved(node.tensor, node.indices)
        return Store(places[node.tensor], there, node.value, node.reduce)

    return map_statements(instruction.semantics.body, lambda e: map_expression(e, part), statement)


def _random(procedure: Procedure, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    given: dict[str, NDArray[Any]] = {}
    for tensor in procedure.tensors:
        if tensor.role != "input":
            continue
        shape = tuple(_number(extent, {}) for extent in tensor.shape)
        if tensor.dtype in FLOATS:
            given[tensor.name] = rng.standard_normal(shape).astype(tensor.dtype)
        elif tensor.dtype == "bool":
            given[tensor.name] = rng.integers(0, 2, shape).astype("bool")
        else:
            least = 0 if tensor.dtype in UNSIGNED else -128
            given[tensor.name] = rng.integers(least, least + 256 // 2, shape).astype(tensor.dtype)
    return given


def _steps(instruction: Instruction, sizes: Mapping[str, int]) -> int:
    """How many values one element is combined from, at most."""
    body = instruction.semantics.body
    places = [index for s in statements(body) if isinstance(s, Store) for index in s.indices]
    steps = 1
    for loop in loops(instruction.semantics):
        if Var(loop.var) not in places:
            steps *= max(1, _number(loop.extent, sizes))
    return steps
