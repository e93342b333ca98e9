"""Moves beyond the vocabulary of single steps (``compiler.schedule.moves``): what the compiler
proposes of directives that a space was asked for by name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.schedule import FRONT_END_DIRECTIVES
from kernelwright.env.compiler.schedule.proposals import PROPOSALS, proposals
from kernelwright.env.options import OptionError, nearest
from kernelwright.env.spaces.schedule.chance import pick
from kernelwright.env.types import Directive

CORE, ALL = "core", "all"
# So many proposals of one directive are neighbours, spread over all that there are.
MOST_OF_A_KIND = 8


def further_directives(wanted: str | Sequence[str]) -> tuple[str, ...]:
    """The directives that a space draws from beside its decisions and core moves: none, all, or
    some by name, in the compiler's order.

    Raises:
        OptionError: if a name is no directive.
    """
    if wanted == CORE:
        return ()
    if wanted == ALL:
        return tuple(sorted(PROPOSALS))
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        if name not in PROPOSALS:
            expected = f"{CORE}, {ALL}, or names among {', '.join(sorted(PROPOSALS))}"
            raise OptionError("directives", expected, repr(name), nearest(name, PROPOSALS))
    return tuple(sorted(set(names)))


def of_statement(procedure: Procedure) -> tuple[str, ...]:
    """The directives on the statement that a procedure was just lowered from, which come before all
    others: a space draws from them without being asked to.
    """
    return () if procedure.origin is None else tuple(FRONT_END_DIRECTIVES)


def statement_steps(trace: Sequence[Directive]) -> int:
    """How many directives on the statement a schedule begins with."""
    others = (n for n, step in enumerate(trace) if step.op not in FRONT_END_DIRECTIVES)
    return next(others, len(trace))


def draw_further(
    procedure: Procedure, ops: Sequence[str], rng: np.random.Generator
) -> Directive | None:
    """A proposal for one of some directives, each directive as likely as another; None if there is
    none for the one that was drawn.
    """
    offered = list(proposals(procedure, pick(rng, ops)))
    return pick(rng, offered) if offered else None


def all_further(procedure: Procedure, ops: Sequence[str]) -> tuple[Directive, ...]:
    """The proposals for some directives, of each at most `MOST_OF_A_KIND`, evenly spread."""
    out: list[Directive] = []
    for op in ops:
        offered = list(proposals(procedure, op))
        step = max(1, -(-len(offered) // MOST_OF_A_KIND))
        out += offered[::step]
    return tuple(out)
