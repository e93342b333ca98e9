"""How far the accesses of a tensor reach along an axis."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.poly.model import affine_text
from kernelwright.env.compiler.poly.sample import coordinates, iteration_text
from kernelwright.env.compiler.poly.timed import (
    Access,
    accesses_of,
    domain_text,
    relation,
    variables_text,
)


@dataclass(frozen=True, slots=True)
class FarAccess:
    """A counterexample: an iteration that may access an element beyond a limit."""

    element: str
    iteration: tuple[tuple[str, int], ...]
    index: int | None

    def __str__(self) -> str:
        found = "any index" if self.index is None else f"index {self.index}"
        return f"{self.element} has {found} in iteration {iteration_text(self.iteration)}"


def outside(procedure: Procedure, tensor: str, axis: int, limit: int) -> FarAccess | None:
    """An access of a tensor whose index along an axis may be ``limit`` or more, for some values of
    the extents; None if there is none. No access of a legal program leaves the declared shape.
    """
    for access in accesses_of(procedure):
        if access.tensor.name == tensor:
            example = _beyond(access, procedure, axis, limit)
            if example is not None:
                return example
    return None


def _beyond(access: Access, procedure: Procedure, axis: int, limit: int) -> FarAccess | None:
    element = f"{access.tensor.name}[{', '.join(map(print_expr, access.indices))}]"
    index, size = affine_text(access.indices[axis]), affine_text(access.tensor.shape[axis])
    domain = domain_text(access, exact=False)
    assert domain is not None
    at = "any0" if index is None else index
    held = [domain, f"{at} >= {limit}", *([] if size is None else [f"{at} < {size}"])]
    far = relation(procedure, f"[{variables_text(access)}] -> [{at}]", " and ".join(held))
    if far.is_empty():
        return None
    values = coordinates(far.wrap().sample_point())
    names = [loop.var for loop in access.loops]
    iteration = tuple(zip(names, values, strict=False))
    return FarAccess(element, iteration, None if index is None else values[-1])
