"""One nest of loops in a model: the instances inside it, their pairs as distances, and orders that
differ inside the nest alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import Binary, Expr, Var
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.affine_map import AffineMap
from kernelwright.env.compiler.poly.model import Instance, Model, Position, isl_name
from kernelwright.env.compiler.poly.sample import coordinates


class NestError(CompilerError):
    """Loops that form no nest."""


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops, each directly around the next, outermost first, and the instances inside all of
    them.
    """

    model: Model
    loops: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "loops", tuple(self.loops))
        if not self.loops:
            raise NestError("expected at least one loop, found none")
        for instance in self.model.instances:
            inside = [loop for loop in self.loops if loop in instance.variables]
            if inside and not self._holds(instance):
                found = " ".join(instance.variables)
                wanted = " ".join(self.loops)
                raise NestError(f"expected the nest {wanted}, found a statement in loops {found}")
        if not self.instances:
            raise NestError(f"expected loops of the procedure, found {', '.join(self.loops)}")

    def _holds(self, instance: Instance) -> bool:
        variables = instance.variables
        if self.loops[0] not in variables:
            return False
        start = variables.index(self.loops[0])
        return variables[start : start + len(self.loops)] == self.loops

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The instances inside all loops."""
        return tuple(i for i in self.model.instances if self._holds(i))

    def distances(self, pairs: isl.UnionMap) -> isl.Set:
        """How far apart dependent iterations of the nest are, for pairs inside one run of it: a set
        of vectors, one component a loop. Pairs within one iteration have distance zero and are left
        out: an order of iterations does not touch them.
        """
        outer = self._project(lambda i: i.variables[: i.variables.index(self.loops[0])])
        inner = self._project(lambda _: self.loops)
        same_run = outer.apply_range(outer.reverse())
        inside = pairs.intersect(same_run)
        moved = inside.apply_domain(inner).apply_range(inner)
        space = isl.Set(f"{self.model.parameters}{{ [{', '.join('0' for _ in self.loops)}] }}")
        found = isl.UnionSet.from_set(space.subtract(space)).union(moved.deltas())
        return found.extract_set(space.get_space()).subtract(space).coalesce()

    def order(self, map_: AffineMap, tiles: Sequence[int] = ()) -> isl.UnionMap:
        """Instance → time, where the nest's loops run in the order of a map, tile by tile if
        there are sizes of tiles, one a row.

        Raises:
            NestError: if the map is about another number of loops, or there are tiles of another
                number of rows.
        """
        if len(tiles) not in (0, len(map_.rows)):
            raise NestError(f"expected {len(map_.rows)} sizes of tiles, found {len(tiles)}")
        if map_.depth != len(self.loops):
            raise NestError(f"expected a map of {len(self.loops)} loops, found {map_.depth}")
        rows = map_texts(self.loops, map_)
        if tiles:
            numbers = zip(rows, tiles, strict=True)
            rows = [*(f"floor(({row}) / {size})" for row, size in numbers), *rows]
        texts = {}
        for instance in self.instances:
            place = [isl_name(p) if isinstance(p, str) else str(p) for p in instance.position]
            start = place.index(isl_name(self.loops[0]))
            # Between two loops of the nest stands a constant, the same for all instances.
            end = start + 2 * len(self.loops) - 1
            texts[instance.name] = (*place[:start], *rows, *place[end:])
        return timetable(self.model, texts)

    def positions(self, map_: AffineMap, tiles: Sequence[int] = ()) -> dict[str, Position]:
        """The places in time that `order` gives the instances inside."""
        rows: list[Expr] = []
        for row, constant in zip(map_.rows, map_.constants, strict=True):
            total: Expr = whole(constant)
            for variable, entry in zip(self.loops, row, strict=True):
                total = Binary("add", total, Binary("mul", whole(entry), Var(variable)))
            rows.append(total)
        blocks = [
            Binary("floordiv", row, whole(size)) for row, size in zip(rows, tiles, strict=False)
        ]
        out: dict[str, Position] = {}
        for instance in self.instances:
            start = instance.position.index(self.loops[0])
            end = start + 2 * len(self.loops) - 1
            out[instance.name] = (
                *instance.position[:start],
                *blocks,
                *rows,
                *instance.position[end:],
            )
        return out

    def pairs(
        self, pairs: isl.UnionMap, extents: Mapping[str, int]
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Dependent iterations of the nest one by one, for given extents; a nest that many
        statements share gives a pair once for every pair of them.
        """
        inner = self._project(lambda _: self.loops)
        known = " and ".join(f"{isl_name(name)} = {value}" for name, value in extents.items())
        context = isl.Set(f"{self.model.parameters}{{ : {known} }}")
        moved = pairs.intersect_params(context).apply_domain(inner).apply_range(inner)
        found: list[tuple[int, ...]] = []

        def keep(point: isl.Point) -> None:
            found.append(coordinates(point))

        maps = moved.get_map_list()
        for place in range(maps.n_map()):
            flat = maps.get_map(place).wrap().flatten()
            count = flat.dim(isl.dim_type.param)
            flat.project_out(isl.dim_type.param, 0, count).foreach_point(keep)
        depth = len(self.loops)
        for point in found:
            yield point[:depth], point[depth:]

    def _project(self, key: Callable[[Instance], tuple[str, ...]]) -> isl.UnionMap:
        parts = [f"{i.tuple_text} -> [{', '.join(map(isl_name, key(i)))}]" for i in self.instances]
        return isl.UnionMap(f"{self.model.parameters}{{ {'; '.join(parts)} }}")


def row_text(loops: Sequence[str], row: Sequence[int], constant: int = 0) -> str:
    """One row of a map in isl's words: ``1*v_t + -2*v_i + 0``."""
    terms = [f"{entry}*{isl_name(v)}" for v, entry in zip(loops, row, strict=True) if entry]
    return " + ".join([*terms, str(constant)])


def map_texts(loops: Sequence[str], map_: AffineMap) -> list[str]:
    """The rows of a map in isl's words."""
    pairs = zip(map_.rows, map_.constants, strict=True)
    return [row_text(loops, row, constant) for row, constant in pairs]


def timetable(model: Model, texts: Mapping[str, Sequence[str]]) -> isl.UnionMap:
    """Instance → time from isl's texts, by instance name; the program's own place where a name is
    missing.
    """
    chosen = {
        i.name: texts.get(i.name)
        or [isl_name(p) if isinstance(p, str) else str(p) for p in i.position]
        for i in model.instances
    }
    length = max((len(p) for p in chosen.values()), default=1)
    parts = []
    for instance in model.instances:
        place = [*chosen[instance.name]]
        padded = ", ".join([*place, *["0"] * (length - len(place))])
        parts.append(f"{instance.tuple_text} -> [{padded}]")
    text = f"{model.parameters}{{ {'; '.join(parts)} }}"
    return isl.UnionMap(text).intersect_domain(model.domain)
