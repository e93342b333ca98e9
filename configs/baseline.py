"""The baseline of a campaign, once its target has judged that it works."""

from __future__ import annotations

import numpy as np

from kernelwright.configs.errors import ConfigError, nearest
from kernelwright.configs.load import Campaign, read_text_file
from kernelwright.configs.spaces import AnySpace
from kernelwright.env.options import ProblemError
from kernelwright.env.spaces.knobs import is_listed
from kernelwright.env.types import (
    CacheState,
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
from kernelwright.search.plan import Baseline

_NAMES = ("unscheduled", "default", "library")


def choose_baseline(
    campaign: Campaign, problem: Problem, target: Target, space: AnySpace, state: CacheState
) -> Baseline:
    """The baseline that a campaign names.

    Raises:
        ConfigError: if there is none of that name, or it does not pass the target's judgement.
    """
    baseline = _named(campaign, problem, target, space)
    if baseline.candidate.language is Language.LIBRARY or target.missing:
        return baseline
    against = (Reference(Role.BASELINE, baseline.candidate),)
    request = Request(baseline.candidate, Stage.SCREEN, against, state=state)
    try:
        verdict = _only_verdict(target, request)
    except ProblemError as error:
        raise blamed_on_problem(campaign, error) from error.__cause__
    except (Exception, SystemExit) as error:  # a plug-in's target may raise anything
        found = f"{type(error).__name__}: {error}"
        raise campaign.document.error(("target",), "a target that can judge", found) from error
    found = f"{verdict.status} ({verdict.evidence or verdict.code})"
    passed = verdict.status is Status.OK
    # One sample may pass where the whole recording does not.
    if passed and target.deterministic and np.isnan(target.true_ns([baseline.candidate])[0]):
        passed, found = False, "it fails in other samples"
    if not passed:
        found = f"{baseline.candidate}: {found}"
        raise campaign.document.error(("baseline",), "a baseline that passes", found)
    return baseline


def blamed_on_problem(campaign: Campaign, error: ProblemError) -> ConfigError:
    """The refusal of a problem whose own parts do not fit together."""
    return campaign.document.error(("problem",), "a problem whose parts fit together", str(error))


def _only_verdict(target: Target, request: Request) -> Verdict:
    verdicts = list(target.evaluate([request]))
    if len(verdicts) != 1 or not isinstance(verdicts[0], Verdict):
        raise TypeError(f"expected one verdict, found {verdicts!r:.80}")
    return verdicts[0]


def _named(campaign: Campaign, problem: Problem, target: Target, space: AnySpace) -> Baseline:
    name, document = campaign.file.baseline, campaign.document
    if name == "library":
        if target.library is None:
            found = f"{name!r}, and no library time is known on target {campaign.target.name}"
            raise document.error(("baseline",), "unscheduled, default or a candidate's key", found)
        return Baseline(name, target.library)
    if name == "unscheduled":
        return Baseline(name, _made_unscheduled(campaign, target, space))
    if name == "default":
        assert space.default is not None
        return Baseline(name, space.default, is_trial=True)
    if name.endswith(".c"):
        if Language.SOURCE not in target.languages:
            expected = f"no C file on target {campaign.target.name}, which does not compile C"
            raise document.error(("baseline",), expected, repr(name))
        text = read_text_file(
            document, ("baseline",), "a C file", name, campaign.folder, campaign.files
        )
        return Baseline(name, Candidate(Language.SOURCE, text))
    found_key = None
    if is_listed(space):
        found_key = next((i for i in space.valid.tolist() if space.candidate(i).key == name), None)
    if found_key is None or not is_listed(space):
        expected = f"{', '.join(_NAMES)}, a C file or the key of a candidate in a space of knobs"
        raise document.error(("baseline",), expected, repr(name), nearest(name, _NAMES))
    return Baseline(name, Candidate(Language.KNOBS, space.candidate(found_key).payload))


def _made_unscheduled(campaign: Campaign, target: Target, space: AnySpace) -> Candidate:
    try:
        return target.baseline(space)
    except ValueError as error:
        raise campaign.document.error(("baseline",), "an unscheduled program", str(error)) from None
