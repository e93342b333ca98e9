"""Sketches from the structure of a program: a list of rules, each asked where it applies, then
annotations at random (after Ansor, Zheng et al., OSDI 2020, sections 4.1 and 4.2, and the space
generator of MetaSchedule).

What is chosen are decisions of a probabilistic program, so a sketch is moved in and run again as
any other. First come rules about the whole program; then each stage, from the results back to what
they are made of, because a producer is placed under loops of a reader that is tiled already; the
kinds of loops come last. A rule acts only where the directive that it writes exists and is legal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from kernelwright.env.compiler.ir.nodes import For, LoopKind
from kernelwright.env.compiler.schedule.defaults import split_names
from kernelwright.env.compiler.schedule.edit import constant_extent
from kernelwright.env.options import OptionError, nearest
from kernelwright.env.spaces.schedule.builder import INLINE, ROOT, TraceBuilder
from kernelwright.env.spaces.schedule.chance import Deciding
from kernelwright.env.spaces.schedule.draw import Limits, draw_plan, fitting
from kernelwright.env.spaces.schedule.nest import Nest, find_nests
from kernelwright.env.spaces.schedule.program import SpaceFunction
from kernelwright.env.spaces.schedule.sketch import Phases, directives
from kernelwright.env.spaces.schedule.structure import (
    innermost,
    is_reduced,
    loops_around,
    stages,
    stored_in,
    temporaries,
    update_loops,
)
from kernelwright.env.types import Directive

SMALL_SPATIAL = 1024  # iterations; fewer leave too little to run at once
PARTIAL_RESULTS = (4, 8, 16, 32)


class Sketch:
    """What the rules share while one sketch is written: the builder, the nests of the stage that is
    looked at, and what is to come later.
    """

    def __init__(self, builder: TraceBuilder) -> None:
        self.builder = builder
        self.limits = Limits(builder.lanes, builder.threads > 1)
        self.kinds: list[Phases] = []

    def about(self, name: str) -> Deciding:
        """Choices about a tensor or nest."""
        return Deciding(self.builder, name)

    def nests_of(self, stage: str) -> list[Nest]:
        """The nests that write a tensor."""
        procedure = self.builder.procedure
        return [
            nest for nest in find_nests(procedure) if stage in stored_in(procedure, nest.names[-1])
        ]


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to go on with a sketch; it decides by itself whether it is taken, where it applies.

    ``when`` says when it is asked: ``before`` about each tensor that is written, ``stage`` about
    each of them, too, until a rule answers that the stage is done, ``after`` about the whole (then
    it is given no name). ``by_name`` rules are taken only where they are named.
    """

    when: Literal["before", "stage", "after"]
    apply: Callable[[Sketch, str], bool]
    by_name: bool = False


def sketch_program(names: Sequence[str] = ()) -> SpaceFunction:
    """The program that writes sketches by some of the `RULES`; without names by all but those that
    have to be named.

    Raises:
        OptionError: if there is no such rule, or one is named twice.
    """
    for place, name in enumerate(names):
        if name not in RULES:
            known = ", ".join(RULES)
            raise OptionError("sketch", f"some of {known}", repr(name), nearest(name, RULES))
        if name in names[:place]:
            raise OptionError("sketch", "each rule once", f"{name!r} twice")
    chosen = [r for name, r in RULES.items() if name in names or not (names or r.by_name)]

    def function(s: TraceBuilder) -> None:
        sketch = Sketch(s)
        for rule in (rule for rule in chosen if rule.when == "before"):
            for tensor in stages(s.procedure):
                rule.apply(sketch, tensor)
        for stage in stages(s.procedure):
            # Until one of them says that the stage is done.
            any(rule.apply(sketch, stage) for rule in chosen if rule.when == "stage")
        for rule in (rule for rule in chosen if rule.when == "after"):
            rule.apply(sketch, "")

    return function


def allow_reassociation(sketch: Sketch, tensor: str) -> bool:
    """Sums may be combined in another order: the one rule that changes how results are rounded."""
    sketch.builder.try_apply(Directive("reassociate", tensor))
    return False


def auto_inline(sketch: Sketch, tensor: str) -> bool:
    """A temporary that each element of is computed by itself is computed where it is read."""
    s = sketch.builder
    inlined = (
        tensor in temporaries(s.procedure)
        and not is_reduced(s.procedure, tensor)
        and s.legal("compute_inline", tensor)
        and sketch.about(tensor).coin("inline", 0.5)
    )
    if inlined:
        s.apply(Directive("compute_inline", tensor))
    return False


