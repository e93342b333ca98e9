"""The automatic affine schedule: isl's, which is Pluto's with variations (Bondhugula et al., PLDI
2008; Verdoolaege and Janssens, 2017).

Every dependence is kept, values are used soon after they are made, and loops that carry nothing
come outside where they can. The result is a tree of bands, each permutable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import islpy as isl

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.poly.exact import ExactDependences
from kernelwright.env.compiler.poly.generate import mark, tiled
from kernelwright.env.compiler.poly.limits import LOCK, limited
from kernelwright.env.compiler.poly.model import Model

# In Pluto's words: each strongly connected component in loops of its own; isl's choice; as much in
# one nest as can be.
FUSE = ("nofuse", "smartfuse", "maxfuse")


class NoScheduleError(CompilerError):
    """Dependences for which isl finds no schedule, though the program's own order keeps them."""


def affine_schedule(
    dependences: ExactDependences, fuse: str = "smartfuse", context: isl.Set | None = None
) -> isl.Schedule:
    """A schedule tree that keeps all dependences; ``context`` is what is known of the extents.

    Raises:
        ValueError: if the fusion strategy is none of `FUSE`.
        LimitError: if isl finds no end.
        NoScheduleError: if isl finds no schedule.
    """
    if fuse not in FUSE:
        raise ValueError(f"expected one of {', '.join(FUSE)}, found {fuse!r}")
    constraints = isl.ScheduleConstraints.on_domain(dependences.model.domain)
    if context is not None:
        constraints = constraints.set_context(context)
    # Not coalesced: pieces of one kind are simpler than what joins them.
    flow, anti, output = (_fresh(pairs) for _, pairs in dependences.by_kind)
    every = flow.union(anti).union(output)
    constraints = constraints.set_validity(every).set_coincidence(every).set_proximity(flow)
    try:
        with LOCK, _fusion(fuse), limited("an affine schedule"):
            return constraints.compute_schedule()
    except isl.Error as error:
        # Its heuristics fail on some programs (isl 0.27, isl_scheduler.c).
        if "unable to carry dependences" not in str(error):
            raise
        raise NoScheduleError(f"isl finds no schedule: {error}") from None


def _fresh(pairs: isl.UnionMap) -> isl.UnionMap:
    """Pairs as if read for the first time: isl remembers with a map what it was asked about it, and
    neither a schedule nor the work it takes may depend on that. Equalities that only follow from
    the others would cost the solver dear.
    """
    return isl.UnionMap(pairs.to_str()).detect_equalities()


@contextmanager
def _fusion(fuse: str) -> Iterator[None]:
    context = isl.DEFAULT_CONTEXT
    alone, together = context.get_schedule_serialize_sccs(), context.get_schedule_whole_component()
    context.set_schedule_serialize_sccs(int(fuse == "nofuse"))
    context.set_schedule_whole_component(int(fuse == "maxfuse"))
    try:
        yield
    finally:
        context.set_schedule_serialize_sccs(alone)
        context.set_schedule_whole_component(together)


def schedule_rows(schedule: isl.Schedule) -> tuple[tuple[str, ...], ...]:
    """The rows of each band of a schedule tree from the top, as isl writes them."""
    found: list[tuple[str, ...]] = []

    def visit(node: isl.ScheduleNode) -> bool:
        if _is_band(node):
            rows = node.band_get_partial_schedule()
            found.append(tuple(str(rows.get_at(k).to_str()) for k in range(node.band_n_member())))
        return True

    schedule.get_root().foreach_descendant_top_down(visit)
    return tuple(found)


def named_bands(
    schedule: isl.Schedule,
    model: Model,
    tile: int,
    name: Callable[[Sequence[str]], str],
    halves: Callable[[str], tuple[str, str]],
    *,
    separate: bool,
) -> isl.Schedule:
    """The schedule with a name for every loop, and its permutable bands of two loops and more in
    tiles of ``tile`` (0 for none).

    ``name`` makes a loop's name from the loop variables it is made of, ``halves`` the names of the
    loops over tiles and inside them.
    """

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        if not _is_band(node):
            return below(node)
        rows = node.band_get_partial_schedule()
        names = [name(_variables(rows.get_at(k), model)) for k in range(node.band_n_member())]
        if tile == 0 or len(names) < 2 or not node.band_get_permutable():
            return below(mark(node, names)).parent()
        pairs = [halves(each) for each in names]
        sizes = [tile] * len(names)
        cut = tiled(node, sizes, ([p[0] for p in pairs], [p[1] for p in pairs]), separate=separate)
        points = below(cut.child(0).child(0))
        return points.parent().parent().parent()

    def below(node: isl.ScheduleNode) -> isl.ScheduleNode:
        for place in range(node.n_children()):
            node = visit(node.child(place)).parent()
        return node

    # From the top down, because tiles put the bands inside them deeper, and a mark has the depth.
    return visit(schedule.get_root()).get_schedule()


def _is_band(node: isl.ScheduleNode) -> bool:
    """Whether a node of a schedule tree is a band of at least one loop."""
    kind: object = node.get_type()
    return kind == isl.schedule_node_type.band and node.band_n_member() > 0


def _variables(row: isl.UnionPwAff, model: Model) -> tuple[str, ...]:
    """The loop variables in a row of a band, for the first statement that has any."""
    by_name = {i.name: i for i in model.instances}
    parts = row.get_pw_aff_list()
    chosen: dict[str, tuple[str, ...]] = {}
    for place in range(parts.n_pw_aff()):
        part = parts.get_at(place)
        statement = by_name[part.domain().get_tuple_name()]
        used = tuple(
            variable
            for k, variable in enumerate(statement.variables)
            if part.involves_dims(isl.dim_type.in_, k, 1)
        )
        chosen[statement.name] = used
    return next((used for _, used in sorted(chosen.items(), reverse=True) if used), ())
