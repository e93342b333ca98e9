"""Rows of the table of agents: what feedback, skill, context and retrieval are worth."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

from table import Row
from to_target import BATCH, CAP, SHAPE, Shape, compare, earlier, searches

SEEDS = 40
MANY_SEEDS = 100
SKILLS = (0.0, 0.3, 0.7, 1.0)
proposals, calls = attrgetter("proposals"), attrgetter("calls")
# What a search hides of what became of its proposals: the sections of a prompt.
HIDDEN = {
    "results and failures": ("results", "failures"),
    "results, failures and the profile": ("results", "failures", "profile"),
}
# Shapes that are searched, with those of earlier campaigns: none of the very same size.
RELATED: dict[Shape, tuple[Shape, ...]] = {
    SHAPE: ((2048, 2048, 2048), (8192, 4096, 4096), (4096, 4096, 1024)),
    (512, 1024, 16384): ((512, 512, 16384), (1024, 1024, 8192), (256, 1024, 16384)),
    (16, 14336, 4096): ((32, 14336, 4096), (16, 4096, 14336), (16, 8192, 4096)),
}


def _name(shape: Shape) -> str:
    return "x".join(map(str, shape))


def feedback() -> Iterator[Row]:
    """The shipped prompt, and the same without what became of proposals."""
    with tempfile.TemporaryDirectory() as folder:
        for skill in (0.7, 1.0):
            backend = {"backend": {"name": "mock", "skill": skill}}
            told = searches(SEEDS, agents=json.dumps(backend))
            for number, (what, blocks) in enumerate(HIDDEN.items()):
                path = Path(folder) / f"deaf_{number}.j2"
                empty = "".join(f"{{% block {name} %}}{{% endblock %}}" for name in blocks)
                path.write_text(f"{{% extends 'refine.j2' %}}{empty}\n")
                untold = searches(SEEDS, agents=json.dumps({**backend, "prompt": str(path)}))
                found = compare(told, untold, proposals)
                row = f"skill {skill:g}, proposals to 5%, told and not told: {what}"
                met = found.ratio <= 0.6 and found.p < 0.01
                yield row, f"<= 0.6x, p < 0.01 ({SEEDS} seeds, {CAP} at most)", found.said, met


def skill() -> Iterator[Row]:
    """Each skill against the next lower one."""
    known = {
        each: searches(SEEDS, agents=json.dumps({"backend": {"name": "mock", "skill": each}}))
        for each in SKILLS
    }
    for less, more in pairwise(SKILLS):
        found = compare(known[more], known[less], calls)
        met = found.ratio < 1 and found.p < 0.05
        yield f"calls to 5%, skill {more:g} and {less:g}", "< 1x, p < 0.05", found.said, met


def context() -> Iterator[Row]:
    """The shipped prompt with a section more or less."""
    plain = searches(SEEDS)
    for what, options in (("device", {"device": False}), ("profile", {"profile": False})):
        without = searches(SEEDS, agents=json.dumps({"context": options}))
        found = compare(plain, without, proposals)
        yield f"proposals to 5%, with and without the {what}", "printed", found.said, None
    found = compare(searches(SEEDS, driver='{"inspirations": 2}'), plain, proposals)
    yield "proposals to 5%, with and without 2 inspirations", "printed", found.said, None


def retrieval() -> Iterator[Row]:
    """With and without the winners of earlier campaigns; what they save is less than what searches
    differ by, so it takes more of these.
    """
    for shape, shapes in RELATED.items():
        assert shape not in shapes
        with tempfile.TemporaryDirectory() as folder:
            knowing = searches(MANY_SEEDS, shape, agents=earlier(Path(folder), shapes))
        plain = searches(MANY_SEEDS, shape)
        found = compare(knowing, plain, proposals)
        what = f"{_name(shape)}, proposals to 5%, with and without winners of"
        row = f"{what} {', '.join(map(_name, shapes))}"
        if statistics.median(map(proposals, plain)) <= BATCH:
            # The first batch already does; there is nothing to be saved.
            yield row, "printed", found.said, None
            continue
        yield row, "< 1x, p < 0.05", found.said, found.ratio < 1 and found.p < 0.05


GROUPS: dict[str, Callable[[], Iterator[Row]]] = {
    "feedback": feedback,
    "skill": skill,
    "context": context,
    "retrieval": retrieval,
}
