"""Joining a checked campaign into a plan: the problem owns the knob values, the target owns the
constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kernelwright.configs.backends import Hired, hire
from kernelwright.configs.baseline import blamed_on_problem, choose_baseline
from kernelwright.configs.errors import ConfigError, nearest
from kernelwright.configs.judge import judge_factory, judge_section, judging_of, takes_judging
from kernelwright.configs.load import AGENT_PARTS, Campaign, resolved_config
from kernelwright.configs.outlay import Onlooker, Outlay, estimate
from kernelwright.configs.resolve import file_options, is_plugin, parameters
from kernelwright.configs.schema import TimeTarget
from kernelwright.configs.spaces import AnySpace, make_space, with_template
from kernelwright.configs.surroundings import surroundings_of
from kernelwright.configs.tree import Document
from kernelwright.env.landscape import ENDINGS
from kernelwright.env.landscape.open import locate, open_landscape
from kernelwright.env.landscape.record import Landscape
from kernelwright.env.options import OptionError, ProblemError
from kernelwright.env.types import CacheState, Problem
from kernelwright.evaluators.target import Target, TellsFacts, speed_of_light
from kernelwright.search.driver import Driver, Journal
from kernelwright.search.drivers.facts import Demand
from kernelwright.search.plan import Budget, ConfirmPlan, Plan, StopRules
from kernelwright.search.store import StoreJournal

T = TypeVar("T")
DRIVER_PARTS = ("ask", "tell", "stopped")
# Where the campaign has what a driver calls an option of its own.
_NAMED_ELSEWHERE: dict[str, tuple[str, ...]] = {
    "driver.prompt": ("agents", "prompt"),
    "driver.tokens": ("agents", "context", "tokens"),
}


@dataclass(frozen=True)
class Built:
    """A plan with the objects that reports and environments also need.

    ``reaching`` are the keys of ``resolved`` that say only how a model is reached.
    """

    plan: Plan
    problem: Problem
    target: Target
    space: AnySpace
    resolved: dict[str, Any]
    missing: tuple[str, ...]
    outlay: Callable[[], Outlay | None] = lambda: None
    hired: Hired | None = None
    reaching: tuple[str, ...] = ()


def parts_of(campaign: Campaign) -> tuple[Problem, Target, dict[str, Any]]:
    """The problem, the target and the judge's section of a campaign; nothing is judged.

    Raises:
        ConfigError: if they do not fit together.
    """
    problem = with_template(campaign, _problem(campaign))
    target = _target(campaign, problem)
    return problem, target, judge_section(campaign, problem, target)


def build(campaign: Campaign) -> Built:
    """Make the objects of a campaign.

    Raises:
        ConfigError: if parts that are legal alone do not fit together.
    """
    problem = with_template(campaign, _problem(campaign))
    target = _target(campaign, problem)
    space = make_space(campaign, problem, target)
    if space.language not in target.languages:
        judged = ", ".join(sorted(target.languages))
        expected = f"candidates that target {campaign.target.name} can judge ({judged})"
        raise campaign.document.error(("space", "kind"), expected, space.language.value)
    judge = judge_section(campaign, problem, target)
    file = campaign.file
    state = CacheState(judge.get("state", CacheState.COLD))
    stop, floors_ns = _stop_rules(campaign, problem, target, state)
    make_driver, outlay, hired = _driver_factory(campaign, problem, space, target, state)
    _refuse_answers(campaign, target)
    # Last, because it is judged. It may be a file, which the campaign then stands on.
    baseline = choose_baseline(campaign, problem, target, space, state)
    hashes = _hashes(campaign, target)
    confirm = judge.get("confirm", {})
    plan = Plan(
        space=space,
        evaluator=target,
        make_driver=make_driver,
        baseline=baseline,
        library=target.library,
        budget=budget_of(campaign),
        stop=stop,
        confirm=ConfirmPlan(
            file.judge.confirm.finalists,
            confirm.get("process_pairs", 1),
            confirm.get("pairs", 1),
            file.judge.confirm.alpha,
        ),
        batch=file.batch,
        seed=file.seed,
        screen_pairs=judge.get("screen", {}).get("pairs", 1),
        race_rounds=judge.get("race", {}).get("rounds", 0),
        screen_cut=judge.get("screen", {}).get("cut"),
        race_extra=judge.get("race", {}).get("extra"),
        state=state,
        floors_ns=floors_ns,
    )
    resolved = resolved_config(campaign, hashes, judge)
    missing = (*target.missing, *(() if hired is None else hired.backend.missing))
    backend = campaign.backend
    paths = () if backend is None else backend.reaching
    return Built(
        plan,
        problem,
        target,
        space,
        resolved,
        missing,
        outlay,
        hired,
        tuple(f"agents.backend.{key}" for key in paths),
    )


def _stop_rules(
    campaign: Campaign, problem: Problem, target: Target, state: CacheState
) -> tuple[StopRules, tuple[tuple[str, float], ...]]:
    """When the search ends early, and the floors that a share of the roofline is one of."""
    stop = campaign.file.stop
    floors: tuple[tuple[str, float], ...] = ()
    if stop.roofline is not None:
        known = speed_of_light(target, problem, state) if target.device is not None else ()
        if not known:
            why = (
                "a device without a table"
                if target.device is None
                else "a workload of a range of extents"
            )
            found = f"{stop.roofline} on {why}"
            raise campaign.document.error(("stop", "roofline"), "a known roofline", found)
        floors = tuple((bound.workload, bound.floor_ns) for bound in known)
    goal = stop.target
    speedup, time_us = (None, goal.us) if isinstance(goal, TimeTarget) else (goal, None)
    return StopRules(stop.roofline, stop.plateau, speedup, time_us), floors


def _driver_factory(
    campaign: Campaign, problem: Problem, space: AnySpace, target: Target, state: CacheState
) -> tuple[Callable[[Journal], Driver], Callable[[], Outlay | None], Hired | None]:
    """What makes the campaign's driver, once it is known that it works and makes one; what its
    proposals cost about; and its model.
    """
    file, choice, document = campaign.file, campaign.driver, campaign.document
    wanted = parameters(choice.factory) & set(AGENT_PARTS)
    if "backend" in wanted and campaign.backend is None:
        expected = f"a section 'agents' with the backend that {choice.name} asks"
        raise document.error(("driver", "name"), expected, "none")
    if "backend" not in wanted and campaign.backend is not None:
        expected = f"no model for driver {choice.name}, which does not ask one"
        raise document.error(("agents",), expected, "a backend")
    budget = budget_of(campaign)
    context = None
    if campaign.backend is not None:
        context = surroundings_of(campaign, problem, target, space.language, state)
        unread = [key for key in ("context", "retrieval") if document.get("agents", key)]
        if unread and "context" not in wanted:
            expected = f"a driver whose prompts take one ({choice.name} does not)"
            raise document.error(("agents", unread[0]), expected, "a section")

    def hired() -> Hired | None:
        chosen = campaign.backend
        return None if chosen is None else hire(campaign, chosen, budget, made)

    def make(journal: Journal, onlooker: Onlooker | None = None) -> Driver:
        given: dict[str, Any] = {"problem": problem, "journal": journal, "prompt": campaign.prompt}
        staff = hired()
        if staff is not None:
            heard = staff.journal(journal)
            asked = staff.asked(heard)
            given |= {"backend": onlooker or asked, "journal": heard, "context": context}
        driver: Driver = choice.factory(
            space,
            seed=file.seed,
            batch=file.batch,
            **{name: part for name, part in given.items() if name in wanted},
            **choice.options,
        )
        lacking = [name for name in DRIVER_PARTS if not hasattr(driver, name)]
        if lacking:
            found = f"{choice.name} without {' and '.join(lacking)}"
            raise document.error(("driver", "name"), "a driver (ask, tell, stopped)", found)
        return driver if staff is None else staff.driver(driver, asked)

    def outlay() -> Outlay | None:
        staff = hired()
        if staff is None:
            return None
        onlooker = Onlooker(staff)
        driver = make(StoreJournal((), lambda event: None), onlooker)
        return estimate(driver, onlooker, staff, budget, space.language)

    def made(path: tuple[str, ...], make_it: Callable[[], Any]) -> Any:
        return _made(campaign, path, make_it)

    staff = hired()
    try:
        driver = _made(campaign, ("driver",), lambda: make(StoreJournal((), lambda event: None)))
    except ConfigError as error:
        elsewhere = _NAMED_ELSEWHERE.get(error.path)
        if elsewhere is not None:
            found, near = error.found, error.nearest
            raise document.error(elsewhere, error.expected, found, near) from None
        raise
    demand = getattr(driver, "demand", None)
    if isinstance(demand, Demand) and isinstance(target, TellsFacts):
        _made(campaign, ("driver",), lambda: demand.refuse_unless(target.facts))
    return make, outlay, staff


def budget_of(campaign: Campaign) -> Budget:
    """What a campaign may spend."""
    limits = campaign.file.budget
    return Budget(limits.trials, limits.seconds, limits.calls, limits.tokens, limits.usd)


def _refuse_answers(campaign: Campaign, target: Target) -> None:
    """A driver that is shown the very times that it is judged by searches nothing.

    Raises:
        ConfigError: if an option of the driver names the recording that the target replays.
    """
    judged, choice = getattr(target, "landscape", None), campaign.driver
    if not isinstance(judged, Landscape):
        return
    for option, endings in file_options(choice.factory).items():
        given = choice.options.get(option, ())
        names = (given,) if isinstance(given, str) else tuple(given or ())
        for name in names if set(endings) & set(ENDINGS) else ():
            if open_landscape(locate(name)).has_times_of(judged):
                expected = "a recording of another shape or device than the target replays"
                raise campaign.document.error(("driver", option), expected, f"{name!r}, the same")


def _made(campaign: Campaign, path: tuple[str, ...], make: Callable[[], T]) -> T:
    """What a choice's factory makes; a plug-in may raise anything, so anything is caught.

    Raises:
        ConfigError: naming the option if the factory did, else the choice.
    """
    try:
        return make()
    except ConfigError:
        raise
    except OptionError as error:
        raise campaign.document.error(
            (*path, error.option), error.expected, error.found, error.nearest
        ) from None
    except ProblemError as error:
        raise blamed_on_problem(campaign, error) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - becomes a refusal that names it
        found = f"{type(error).__name__}: {error}"
        # Where the error was raised matters to whoever wrote what raised it.
        cause = error if is_plugin(str(campaign.document.get(*path, "name"))) else None
        raise campaign.document.error(path, f"a {path[-1]} that can be made", found) from cause


def _problem(campaign: Campaign) -> Problem:
    problem = _made(
        campaign, ("problem",), lambda: campaign.problem.factory(**campaign.problem.options)
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
    "languages",
    "floor_ns",
    "true_ns",
    "constraints",
    "members",
    "members_reason",
    "unscheduled",
    "baseline",
    "library",
    "judge_keys",
    "files",
    "missing",
    "device",
)


def _target(campaign: Campaign, problem: Problem) -> Target:
    choice, seed = campaign.target, campaign.file.seed
    told = {"judging": judging_of(campaign.file.judge)} if takes_judging(campaign) else {}
    make = judge_factory(campaign)
    target: Target = _made(
        campaign, ("target",), lambda: make(problem, seed=seed, **told, **choice.options)
    )
    lacking = [name for name in TARGET_PARTS if not hasattr(target, name)]
    if lacking:
        found = f"{choice.name} without {', '.join(lacking)}"
        raise campaign.document.error(("target", "name"), "a target", found)
    return target


def _hashes(campaign: Campaign, target: Target) -> dict[str, str]:
    hashes = {**campaign.files, **target.files}
    check_hashes(campaign.document, campaign.file.hashes, hashes)
    return hashes


def check_hashes(document: Document, wanted: Mapping[str, str], hashes: Mapping[str, str]) -> None:
    """See that a campaign's files are those that it names.

    Raises:
        ConfigError: if it stands on no such file, or one has another content.
    """
    for name, digest in wanted.items():
        if name not in hashes:
            expected = f"a file of this campaign ({', '.join(sorted(hashes))})"
            raise document.error(("hashes", name), expected, repr(name), nearest(name, hashes))
        if hashes[name] != digest:
            raise document.error(
                ("hashes", name), f"the content {digest[:12]}…", f"{hashes[name][:12]}…"
            )
