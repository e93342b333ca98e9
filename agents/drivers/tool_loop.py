"""An agent that acts: it looks, changes, estimates and measures with tools before it submits.

A session is a conversation of actions about one program. ``measure`` has the program judged, as a
trial like any other, and the session goes on with the verdict when it is there; ``submit`` has it
judged and ends the session. Steps are bounded: when they are used up, or answers are of no use, the
program is submitted as it is, if it is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from kernelwright.agents.agent import agent
from kernelwright.agents.context.safe import one_line
from kernelwright.agents.desk import Desk
from kernelwright.agents.drivers.bench import OPTIONAL, Bench, ToolError
from kernelwright.agents.drivers.estimate import Estimator
from kernelwright.agents.marks import ACTION, Action
from kernelwright.agents.memory import failure_of, speedup
from kernelwright.agents.talk import Draft, Idea, Said, Turn, Useless
from kernelwright.env.options import OptionError
from kernelwright.env.types import Candidate, Proposal
from kernelwright.search.trial import Trial

JUDGED = (
    ("measure(program)", f"have it judged, and go on with the verdict; {OPTIONAL}"),
    ("submit(program)", f"have it judged, and end; {OPTIONAL}"),
)
TOOL = "tool"
MOST_NAME = 40
MOST_RECORDED = 500


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation that waits for a verdict: its last question and answer, the program under
    work, and how often it was measured.
    """

    turn: Turn
    said: str
    bench: Bench
    origin: Candidate
    measured: int


@agent("tool_loop", without=("structured", "edits"))
class ToolLoop:
    """Acts through tools before it has a program judged."""

    def __init__(
        self,
        desk: Desk,
        *,
        steps: Annotated[
            int, Field(ge=1, le=64, description="actions before a program is judged")
        ] = 8,
        measurements: Annotated[
            int, Field(ge=0, le=64, description="programs that one session may have measured")
        ] = 3,
        model: Annotated[
            str,
            Field(description="what estimates: ridge, trees, prior, a CPU table or a dotted path"),
        ] = "ridge",
    ) -> None:
        self._desk = desk
        self._steps, self._measurements = steps, measurements
        self._open: dict[int, Session] = {}
        self._estimator = Estimator(model, desk.space, seed=desk.seed, problem=desk.problem)
        if self._desk.dialect.start() is None:
            raise OptionError("name", "a space with a program to start from", "one without")

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._desk.stopped

    def tell(self, trials: Sequence[Trial]) -> None:
        """Remember the verdicts that sessions wait for, and learn to estimate."""
        self._desk.tell(trials)
        for trial in trials:
            self._estimator.tell(trial)

    def ask(self, n: int) -> list[Proposal]:
        """The next program of each session.

        Raises:
            BackendError, ReplayMismatch: as `Talk.ideas`.
        """
        return self._desk.ideas(n, self._think)

    def _think(self, number: int) -> Idea:
        desk = self._desk
        waiting = self._open.pop(number, None)
        turn = None if waiting is None else self._continued(waiting)
        if waiting is None or turn is None:
            turn, bench, origin = self._begun(number)
            measured = 0
        else:
            bench, origin, measured = waiting.bench, waiting.origin, waiting.measured
        author: Said | None = None  # who made the program under work what it is
        for left in reversed(range(self._steps)):
            turn, reply = yield from desk.insisted(turn)
            if not isinstance(reply, Said):
                break
            said, before = reply, bench.current
            result = self._done(said, bench, origin)
            if bench.current != before:
                author = said
            if isinstance(result, Draft):
                if said.value.tool == "measure" and measured < self._measurements:
                    self._open[number] = Session(turn, said.text, bench, origin, measured + 1)
                return result
            tool = one_line(said.value.tool, MOST_NAME)
            desk.talk.note(TOOL, said.slot, tool=tool, said=result[:MOST_RECORDED])
            turn = self._told(turn, said.text, bench, result, left)
        # What is under work when the steps are used up, or no action can be read any more.
        if author is None or bench.current == origin:
            return None
        last = desk.talk.draft(bench.current, (origin.key,), author)
        return last if isinstance(last, Draft) else None

    def _begun(self, number: int) -> tuple[Turn, Bench, Candidate]:
        """A session about one of the best programs."""
        desk = self._desk
        start, parent = desk.memory.parent(desk.rng(number), greedy=number == 0)
        assert start is not None
        bench = Bench(desk.space, desk.dialect, start, lambda c: self._estimator.expected(c, start))
        tools = (*bench.tools(), *(JUDGED if self._measurements else JUDGED[1:]))
        section = desk.said("tools", tools=tools, steps=self._steps)
        return Turn(desk.page(number, parent, section, mark=ACTION), start, 1, ACTION), bench, start

    def _continued(self, waiting: Session) -> Turn | None:
        """The session with the verdict; None if there is none."""
        trial = self._desk.trials.get(waiting.bench.current.key)
        if trial is None:
            return None
        if trial.objective is not None:
            result = f"it passed, speedup {speedup(trial)} over the baseline"
        else:
            failure = failure_of("", trial)
            code = f", {failure.code}" if failure.code else ""
            result = f"{failure.status}{code}\n\n{failure.detail}"
        turn = self._told(waiting.turn, waiting.said, waiting.bench, result, self._steps)
        return Turn(turn.messages, trial.candidate, 1, ACTION)

    def _done(self, said: Said, bench: Bench, origin: Candidate) -> Draft | str:
        """What an action comes to: a program to be judged, or what the tool says."""
        action: Action = said.value
        try:
            if action.tool not in ("measure", "submit"):
                return bench.call(action)
            bench.place(action.arguments)
        except ToolError as error:
            return _refused(str(error))
        found = self._desk.talk.draft(bench.current, (origin.key,), said)
        return _refused(found.reason) if isinstance(found, Useless) else found

    def _told(self, turn: Turn, said: str, bench: Bench, result: str, left: int) -> Turn:
        desk = self._desk
        line = desk.line(bench.current)
        text = desk.text("result", result=result, line=line, left=left)
        return desk.follow(turn, said, f"{text}\n{desk.answer(ACTION)}", ACTION)


def _refused(reason: str) -> str:
    """What a tool says that refuses; the reason may quote whoever called."""
    return f"refused: {one_line(reason, MOST_RECORDED)}"
