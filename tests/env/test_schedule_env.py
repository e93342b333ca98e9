from __future__ import annotations

import json
import re
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from kernelwright.configs.errors import ConfigError
from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import LoopKind, loops
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.schedule.memo import Schedules
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace, print_trace
from kernelwright.env.gym import SCHEDULE_ID, EpisodeError, RewardModel, ScheduleEnv, validate
from kernelwright.env.gym.features import FACTS, LOOP_FEATURES, facts, loop_table
from kernelwright.env.gym.reward import BrokenJudgeError
from kernelwright.env.gym.vocabulary import (
    ACTIONS,
    MAX_LOOPS,
    SPLITS,
    TEMPLATES,
    UNDO,
    IllegalActionError,
    action_name,
    legal_actions,
    take,
)
from kernelwright.env.types import (
    CacheState,
    Candidate,
    Evidence,
    Language,
    Measurement,
    Status,
    Unpaired,
    Verdict,
)

SMALL = {"name": "matmul", "m": 16, "n": 16, "k": 16}


def square(n=16):
    a, b = te.placeholder("A", (n, n)), te.placeholder("B", (n, n))
    k = te.reduce_axis("k", n)
    c = te.compute(
        "C", (n, n), lambda i, j: te.reduce_sum(a[i, k.value] * b[k.value, j], k), [a, b]
    )
    return te.lower("matmul", [c])


# Loops of `square`, in program order.
I_START, J_START, ROW, COL, SUM = range(5)


def number(place, template):
    return place * len(TEMPLATES) + TEMPLATES.index(template)


class Judge:
    """Doubles the speed with every vectorized loop; unrolled loops get the status it is told."""

    evidence = Evidence.MODELLED

    def __init__(self, status=Status.BUILD_ERROR, *, deterministic=True):
        self.status, self.deterministic, self.calls = status, deterministic, 0

    def floor_ns(self, workload):
        return 1e-3

    def evaluate(self, requests):
        self.calls += len(requests)
        return [self.judge([d.op for d in r.candidate.payload]) for r in requests]

    def judge(self, ops):
        if "unroll" in ops:
            return Verdict(self.status, "made_up")
        samples = Unpaired((0.5 ** ops.count("vectorize"),), (1.0,), reference_exact=True)
        place = ("w", "baseline", "b", samples, "c", CacheState.COLD, Evidence.MODELLED, "m")
        return Verdict(Status.OK, measurements=(Measurement(*place),))


def make(status=Status.BUILD_ERROR, **options):
    env = ScheduleEnv(square(), Judge(status), **options)
    env.reset(seed=0)
    return env


def reward(env, action):
    return env.step(np.int64(action))[1]


