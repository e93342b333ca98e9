"""The question of a call of a run, as ``show --prompt`` prints it, with its answer."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelwright.agents.asking import ReplayMismatch
from kernelwright.agents.kept import kept_template
from kernelwright.agents.transcript import OverError, Rereading, calls_of
from kernelwright.configs.build import build
from kernelwright.configs.calls import call_of, read_calls
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import Campaign, Chosen, read_config, read_document
from kernelwright.configs.schema import CampaignFile
from kernelwright.configs.tuning import plan_with_cache
from kernelwright.search.campaign import Campaign as Search
from kernelwright.search.store import MemoryStore
from kernelwright.search.trial import MODEL_CALL, Event, Trial

_TRIAL = re.compile(r"t(?:rial)? ?([0-9]{1,9})")


def prompt_of(folder: str | Path, call: str) -> dict[str, Any]:
    """A call's question and answer.

    Args:
        folder: of a run.
        call: its number, from 1, its ask and slot as in the record (``3.0``), or a trial that it
            wrote (``trial 7``).

    Returns:
        ``call of ask slot model template key``, ``messages`` (each ``role content``), ``answer``
        (the completion as it was recorded, None if the call failed), ``error``, and ``events``
        (what else stands at its place).

    Raises:
        StoreError: if there is no run.
        ConfigError: if there is no such call, or the campaign is refused by now or asks something
            else than it did.
    """
    folder, trials, events = read_calls(folder)
    calls = calls_of(events)
    number = _number(folder, call, events, trials)
    model = Rereading(calls, number)
    campaign = _campaign(folder, calls)
    if campaign.backend is None:
        raise ConfigError(str(folder), None, "--prompt", "a campaign that asks a model", "none")
    chosen = Chosen(campaign.backend.name, lambda: model, {}, campaign.backend.plain)
    built = build(replace(campaign, backend=chosen, file=_without_prices(campaign.file)))
    past = MemoryStore()
    # A search that ran out of time asks no more in its last batch; here its calls are wanted again.
    past.record(trials=trials, events=[e for e in events if e.kind not in (MODEL_CALL, "stopped")])
    search = Search(plan_with_cache(built, events), past)
    try:
        search.start()
        while len(model.requests) < number and search.step() is None:
            pass
    except Exception as error:
        if not _is_over(error):
            raise _differs(folder, error) from error
    if len(model.requests) < number:
        found = f"a search that ends after {len(model.requests)}"
        raise ConfigError(str(folder), None, "--prompt", f"call {number} to be made again", found)
    return _told(model, calls, events, number)


def _campaign(folder: Path, calls: list[Event]) -> Campaign:
    """The campaign of a run, with the templates that it asked by where the run has kept them."""
    place = folder / "config.yaml"
    version = next((str(call.data.get("template", "")) for call in calls), "")
    data = read_document(place)[0].data
    prompt = str(data.get("agents", {}).get("prompt", ""))
    kept = kept_template(folder, prompt, version) if prompt and version else None
    if kept is None:
        return read_config(place)
    # The copy is tied to the run by its version, so its content needs no hash beside it.
    hashes = {name: h for name, h in data.get("hashes", {}).items() if name != prompt}
    agents = {**data["agents"], "prompt": str(kept.resolve())}
    return read_config({**data, "agents": agents, "hashes": hashes})


def _without_prices(file: CampaignFile) -> CampaignFile:
    """The campaign without prices: recorded answers have theirs, and their model stands for all
    that the prices were of.
    """
    assert file.agents is not None
    agents = file.agents.model_copy(update={"prices": {}})
    return file.model_copy(update={"agents": agents})


def _told(model: Rereading, calls: list[Event], events: list[Event], number: int) -> dict[str, Any]:
    request, made = model.requests[number - 1], calls[number - 1]
    place = (made.ask, made.slot)
    beside = [e for e in events if (e.ask, e.slot) == place and e.kind != MODEL_CALL]
    return {
        "call": number,
        "of": len(calls),
        "ask": made.ask,
        "slot": made.slot,
        "model": made.data["model"],
        "template": made.data.get("template"),
        "key": made.data["key"],
        "messages": [{"role": role, "content": text} for role, text in request.messages],
        "answer": made.data["completion"],
        "error": made.data["error"],
        "events": [{"kind": e.kind, **e.data} for e in beside],
    }


def _number(folder: Path, call: str, events: list[Event], trials: list[Trial]) -> int:
    """The number of a call, from 1."""
    calls, of_trial = calls_of(events), _TRIAL.fullmatch(call)
    if of_trial is not None:
        found = call_of(events, trials, int(of_trial[1]))
        if found is None:
            known = "a trial that a model wrote (--calls lists them)"
            raise ConfigError(str(folder), None, "--prompt", known, f"{call!r:.40}")
        return found
    places = [f"{event.ask}.{event.slot}" for event in calls]
    if call in places:
        return places.index(call) + 1
    if call.isdecimal() and 1 <= int(call) <= len(calls):
        return int(call)
    known = f"a call from 1 to {len(calls)}, its ask and slot, or a trial ('trial 7')"
    known = known if calls else "a run with calls"
    raise ConfigError(str(folder), None, "--prompt", known, f"{call!r:.40}")


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None:
        found.append(error)
        error = error.__cause__
    return found


def _is_over(error: BaseException) -> bool:
    return any(isinstance(each, OverError) for each in _causes(error))


def _differs(folder: Path, error: BaseException) -> ConfigError:
    """The refusal of a record that this version asks otherwise."""
    told = next((e for e in _causes(error) if isinstance(e, ReplayMismatch)), error)
    expected = "a run whose questions are asked again as they were"
    return ConfigError(str(folder), None, "--prompt", expected, f"{type(told).__name__}: {told}")
