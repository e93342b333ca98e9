"""The judge's section of a campaign: its defaults, what a target has no use for, and what a judge
of binaries is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

from kernelwright.configs.errors import nearest
from kernelwright.configs.load import Campaign
from kernelwright.configs.resolve import parameters, resolve
from kernelwright.configs.schema import JudgeSection
from kernelwright.env.types import Problem
from kernelwright.evaluators import NAIVE_TARGETS
from kernelwright.evaluators.cpu.policy import (
    DEFAULT_JUDGING,
    Checking,
    Judging,
    Policy,
    Profile,
    StaticState,
)
from kernelwright.evaluators.naive import NAIVE_PROFILE
from kernelwright.evaluators.naive.scope import unsuited
from kernelwright.evaluators.target import Target

# The profile of targets that run no candidate's code.
_MODELLED = "basic"
_DEFAULTS: dict[str, Any] = {
    "profile": _MODELLED,
    "state": "cold",
    "screen.pairs": 5,
    "screen.cut": None,
    "race.extra": None,
    "race.rounds": 5,
    "confirm.process_pairs": 10,
    "confirm.pairs": 8,
}
# What a target that takes `judging` is told in it.
_JUDGING_DEFAULTS: dict[str, Any] = {
    "profile": DEFAULT_JUDGING.profile.value,
    "check": DEFAULT_JUDGING.check.value,
    "policy.symbols": [],
    "policy.libraries": [],
    "policy.static_state": DEFAULT_JUDGING.policy.static_state.value,
}


def takes_judging(campaign: Campaign) -> bool:
    """Whether a campaign's target wants to be told its profile, way of checking and policy."""
    return "judging" in parameters(campaign.target.factory)


def judge_factory(campaign: Campaign) -> Callable[..., Target]:
    """What makes a campaign's target: itself, or what stands in for it under ``profile: naive``."""
    name = campaign.target.name
    if campaign.file.judge.profile == NAIVE_PROFILE and name in NAIVE_TARGETS:
        stand_in: Callable[..., Target] = resolve(NAIVE_TARGETS, name)
        return stand_in
    return campaign.target.factory


def judging_of(section: JudgeSection) -> Judging:
    """What a judge of binaries is told. A profile of another kind of target is left to
    `judge_section`, which knows the target and refuses it.
    """
    policy = section.policy
    modelled = section.profile in (None, _MODELLED, NAIVE_PROFILE)
    return Judging(
        profile=DEFAULT_JUDGING.profile if modelled else Profile(str(section.profile)),
        check=Checking(section.check or DEFAULT_JUDGING.check),
        policy=Policy(
            symbols=tuple(policy.symbols or ()),
            libraries=tuple(policy.libraries or ()),
            static_state=StaticState(policy.static_state or DEFAULT_JUDGING.policy.static_state),
        ),
    )


def judge_section(campaign: Campaign, problem: Problem, target: Target) -> dict[str, Any]:
    """The judge's section with its defaults.

    Raises:
        ConfigError: for what this target has no use for, or what does not suit problem and space.
    """
    section, legal, name = campaign.file.judge, target.judge_keys, campaign.target.name
    document = campaign.document
    told = takes_judging(campaign)
    defaults = _DEFAULTS | (_JUDGING_DEFAULTS if told else {})
    # What a target does not do unless it is asked to is not written down either.
    defaults |= dict.fromkeys(getattr(target, "judge_unasked", ()))
    untold = [key for key in legal if key not in defaults]
    if untold:
        found = f"{name}, which names the judge key {untold[0]} and is never told it"
        raise document.error(("target", "name"), "a target that takes 'judging'", found)
    confirm = section.confirm
    out: dict[str, Any] = {"confirm": {"finalists": confirm.finalists, "alpha": confirm.alpha}}
    for key, value in _given(section).items():
        path = ("judge", *key.split("."))
        if key not in legal:
            if value is not None:
                where = f"on target {name}"
                if section.profile == NAIVE_PROFILE and name in NAIVE_TARGETS:
                    where = "in profile naive"
                expected = f"no {path[-1]!r} {where}, which has no use for it"
                raise document.error(path, expected, repr(value))
            continue
        chosen, allowed = copy(defaults[key]) if value is None else value, legal[key]
        if chosen is None:
            continue
        if allowed is not None and chosen not in allowed:
            found, near = repr(chosen), nearest(str(chosen), allowed)
            if key == "profile" and told != (chosen in (*Profile, NAIVE_PROFILE)):
                # It is a profile, and of the other kind of target.
                runs = "run no candidate" if told else "run candidates"
                found = f"{found}, a profile of targets that {runs}"
                near = Profile.STANDARD.value if Profile.STANDARD in allowed else str(allowed[0])
            raise document.error(path, f"{_either(allowed)} on target {name}", found, near)
        inner, _, last = key.rpartition(".")
        (out.setdefault(inner, {}) if inner else out)[last] = chosen
    _suits(campaign, problem, out)
    _can_end_early(campaign, out)
    return out


