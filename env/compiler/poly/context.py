"""What stays fixed around a statement, and loops and guards over it in isl's words."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from kernelwright.env.compiler.ir.linear import Linear
from kernelwright.env.compiler.ir.nodes import Expr, For, Procedure
from kernelwright.env.compiler.ir.path import conditions_in, loops_in, path_to
from kernelwright.env.compiler.poly.affine import context_set
from kernelwright.env.compiler.poly.model import affine_text, condition_text, isl_name, mattering
from kernelwright.env.compiler.poly.normal import operands


@dataclass(frozen=True, slots=True)
class Context:
    """What stays fixed around a statement: extents, loops from the outside in, and the guards that
    hold there; ``numbers`` stand for what is read from memory and may be any.
    """

    extents: tuple[str, ...] = ()
    loops: tuple[For, ...] = ()
    conditions: tuple[Expr, ...] = ()
    numbers: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all that is fixed."""
        return (*self.extents, *(loop.var for loop in self.loops), *self.numbers)

    @property
    def alone(self) -> Context:
        """The same names of which nothing is known but that loops and extents are not negative."""
        loops = tuple(loop.var for loop in self.loops)
        return Context((*self.extents, *loops), numbers=self.numbers)


def context_of(procedure: Procedure, loop: str | None) -> Context:
    """What is fixed inside the body of a loop; the extents alone where ``loop`` is None.

    Raises:
        KeyError: if there is no such loop.
    """
    if loop is None:
        return Context(procedure.extents)
    path = path_to(procedure, loop)
    if not path:
        raise KeyError(loop)
    return Context(procedure.extents, loops_in(path), conditions_in(path))


def known(around: Context) -> isl.Set:
    """The values that what is fixed may have."""
    return context_set(around.parameters, limits(around.loops, around.conditions, around))


def values_over(
    loops: tuple[For, ...],
    conditions: tuple[Expr, ...],
    indices: tuple[Linear, ...],
    around: Context,
) -> isl.Set:
    """The values of expressions (none or one) over loops."""
    loops = mattering(loops, (*conditions, *(index.expression() for index in indices)))
    texts = limits((*around.loops, *loops), (*around.conditions, *conditions), around)
    texts += [f"a{place} = {affine_text(i.expression())}" for place, i in enumerate(indices)]
    inner = [isl_name(loop.var) for loop in loops]
    condition = " and ".join(texts) or "true"
    bound = f"exists {', '.join(inner)}: {condition}" if inner else condition
    parameters = ", ".join(map(isl_name, around.parameters))
    axes = ", ".join(f"a{place}" for place in range(len(indices)))
    return isl.Set(f"[{parameters}] -> {{ [{axes}] : {bound} }}")


def limits(loops: tuple[For, ...], conditions: tuple[Expr, ...], around: Context) -> list[str]:
    """Loop bounds and guards in isl's words; those that are not affine are left out."""
    texts = [f"0 <= {isl_name(extent)}" for extent in around.extents]
    for loop in loops:
        texts.append(f"0 <= {isl_name(loop.var)}")
        # What is below the least of some expressions is below each of them.
        sizes = (affine_text(size) for size in operands("min", loop.extent))
        texts += [f"{isl_name(loop.var)} < {size}" for size in sizes if size is not None]
    return texts + [f"({t})" for t in map(condition_text, conditions) if t is not None]
