"""Forms of candidates against pairs whose truth is known: how many other programs are merged, how
many spellings of one program are not, and how many duplicates a model gets past its driver.

C is told apart by what gcc makes of it without optimising; ``--quick`` takes a tenth of the pairs.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import json
import random
import re
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import lru_cache
from itertools import islice

import numpy as np
import spellings

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import ChatRequest, Completion
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.llm import LlmDriver
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.softmax import softmax
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.novelty import Forms, source_form
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.spaces.source import SourceSpace
from kernelwright.env.types import Candidate, Stage, Status, Verdict
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.search.store import StoreJournal
from kernelwright.search.trial import Trial

DIFFERENT, SAME = 700, 400
NESTS_DIFFERENT, NESTS_SAME = 300, 200
SHAPES, NAMES = 400, 24
ASKS = 60


@lru_cache(maxsize=4096)
def assembly(text: str) -> str | None:
    """What gcc makes of a text, None if it refuses it."""
    macros = [f"-D{name}=16" for name in sorted(set(re.findall(r"\bKW_\w+", text)))]
    command = ["gcc", "-S", "-O0", "-w", "-fopenmp", "-mavx512f", "-mavx512dq", "-mfma"]
    command += [*macros, "-xc", "-", "-o", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def different_c(count: int, rng: random.Random) -> tuple[int, int]:
    """Pairs of C that differ, and how many of them have one form."""
    known = [text for _, text in spellings.texts() if assembly(text) is not None]
    pairs = merged = 0
    while pairs < count:
        text = rng.choice(known)
        other = spellings.changed(text, rng)
        if assembly(other) == assembly(text):
            continue
        pairs += 1
        one, two = (spellings.respaced(spellings.renamed(t, rng), rng) for t in (text, other))
        merged += source_form(one) == source_form(two)
    return pairs, merged


def same_c(count: int, rng: random.Random) -> tuple[int, int, set[str]]:
    """Pairs of C that differ in names, blanks and comments, how many of them have two forms, and of
    which texts those are.
    """
    known = [(name, text) for name, text in spellings.texts() if assembly(text) is not None]
    pairs, apart = 0, list[str]()
    while pairs < count:
        name, text = rng.choice(known)
        other = spellings.respaced(spellings.renamed(text, rng), rng)
        if assembly(other) != assembly(text):
            continue  # a name that the object shows, or a line number
        pairs += 1
        if source_form(text) != source_form(other):
            apart.append(name)
    return pairs, len(apart), set(apart)


def scoped_c(shapes: int, rng: random.Random) -> tuple[int, int, int]:
    """Functions of nested scopes over few names: how many texts, how many of them have the form of
    an earlier one of their shape, and how many of these are another program.
    """
    count = merged = wrong = 0
    for _ in range(shapes):
        alike: dict[str, list[str]] = {}
        for text in dict.fromkeys(islice(spellings.scoped(rng), NAMES)):
            count += 1
            alike.setdefault(source_form(text), []).append(text)
        for first, *others in alike.values():
            merged += len(others)
            wrong += sum(assembly(other) != assembly(first) for other in others)
    return count, merged, wrong


def nests(
    pairs: Callable[..., object], count: int, *, same: bool, seed: int = 0
) -> tuple[int, int]:
    """Pairs of schedules that are one nest or two, and how many of them have it wrong."""
    problem = matmul(m=6, n=8, k=4)
    space = ScheduleSpace(problem.definition(problem.workloads[0]), threads=2, lanes=(2, 4))
    forms, found, wrong = Forms(space, problem), 0, 0
    for one, other in pairs(space, np.random.default_rng(seed)):
        facts = [spellings.nest_facts(space.scheduled(each)) for each in (one, other)]
        if (facts[0] == facts[1]) is not same:
            continue
        found += 1
        wrong += (forms.of(one) == forms.of(other)) is not same
        if found == count:
            return found, wrong
    raise AssertionError("pairs come without end")


class Repeating:
    """A model that every other time says again, in another spelling, what it has said before."""

    priced, missing, model = False, (), "repeating"

    def __init__(self, respell: Callable[[str, random.Random], str], mark: str) -> None:
        self._other, self._respell, self._mark = Mock(seed=1), respell, mark
        self._rng, self._said, self.injected = random.Random(5), list[str](), set[str]()

    def complete(self, request: ChatRequest) -> Completion:
        """An answer."""
        if self._said and self._rng.random() < 0.5:
            text = self._respell(self._rng.choice(self._said), self._rng)
            self.injected.add(request.key)
            return Completion(fenced(text, self._mark), "stop", self.model, request.key)
        found = self._other.complete(request)
        blocks = re.findall(r"^```\w+\n(.*?)^```", found.text or "", re.S | re.M)
        self._said += blocks
        return found


def duplicates(name: str) -> tuple[int, int]:
    """How many answers were spellings of earlier ones, and how many of these were proposed."""
    space, problem, respell = WORLDS[name]()
    model = Repeating(respell, dialect_for(space, problem).fence)
    driver = LlmDriver(
        space,
        seed=1,
        batch=4,
        problem=problem,
        backend=model,
        prompt="refine",
        journal=StoreJournal((), lambda event: None),
    )
    number, let_in = 0, 0
    for _ in range(ASKS):
        proposals = driver.ask(4)
        let_in += sum(p.prompt_hash in model.injected for p in proposals)
        trials = [_failed(number + i, p.candidate) for i, p in enumerate(proposals)]
        number += len(trials)
        driver.tell(trials)
    return len(model.injected), let_in


def _failed(number: int, candidate: Candidate) -> Trial:
    """A trial whose result says nothing."""
    verdict = Verdict(Status.BUILD_ERROR, "made_up")
    return Trial(number, candidate, ((Stage.SCREEN, verdict),), None, "llm", (), 0, 0)


def _knobs() -> tuple[object, ...]:
    problem = gemm_gpu()
    space = KnobSpace(
        problem.knobs, GpuModel(problem, seed=0).constraints, default=problem.unscheduled
    )

    def respell(text: str, rng: random.Random) -> str:
        pairs = [(k, float(v) if rng.random() < 0.5 else v) for k, v in json.loads(text).items()]
        return json.dumps(dict(rng.sample(pairs, len(pairs))), indent=rng.choice((None, 1)))

    return space, problem, respell


def _schedule() -> tuple[object, ...]:
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


def _source() -> tuple[object, ...]:
    problem = softmax(rows=16, cols=64)

    def respell(text: str, rng: random.Random) -> str:
        return spellings.respaced(spellings.renamed(text, rng), rng)

    return SourceSpace(str(problem.plain_c), entry="softmax"), problem, respell


WORLDS = {"knobs": _knobs, "schedule": _schedule, "source": _source}


def cost() -> None:
    """Time a form takes, of C that nobody has seen and of a schedule that was checked."""
    texts = [text for _, text in spellings.texts()]
    taken = []
    for text in texts:
        start = time.process_time_ns()
        source_form(text)
        taken.append((time.process_time_ns() - start) / 1e6)
    print(f"form of C: median {statistics.median(taken):.2f} ms, most {max(taken):.2f} ms")
    problem = matmul()
    space = ScheduleSpace(problem.definition(problem.workloads[0]))
    forms, rng = Forms(space, problem), np.random.default_rng(0)
    taken = []
    for candidate in [space.sample(rng) for _ in range(200)]:
        space.check(candidate)
        start = time.process_time_ns()
        forms.of(candidate)
        taken.append((time.process_time_ns() - start) / 1e6)
    print(f"form of a schedule: median {statistics.median(taken):.2f} ms, most {max(taken):.2f} ms")


def main() -> None:
    share = 10 if "--quick" in sys.argv else 1
    pairs, merged = different_c(DIFFERENT // share, random.Random(0))
    print(f"C that differs: {pairs} pairs, {merged} merged")
    count, merged, wrong = scoped_c(SHAPES // share, random.Random(0))
    print(f"C of nested scopes: {count} texts, {merged} merged, {wrong} of these wrongly")
    pairs, merged = nests(spellings.other_schedules, NESTS_DIFFERENT // share, same=False)
    print(f"loop nests that differ: {pairs} pairs, {merged} merged")
    pairs, apart, texts = same_c(SAME // share, random.Random(0))
    print(f"C in two spellings: {pairs} pairs, {apart} not merged {sorted(texts)}")
    pairs, apart = nests(spellings.same_schedules, NESTS_SAME // share, same=True)
    print(f"schedules in two spellings: {pairs} pairs, {apart} not merged")
    for name in WORLDS:
        injected, let_in = duplicates(name)
        print(f"duplicates from a model of {name}: {injected}, {let_in} proposed")
    cost()


if __name__ == "__main__":
    main()