def test_gymnasium_s_checker_passes():
    check_env(gymnasium.make(SCHEDULE_ID, problem=SMALL), skip_render_check=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*render_fps.*")  # text has no frames
        check_env(gymnasium.make(SCHEDULE_ID, problem=SMALL, render_mode="ansi"))


def test_make_needs_no_arguments_and_gives_the_environment_itself():
    env = gymnasium.make(SCHEDULE_ID)
    assert isinstance(env, ScheduleEnv)
    observation, info = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert info["objective"] == info["best"] == 0
    assert info["trace"] == ""
    assert observation["remaining"] == 64


# Actions


def test_the_list_of_actions_is_fixed():
    assert TEMPLATES == (2, 4, 8, 16, 32, 64, "unroll", "vectorize", "parallel", "reorder", "fuse")
    assert ACTIONS == 16 * 11 + 1
    names = [action_name(action) for action in range(ACTIONS)]
    assert len(set(names)) == ACTIONS
    assert (names[number(2, 8)], names[number(0, "fuse")]) == ("loop 2: split 8", "loop 0: fuse")
    assert names[UNDO] == "undo"


def test_actions_write_the_schedule_they_name():
    env = make()
    steps = [number(ROW, 8), number(4, "reorder"), number(6, 4), UNDO, number(COL, "reorder")]
    for action in steps[:1]:
        env.step(np.int64(action))
    assert [loop.var for loop in loops(env.procedure)][2:] == ["io", "ii", "j", "k"]
    env.step(np.int64(number(3, "reorder")))
    env.step(np.int64(number(5, 4)))
    _, _, _, _, info = env.step(np.int64(number(3, "vectorize")))
    text = "split('i', 8)\nreorder('j', 'ii')\nsplit('k', 4)\nvectorize('j')\n"
    assert info["trace"] == text
    assert env.candidate == Candidate(Language.SCHEDULE, parse_trace(text))
    assert print_procedure(env.procedure) == print_procedure(
        apply_trace(square(), env.candidate.payload)
    )


def test_undo_takes_back_the_last_directive():
    env = make()
    assert not env.action_masks()[UNDO]
    assert (
        env.step(np.int64(UNDO))[4]["reason"] == "undo: expected a directive, found an empty trace"
    )
    first, _, _, _, before = env.step(np.int64(number(ROW, 8)))
    env.step(np.int64(number(J_START, "vectorize")))
    again, _, _, _, after = env.step(np.int64(UNDO))
    assert after["trace"] == before["trace"] == "split('i', 8)\n"
    np.testing.assert_array_equal(first["loops"], again["loops"])
    np.testing.assert_array_equal(before["action_mask"], after["action_mask"])


REFUSED = [
    (number(SUM, "vectorize"), r"vectorize\('k'\): loop k carries a dependence .* must run before"),
    (number(SUM, "parallel"), r"parallel\('k'\): loop k carries a dependence"),
    (number(SUM, "reorder"), "reorder k: expected a loop directly inside it"),
    (number(J_START, "fuse"), "fuse j_start: expected a loop directly inside it"),
    (number(ROW, 16), r"split\('i', 16\): expected a factor below the extent 16"),
    (number(9, "unroll"), "loop 9: unroll: expected one of 5 loops"),
]


@pytest.mark.parametrize(("action", "reason"), REFUSED)
def test_an_illegal_action_earns_nothing_stays_and_says_why(action, reason):
    env = make()
    before, _ = env.reset(seed=0)
    observation, earned, _, _, info = env.step(np.int64(action))
    assert earned == 0
    assert observation["remaining"] == before["remaining"] - 1
    for name in ("loops", "facts"):
        np.testing.assert_array_equal(observation[name], before[name])
    assert env.candidate.payload == ()
    assert not info["action_mask"][action]
    assert re.search(reason, info["reason"]), info["reason"]


def rows_of(name):
    x, k = te.placeholder("x", (8, 12)), te.reduce_axis("k", 12)
    if name == "sum":
        return te.lower(
            "f", [te.compute("y", (8,), lambda i: te.reduce_sum(x[i, k.value], k), [x])]
        )
    scaled = te.compute("s", (8, 12), lambda i, j: x[i, j] * 2.0, [x])
    shown = te.compute("y", (12, 8), lambda j, i: te.exp(scaled[i, j]), [scaled])
    return te.lower("f", [shown])


@pytest.mark.parametrize("name", ["matmul", "sum", "stages"])
@pytest.mark.parametrize("seed", range(4))
def test_masks_are_what_the_compiler_answers_one_by_one(name, seed):
    procedure = square() if name == "matmul" else rows_of(name)
    schedules, trace, rng = Schedules(procedure), (), np.random.default_rng(seed)
    for _ in range(7):
        one_by_one = []
        for action in range(ACTIONS):
            try:
                take(schedules, trace, action)
            except IllegalActionError:
                continue
            one_by_one.append(action)
        masked = legal_actions(schedules, trace)
        assert masked == one_by_one, print_trace(trace)
        trace = take(schedules, trace, int(rng.choice([a for a in masked if a != UNDO])))


def test_there_are_never_more_loops_than_rows():
    env, rng = make(budget=40), np.random.default_rng(0)
    splits = [number(place, factor) for place in range(MAX_LOOPS) for factor in SPLITS]
    for _ in range(40):
        legal = [action for action in splits if env.action_masks()[action]]
        if not legal:
            break
        env.step(np.int64(rng.choice(legal)))
        assert len(loops(env.procedure)) <= MAX_LOOPS


# Rewards


def test_improvement_over_the_best_is_paid_once():
    env = make()
    assert reward(env, number(J_START, "vectorize")) == pytest.approx(1.0)
    assert reward(env, UNDO) == 0
    assert reward(env, number(J_START, "vectorize")) == 0
    assert reward(env, number(COL, "vectorize")) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("status", "earned"),
    [(Status.BUILD_ERROR, -0.25), (Status.WRONG, -0.25), (Status.TOO_FAST, -2.0)],
)
def test_failures_cost_what_the_table_says(status, earned):
    env = make(status)
    assert reward(env, number(SUM, "unroll")) == earned
    assert reward(env, UNDO) == 0


