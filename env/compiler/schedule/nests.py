"""A perfect nest run in another order: what the directives with generated loops share.

The nest is one statement to isl: its domain comes from the extents and the affine guards between
its loops, the loops around it and the extents are parameters. What is inside stays as it is, with
the loop variables replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Expr,
    For,
    If,
    LoopKind,
    Procedure,
    Stmt,
    Var,
    loops,
    map_statements,
    statements,
    substitute,
)
from kernelwright.env.compiler.ir.path import loops_around
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.simplify import simplify
from kernelwright.env.compiler.poly.affine_map import AffineMap
from kernelwright.env.compiler.poly.context import Context, known
from kernelwright.env.compiler.poly.dependence import Conflict
from kernelwright.env.compiler.poly.generate import Body, GenerateError, band, generate, tiled
from kernelwright.env.compiler.poly.limits import LimitError
from kernelwright.env.compiler.poly.model import affine_text, condition_text, isl_name
from kernelwright.env.compiler.poly.nest import Nest, map_texts
from kernelwright.env.compiler.poly.normal import normalized
from kernelwright.env.compiler.schedule.defaults import row_names, spare_half, spare_name
from kernelwright.env.compiler.schedule.edit import (
    dependences_of,
    find_loop,
    finish,
    no_loads,
    parts,
    replace_loop,
    taken_names,
)


@dataclass(frozen=True, slots=True)
class Perfect:
    """Loops with nothing between them but guards, outermost first; ``around`` are the loops outside
    them.
    """

    around: tuple[For, ...]
    chain: tuple[For, ...]
    guards: tuple[Expr, ...]
    body: Stmt

    @property
    def names(self) -> tuple[str, ...]:
        """The loop variables, outermost first."""
        return tuple(loop.var for loop in self.chain)


def perfect_nest(op: str, procedure: Procedure, names: Sequence[str]) -> Perfect:
    """The perfect nest of loops that stand directly in each other in this order.

    Raises:
        ScheduleError: if they do not, one is not serial, an extent or guard in the nest reads
            memory, or threads wait for one another inside.
    """
    if len(set(names)) != len(names):
        raise ScheduleError(op, f"expected different loops, found {', '.join(names)}")
    first = find_loop(op, procedure, names[0])
    chain, guards, node = [first], [], first.body
    for name in names[1:]:
        find_loop(op, procedure, name)
        while isinstance(node, If):
            guards.append(node.condition)
            node = node.then
        if not isinstance(node, For) or node.var != name:
            reason = f"expected loop {name} directly inside loop {chain[-1].var}"
            raise ScheduleError(op, reason)
        chain.append(node)
        node = node.body
    if any(isinstance(inside, Barrier) for inside in statements(first)):
        raise ScheduleError(op, f"expected no barrier in the nest of {names[0]}, found one")
    # Affine guards under the innermost loop bound the domain too; others stay with the body.
    while isinstance(node, If) and condition_text(node.condition) is not None:
        guards.append(node.condition)
        node = node.then
    for each in chain:
        if each.kind is not LoopKind.SERIAL:
            raise ScheduleError(op, f"expected a serial loop, found {each.var} {each.kind}")
    for each in chain:
        no_loads(op, f"the extent of {each.var}", each.extent)
    for guard in guards:
        no_loads(op, "a guard in the nest", guard)
    return Perfect(loops_around(procedure, names[0]), tuple(chain), tuple(guards), node)


def run_in_order(
    op: str,
    procedure: Procedure,
    nest: Perfect,
    map_: AffineMap,
    tiles: Sequence[int] = (),
    *,
    separate: bool = False,
) -> Procedure:
    """The procedure with a perfect nest in the order of a unimodular map, tile by tile if there are
    sizes.

    Raises:
        ScheduleError: if an extent is not affine, or a dependence is turned around; then it has the
            two iterations.
    """
    for each in nest.chain:
        if affine_text(each.extent) is None:
            found = print_expr(each.extent)
            raise ScheduleError(op, f"expected an affine extent of {each.var}, found {found}")
    _keep_dependences(op, procedure, nest, map_, tuple(tiles))
    taken = taken_names(procedure) - set(nest.names)
    names = row_names(nest.names, map_.rows, taken)
    tree, context = _schedule_of(procedure, nest)
    root = tree.get_root().child(0)
    point = f"N[{', '.join(map(isl_name, nest.names))}]"
    rows = ", ".join(f"{{ {point} -> [({row})] }}" for row in map_texts(nest.names, map_))
    partial = isl.MultiUnionPwAff(f"{_parameters(procedure, nest)}[{rows}]")
    if tiles:
        halves = [(spare_half(n, "o", taken), spare_half(n, "i", taken)) for n in names]
        outer, inner = [h[0] for h in halves], [h[1] for h in halves]
        node = root.insert_partial_schedule(partial)
        node = tiled(node, tiles, (outer, inner), separate=separate)
    else:
        node = band(root, partial, names)
    left = [g for g in nest.guards if condition_text(g) is None]
    body = nest.body
    for guard in reversed(left):
        body = If(guard, body)
    code = loop_code(op, procedure, node.get_schedule(), context, {"N": (nest.names, body)})
    return finish(op, replace_loop(procedure, nest.names[0], lambda _: code))


def loop_code(
    op: str,
    procedure: Procedure,
    schedule: isl.Schedule,
    context: isl.Set,
    bodies: dict[str, tuple[tuple[str, ...], Stmt]],
) -> Stmt:
    """The loops of a schedule around its statements: by name their loop variables and what they do.

    Raises:
        ScheduleError: if a statement with a temporary of its own would be written twice.
    """
    gone = {name for names, _ in bodies.values() for name in names}
    inner = {s.var for _, body in bodies.values() for s in statements(body) if isinstance(s, For)}
    taken = taken_names(procedure) - gone
    seen: set[str] = set()

    def fresh(wanted: str) -> str:
        name = spare_name(wanted, taken)
        taken.add(name)
        return name

    def write(name: str, places: tuple[Expr, ...]) -> Stmt:
        names, body = bodies[name]
        if name in seen:
            body = _copy(op, body, fresh)
        seen.add(name)
        return at(body, dict(zip(names, places, strict=True)))

    taken |= inner
    code: Body = write
    try:
        return generate(schedule, context, code, fresh)
    except (GenerateError, LimitError) as error:
        raise ScheduleError(op, str(error)) from None


def at(body: Stmt, values: dict[str, Expr]) -> Stmt:
    """A statement with loop variables replaced, indices in normal form."""
    return map_statements(body, lambda e: simplify(normalized(substitute(e, values))))


def _copy(op: str, body: Stmt, fresh: Callable[[str], str]) -> Stmt:
    """A statement once more, with other names for its loops."""
    renamed: dict[str, Expr] = {}
    for node in statements(body):
        if isinstance(node, Allocate):
            reason = f"the loops would be written more than once, and with them {node.tensor.name}"
            raise ScheduleError(op, reason)
        if isinstance(node, For):
            renamed[node.var] = Var(fresh(node.var))

    def rename(node: Stmt) -> Stmt:
        if not isinstance(node, For):
            return node
        other = renamed[node.var]
        assert isinstance(other, Var)
        return For(other.name, node.extent, node.body, node.kind)

    return map_statements(body, lambda e: substitute(e, renamed), rename)


def _schedule_of(procedure: Procedure, nest: Perfect) -> tuple[isl.Schedule, isl.Set]:
    """A schedule tree with the nest's domain alone, and what is known of its parameters."""
    guards = [condition_text(guard) for guard in nest.guards]
    held = [*_within(nest.chain), *(f"({text})" for text in guards if text is not None)]
    parameters = _parameters(procedure, nest)
    point = f"N[{', '.join(map(isl_name, nest.names))}]"
    domain = isl.UnionSet(f"{parameters}{{ {point} : {' and '.join(held)} }}")
    return isl.Schedule.from_domain(domain), known(Context(procedure.extents, nest.around))


