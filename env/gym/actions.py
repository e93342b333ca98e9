"""Which actions schedule search has: the core list (``vocabulary``), or all a policy might need.

The wide list begins with the core list, number by number. What follows is for each loop by its
place in program order what `OF_LOOPS` lists, then for each tensor by its place `OF_TENSORS`, then
for each tensor and each loop `OF_PLACES`; last what a front end proposes for the statement, in its
order, as long as no loop was touched. As in the core list the meaning of a number depends on
what is there, and whether it is legal is the compiler's answer; what is tried at all are the
proposals of the compiler (``compiler.schedule.proposals``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import Procedure, loops
from kernelwright.env.compiler.ir.queries import tensors_by_name
from kernelwright.env.compiler.schedule.memo import Schedules
from kernelwright.env.compiler.schedule.proposals import proposals
from kernelwright.env.compiler.schedule.trace import apply, print_trace
from kernelwright.env.gym.vocabulary import (
    ACTIONS,
    MAX_LOOPS,
    IllegalActionError,
    Trace,
    action_name,
    legal_actions,
    take,
)
from kernelwright.env.types import Directive, Scalar

MAX_TENSORS = 8
MAX_STATEMENT = 64


@dataclass(frozen=True, slots=True)
class Move:
    """A directive but for the names of loops and tensors. ``names`` of its further arguments come
    first, whichever they are; ``args`` follow.
    """

    op: str
    args: tuple[Scalar, ...] = ()
    names: int = 0

    def __str__(self) -> str:
        return " ".join([self.op, *(str(value) for value in self.args if value != "")])


OF_LOOPS: tuple[Move, ...] = (
    *(Move("split", (factor, "", "", "shift_inwards")) for factor in (4, 8, 16)),
    *(Move("unroll", (factor,)) for factor in (2, 4)),
    *(Move("vectorize", (lanes,)) for lanes in (4, 8, 16)),
    Move("tile", (2, 4), 1),
    Move("tile", (8, 16), 1),
    Move("unroll_and_jam", (2,)),
    Move("unroll_and_jam", (4,)),
    Move("skew", (1,), 1),
    Move("skew", (2,), 1),
    Move("wavefront", (), 1),
    Move("reverse"),
    Move("fission", (1,)),
    Move("merge", (), 1),
    Move("partition"),
    Move("software_pipeline"),
    Move("rfactor", ("", True)),
    *(Move("bind", (level,)) for level in ("block.x", "thread.x", "vthread")),
    *(Move("tensorize", (name,)) for name in ("fma_8x16_f32", "dot_4_u8s8")),
)
OF_TENSORS: tuple[Move, ...] = (
    Move("compute_root"),
    Move("compute_inline"),
    Move("store_root"),
    Move("fold_storage", (0,)),
    Move("stream_store"),
    Move("reassociate"),
    Move("cache_read"),
    Move("cache_write"),
    Move("set_scope", ("stack",)),
    Move("set_scope", ("register",)),
    Move("pack", ("a0 a1 -> a0 a1/16 a1%16",)),
    Move("pack", ("a0 a1 -> a0/16 a1 a0%16",)),
    Move("pack", ("a0 a1 -> a1 a0",)),
)
OF_PLACES: tuple[Move, ...] = (
    Move("compute_at"),
    Move("reverse_compute_at"),
    Move("store_at"),
    Move("cache_read", ("auto",)),
    Move("cache_write", ("auto",)),
    Move("scalar_replacement"),
    Move("prefetch", (1,)),
    Move("decompose_reduction"),
)
_LOOPS_END = ACTIONS + MAX_LOOPS * len(OF_LOOPS)
_TENSORS_END = _LOOPS_END + MAX_TENSORS * len(OF_TENSORS)
_PLACES_END = _TENSORS_END + MAX_TENSORS * MAX_LOOPS * len(OF_PLACES)
ALL_ACTIONS = _PLACES_END + MAX_STATEMENT


@dataclass(frozen=True, slots=True)
class Actions:
    """A list of actions: how many, what each is called, what it makes of a trace, which are legal
    after one.
    """

    count: int
    name: Callable[[int], str]
    take: Callable[[Schedules, Trace, int], Trace]
    legal: Callable[[Schedules, Trace], list[int]]


@dataclass(frozen=True, slots=True)
class _Meaning:
    """An action beyond the core list: a move, and the places that it is about."""

    move: Move
    tensor: int | None
    loop: int | None


def _meaning(action: int) -> _Meaning:
    if action < _LOOPS_END:
        loop, move = divmod(action - ACTIONS, len(OF_LOOPS))
        return _Meaning(OF_LOOPS[move], None, loop)
    if action < _TENSORS_END:
        tensor, move = divmod(action - _LOOPS_END, len(OF_TENSORS))
        return _Meaning(OF_TENSORS[move], tensor, None)
    place, move = divmod(action - _TENSORS_END, len(OF_PLACES))
    return _Meaning(OF_PLACES[move], *divmod(place, MAX_LOOPS))


def wide_name(action: int) -> str:
    """An action of the wide list in words: ``loop 2: unroll_and_jam 4``."""
    if action < ACTIONS:
        return action_name(action)
    if action >= _PLACES_END:
        return f"statement: proposal {action - _PLACES_END}"
    means = _meaning(action)
    places = [] if means.tensor is None else [f"tensor {means.tensor}"]
    places += [] if means.loop is None else [f"loop {means.loop}"]
    return f"{', '.join(places)}: {means.move}"


def wide_directive(procedure: Procedure, action: int) -> Directive:
    """The directive that an action beyond the core list means here.

    Raises:
        IllegalActionError: if there is no such loop or tensor, or nothing to be proposed for it.
    """
    if action >= _PLACES_END:
        return _of_statement(procedure, action)
    return _proposed(procedure, action, proposals(procedure, _meaning(action).move.op))


def _of_statement(procedure: Procedure, action: int) -> Directive:
    offered = () if procedure.origin is None else procedure.origin.proposals()
    place = action - _PLACES_END
    if place >= len(offered):
        raise IllegalActionError(
            f"{wide_name(action)}: expected one of {len(offered)} proposals for the statement"
        )
    return offered[place]


def _proposed(procedure: Procedure, action: int, offered: Iterable[Directive]) -> Directive:
    means = _meaning(action)
    target, further = _names(procedure, means, wide_name(action))
    for each in offered:
        if each.target == target and _fits(each, means.move, further):
            return each
    raise IllegalActionError(f"{wide_name(action)}: expected a proposal for {target}, found none")


def _names(procedure: Procedure, means: _Meaning, said: str) -> tuple[str, tuple[str, ...]]:
    """The names of what an action is about: the target, and the loop where it has one beside it."""
    found = []
    for place, names, what in (
        (means.tensor, list(tensors_by_name(procedure)), "tensors"),
        (means.loop, [loop.var for loop in loops(procedure)], "loops"),
    ):
        if place is not None:
            if place >= len(names):
                raise IllegalActionError(f"{said}: expected one of {len(names)} {what}")
            found.append(names[place])
    return found[0], tuple(found[1:])


def _fits(proposed: Directive, move: Move, further: tuple[str, ...]) -> bool:
    names = move.names + len(further)
    start = proposed.args[: len(further)]
    return start == further and proposed.args[names:] == move.args


def wide_take(schedules: Schedules, trace: Trace, action: int) -> Trace:
    """The trace after an action of the wide list.

    Raises:
        IllegalActionError: if it may not be taken.
    """
    if action < ACTIONS:
        return take(schedules, trace, action)
    before = schedules.after(trace)
    directive = wide_directive(before, action)
    after = (*trace, directive)
    try:
        _check_size(before, schedules.after(after), directive)
    except CompilerError as error:
        raise IllegalActionError(str(error)) from None
    return after


def _check_size(before: Procedure, after: Procedure, directive: Directive) -> None:
    """Loops beyond the last row would be out of sight.

    Raises:
        IllegalActionError: if there are more of them than before.
    """
    if len(loops(after)) > max(MAX_LOOPS, len(loops(before))):
        shown = print_trace((directive,)).strip()
        raise IllegalActionError(f"{shown}: expected at most {MAX_LOOPS} loops")


def wide_legal(schedules: Schedules, trace: Trace) -> list[int]:
    """The actions of the wide list that may be taken after a trace."""
    return [*legal_actions(schedules, trace), *_wide_legal(schedules.after(trace))]


def _wide_legal(procedure: Procedure) -> Iterator[int]:
    offered: dict[str, tuple[Directive, ...]] = {}
    for action in range(ACTIONS, ALL_ACTIONS):
        try:
            if action >= _PLACES_END:
                directive = _of_statement(procedure, action)
            else:
                op = _meaning(action).move.op
                if op not in offered:
                    offered[op] = tuple(proposals(procedure, op))
                directive = _proposed(procedure, action, offered[op])
            _check_size(procedure, apply(procedure, directive), directive)
        except (IllegalActionError, CompilerError):
            continue
        yield action


CORE = Actions(ACTIONS, action_name, take, legal_actions)
ALL = Actions(ALL_ACTIONS, wide_name, wide_take, wide_legal)
LISTS: dict[str, Actions] = {"core": CORE, "all": ALL}