def test_a_failed_state_has_no_objective():
    env = make()
    _, _, _, _, info = env.step(np.int64(number(SUM, "unroll")))
    assert info["status"] == "build_error"
    assert "objective" not in info
    assert info["best"] == 0


def test_a_broken_judge_raises_and_a_start_that_fails_is_one():
    with pytest.raises(BrokenJudgeError):
        reward(make(Status.BROKEN), number(SUM, "unroll"))

    class Refuses(Judge):
        def judge(self, ops):
            return Verdict(Status.TIMEOUT, "slow", evidence="it hangs")

    with pytest.raises(BrokenJudgeError, match=r"no start: .* timeout \(it hangs\)"):
        ScheduleEnv(square(), Refuses()).reset()


def test_rewards_can_be_configured():
    env = make(rewards=RewardModel(failed=-1.0, scale=2.0))
    assert reward(env, number(COL, "vectorize")) == pytest.approx(2.0)
    assert reward(env, number(SUM, "unroll")) == -1.0
    with pytest.raises(ConfigError, match="did you mean 'failed'"):
        gymnasium.make(SCHEDULE_ID, rewards={"faild": -1.0})


def test_the_model_pays_for_a_better_schedule():
    # Below this size a compiler's own lanes make plain loops as fast as any.
    env = gymnasium.make(SCHEDULE_ID, problem={**SMALL, "m": 64, "n": 64, "k": 64})
    env.reset(seed=0)
    moves = ((COL, "reorder"), (SUM, 16), (SUM + 1, "vectorize"))
    earned = [reward(env, number(*move)) for move in moves]
    assert earned[0] > 1
    assert sum(earned) > 2
    assert env.outcome()["best"] == pytest.approx(sum(earned))


# Episodes


def test_truncation_after_the_budget_and_never_termination():
    env = make(budget=3)
    flags = [env.step(np.int64(UNDO))[2:4] for _ in range(3)]
    assert flags == [(False, False), (False, False), (False, True)]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.int64(UNDO))
    env.reset()
    env.step(np.int64(UNDO))


def test_wrong_calls_are_refused():
    env = ScheduleEnv(square(), Judge())
    calls = (lambda: env.step(np.int64(0)), lambda: env.candidate, env.action_masks)
    for call in (*calls, lambda: env.procedure):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call()
    with pytest.raises(ValueError, match="expected no options"):
        env.reset(options={"start": "random"})
    env.reset()
    for action in (np.int64(ACTIONS), np.int64(-1), 1.5):
        with pytest.raises(gymnasium.error.InvalidAction):
            env.step(action)
    with pytest.raises(ValueError, match="budget"):
        ScheduleEnv(square(), Judge(), budget=0)
    with pytest.raises(ValueError, match="render_mode: expected one of ansi"):
        ScheduleEnv(square(), Judge(), render_mode="human")


def test_a_deterministic_judge_is_asked_once_a_measuring_one_every_time():
    for deterministic, calls in ((True, 2), (False, 5)):
        judge = Judge(deterministic=deterministic)
        env = ScheduleEnv(square(), judge)
        env.reset()
        for action in (number(ROW, 8), UNDO, number(ROW, 8), UNDO):
            env.step(np.int64(action))
        assert judge.calls == calls


def test_text_is_what_ansi_shows():
    env = make(render_mode="ansi")
    env.step(np.int64(number(ROW, 8)))
    assert env.render() == print_procedure(env.procedure)
    assert make().render() is None


def play(env, steps, seed=3):
    _, info = env.reset(seed=seed)
    env.action_space.seed(seed)
    seen = []
    for _ in range(steps):
        observation, earned, _, _, info = env.step(env.action_space.sample(info["action_mask"]))
        assert env.observation_space.contains(observation)
        seen.append((earned, info["trace"], observation["loops"].sum()))
    return seen


def test_equal_seeds_and_actions_give_equal_episodes():
    episodes = [play(gymnasium.make(SCHEDULE_ID, problem=SMALL), 8) for _ in range(2)]
    assert episodes[0] == episodes[1]


