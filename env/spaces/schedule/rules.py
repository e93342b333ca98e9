"""Sketches from the structure of a program: a list of rules, each asked where it applies, then
annotations at random (after Ansor, Zheng et al., OSDI 2020, sections 4.1 and 4.2, and the space
generator of MetaSchedule).

What is chosen are decisions of a probabilistic program, so a sketch is moved in and run again as
any other. The order of phases is fixed: producers go into their readers, stages are added, loops
are cut and ordered, producers move under loops of their readers, kinds of loops come last. A rule
acts only where the directive that it writes exists and is legal then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    For,
    Load,
    LoopKind,
    Procedure,
    Stmt,
    Store,
    loops,
    statements,
    walk,
)
from kernelwright.env.compiler.schedule.defaults import split_names
from kernelwright.env.compiler.schedule.edit import constant_extent
from kernelwright.env.options import OptionError, nearest
from kernelwright.env.spaces.schedule.builder import TraceBuilder
from kernelwright.env.spaces.schedule.chance import Deciding
from kernelwright.env.spaces.schedule.draw import Limits, draw_plan, fitting
from kernelwright.env.spaces.schedule.nest import find_nests
from kernelwright.env.spaces.schedule.program import SpaceFunction
from kernelwright.env.spaces.schedule.sketch import Phases, directives
from kernelwright.env.types import Directive

SMALL_SPATIAL = 1024  # iterations; fewer leave too little to run at once
RFACTORS = (4, 8, 16, 32)


class Sketch:
    """What the rules share while one sketch is written: the builder, and what is to come later."""

    def __init__(self, builder: TraceBuilder) -> None:
        self.builder = builder
        self.limits = Limits(builder.lanes, builder.threads > 1)
        self.phases: list[Phases] = []

    def about(self, name: str) -> Deciding:
        """Choices about a tensor or nest."""
        return Deciding(self.builder, name)


def sketch_program(names: Sequence[str] = ()) -> SpaceFunction:
    """The program that writes sketches by some of the `RULES`, all of them if none is named.

    Raises:
        OptionError: if there is no such rule, or one is named twice.
    """
    for place, name in enumerate(names):
        if name not in RULES:
            known = ", ".join(RULES)
            raise OptionError("sketch", f"some of {known}", repr(name), nearest(name, RULES))
        if name in names[:place]:
            raise OptionError("sketch", "each rule once", f"{name!r} twice")
    chosen = [rule for name, rule in RULES.items() if not names or name in names]

    def function(s: TraceBuilder) -> None:
        sketch = Sketch(s)
        for rule in chosen:
            rule(sketch)

    return function


def auto_inline(sketch: Sketch) -> None:
    """A temporary that each element of is computed by itself is computed where it is read."""
    s = sketch.builder
    for tensor in temporaries(s.procedure):
        if is_reduced(s.procedure, tensor) or not s.legal("compute_inline", tensor):
            continue
        if sketch.about(tensor).coin("inline", 0.5):
            s.apply(Directive("compute_inline", tensor))


def add_rfactor(sketch: Sketch) -> None:
    """A reduction over few results is cut, and partial results are combined at the end."""
    s = sketch.builder
    for nest in find_nests(s.procedure):
        spatial = [axis.extent for axis in nest.spatial]
        known = [extent for extent in spatial if extent is not None]
        if not nest.reduction or len(known) < len(spatial) or math.prod(known) > SMALL_SPATIAL:
            continue
        axis = nest.reduction[-1]
        factors = [f for f in RFACTORS if axis.extent and axis.extent % f == 0 < axis.extent // f]
        legal = [f for f in factors if _may_rfactor(s, axis.loop, f)]
        about = sketch.about(axis.loop)
        if legal and about.coin("rfactor", 0.5):
            _, inner = s.split(axis.loop, about.pick("partial results", legal))
            s.apply(_rfactor(inner))


def _may_rfactor(s: TraceBuilder, loop: str, factor: int) -> bool:
    """Whether the inner part of a loop may have results of its own. Asked without writing."""
    outer, inner = split_names(loop)
    return s.follows(Directive("split", loop, (factor, outer, inner)), _rfactor(inner))


def _rfactor(loop: str) -> Directive:
    return Directive("rfactor", loop)


def add_cache_write(sketch: Sketch) -> None:
    """A result that is added to again and again is added up apart and written once."""
    s = sketch.builder
    for nest in find_nests(s.procedure):
        written = stored_in(s.procedure, nest.names[-1])
        if not nest.reduction or len(nest.spatial) < 1 or len(written) != 1:
            continue
        directive = Directive("cache_write", written[0], (nest.spatial[-1].loop, "stack"))
        if s.follows(directive) and sketch.about(written[0]).coin("cache write", 0.2):
            s.apply(directive)


def multi_level_tiling(sketch: Sketch) -> None:
    """Loops are cut into blocks for the caches, copies that stay in registers and lanes of a
    vector, ordered by role (the structure S S R S R S of Ansor), or left as they are.
    """
    s = sketch.builder
    for nest in find_nests(s.procedure):
        about = sketch.about(nest.names[0])
        if not about.coin("tile", 0.9):
            continue
        phases = directives(nest, draw_plan(nest, about, sketch.limits))
        for directive in (*phases.splits, *phases.order):
            s.try_apply(directive)
        sketch.phases.append(phases)


def random_compute_location(sketch: Sketch) -> None:
    """A temporary is computed under a loop of its readers, piece by piece."""
    s = sketch.builder
    for tensor in temporaries(s.procedure):
        s.place(tensor, s.sample_compute_location(tensor))


def parallelize_vectorize_unroll(sketch: Sketch) -> None:
    """The kinds of loops: what tiling chose for its parts, and the innermost loops of what it did
    not see, such as a producer that moved.
    """
    s = sketch.builder
    tiled = {d.target for phases in sketch.phases for d in (*phases.kinds, *phases.unrolls)}
    lanes = []
    for loop in innermost(s.procedure):
        if loop.kind is LoopKind.SERIAL and loop.var not in tiled:
            lanes += _lanes_of(sketch, loop)
    # Kinds come last: from the first vectorized loop on every directive is proved to keep it.
    steps = [d for phases in sketch.phases for d in phases.unrolls]
    steps += [d for phases in sketch.phases for d in phases.kinds]
    for directive in (*steps, *lanes):
        s.try_apply(directive)


def _lanes_of(sketch: Sketch, loop: For) -> list[Directive]:
    """A loop is cut into lanes, or left; how it is vectorized then."""
    extent, about = constant_extent(loop), sketch.about(loop.var)
    if extent is None:
        return []
    counts = [n for n in fitting(extent, sketch.builder.lanes) if n <= extent]
    if not counts or not about.coin("vectorize", 0.7):
        return []
    count, inner = about.pick("lanes", counts), loop.var
    if count != extent:
        inner = sketch.builder.split(loop.var, count)[1]
    return [Directive("vectorize", inner)]


# In the order in which they act.
RULES: dict[str, Callable[[Sketch], None]] = {
    "auto_inline": auto_inline,
    "add_rfactor": add_rfactor,
    "add_cache_write": add_cache_write,
    "multi_level_tiling": multi_level_tiling,
    "random_compute_location": random_compute_location,
    "parallelize_vectorize_unroll": parallelize_vectorize_unroll,
}


def temporaries(procedure: Procedure) -> tuple[str, ...]:
    """The temporaries of a procedure, readers before what they read."""
    found = [s.tensor.name for s in statements(procedure.body) if isinstance(s, Allocate)]
    return tuple(reversed(found))


def is_reduced(procedure: Procedure, tensor: str) -> bool:
    """Whether values are combined in a tensor, or it is written from itself."""
    return any(
        s.reduce is not None
        or any(isinstance(node, Load) and node.tensor == tensor for node in walk(s.value))
        for s in statements(procedure.body)
        if isinstance(s, Store) and s.tensor == tensor
    )


def stored_in(procedure: Procedure, loop: str) -> tuple[str, ...]:
    """The tensors that are written in a loop, each once."""
    body = next(each for each in loops(procedure) if each.var == loop)
    return tuple(dict.fromkeys(s.tensor for s in statements(body) if isinstance(s, Store)))


def innermost(procedure: Procedure) -> tuple[For, ...]:
    """The loops without a loop inside, in program order."""
    return tuple(loop for loop in loops(procedure) if not _has_loop(loop.body))


def _has_loop(body: Stmt) -> bool:
    return any(isinstance(each, For) for each in statements(body))