def _given(section: JudgeSection) -> dict[str, Any]:
    """What the file says of each key that targets differ in, None where it says nothing."""
    return {
        "profile": section.profile,
        "check": section.check,
        "policy.symbols": section.policy.symbols,
        "policy.libraries": section.policy.libraries,
        "policy.static_state": section.policy.static_state,
        "state": section.state,
        "screen.pairs": section.screen.pairs,
        "screen.cut": section.screen.cut,
        "race.extra": section.race.extra,
        "race.rounds": section.race.rounds,
        "confirm.process_pairs": section.confirm.process_pairs,
        "confirm.pairs": section.confirm.pairs,
    }


def _either(words: Sequence[str]) -> str:
    *some, last = words
    return f"{', '.join(some)} or {last}" if some else last


def _can_end_early(campaign: Campaign, judge: Mapping[str, Any]) -> None:
    screen, race = judge.get("screen", {}), judge.get("race", {})
    if "cut" in screen and screen.get("pairs", 1) < 2:
        expected = "judge.screen.pairs above 1 for a screen that may end early"
        found = str(screen.get("pairs", 1))
        raise campaign.document.error(("judge", "screen", "cut"), expected, found)
    if "extra" in race and campaign.file.judge.race.rounds is not None:
        expected = "no 'extra' beside 'rounds': a race on a purse has rounds of its own"
        raise campaign.document.error(("judge", "race", "extra"), expected, str(race["extra"]))


def _suits(campaign: Campaign, problem: Problem, judge: Mapping[str, Any]) -> None:
    """Refuse what a target has a use for and this problem or space has none."""
    document, kind = campaign.document, campaign.file.space.kind
    if judge.get("profile") == NAIVE_PROFILE:
        _suits_the_naive(campaign, problem)
    if judge.get("profile") == Profile.TRUSTED_CODEGEN:
        if not (kind == "schedule" or (kind == "knobs" and problem.sketch is not None)):
            expected = (
                f"strict or standard in a space of kind {kind}, whose C is not generated here"
            )
            near = Profile.STANDARD.value
            raise document.error(("judge", "profile"), expected, repr(judge["profile"]), near)
        for key, value in judge.get("policy", {}).items():
            if value != _JUDGING_DEFAULTS[f"policy.{key}"]:
                expected = f"no {key!r} in profile trusted-codegen, which refuses no binary"
                raise document.error(("judge", "policy", key), expected, repr(value))
    projected = judge.get("check") == Checking.PROJECTION
    if projected and getattr(problem, "projection", None) is None:
        expected = f"full for the problem {problem.name}, which has no projection"
        near = Checking.FULL.value
        raise document.error(("judge", "check"), expected, repr(judge["check"]), near)


def _suits_the_naive(campaign: Campaign, problem: Problem) -> None:
    document, confirm = campaign.document, campaign.file.judge.confirm
    if confirm.alpha != type(confirm)().alpha:
        expected = "no 'alpha' in profile naive, which has no use for it"
        raise document.error(("judge", "confirm", "alpha"), expected, repr(confirm.alpha))
    reason = unsuited(problem)
    if reason is not None:
        expected = "strict or standard for this problem"
        found = f"'naive', and {problem.name} has {reason}"
        raise document.error(("judge", "profile"), expected, found, Profile.STRICT.value)
