"""A model that says again, in another spelling, what it has said before, through every agent."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import spellings
from replay import FAILED, timed

from kernelwright.agents import AGENT_DRIVERS
from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import ChatRequest, Completion
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.dialects.fences import blocks, fenced
from kernelwright.agents.programmer.reading import read_prompt
from kernelwright.configs.resolve import resolve
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.softmax import softmax
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.spaces.source import SourceSpace
from kernelwright.env.types import Candidate, Proposal, Stage
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.search.store import StoreJournal
from kernelwright.search.trial import Trial

ASKS, BATCH = 24, 4
# A hybrid's seeds end early, unless there may be many.
OPTIONS: dict[str, dict[str, Any]] = {"hybrid": {"seeds": ASKS * BATCH}}
Respell = Callable[[str, random.Random], str]


class Repeating:
    """Every other program that it is asked for, itself or in an action, is one that it has said.

    Args:
        respell: writes a program in another spelling.
        mark: of the blocks that programs stand in.
    """

    priced, missing, model = False, (), "repeating"

    def __init__(self, respell: Respell, mark: str) -> None:
        self._other, self._respell, self._mark = Mock(seed=1), respell, mark
        self._rng, self._said = random.Random(5), list[str]()
        self.injected: dict[str, str] = {}  # programs by the key of the question

    def complete(self, request: ChatRequest) -> Completion:
        """An answer."""
        wanted = read_prompt(request.messages).mark
        if (
            wanted == "review"
        ):  # a reviewer that knows what was tried would hide what the agent does
            return Completion(fenced("ok", wanted), "stop", self.model, request.key)
        if wanted in (self._mark, "action") and self._said and self._rng.random() < 0.5:
            text = self._respell(self._rng.choice(self._said), self._rng)
            self.injected[request.key] = text
            if wanted == "action":
                text = json.dumps({"tool": "submit", "arguments": {"program": text}})
            return Completion(fenced(text, wanted), "stop", self.model, request.key)
        found = self._other.complete(request)
        for block in blocks(found.text or ""):
            if block.mark == self._mark:
                self._said.append(block.text)
            elif block.mark == "action":
                self._said += _submitted(block.text)
        return found


def _submitted(action: str) -> list[str]:
    """The program that an action has judged, if it says which; others may be new."""
    read = json.loads(action)
    program = read["arguments"].get("program")
    if read["tool"] not in ("submit", "measure") or program is None:
        return []
    return [program if isinstance(program, str) else json.dumps(program)]


def duplicates(agent: str, world: str) -> tuple[int, int]:
    """How many answers were spellings of earlier ones, and how many of these an agent proposed."""
    space, problem, respell = WORLDS[world]()
    dialect = dialect_for(space, problem)
    model = Repeating(respell, dialect.fence)

    def is_injected(proposal: Proposal) -> bool:
        # A session of tools may end with another program than its last call named.
        text = model.injected.get(proposal.prompt_hash)
        read = None if text is None else dialect.parse(fenced(text, dialect.fence))
        return isinstance(read, Candidate) and space.canonical(read) == proposal.candidate

    driver = resolve(AGENT_DRIVERS, agent)(
        space,
        seed=1,
        batch=BATCH,
        problem=problem,
        backend=model,
        prompt="refine",
        journal=StoreJournal((), lambda event: None),
        **OPTIONS.get(agent, {}),
    )
    number, let_in = 0, 0
    for _ in range(ASKS):
        proposals = driver.ask(BATCH)
        let_in += sum(map(is_injected, proposals))
        trials = [_judged(number + i, proposal) for i, proposal in enumerate(proposals)]
        number += len(trials)
        driver.tell(trials)
    return len(model.injected), let_in


def _judged(number: int, proposal: Proposal) -> Trial:
    """A trial whose time is a function of the candidate; one in eight fails. What no model proposed
    is slower, so that a hybrid goes on asking its model.
    """
    candidate = proposal.candidate
    drawn = int(candidate.key[:8], 16)
    height = None if drawn % 8 == 0 else drawn / 2**31 - (1 if proposal.prompt_hash else 3)
    verdict = FAILED if height is None else timed(2.0**-height, 1.0)
    return Trial(number, candidate, ((Stage.SCREEN, verdict),), height, "", (), 0, 0)


def _knobs() -> tuple[Any, Any, Respell]:
    problem = gemm_gpu()
    space = KnobSpace(
        problem.knobs, GpuModel(problem, seed=0).constraints, default=problem.unscheduled
    )

    def respell(text: str, rng: random.Random) -> str:
        pairs = [(k, float(v) if rng.random() < 0.5 else v) for k, v in json.loads(text).items()]
        return json.dumps(dict(rng.sample(pairs, len(pairs))), indent=rng.choice((None, 1)))

    return space, problem, respell


def _schedule() -> tuple[Any, Any, Respell]:
    problem = matmul(m=64, n=64, k=64)
    space = ScheduleSpace(problem.definition(problem.workloads[0]))

    def respell(text: str, rng: random.Random) -> str:
        names = dict.fromkeys(re.findall(r"\b[ijp][oi]\w*", text))
        for name in names:
            whole = re.search(rf"split\('{name[0]}', \d+\)", text)
            if whole is None:
                continue
            text = text.replace(whole[0], f"{whole[0][:-1]}, '{name[0]}o', '{name[0]}i')")
        return text.replace("', ", "',  ") + "# so\n"

    return space, problem, respell


def _source() -> tuple[Any, Any, Respell]:
    problem = softmax(rows=16, cols=64)

    def respell(text: str, rng: random.Random) -> str:
        return spellings.respaced(spellings.renamed(text, rng), rng)

    return SourceSpace(str(problem.plain_c), entry="softmax"), problem, respell


WORLDS = {"knobs": _knobs, "schedule": _schedule, "C": _source}
