"""How long the segments of stored levels are in the mean, from a program's sizes and counts."""

from __future__ import annotations

from kernelwright.env.compiler.ir.nodes import Const, Expr
from kernelwright.env.compiler.ir.simplify import simplify
from kernelwright.env.compiler.sparse.format import Format
from kernelwright.env.compiler.sparse.program import Program, SparseError


def segments(program: Program) -> dict[str, tuple[float, float]]:
    """Of each operand's array of positions (``A2_pos``) the mean length of a segment, and out of
    how many coordinates.

    Raises:
        SparseError: if a size or a count is no number.
    """
    out = {}
    for access in program.accesses:
        if program.is_plain(access.tensor):
            continue
        for number in range(len(program.format(access.tensor).levels)):
            site = program.site(access, number)
            for array in program.level(access, number).arrays(site):
                if array.name == "pos":
                    stored, above = _number(site.positions), _number(site.parents)
                    length = stored / above if above else 0.0
                    out[site.name("pos")] = length, _number(site.extent)
    return out


def expected_counts(form: Format, shape: tuple[int, ...], density: float) -> dict[int, int]:
    """The number of positions of each compressed level (from 1) of a tensor whose elements are
    stored with the same chance each: of the nodes above it, those below which anything is.
    """
    out = {}
    extents = form.extents(shape)
    cells = 1.0
    for number, ((kind, _), extent) in enumerate(zip(form.levels, extents, strict=True), start=1):
        cells *= extent
        below = 1.0
        for rest in extents[number:]:
            below *= rest
        if not kind.full:
            out[number] = round(cells * -_expm1(below, density))
    return out


def _expm1(many: float, density: float) -> float:
    """The chance that none of so many is stored, less 1."""
    return float((1.0 - density) ** many - 1.0)


def _number(node: Expr) -> float:
    found = simplify(node)
    if not isinstance(found, Const):
        raise SparseError(f"segments: expected sizes and counts in numbers, found {found}")
    return float(found.value)
