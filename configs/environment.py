"""Environments made from names: the functions that Gymnasium's ids point to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from kernelwright.configs.build import Built, build
from kernelwright.configs.errors import ConfigError, nearest
from kernelwright.configs.load import read_config
from kernelwright.env.gym.environment import Provenance
from kernelwright.env.gym.knobs import KernelEnv
from kernelwright.env.gym.reward import RewardModel
from kernelwright.env.gym.schedule import ScheduleEnv
from kernelwright.env.gym.vector import VectorKernelEnv
from kernelwright.env.problems.program import definition_of
from kernelwright.env.spaces.knobs import MAX_PRODUCT, KnobSpace
from kernelwright.env.types import Candidate
from kernelwright.evaluators.target import Target

DEFAULT_PROBLEM = {"name": "gemm_gpu"}
DEFAULT_TARGET = {"name": "gpu-model"}
KNOBS = {"kind": "knobs"}
# Small, so that proving a directive and modelling its result takes milliseconds.
SCHEDULED_PROBLEM = {"name": "matmul", "m": 128, "n": 128, "k": 128}
SCHEDULED_TARGET = {"name": "cpu-model"}


def make_knobs(
    *,
    budget: int,
    start: str = "baseline",
    problem: Mapping[str, Any] = DEFAULT_PROBLEM,
    target: Mapping[str, Any] = DEFAULT_TARGET,
    noise_seed: int = 0,
    rewards: Mapping[str, float] | None = None,
) -> KernelEnv:
    """``kernelwright/Knobs-v0``: problem and target as in a campaign file, by default the analytic
    model at 4096^3.

    Raises:
        ConfigError: if problem, target or rewards are refused.
    """
    built = _build(problem, target, noise_seed)
    again = {key: built.resolved[key] for key in ("problem", "target")}
    return KernelEnv(
        *_knobs(built),
        budget=budget,
        start=start,
        rewards=_rewards(rewards),
        provenance=Provenance(again, built.resolved["hashes"]),
    )


def make_knobs_vector(
    *,
    num_envs: int,
    budget: int,
    start: str = "baseline",
    problem: Mapping[str, Any] = DEFAULT_PROBLEM,
    target: Mapping[str, Any] = DEFAULT_TARGET,
    noise_seed: int = 0,
    rewards: Mapping[str, float] | None = None,
) -> VectorKernelEnv:
    """The batched ``kernelwright/Knobs-v0``; arguments as of `make_knobs`.

    Raises:
        ConfigError: if problem, target or rewards are refused.
    """
    built = _build(problem, target, noise_seed)
    return VectorKernelEnv(
        num_envs,
        *_knobs(built),
        budget=budget,
        start=start,
        rewards=_rewards(rewards),
    )


def make_schedule(
    *,
    budget: int,
    actions: str = "core",
    problem: Mapping[str, Any] = SCHEDULED_PROBLEM,
    target: Mapping[str, Any] = SCHEDULED_TARGET,
    noise_seed: int = 0,
    rewards: Mapping[str, float] | None = None,
    render_mode: str | None = None,
) -> ScheduleEnv:
    """``kernelwright/Schedule-v0``, with all actions ``kernelwright/Directives-v0``: problem
    and target as in a campaign file, by default a small matrix multiplication on the analytic CPU
    model.

    Raises:
        ConfigError: if problem, target or rewards are refused.
        ValueError: if there is no such list of actions.
    """
    built = _build(problem, target, noise_seed, {"kind": "schedule"})
    again = {key: built.resolved[key] for key in ("problem", "target")}
    return ScheduleEnv(
        definition_of(built.problem, built.problem.workloads[0]),
        built.target,
        built.plan.baseline.candidate,
        budget=budget,
        actions=actions,
        rewards=_rewards(rewards),
        provenance=Provenance(again, built.resolved["hashes"]),
        render_mode=render_mode,
    )


def _knobs(built: Built) -> tuple[KnobSpace, Target, Candidate]:
    """A knob space, its judge, and the configuration that an episode starts at and is measured
    against: the space's default, where the campaign's baseline is no configuration.
    """
    assert isinstance(built.space, KnobSpace)
    if built.space.combinations > MAX_PRODUCT:
        expected = f"at most {MAX_PRODUCT:,} combinations, of which an environment keeps tables"
        raise ConfigError("make", None, "space", expected, f"{built.space.combinations:,}")
    assert built.space.default is not None
    return built.space, built.target, built.space.default


def _rewards(given: Mapping[str, float] | None) -> RewardModel:
    known = [item.name for item in fields(RewardModel)]
    for name in given or {}:
        if name not in known:
            expected = f"one of {', '.join(known)}"
            raise ConfigError("<rewards>", None, name, expected, repr(name), nearest(name, known))
    try:
        return RewardModel(**(given or {}))
    except (TypeError, ValueError) as error:
        raise ConfigError("<rewards>", None, "rewards", "numbers", str(error)) from None


def _build(
    problem: Mapping[str, Any],
    target: Mapping[str, Any],
    seed: int,
    space: Mapping[str, Any] = KNOBS,
) -> Built:
    """The parts of a campaign that an environment has too; its driver is whoever acts."""
    for key, given in (("problem", problem), ("target", target)):
        if not isinstance(given, Mapping):
            expected = "a mapping with a name, as in a campaign file"
            raise ConfigError("<environment>", None, key, expected, repr(given))
    campaign = {
        "name": "environment",
        "problem": dict(problem),
        "space": dict(space),
        "target": dict(target),
        "driver": {"name": "random"},
        "budget": {"trials": 1},
        "seed": seed,
    }
    return build(read_config(campaign))
