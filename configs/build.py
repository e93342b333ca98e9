"""Joining a checked campaign into a plan: the problem owns the knob values, the target owns the
constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from kernelwright.configs.errors import nearest
from kernelwright.configs.load import Campaign, resolved_config
from kernelwright.env.options import OptionError
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import (
    Candidate,
    Language,
    Problem,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    Verdict,
)
from kernelwright.evaluators.target import Target
from kernelwright.search.driver import Driver
from kernelwright.search.plan import Baseline, Budget, ConfirmPlan, Plan, StopRules

T = TypeVar("T")
JUDGE_DEFAULTS: dict[str, Any] = {
    "profile": "basic",
    "state": "cold",
    "confirm.process_pairs": 10,
    "confirm.pairs": 8,
}


@dataclass(frozen=True)
class Built:
    """A plan with the objects that reports and environments also need."""

    plan: Plan
    problem: Problem
    target: Target
    space: KnobSpace
    resolved: dict[str, Any]


def build(campaign: Campaign) -> Built:
    """Make the objects of a campaign.

    Raises:
        ConfigError: if parts that are legal alone do not fit together.
    """
    problem = _problem(campaign)
    target = _target(campaign, problem)
    space = _space(campaign, problem, target)
    judge = _judge(campaign, target)
    hashes = _hashes(campaign, target)
    file = campaign.file
    seed, batch = file.seed, file.batch
    factory, options = campaign.driver.factory, campaign.driver.options

    def make_driver() -> Driver:
        driver: Driver = factory(space, seed=seed, batch=batch, **options)
        return driver

    if file.stop.roofline is not None and target.device is None:
        found = f"{file.stop.roofline} on a device without a table"
        raise campaign.document.error(("stop", "roofline"), "a known roofline", found)
    confirm = judge.get("confirm", {})
    plan = Plan(
        space=space,
        evaluator=target,
        make_driver=_checked(make_driver, campaign),
        baseline=_baseline(campaign, target, space),
        library=target.library,
        budget=Budget(file.budget.trials, file.budget.seconds),
        stop=StopRules(file.stop.roofline, file.stop.plateau),
        confirm=ConfirmPlan(
            file.judge.confirm.finalists, confirm.get("process_pairs", 1), confirm.get("pairs", 1)
        ),
        batch=batch,
        seed=seed,
    )
    return Built(plan, problem, target, space, resolved_config(campaign, hashes, judge))


def _checked(make: Callable[[], Driver], campaign: Campaign) -> Callable[[], Driver]:
    """``make``, once it is known that it works and makes a driver."""
    driver = _made(campaign, "driver", make)
    lacking = [name for name in ("ask", "tell", "stopped") if not hasattr(driver, name)]
    if lacking:
        found = f"{campaign.driver.name} without {' and '.join(lacking)}"
        raise campaign.document.error(("driver", "name"), "a driver (ask, tell, stopped)", found)
    return make


def _made(campaign: Campaign, key: str, make: Callable[[], T]) -> T:
    """What a choice's factory makes; a plug-in may raise anything, so anything is caught.

    Raises:
        ConfigError: naming the option if the factory did, else the choice.
    """
    try:
        return make()
    except OptionError as error:
        raise campaign.document.error(
            (key, error.option), error.expected, error.found, error.nearest
        ) from None
    except (Exception, SystemExit) as error:
        found = f"{type(error).__name__}: {error}"
        raise campaign.document.error((key,), f"a {key} that can be made", found) from error


def _problem(campaign: Campaign) -> Problem:
    problem = _made(
        campaign, "problem", lambda: campaign.problem.factory(**campaign.problem.options)
    )
    if not isinstance(problem, Problem):
        found = f"{campaign.problem.name} returned {type(problem).__name__}"
        raise campaign.document.error(
            ("problem", "name"), "a function that returns a Problem", found
        )
    kind = campaign.file.space.kind
    if kind not in problem.spaces:
        expected = f"a space that {problem.name} offers ({', '.join(problem.spaces)})"
        raise campaign.document.error(("space", "kind"), expected, repr(kind))
    return problem


TARGET_PARTS = (
    "evaluate",
    "deterministic",
    "evidence",
    "floor_ns",
    "true_ns",
    "constraints",
    "members",
    "members_reason",
    "unscheduled",
    "library",
    "judge_keys",
    "files",
    "missing",
    "device",
)


def _target(campaign: Campaign, problem: Problem) -> Target:
    choice, seed = campaign.target, campaign.file.seed
    target: Target = _made(
        campaign, "target", lambda: choice.factory(problem, seed=seed, **choice.options)
    )
    lacking = [name for name in TARGET_PARTS if not hasattr(target, name)]
    if lacking:
        found = f"{choice.name} without {', '.join(lacking)}"
        raise campaign.document.error(("target", "name"), "a target", found)
    return target


def _space(campaign: Campaign, problem: Problem, target: Target) -> KnobSpace:
    return _made(
        campaign,
        "target",
        lambda: KnobSpace(
            problem.knobs,
            target.constraints,
            members=target.members(problem),
            members_reason=target.members_reason,
            default=target.unscheduled(problem),
        ),
    )


def _judge(campaign: Campaign, target: Target) -> dict[str, Any]:
    """The judge's section with its defaults, refusing what this target has no use for."""
    section, legal = campaign.file.judge, target.judge_keys
    given = {
        "profile": section.profile,
        "state": section.state,
        "confirm.process_pairs": section.confirm.process_pairs,
        "confirm.pairs": section.confirm.pairs,
    }
    name = campaign.target.name
    out: dict[str, Any] = {"confirm": {"finalists": section.confirm.finalists}}
    for key, value in given.items():
        path = ("judge", *key.split("."))
        if key not in legal:
            if value is not None:
                expected = (
                    f"no {key.rpartition('.')[2]!r} on target {name}, which has no use for it"
                )
                raise campaign.document.error(path, expected, repr(value))
            continue
        chosen, allowed = JUDGE_DEFAULTS[key] if value is None else value, legal[key]
        if allowed is not None and chosen not in allowed:
            expected = f"{' or '.join(allowed)} on target {name}"
            raise campaign.document.error(
                path, expected, repr(chosen), nearest(str(chosen), allowed)
            )
        section_out = out["confirm"] if "." in key else out
        section_out[key.rpartition(".")[2]] = chosen
    return out


