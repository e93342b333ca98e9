"""Loops from a schedule: isl's abstract syntax tree as LoopIR (Grosser, Verdoolaege and Cohen,
TOPLAS 2015).

isl's loops run from a lower to an upper bound by a step; LoopIR's run from 0. So a loop variable is
the distance from the lower bound, and what isl calls the iterator is ``variable * step + bound``.
The extent is the smallest of all differences of bounds. Loops inside a tile run over the whole tile
instead, with a guard where a tile is not full, so that their extents are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import islpy as isl

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import Binary, Block, Const, Expr, For, If, Stmt, Unary, Var
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.poly.affine import AST_OPERATIONS
from kernelwright.env.compiler.poly.limits import LOCK, limited
from kernelwright.env.compiler.poly.model import variable_name
from kernelwright.env.compiler.poly.normal import difference, minimum, normalized, operands

# Loops of full tiles beside the others take the most, up to a hundred thousand.
MAX_CODE_OPERATIONS = 1_000_000
# What a statement of isl's tree stands for: its name and the values of its own loop variables.
Body = Callable[[str, tuple[Expr, ...]], Stmt]
_TYPE, _OP, _KIND = isl.ast_node_type, isl.ast_expr_op_type, isl.ast_expr_type
# isl's stubs do not know the types whose names Python reserves.
_FOR, _IF = getattr(_TYPE, "for_"), getattr(_TYPE, "if_")  # noqa: B009


class GenerateError(CompilerError):
    """A schedule whose loops have no LoopIR form."""


def band(
    node: isl.ScheduleNode, rows: isl.MultiUnionPwAff, names: Sequence[str]
) -> isl.ScheduleNode:
    """A band of loops inserted above a node of a schedule tree, under a mark that names them; the
    band is returned.
    """
    return mark(node.insert_partial_schedule(rows), names)


def mark(
    node: isl.ScheduleNode, names: Sequence[str], *, guarded: bool = False
) -> isl.ScheduleNode:
    """A band with a mark above it that names its loops; the band is returned.

    ``guarded`` loops run over all values between their constant bounds, the others are guards.
    """
    text = f"{node.get_schedule_depth()}:{','.join(names)}" + ("?" if guarded else "")
    return node.insert_mark(isl.Id(text)).child(0)


def tiled(
    node: isl.ScheduleNode,
    sizes: Sequence[int],
    names: tuple[Sequence[str], Sequence[str]],
    *,
    separate: bool = False,
) -> isl.ScheduleNode:
    """A band cut into tiles, its mark replaced by those of the loops over tiles and inside them;
    the band over tiles is returned.

    ``separate`` makes loops of their own for the tiles that are full (isl's isolate option), so
    that these have constant extents and no guards.
    """
    extents = isl.MultiVal.zero(node.band_get_space())
    for place, size in enumerate(sizes):
        extents = extents.set_val(place, isl.Val(size))
    images = node.get_prefix_schedule_union_map().flat_range_product(
        node.band_get_partial_schedule_union_map()
    )
    full = None
    if separate:
        full = _full_tiles(images.intersect_domain(node.get_domain()), sizes)
    tiles = _cut(node, extents)
    if full is not None:
        tiles = tiles.band_set_ast_build_options(isl.UnionSet.from_set(full))
    inside = mark(mark(tiles, names[0]).child(0), names[1], guarded=True)
    return inside.parent().parent()


def _cut(node: isl.ScheduleNode, sizes: isl.MultiVal) -> isl.ScheduleNode:
    """The band over tiles, numbered from 0 (isl would count their first points)."""
    context = isl.DEFAULT_CONTEXT
    scaled = context.get_tile_scale_tile_loops()
    with LOCK:
        context.set_tile_scale_tile_loops(0)
        try:
            return node.band_tile(sizes)
        finally:
            context.set_tile_scale_tile_loops(scaled)


def generate(
    schedule: isl.Schedule, context: isl.Set, body: Body, fresh: Callable[[str], str]
) -> Stmt:
    """The loop nest of a schedule tree whose bands have marks with the names of their loops.

    ``context`` says what is known of the parameters; ``fresh`` makes a name of its own from the
    wanted one, as a loop may be written several times.

    Raises:
        GenerateError: if isl's code has a form that LoopIR lacks.
        LimitError: if isl finds no end.
    """
    with limited("loop code", MAX_CODE_OPERATIONS):
        tree = isl.AstBuild.from_context(context).node_from_schedule(schedule)
    return _Reader(body, fresh).statement(tree, {}, {})


class _Reader:
    """Reads isl's tree; iterators are known by their values in LoopIR's variables."""

    def __init__(self, body: Body, fresh: Callable[[str], str]) -> None:
        self._body, self._fresh = body, fresh

    def statement(self, node: isl.AstNode, values: dict[str, Expr], names: dict[str, str]) -> Stmt:
        kind: object = node.get_type()
        if kind == _FOR:
            return self._loop(node, values, names)
        if kind == _TYPE.mark:
            first, _, listed = node.mark_get_id().get_name().partition(":")
            guarded = "?" if listed.endswith("?") else ""
            for place, name in enumerate(listed.removesuffix("?").split(",")):
                # isl leaves out loops of one iteration, so that only the depth tells them apart.
                names = {**names, f"c{int(first) + place}": name + guarded}
            return self.statement(node.mark_get_node(), values, names)
        if kind == _TYPE.block:
            items = node.block_get_children()
            count = items.n_ast_node()
            return Block(
                tuple(self.statement(items.get_at(i), values, names) for i in range(count))
            )
        if kind == _IF:
            condition = self._expression(node.if_get_cond(), values)
            then = If(condition, self.statement(node.if_get_then_node(), values, names))
            if not node.if_has_else_node():
                return then
            # Conditions are about iterators, which no statement changes.
            other = self.statement(node.if_get_else_node(), values, names)
            return Block((then, If(Unary("not", condition), other)))
        if kind == _TYPE.user:
            call = node.user_get_expr()
            name = call.get_op_arg(0).get_id().get_name()
            count = call.get_op_n_arg()
            places = tuple(
                normalized(self._expression(call.get_op_arg(i), values)) for i in range(1, count)
            )
            return self._body(name, places)
        raise GenerateError(f"expected loops and statements, found {node.to_C_str()}")

    def _loop(self, node: isl.AstNode, values: dict[str, Expr], names: dict[str, str]) -> Stmt:
        iterator = node.for_get_iterator().get_id().get_name()
        if iterator not in names:
            raise GenerateError(f"expected a named loop, found {node.to_C_str()}")
        guarded = names[iterator].endswith("?")
        variable = self._fresh(names[iterator].removesuffix("?"))
        start = self._expression(node.for_get_init(), values)
        if node.for_is_degenerate():
            inside = self.statement(
                node.for_get_body(), {**values, iterator: normalized(start)}, names
            )
            return For(variable, whole(1), inside)
        step = int(node.for_get_inc().get_val().to_python())
        limit = self._limit(node.for_get_cond(), iterator, values)
        bounds = operands("max", start), operands("min", limit)
        fixed = [[p for p in part if isinstance(p, Const)] for part in bounds]
        if guarded and step == 1 and all(fixed):
            lower = max(int(p.value) for p in fixed[0])
            upper = min(int(p.value) for p in fixed[1])
            place = normalized(Binary("add", Var(variable), whole(lower)))
            inside = self.statement(node.for_get_body(), {**values, iterator: place}, names)
            held = [
                Binary("ge", place, difference(p, whole(0)))
                for p in bounds[0]
                if not isinstance(p, Const)
            ]
            held += [
                Binary("lt", place, difference(p, whole(0), 1))
                for p in bounds[1]
                if not isinstance(p, Const)
            ]
            if held:
                inside = If(reduce(lambda a, b: Binary("and", a, b), held), inside)
            return For(variable, whole(upper - lower + 1), inside)
        # min(a, b) - max(c, d) is the smallest of the four differences; steps divide each alike.
        counts = [difference(up, low, step) for up in bounds[1] for low in bounds[0]]
        if step > 1:
            counts = [simplify(Binary("floordiv", count, whole(step))) for count in counts]
        place = Binary("add", Binary("mul", Var(variable), whole(step)), start)
        inside = self.statement(node.for_get_body(), {**values, iterator: normalized(place)}, names)
        return For(variable, minimum(counts), inside)

    def _limit(self, condition: isl.AstExpr, iterator: str, values: dict[str, Expr]) -> Expr:
        """The last value of an iterator."""
        op: object = condition.get_op_type()
        left = condition.get_op_arg(0)
        kind: object = left.get_type()
        if op not in (_OP.le, _OP.lt) or kind != _KIND.id:
            raise GenerateError(f"expected an upper bound, found {condition.to_C_str()}")
        if left.get_id().get_name() != iterator:
            raise GenerateError(f"expected a bound of {iterator}, found {condition.to_C_str()}")
        limit = self._expression(condition.get_op_arg(1), values)
        if op == _OP.le:
            return limit
        lasts = [difference(part, whole(0), -1) for part in operands("min", limit)]
        return reduce(lambda a, b: Binary("min", a, b), lasts)

    def _expression(self, node: isl.AstExpr, values: dict[str, Expr]) -> Expr:
        kind: object = node.get_type()
        if kind == _KIND.int:
            return whole(int(node.get_val().to_python()))
        if kind == _KIND.id:
            name = node.get_id().get_name()
            return values[name] if name in values else Var(variable_name(name))
        op: object = node.get_op_type()
        parts = [self._expression(node.get_op_arg(i), values) for i in range(node.get_op_n_arg())]
        if op == _OP.minus:
            return simplify(Binary("mul", parts[0], whole(-1)))
        if op in AST_OPERATIONS and len(parts) >= 2:
            joined = reduce(lambda a, b: Binary(AST_OPERATIONS[op], a, b), parts)
            return simplify(joined)
        raise GenerateError(f"expected arithmetic on whole numbers, found {node.to_C_str()}")


def _full_tiles(images: isl.UnionMap, sizes: Sequence[int]) -> isl.Set | None:
    """The tiles all of whose points are some iteration of every statement, as an isolate option;
    None if there are none. Images are times, of which the last are the band's.
    """
    full: isl.Set | None = None
    parts = images.get_map_list()
    for place in range(parts.n_map()):
        image = parts.get_map(place).range()
        around = image.dim(isl.dim_type.set) - len(sizes)
        box = _box(around, sizes)
        touched = box.intersect_range(image).domain()
        outside = box.intersect_range(image.complement()).domain()
        whole_tiles = touched.subtract(outside)
        full = whole_tiles if full is None else full.intersect(whole_tiles)
    if full is None or full.is_empty():
        return None
    times = [f"t{k}" for k in range(full.dim(isl.dim_type.set))]
    outer, inner = times[: -len(sizes)], times[-len(sizes) :]
    split = isl.Map(
        f"{{ [{', '.join(times)}] -> isolate[[{', '.join(outer)}] -> [{', '.join(inner)}]] }}"
    )
    return full.coalesce().apply(split)


def _box(around: int, sizes: Sequence[int]) -> isl.Map:
    """Number of a tile → its points; ``around`` dimensions of time stay as they are."""
    outer = [f"a{k}" for k in range(around)]
    points = [f"p{k}" for k in range(len(sizes))]
    tiles = [f"o{k}" for k in range(len(sizes))]
    held = " and ".join(
        f"{size}*{o} <= {p} < {size}*{o} + {size}"
        for o, p, size in zip(tiles, points, sizes, strict=True)
    )
    return isl.Map(
        f"{{ [{', '.join([*outer, *tiles])}] -> [{', '.join([*outer, *points])}] : {held} }}"
    )
