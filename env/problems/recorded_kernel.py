"""A kernel that is known by its recorded times alone: its name, its extents and its knobs are those
of a landscape's file. It is what target ``recorded`` needs to replay a file of somebody else's
tuner.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from kernelwright.env.landscape import ENDINGS
from kernelwright.env.landscape.open import locate, open_landscape
from kernelwright.env.landscape.record import (
    Landscape,
    LandscapeError,
    NoLandscapeError,
    printable,
)
from kernelwright.env.landscape.source import Source
from kernelwright.env.landscape.t1 import from_t1
from kernelwright.env.options import FileOption, OptionError, ProblemError
from kernelwright.env.spaces.expressions import Constraint, ExpressionError, own_rule
from kernelwright.env.types import Arrays, ErrorModel, Knob, Problem, Workload

_LARGEST_BOUND = math.nextafter(1, 0)


def recorded_kernel(
    *,
    landscape: Annotated[
        str,
        Field(description="a shipped landscape's name, or a file of any format that is read"),
        FileOption(ENDINGS),
    ],
    constraints: Annotated[
        list[str] | str | None,
        Field(description="rules over the knobs, or a T1 file that has them"),
        FileOption(ENDINGS),
    ] = None,
    error_bound: Annotated[
        float | None,
        Field(ge=0, lt=1, description="the relative error that is still right (the largest there)"),
    ] = None,
) -> Problem:
    """The kernel of a recording: its knobs, its extents, and no way to compute it."""
    try:
        path = locate(landscape)
        found = open_landscape(path)
    except NoLandscapeError as error:
        raise OptionError("landscape", error.expected, error.found, error.nearest) from None
    except LandscapeError as error:
        raise OptionError("landscape", "a readable recording", str(error)) from None
    name = printable(found.kernel or path.name.split(".")[0])
    rules = _rules(found, constraints)
    errors = [entry.max_error for entry in found.entries if entry.max_error is not None]
    bound = min(max(errors, default=0.0), _LARGEST_BOUND) if error_bound is None else error_bound

    def reference(arrays: Arrays) -> Arrays:
        raise ProblemError(f"{name} is known by its recorded times alone: it cannot be computed")

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        raise ProblemError(f"{name} is known by its recorded times alone: it has no inputs")

    return Problem(
        name=name,
        version=1,
        tensors=(),
        workloads=(Workload(found.extents),),
        error_model=ErrorModel(bound, "as recorded: results were compared by the tuner"),
        reference=reference,
        inputs=inputs,
        # Not known, so no roofline holds.
        flops=lambda workload: 0,
        moved_bytes=lambda workload: 0,
        spaces=("knobs",),
        knobs=_knobs(found),
        constraints=rules,
    )


def _knobs(landscape: Landscape) -> tuple[Knob, ...]:
    try:
        return tuple(Knob(name, landscape.knob_values(name)) for name in landscape.knob_names)
    except ValueError as error:
        raise OptionError(
            "landscape", "a recording whose knobs can be searched", str(error)
        ) from None


def _rules(landscape: Landscape, given: Sequence[str] | str | None) -> tuple[str, ...]:
    """The rules, once it is known that every recorded configuration keeps them.

    Raises:
        OptionError: if a rule is none, or a recorded configuration breaks it.
    """
    texts = tuple(given or ()) if not isinstance(given, str) else _conditions(given)
    names = frozenset(landscape.knob_names)
    columns = {
        name: np.array([entry.knobs[place][1] for entry in landscape.entries])
        for place, name in enumerate(sorted(names))
    }
    for text in texts:
        try:
            rule: Constraint = own_rule(text, names)
            kept = rule.holds(columns)
        except ExpressionError as error:
            raise OptionError("constraints", "an expression over knobs", str(error)) from None
        if not kept.all():
            broken = landscape.entries[int(np.argmin(kept))]
            reason = rule.explain(dict(broken.knobs)).reason
            many = f"{int((~kept).sum()):,} of {len(kept):,} configurations that break it: {reason}"
            raise OptionError("constraints", f"rules that the recording keeps ({text})", many)
    return texts


def _conditions(file: str) -> tuple[str, ...]:
    try:
        return from_t1(Source(Path(file))).conditions
    except (LandscapeError, OSError) as error:
        raise OptionError("constraints", "a list of rules, or a T1 file", str(error)) from None
