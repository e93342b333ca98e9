"""The golden answers of the simulated model: what one version says stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.agents.backends.mock import VERSION, Mock
from kernelwright.agents.chat import ChatRequest
from kernelwright.agents.context.device import DeviceSheet
from kernelwright.agents.context.library import passage
from kernelwright.agents.context.profile import Known
from kernelwright.agents.context.surroundings import Surroundings
from kernelwright.agents.dialects import EDITED

NAMES = ("knobs", "schedule", "source", "regions")
WINNERS = {
    "knobs": '{"bm": 256, "bn": 128, "bk": 64, "warps": 8, "stages": 3, "group_m": 8}',
    "schedule": "split('j', 32, 'j_o', 'j_w')\nvectorize('j_w')\n",
    "source": "#pragma omp simd\n",
}
GOLDEN = Path(__file__).parent.parent / "golden" / "mock"


@pytest.mark.parametrize("name", NAMES)
def test_a_version_answers_as_it_always_did(worlds, recording, name, request):
    """Prompts, answers and ground truth as they were when the version was made: another answer
    needs another `VERSION`, and new files (``--update-golden``).
    """
    file = GOLDEN / f"{name}.json"
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        asked = prompts_of(worlds[name], recording)
        file.write_text(json.dumps(golden(asked), indent=1) + "\n")
    kept = json.loads(file.read_text())
    assert golden(kept["prompts"]) == kept


def golden(asked):
    """Prompts and what some personas answer to them."""
    answers = {}
    for persona in ("careful", "frontier", "hostile"):
        model = Mock(seed=11, persona=persona)
        for number, messages in enumerate(asked):
            given = ChatRequest("golden", tuple(map(tuple, messages)), 4096, 0.8, number)
            answer = model.complete(given)
            answers[f"{persona} {number}"] = [answer.text, answer.injected, answer.id]
    return {"version": VERSION, "prompts": asked, "answers": answers}


def prompts_of(world, recording):
    """A first prompt, a later one with all that may stand around a search, one that mends, one of
    each other mark, and one that leaves the form to the answer.
    """
    asked = []

    class Overheard(Mock):
        def complete(self, request):
            asked.append(request)
            return super().complete(request)

    backend = Overheard(seed=5, faults=0.3)
    device = DeviceSheet("a machine", ("132 SMs", "vectors of 32 bytes", "16 vector registers"))
    known = Known("", (("spills", 2.0), ("vector_bits", 128.0)), "bound by l2")
    title = f"{world.problem.name} {world.space.language.value} 64x64x64: 3x on a machine"
    around = Surroundings(
        device=lambda: device,
        explain=lambda candidate: known,
        passages=lambda: (passage("run", title, WINNERS[world.space.language.value]),),
    )
    options = {"backend": backend, "seed": 5, "history": 4, "inspirations": 1, "context": around}
    world.play(world.driver(recording(), **options), asks=6)
    mending = next(request for request in asked if len(request.messages) > 2)
    out = [list(map(list, r.messages)) for r in (asked[0], asked[-1], mending)]
    for mark in ("plan", "review", "action"):
        system, (role, text) = asked[0].messages
        told = f"## Tools\n\n- `submit(program)`: the answer\n\n## Answer\n\nOne ```{mark} block.\n"
        out.append([list(system), [role, text[: text.index("## Answer")] + told]])
    if world.space.language in EDITED:
        driver = world.driver(recording(), backend=backend, seed=5, edits="either")
        out.append(list(map(list, driver._fresh(0).messages)))
    return out