def random_compute_location(sketch: Sketch, stage: str) -> bool:
    """A temporary is computed under a loop of its readers, piece by piece; it may be stored further
    out, so that what one piece has is not computed again by the next.
    """
    s, about = sketch.builder, sketch.about(stage)
    if stage not in temporaries(s.procedure) or not about.coin("move", 0.5):
        return False
    location = s.sample_compute_location(stage)
    s.place(stage, location)
    if location in (ROOT, INLINE):
        return location == INLINE
    if about.coin("slide", 0.4):
        # To ask of every loop whether it may be there costs more than it is worth.
        stored = about.pick("stored", [ROOT, *loops_around(s.procedure, location)])
        at_root = Directive("store_root", stage)
        if s.try_apply(at_root if stored == ROOT else Directive("store_at", stage, (stored,))):
            s.try_apply(Directive("fold_storage", stage))
    return True


def add_rfactor(sketch: Sketch, stage: str) -> bool:
    """A reduction over few results is cut, and partial results are combined at the end."""
    s = sketch.builder
    for nest in sketch.nests_of(stage):
        spatial = [axis.extent for axis in nest.spatial]
        known = [extent for extent in spatial if extent is not None]
        if not nest.reduction or len(known) < len(spatial) or math.prod(known) > SMALL_SPATIAL:
            continue
        axis = nest.reduction[-1]
        extent = axis.extent or 0
        fits = [n for n in PARTIAL_RESULTS if extent % n == 0 and n < extent]
        # Whether it is legal does not depend on the number.
        if (
            fits
            and _may_rfactor(s, axis.loop, fits[0])
            and sketch.about(stage).coin("rfactor", 0.5)
        ):
            count = sketch.about(stage).pick("partial results", fits)
            inner = s.split(axis.loop, count)[1]
            s.apply(Directive("rfactor", inner))
            sketch.kinds.append(Phases(kinds=[Directive("vectorize", inner)]))
            return True
    return False


def _may_rfactor(s: TraceBuilder, loop: str, factor: int) -> bool:
    """Whether the inner part of a loop may have results of its own. Asked without writing."""
    outer, inner = split_names(loop)
    return s.follows(Directive("split", loop, (factor, outer, inner)), Directive("rfactor", inner))


def multi_level_tiling(sketch: Sketch, stage: str) -> bool:
    """Loops are cut into blocks for the caches, copies that stay in registers and lanes of a
    vector, ordered by role (the structure S S R S R S of Ansor), or left as they are.
    """
    s = sketch.builder
    for nest in sketch.nests_of(stage):
        about = sketch.about(nest.names[0])
        if not about.coin("tile", 0.9):
            continue
        phases = directives(nest, draw_plan(nest, about, sketch.limits))
        for directive in (*phases.splits, *phases.order):
            s.try_apply(directive)
        sketch.kinds.append(phases)
    return False


def add_cache_write(sketch: Sketch, stage: str) -> bool:
    """A result that is added to again and again is added up apart, in one loop's iteration, and
    written once.
    """
    s = sketch.builder
    around = update_loops(s.procedure, stage)
    if not around or not sketch.about(stage).coin("cache write", 0.2):
        return False
    legal = [loop for loop in around if s.legal("cache_write", stage, loop)]
    if legal:
        s.apply(Directive("cache_write", stage, (sketch.about(stage).pick("cached in", legal),)))
    return False


def parallelize_vectorize_unroll(sketch: Sketch, _: str) -> bool:
    """The kinds of loops: what tiling chose for its parts, and the innermost loops of what it did
    not see, such as a producer that moved.
    """
    s = sketch.builder
    tiled = {d.target for phases in sketch.kinds for d in (*phases.kinds, *phases.unrolls)}
    lanes = []
    for loop in innermost(s.procedure):
        if loop.kind is LoopKind.SERIAL and loop.var not in tiled:
            lanes += _lanes_of(sketch, loop)
    # Kinds come last: from the first vectorized loop on every directive is proved to keep it.
    steps = [d for phases in sketch.kinds for d in phases.unrolls]
    steps += [d for phases in sketch.kinds for d in phases.kinds]
    for directive in (*steps, *lanes):
        s.try_apply(directive)
    return False


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


# In the order in which they are asked.
RULES: dict[str, Rule] = {
    "allow_reassociation": Rule("before", allow_reassociation, by_name=True),
    "auto_inline": Rule("before", auto_inline),
    "random_compute_location": Rule("stage", random_compute_location),
    "add_rfactor": Rule("stage", add_rfactor),
    "multi_level_tiling": Rule("stage", multi_level_tiling),
    "add_cache_write": Rule("stage", add_cache_write),
    "parallelize_vectorize_unroll": Rule("after", parallelize_vectorize_unroll),
}