def _hashes(campaign: Campaign, target: Target) -> dict[str, str]:
    hashes = {**campaign.files, **target.files}
    for name, digest in campaign.file.hashes.items():
        if name not in hashes:
            expected = f"a file of this campaign ({', '.join(sorted(hashes))})"
            raise campaign.document.error(
                ("hashes", name), expected, repr(name), nearest(name, hashes)
            )
        if hashes[name] != digest:
            raise campaign.document.error(
                ("hashes", name), f"the content {digest[:12]}…", f"{hashes[name][:12]}…"
            )
    return hashes


def _baseline(campaign: Campaign, target: Target, space: KnobSpace) -> Baseline:
    """The baseline, once the target has judged that it works."""
    baseline = _chosen_baseline(campaign, target, space)
    if baseline.candidate.language is Language.KNOBS:
        against = (Reference(Role.BASELINE, baseline.candidate),)
        request = Request(baseline.candidate, Stage.SCREEN, against)
        verdict = _made(campaign, "target", lambda: _only_verdict(target, request))
        found = f"{verdict.status} ({verdict.evidence or verdict.code})"
        passed = verdict.status is Status.OK
        # One sample may pass where the whole recording does not.
        if passed and target.deterministic and np.isnan(target.true_ns([baseline.candidate])[0]):
            passed, found = False, "it fails in other samples"
        if not passed:
            found = f"{baseline.candidate}: {found}"
            raise campaign.document.error(("baseline",), "a baseline that passes", found)
    return baseline


def _only_verdict(target: Target, request: Request) -> Verdict:
    verdicts = list(target.evaluate([request]))
    if len(verdicts) != 1 or not isinstance(verdicts[0], Verdict):
        raise TypeError(f"expected one verdict, found {verdicts!r:.80}")
    return verdicts[0]


def _chosen_baseline(campaign: Campaign, target: Target, space: KnobSpace) -> Baseline:
    name, document = campaign.file.baseline, campaign.document
    if name == "library":
        if target.library is None:
            found = f"{name!r}, and no library time is known on target {campaign.target.name}"
            raise document.error(("baseline",), "unscheduled, default or a candidate's key", found)
        return Baseline(name, target.library)
    if name in ("unscheduled", "default"):
        assert space.default is not None
        return Baseline(name, space.default, is_trial=name == "default")
    if name.endswith(".c"):
        raise document.error(
            ("baseline",), "no C file: a target that compiles C is not built yet", repr(name)
        )
    found_key = next((i for i in space.valid.tolist() if space.candidate(i).key == name), None)
    if found_key is None:
        known = ("unscheduled", "default", "library")
        expected = f"{', '.join(known)} or the key of a candidate in the space"
        raise document.error(("baseline",), expected, repr(name), nearest(name, known))
    return Baseline(name, Candidate(Language.KNOBS, space.candidate(found_key).payload))
