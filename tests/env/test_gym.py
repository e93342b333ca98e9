from __future__ import annotations

import gzip
import json
import math
import shutil
import subprocess
import sys
from importlib.metadata import entry_points

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import kernelwright.env.gym
from kernelwright.configs.errors import ConfigError
from kernelwright.env.gym import KNOBS_ID, EpisodeError, KernelEnv, RewardModel, validate
from kernelwright.env.gym.reward import BrokenJudgeError
from kernelwright.env.landscape.open import locate
from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import (
    CacheState,
    Evidence,
    Knob,
    Measurement,
    Status,
    Unpaired,
    Verdict,
    knob_candidate,
)

TARGETS = [
    {"name": "gpu-model"},
    {"name": "gpu-model", "noise": {"lognormal": 0.05}},
    {"name": "recorded", "landscape": "h200_gemm_4096x4096x4096"},
]
SPACE = KnobSpace(
    [Knob("a", (1, 2, 4, 8, 16)), Knob("b", (1, 2))],
    [Constraint("rule", "a * b < 32", "{a}*{b} is 32")],
)
BASE = knob_candidate({"a": 4, "b": 1})
UP_A, UP_B, DOWN_A, DOWN_B = 1, 3, 0, 2


class Judge:
    """A speedup of a over the baseline at b = 1; at b = 2 the status it is told to return."""

    evidence = Evidence.MODELLED

    def __init__(self, status=Status.WRONG, *, deterministic=True):
        self.status, self.deterministic, self.calls = status, deterministic, 0

    def floor_ns(self, workload):
        return 1e-3

    def evaluate(self, requests):
        self.calls += len(requests)
        return [self.judge(r.candidate.knobs) for r in requests]

    def judge(self, knobs):
        if knobs["b"] == 2:
            return Verdict(self.status, "made_up")
        samples = Unpaired((1.0 / knobs["a"],), (1 / 4,), reference_exact=True)
        place = ("w", "baseline", BASE.key, samples, "c", CacheState.COLD, Evidence.MODELLED, "m")
        return Verdict(Status.OK, measurements=(Measurement(*place),))


def make(status=Status.WRONG, budget=8, **options):
    env = KernelEnv(SPACE, Judge(status), BASE, budget=budget, **options)
    env.reset(seed=0)
    return env


def reward(env, action):
    return env.step(np.int64(action))[1]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t["name"])
def test_gymnasium_s_checker_passes(target):
    check_env(gymnasium.make(KNOBS_ID, target=target), skip_render_check=True)


def test_make_needs_no_arguments_and_gives_the_environment_itself():
    assert isinstance(gymnasium.make(KNOBS_ID), KernelEnv)


FRESH = [
    f"import gymnasium; gymnasium.make('kernelwright.env.gym:{KNOBS_ID}')",
    f"import gymnasium; import kernelwright; gymnasium.make('{KNOBS_ID}')",
    f"import kernelwright.env.gym; import gymnasium; gymnasium.make('{KNOBS_ID}')",
    f"import gymnasium; gymnasium.make('kernelwright:{KNOBS_ID}')",
]


@pytest.mark.parametrize("code", FRESH)
def test_ids_are_known_in_a_fresh_process(code):
    subprocess.run([sys.executable, "-P", "-W", "error", "-c", code], check=True)


def test_the_entry_point_registers_the_ids():
    (entry,) = [e for e in entry_points(group="gymnasium.envs") if "kernelwright" in e.value]
    gymnasium.registry.pop(KNOBS_ID)
    entry.load()()
    assert KNOBS_ID in gymnasium.registry


# The reward table: b starts as the objective of the start state.


def test_improvement_over_the_best_is_paid_once():
    env = make()
    assert reward(env, UP_A) == pytest.approx(1.0)  # log2 of 8/4
    assert reward(env, DOWN_A) == 0
    assert reward(env, UP_A) == 0
    assert reward(env, UP_A) == pytest.approx(1.0)


def test_an_illegal_move_earns_nothing_stays_and_says_why():
    env = make()
    observation, earned, _, _, info = env.step(np.int64(DOWN_B))
    assert (earned, info["reason"]) == (0, "b=1 is already the least value")
    assert observation["knobs"].tolist() == [2, 0]
    assert observation["remaining"] == 7
    for action in (UP_A, UP_A):
        env.step(np.int64(action))
    assert env.step(np.int64(UP_B))[4]["reason"] == "16*2 is 32"


PAID = {
    Status.WRONG: -0.25,
    Status.CRASHED: -0.25,
    Status.TIMEOUT: -0.25,
    Status.BUILD_ERROR: -0.25,
    Status.OVER_LIMIT: -0.25,
    Status.REJECTED: -2.0,
    Status.TOO_FAST: -2.0,
    Status.UNSTABLE: 0.0,
}


