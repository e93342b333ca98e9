"""Forms of candidates against pairs whose truth is known: how many other programs are merged, and
how many spellings of one program are not. C is told apart by what gcc makes of it without
optimising.
"""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections.abc import Callable
from functools import lru_cache
from itertools import islice

import numpy as np
import spellings

from kernelwright.env.problems.matmul import matmul
from kernelwright.env.spaces.novelty import Forms, source_form
from kernelwright.env.spaces.schedule import ScheduleSpace

NAMES = 24


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


def c_times() -> list[float]:
    """Milliseconds that the form of each text takes that nobody has seen."""
    return [_ms(source_form, text) for _, text in spellings.texts()]


def schedule_times() -> list[float]:
    """The same of schedules that were checked."""
    problem = matmul()
    space = ScheduleSpace(problem.definition(problem.workloads[0]))
    forms, rng = Forms(space, problem), np.random.default_rng(0)
    taken = []
    for candidate in [space.sample(rng) for _ in range(200)]:
        space.check(candidate)
        taken.append(_ms(forms.of, candidate))
    return taken


def _ms(form: Callable[..., object], of: object) -> float:
    start = time.process_time_ns()
    form(of)
    return (time.process_time_ns() - start) / 1e6
