"""Knob templates: a function from knob values to directives (AutoTVM, Chen et al., NeurIPS 2018),
as a probabilistic program whose decisions are the knobs.

A candidate of such a space has the directives that the function gives for its knobs, so it is the
program that a candidate of the knob space is, and its record of decisions holds the knob values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.spaces.schedule.builder import TraceBuilder
from kernelwright.env.spaces.schedule.drawn import plain
from kernelwright.env.spaces.schedule.program import Run, SpaceFunction
from kernelwright.env.spaces.schedule.program_space import ProgramSpace
from kernelwright.env.types import (
    Candidate,
    Directive,
    Knob,
    Language,
    Scalar,
    knob_candidate,
)

Template: TypeAlias = Callable[[Mapping[str, Scalar]], Sequence[Directive]]


def template_program(
    knobs: Sequence[Knob], template: Template, constraints: Sequence[Constraint] = ()
) -> SpaceFunction:
    """The program that chooses a value for each knob and writes the template's directives.

    Raises:
        ExpressionError: if a constraint names what is no knob.
    """
    for constraint in constraints:
        constraint.check_names(frozenset(knob.name for knob in knobs))

    def function(s: TraceBuilder) -> None:
        values = {k.name: s.sample_categorical(k.values, name=k.name) for k in knobs}
        columns = {name: np.array([plain(value)]) for name, value in values.items()}
        for constraint in constraints:
            if not constraint.holds(columns)[0]:
                given = {name: plain(value) for name, value in values.items()}
                s.require(False, constraint.explain(given).reason)
        for directive in template(values):
            s.apply(directive)

    return function


def from_knobs(space: ProgramSpace, candidate: Candidate) -> Candidate:
    """The schedule of a knob candidate, which records the knob values as decisions.

    Raises:
        InfeasibleError: if the values are none of the template's, break a rule, or lead to a
            directive that is refused.
    """
    kept = {name: (value,) for name, value in candidate.knobs.items()}
    return Candidate(Language.SCHEDULE, space.program.run(kept, None).trace)


def to_knobs(run: Run) -> Candidate:
    """The knob candidate whose values a run decided on."""
    return knob_candidate({name: value[0] for name, value in run.values.items()})