@pytest.mark.parametrize(("status", "earned"), PAID.items())
def test_failures_cost_what_the_table_says(status, earned):
    env = make(status)
    assert reward(env, UP_B) == earned
    assert reward(env, DOWN_B) == 0  # back at the start, no better than before
    assert env.candidate == BASE


def test_a_broken_judge_raises():
    with pytest.raises(BrokenJudgeError):
        reward(make(Status.BROKEN), UP_B)


def test_every_failing_status_has_a_reward():
    for status in Status:
        if not status.passed and status is not Status.BROKEN:
            assert RewardModel().of_failure(status) == PAID[status]
    with pytest.raises(ValueError, match="status of failure"):
        RewardModel().of_failure(Status.OK)


def test_rewards_can_be_configured():
    rewards = RewardModel(failed=-1.0, scale=2.0)
    env = make(rewards=rewards)
    assert reward(env, UP_A) == pytest.approx(2.0)
    assert reward(env, UP_B) == -1.0
    made = gymnasium.make(KNOBS_ID, rewards={"failed": -3.0})
    assert made._judging.rewards.failed == -3.0
    with pytest.raises(ConfigError, match="did you mean 'failed'"):
        gymnasium.make(KNOBS_ID, rewards={"faild": -1.0})
    for bad in ({"failed": 1.0}, {"scale": 0.0}, {"failed": math.nan}, {"scale": math.inf}):
        with pytest.raises(ValueError, match="RewardModel"):
            RewardModel(**bad)


def test_truncation_after_the_budget_and_never_termination():
    env = make(budget=3)
    flags = [env.step(np.int64(UP_A))[2:4] for _ in range(3)]
    assert flags == [(False, False), (False, False), (False, True)]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.int64(UP_A))
    env.reset()
    env.step(np.int64(UP_A))


def test_masks_are_the_legal_moves():
    env = gymnasium.make(KNOBS_ID)
    _, info = env.reset(seed=1, options={"start": "random"})
    space = env._judging.space
    for _ in range(64):
        here = env.candidate
        near = {n.key for n in space.neighbours(here)}
        index = space.index(here)
        for action, legal in enumerate(info["action_mask"]):
            if legal:
                assert space.candidate(index + int(env._judging.moves[action])).key in near
        assert info["action_mask"].sum() == len(near)
        assert env.action_masks().tolist() == info["action_mask"].astype(bool).tolist()
        _, _, _, _, info = env.step(env.action_space.sample(info["action_mask"]))


def test_starts():
    env = gymnasium.make(KNOBS_ID)
    env.reset(seed=0)
    base = env.candidate
    starts = set()
    for seed in range(5):
        env.reset(seed=seed, options={"start": "random"})
        starts.add(env.candidate.key)
        first = env.candidate
        env.reset(seed=seed, options={"start": "random"})
        assert env.candidate == first
    assert len(starts) == 5
    env.reset()
    assert env.candidate == base
    for options in ({"start": "top"}, {"begin": "random"}):
        with pytest.raises(ValueError, match="baseline, random"):
            env.reset(options=options)


def test_wrong_calls_are_refused():
    env = KernelEnv(SPACE, Judge(), BASE)
    for call in (lambda: env.step(np.int64(0)), lambda: env.candidate, env.action_masks):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call()
    env.reset()
    with pytest.raises(gymnasium.error.InvalidAction):
        env.step(np.int64(99))
    with pytest.raises(ValueError, match="budget"):
        KernelEnv(SPACE, Judge(), BASE, budget=0)


def test_a_deterministic_judge_is_asked_once_a_measuring_one_every_time():
    for deterministic, calls in ((True, 3), (False, 7)):
        judge = Judge(deterministic=deterministic)
        env = KernelEnv(SPACE, judge, BASE, budget=9)
        env.reset()
        for action in (UP_A, DOWN_A, UP_A, DOWN_A, UP_A, UP_A):
            env.step(np.int64(action))
        assert judge.calls == calls


# Saved episodes


def play(env, steps, seed=3, **options):
    _, info = env.reset(seed=seed, options=options or None)
    env.action_space.seed(seed)
    for _ in range(steps):
        _, _, _, _, info = env.step(env.action_space.sample(info["action_mask"]))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: json.dumps(t)[:40])