def test_a_saved_episode_replays(tmp_path):
    env = gymnasium.make(SCHEDULE_ID, problem=SMALL, budget=20, render_mode="ansi")
    play(env, 10)
    env.step(np.int64(number(15, "fuse")))
    env.save(tmp_path / "e.json")
    saved = json.loads((tmp_path / "e.json").read_text())
    assert (saved["id"], len(saved["actions"])) == (SCHEDULE_ID, 11)
    assert "cpu-lecture" in saved["hashes"]
    assert validate(tmp_path / "e.json") == pytest.approx(sum(saved["rewards"]))


TAMPERED = [
    (lambda e: e["rewards"].__setitem__(2, 5.0), "step 2, action .*expected reward 5.0, found"),
    (lambda e: (e["actions"].pop(), e["rewards"].pop()), "after 5 steps: expected outcome"),
    (lambda e: e.update(hashes={}), "hashes: expected"),
    (lambda e: e["actions"].__setitem__(0, ACTIONS), "step 0: InvalidAction"),
    (lambda e: e.update(options={"start": "random"}), "options: ValueError: expected no options"),
    (lambda e: e["kwargs"]["problem"].update(m=24), "expected"),
]


@pytest.mark.parametrize(("change", "message"), TAMPERED)
def test_validate_fails_on_any_difference(tmp_path, change, message):
    env = gymnasium.make(SCHEDULE_ID, problem=SMALL)
    env.reset(seed=0)
    for action in (number(COL, "reorder"), number(SUM, 8), UNDO, number(SUM, "vectorize"), UNDO):
        env.step(np.int64(action))
    env.step(np.int64(number(ROW, "parallel")))
    env.save(tmp_path / "e.json")
    episode = json.loads((tmp_path / "e.json").read_text())
    change(episode)
    (tmp_path / "e.json").write_text(json.dumps(episode))
    with pytest.raises(EpisodeError, match=message):
        validate(tmp_path / "e.json")


# Features


def column(table, name):
    return table[:, LOOP_FEATURES.index(name)].tolist()


def test_loops_are_described_row_by_row():
    trace = parse_trace("split('j', 12)\nunroll('i_start')\nvectorize('j_start')")
    procedure = apply_trace(square(), trace)
    table = loop_table(procedure, 8)
    # i_start, j_start, i, jo, ji, k, and two rows of padding.
    assert column(table, "present") == [1, 1, 1, 1, 1, 1, 0, 0]
    assert column(table, "log2_extent")[:2] == [4, 4]
    assert column(table, "log2_extent")[3:5] == pytest.approx([1, np.log2(12)])
    assert column(table, LoopKind.UNROLLED.value) == [1, 0, 0, 0, 0, 0, 0, 0]
    assert column(table, LoopKind.VECTORIZED.value) == [0, 1, 0, 0, 0, 0, 0, 0]
    assert column(table, "depth") == [0, 1, 0, 1, 2, 3, 0, 0]
    assert column(table, "log2_entries")[5] == pytest.approx(np.log2(16 * 2 * 12))
    assert column(table, "innermost") == [0, 1, 0, 0, 0, 1, 0, 0]
    assert column(table, "carries_sum") == [0, 0, 0, 0, 0, 1, 0, 0]
    assert column(table, "guarded") == [0, 0, 0, 0, 1, 0, 0, 0]
    # C is read and written by the update; with k move A by one and B by a row.
    assert [column(table, f"steps_{n}")[5] for n in ("0", "1", "more")] == [2, 1, 1]
    assert not table[6:].any()
    assert loop_table(procedure, 2).shape == (2, len(LOOP_FEATURES))


def test_the_whole_nest_is_described():
    trace = parse_trace(
        "split('j', 8)\nvectorize('ji')\nsplit('i', 4)\nunroll('ii')\nparallel('io')"
    )
    found = dict(zip(FACTS, facts(apply_trace(square(), trace), len(trace)).tolist(), strict=True))
    assert found["log2_flops"] == pytest.approx(np.log2(2 * 16**3))
    assert found["log2_iterations"] == pytest.approx(np.log2(16**2 + 16**3))
    assert found["log2_bytes"] == pytest.approx(np.log2(3 * 4 * 16**2))
    assert (found["statements"], found["loops"], found["depth"]) == (2, 7, 5)
    assert (found["log2_lanes"], found["log2_copies"], found["log2_parallel"]) == (3, 2, 2)
    assert found["directives"] == 5