def _parameters(procedure: Procedure, nest: Perfect) -> str:
    names = [*procedure.extents, *(loop.var for loop in nest.around)]
    return f"[{', '.join(map(isl_name, names))}] -> " if names else ""


def _within(chain: Sequence[For]) -> list[str]:
    """The bounds of loops, as far as they are affine."""
    held = []
    for loop in chain:
        extent = affine_text(loop.extent)
        held.append(f"0 <= {isl_name(loop.var)}")
        if extent is not None:
            held.append(f"{isl_name(loop.var)} < {extent}")
    return held


def _keep_dependences(
    op: str, procedure: Procedure, nest: Perfect, map_: AffineMap, tiles: tuple[int, ...]
) -> None:
    part = next(p for p in parts(procedure) if any(x.var == nest.names[0] for x in loops(p)))
    conflict = _broken(part, nest.names, map_, tiles)
    if conflict is not None:
        order = f"{map_} in tiles of {' x '.join(map(str, tiles))}" if tiles else str(map_)
        listed = ", ".join(nest.names)
        reason = f"the order {order} of ({listed}) turns a dependence around"
        raise ScheduleError(op, reason, str(conflict))


@lru_cache(maxsize=1024)
def _broken(
    part: Procedure, names: tuple[str, ...], map_: AffineMap, tiles: tuple[int, ...]
) -> Conflict | None:
    dependences = dependences_of(part)
    if not any(names[0] in i.variables for i in dependences.model.instances):
        # Loops around no store at all.
        return None
    return dependences.turned_around(Nest(dependences.model, names).positions(map_, tiles))