@pytest.mark.parametrize("options", [{}, {"start": "random"}])
def test_a_saved_episode_replays(tmp_path, target, options):
    env = gymnasium.make(KNOBS_ID, target=target, budget=20)
    play(env, 5)
    play(env, 20, **options)
    env.save(tmp_path / "e.json")
    saved = json.loads((tmp_path / "e.json").read_text())
    assert (saved["id"], len(saved["actions"])) == (KNOBS_ID, 20)
    assert validate(tmp_path / "e.json") == pytest.approx(sum(saved["rewards"]))


def test_an_episode_after_an_unseeded_reset_replays(tmp_path):
    env = gymnasium.make(KNOBS_ID)
    env.reset(seed=5)
    env.reset(options={"start": "random"})
    env.step(np.int64(int(np.argmax(env.action_masks()))))
    env.save(tmp_path / "e.json")
    validate(tmp_path / "e.json")


TAMPERED = [
    (lambda e: (e["actions"].pop(), e["rewards"].pop()), "after 5 steps: expected outcome"),
    (lambda e: e.update(kwargs=e["kwargs"] | {"budget": 80}), "expected outcome"),
    (lambda e: e.update(hashes={}), "hashes: expected"),
    (lambda e: e["actions"].__setitem__(0, 2**70), "step 0: OverflowError"),
    (lambda e: e.update(kwargs={"budget": 10**30}), "cannot make"),
    (lambda e: e.update(kwargs={"target": {"name": "recorded", "landscape": "x"}}), "cannot make"),
    (lambda e: e.update(id="CartPole-v1", kwargs={}), "expected a kernelwright environment"),
    (lambda e: e.update(id="nowhere:X-v0"), "cannot make"),
    (lambda e: e["rewards"].__setitem__(2, 5.0), "step 2, action .*expected reward 5.0, found"),
    (lambda e: e["actions"].__setitem__(0, 99), "step 0: InvalidAction: expected an action"),
    (lambda e: e["actions"].pop(), "as many rewards as actions"),
    (lambda e: e.pop("seed"), "seed: expected int, found None"),
    (lambda e: e.update(seed=-1), "seed: expected 0 <="),
    (lambda e: e.update(seed=True), "seed: expected int, found True"),
    (lambda e: e.update(id="kernelwright/Knobs-v9"), "cannot make"),
    (lambda e: e.update(kwargs={"budgt": 3}), "cannot make"),
    (lambda e: e.update(kwargs={"budget": 3}), "step 3: ResetNeeded: the episode was truncated"),
    (lambda e: e.update(options={"start": "top"}), "options"),
    (lambda e: e["rewards"].__setitem__(0, "x"), "rewards: expected numbers"),
    (lambda e: e["actions"].__setitem__(0, 1.5), "actions: expected numbers"),
]


@pytest.mark.parametrize(("change", "message"), TAMPERED)
def test_validate_fails_on_any_difference(tmp_path, change, message):
    env = gymnasium.make(KNOBS_ID)
    play(env, 6)
    env.save(tmp_path / "e.json")
    episode = json.loads((tmp_path / "e.json").read_text())
    change(episode)
    (tmp_path / "e.json").write_text(json.dumps(episode))
    with pytest.raises(EpisodeError, match=message):
        validate(tmp_path / "e.json")


def test_files_that_are_no_episodes_are_refused(tmp_path):
    for text in ("", "[]", "{"):
        (tmp_path / "e.json").write_text(text)
        with pytest.raises(EpisodeError, match="expected a"):
            validate(tmp_path / "e.json")
    with pytest.raises(EpisodeError):
        validate(tmp_path / "none.json")


def test_an_episode_can_be_checked_from_anywhere(tmp_path, monkeypatch):
    shutil.copy(locate("h200_gemm_4096x4096x4096"), tmp_path / "mine.jsonl.gz")
    monkeypatch.chdir(tmp_path)
    target = {"name": "recorded", "landscape": "mine.jsonl.gz"}
    env = gymnasium.make(KNOBS_ID, target=target, budget=np.int64(5))
    play(env, 3)
    env.save(tmp_path / "e.json")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    validate(tmp_path / "e.json")
    lines = gzip.decompress((tmp_path / "mine.jsonl.gz").read_bytes()).splitlines()
    (tmp_path / "mine.jsonl.gz").write_bytes(gzip.compress(b"\n".join(lines)))
    with pytest.raises(EpisodeError, match="hashes"):
        validate(tmp_path / "e.json")


