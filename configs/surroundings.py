"""From a campaign to what surrounds its search, as prompts may speak of it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from kernelwright.agents.context.device import DeviceSheet, device_sheet
from kernelwright.agents.context.library import Passage
from kernelwright.agents.context.pages import directive_pages, sections_of
from kernelwright.agents.context.profile import Known
from kernelwright.agents.context.surroundings import Surroundings
from kernelwright.agents.context.winners import Wanted, by_worth, of_cache, of_runs
from kernelwright.configs.context import retrieves_directives
from kernelwright.configs.folders import cache_folder_of
from kernelwright.configs.load import Campaign
from kernelwright.configs.schema import CacheSection
from kernelwright.env.types import CacheState, Candidate, Language, Problem
from kernelwright.evaluators.cpu.listing import read_listing, remarks
from kernelwright.evaluators.cpu.target import Cpu
from kernelwright.evaluators.cpu_model import CpuModel
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.evaluators.target import Target, speed_of_light

Explain = Callable[[Candidate], Known | None]


def surroundings_of(
    campaign: Campaign,
    problem: Problem,
    target: Target,
    language: Language,
    state: CacheState,
) -> Surroundings:
    """What the driver's model may be told of the world; nothing is looked at yet."""
    agents = campaign.file.agents
    assert agents is not None
    context, retrieval = agents.context, agents.retrieval
    return Surroundings(
        tokens=context.tokens,
        device=(lambda: _device(problem, target, state)) if context.device else None,
        explain=explainer_of(problem, target) if context.profile else None,
        examine=_examiner(target) if context.profile else None,
        passages=None
        if retrieval is None
        else lambda: tuple(_passages(campaign, problem, target, language)),
        retrieved=3 if retrieval is None else retrieval.passages,
    )


def _device(problem: Problem, target: Target, state: CacheState) -> DeviceSheet:
    """The target's machine; a measured one is measured now if it never was."""
    dtype = next((t.dtype for t in problem.tensors if t.role == "output"), "float32")
    bounds = speed_of_light(target, problem, state)
    threads = int(getattr(target, "threads", 1))
    size = np.dtype(dtype).itemsize
    return device_sheet(target.device, bounds, dtype=dtype, itemsize=size, threads=threads)


def explainer_of(problem: Problem, target: Target) -> Explain | None:
    """An analytic model of the target's machine that says what limits a program: the target's own,
    or for schedules that run on a real CPU the model of one. It is a function of the program alone.
    """
    if isinstance(target, GpuModel):
        return lambda candidate: _of_gpu(target, candidate)
    if isinstance(target, CpuModel):  # its verdicts say as much
        return None
    if Language.SCHEDULE not in target.languages or problem.template is not None:
        return None
    try:
        model = CpuModel(problem)
    except ValueError:  # what is computed is not known as loops
        return None
    return lambda candidate: _of_cpu(model, candidate)


def _of_gpu(target: GpuModel, candidate: Candidate) -> Known | None:
    if candidate.language is not Language.KNOBS:
        return None
    artifact = target.build(candidate)
    return Known("", artifact.facts, artifact.log)


def _of_cpu(model: CpuModel, candidate: Candidate) -> Known | None:
    if candidate.language not in model.languages or not model.estimate(candidate):
        return None
    artifact = model.build(candidate)
    return Known(f"a model of {model.device.title}", artifact.facts, artifact.log)


def _examiner(target: Target) -> Explain | None:
    """A look at what the compiler makes of a program, where one does and its code can be read."""
    if not isinstance(target, Cpu) or platform.machine() not in ("x86_64", "AMD64"):
        return None

    def examine(candidate: Candidate) -> Known | None:
        found = target.listing(candidate)
        if found is None:
            return None
        listing, said = read_listing(found[0]), remarks(found[1])
        log = "\n".join(filter(None, (listing.text(), said)))
        return Known("its machine code", listing.facts(), log)

    return examine


def _passages(
    campaign: Campaign, problem: Problem, target: Target, language: Language
) -> Iterator[Passage]:
    """What may be retrieved: what others found first, the nearest and fastest before others, then
    pages.
    """
    agents = campaign.file.agents
    assert agents is not None
    section = agents.retrieval
    assert section is not None
    from kernelwright.configs.tuning import device_of

    wanted = Wanted(problem, device_of(target)[0], language)
    winners = list(of_runs((campaign.folder / name for name in section.runs), wanted))
    if section.cache:
        folder = cache_folder_of(campaign.file.cache or CacheSection(), campaign.folder)
        winners += of_cache(wanted, folder, section.cache)
    yield from by_worth(winners)
    for name in section.pages:
        text = (campaign.folder / name).read_text(encoding="utf-8-sig")
        yield from sections_of(Path(name).stem, text)
    if retrieves_directives(campaign.file):
        yield from directive_pages()