def test_the_start_of_resets_that_do_not_say_is_an_argument():
    one = gymnasium.make(KNOBS_ID, start="random")
    base = gymnasium.make(KNOBS_ID)
    base.reset(seed=3)
    one.reset(seed=3)
    assert one.candidate != base.candidate
    many = gymnasium.make_vec(
        KNOBS_ID, num_envs=4, vectorization_mode="vector_entry_point", start="random", budget=2
    )
    many.reset(seed=0)
    for _ in range(3):
        observation = many.step(np.zeros(4, dtype=int))[0]
    assert observation["remaining"].tolist() == [2] * 4
    assert len({tuple(row) for row in observation["knobs"].tolist()}) > 1
    for make_it in (gymnasium.make, gymnasium.make_vec):
        with pytest.raises(ValueError, match="baseline, random"):
            make_it(KNOBS_ID, start="top")


def test_an_environment_without_an_id_cannot_be_saved(tmp_path):
    env = KernelEnv(SPACE, Judge(), BASE)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.save(tmp_path / "e.json")
    env.reset()
    with pytest.raises(ValueError, match=r"gymnasium\.make"):
        env.save(tmp_path / "e.json")


# Many at once


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: json.dumps(t)[:40])
def test_batched_equals_one_by_one(target):
    options = {"num_envs": 6, "budget": 7, "target": target}
    one = gymnasium.make_vec(KNOBS_ID, vectorization_mode="sync", **options)
    many = gymnasium.make_vec(KNOBS_ID, vectorization_mode="vector_entry_point", **options)
    assert one.observation_space == many.observation_space
    assert one.action_space == many.action_space
    rng = np.random.default_rng(0)
    start = {"seed": 5, "options": {"start": "random"}}
    left, right = one.reset(**start), many.reset(**start)
    for step in range(40):
        for key in left[0]:
            np.testing.assert_array_equal(left[0][key], right[0][key], err_msg=f"{step} {key}")
        for i in range(1, len(left) - 1):
            np.testing.assert_array_equal(left[i], right[i])
        infos, others = left[-1], right[-1]
        assert infos.keys() == others.keys()
        for key in infos:
            mine, theirs = infos[key], others[key]
            if key == "objective":
                known = others["_objective"]
                mine, theirs = np.asarray(mine, dtype=float)[known], theirs[known]
            np.testing.assert_array_equal(mine, theirs, err_msg=key)
        assert many.observation_space.contains(right[0])
        actions = rng.integers(12, size=6)
        left, right = one.step(actions), many.step(actions)


def test_part_of_a_batch_can_be_reset():
    many = gymnasium.make_vec(
        KNOBS_ID, num_envs=4, vectorization_mode="vector_entry_point", budget=9
    )
    many.reset(seed=0)
    many.step(np.array([0, 1, 2, 3]))
    mask = np.array([True, False, True, False])
    observation, _ = many.reset(options={"reset_mask": mask})
    assert observation["remaining"].tolist() == [9, 8, 9, 8]


def test_a_budget_is_a_whole_number():
    for make_it in (gymnasium.make, gymnasium.make_vec):
        with pytest.raises(TypeError):
            make_it(KNOBS_ID, budget=2.5)
        with pytest.raises(ConfigError):
            make_it(KNOBS_ID, rewards={"scale": "x"})


def test_a_batch_seeds_like_its_parts():
    env = gymnasium.make_vec(KNOBS_ID, num_envs=3, vectorization_mode="vector_entry_point")
    start = {"options": {"start": "random"}}
    together = env.reset(seed=4, **start)[0]["knobs"]
    listed = env.reset(seed=[4, 5, 6], **start)[0]["knobs"]
    np.testing.assert_array_equal(together, listed)
    with pytest.raises(ValueError, match="expected 3 seeds"):
        env.reset(seed=[1, 2])


def test_wrong_batched_calls_are_refused():
    env = gymnasium.make_vec(KNOBS_ID, num_envs=3, vectorization_mode="vector_entry_point")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(3, dtype=int))
    env.reset()
    for actions in (np.zeros(2, dtype=int), np.full(3, 12), np.full(3, -1), np.zeros(3)):
        with pytest.raises(gymnasium.error.InvalidAction):
            env.step(actions)
    with pytest.raises(ValueError, match="num_envs"):
        kernelwright.env.gym.VectorKernelEnv(0, SPACE, Judge(), BASE)


def test_batched_failures_and_illegal_moves():
    env = kernelwright.env.gym.VectorKernelEnv(3, SPACE, Judge(Status.TOO_FAST), BASE, budget=4)
    env.reset(seed=0)
    _, rewards, _, _, info = env.step(np.array([UP_B, DOWN_B, UP_A]))
    assert rewards.tolist() == [-2.0, 0.0, 1.0]
    assert info["_reason"].tolist() == [False, True, False]
    assert info["reason"][1] == "b=1 is already the least value"
    assert info["status"].tolist() == ["too_fast", "ok", "ok"]
