"""Schedule search with every directive: the wide list of actions, and spaces that draw from it."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from kernelwright.env.compiler.schedule import DIRECTIVES
from kernelwright.env.compiler.schedule.memo import Schedules
from kernelwright.env.compiler.schedule.proposals import PROPOSALS, proposals
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.gym import DIRECTIVES_ID, SCHEDULE_ID, validate
from kernelwright.env.gym.actions import (
    ALL,
    ALL_ACTIONS,
    CORE,
    LISTS,
    MAX_STATEMENT,
    MAX_TENSORS,
    OF_LOOPS,
    OF_PLACES,
    OF_TENSORS,
)
from kernelwright.env.gym.tensors import EVENTS, TENSOR_FEATURES, events, tensor_table
from kernelwright.env.gym.vocabulary import ACTIONS, UNDO, IllegalActionError
from kernelwright.env.options import OptionError
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.blur import blur
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.program import definition_of
from kernelwright.env.spaces.schedule import ScheduleSpace

SMALL = {"name": "blur", "h": 8, "w": 16}
# What has no definition in LoopIR.
WITHOUT = {"attention_gpu", "gemm_gpu", "recorded_kernel"}


def small_blur():
    problem = blur(h=8, w=16)
    return definition_of(problem, problem.workloads[0])


def small_matmul():
    problem = matmul(m=8, n=16, k=8)
    return definition_of(problem, problem.workloads[0])


def number(words):
    (found,) = [action for action in range(ALL_ACTIONS) if ALL.name(action) == words]
    return found


def test_the_wide_list_begins_with_the_core_list():
    assert LISTS == {"core": CORE, "all": ALL}
    assert [ALL.name(action) for action in range(ACTIONS)] == [
        CORE.name(action) for action in range(ACTIONS)
    ]
    names = [ALL.name(action) for action in range(ALL_ACTIONS)]
    assert len(set(names)) == ALL_ACTIONS
    on_loops = 16 * len(OF_LOOPS) + 8 * len(OF_TENSORS) + 128 * len(OF_PLACES)
    assert 177 + on_loops + MAX_STATEMENT == ALL_ACTIONS
    assert {move.op for move in (*OF_LOOPS, *OF_TENSORS, *OF_PLACES)} <= set(DIRECTIVES)


def test_gymnasium_s_checker_passes():
    check_env(gymnasium.make(DIRECTIVES_ID, problem=SMALL, budget=3), skip_render_check=True)


def test_actions_write_the_schedule_they_name(tmp_path):
    env = gymnasium.make(DIRECTIVES_ID, problem=SMALL)
    env.reset(seed=0)
    for words in ("loop 2: split 4", "tensor 2, loop 2: compute_at", "tensor 1: stream_store"):
        _, _, _, _, info = env.step(np.int64(number(words)))
        assert "reason" not in info, info["reason"]
    assert info["trace"] == "split('y', 4)\ncompute_at('blurx', 'yo')\nstream_store('out')\n"
    _, _, _, _, info = env.step(np.int64(UNDO))
    assert info["trace"] == "split('y', 4)\ncompute_at('blurx', 'yo')\n"
    env.save(tmp_path / "episode.json")
    validate(tmp_path / "episode.json")


def small_spmv():
    sizes, counts = {"i": 4, "j": 8}, {"A2": 6}
    return lower(program("y(i) = A(i,j) * x(j)", {"A": "csr"}, sizes=sizes, counts=counts))


@pytest.mark.parametrize("make", [small_blur, small_matmul, small_spmv])
def test_masks_are_what_the_compiler_answers_one_by_one(make):
    schedules, trace, rng = Schedules(make()), (), np.random.default_rng(3)
    for _ in range(3):
        one_by_one = []
        for action in range(ALL_ACTIONS):
            try:
                ALL.take(schedules, trace, action)
            except IllegalActionError:
                continue
            one_by_one.append(action)
        masked = ALL.legal(schedules, trace)
        assert masked == one_by_one
        assert any(action > UNDO for action in masked)
        trace = ALL.take(schedules, trace, int(rng.choice([a for a in masked if a > UNDO])))


def test_what_a_statement_proposes_comes_before_loops():
    schedules = Schedules(small_spmv())
    first = number("statement: proposal 0")
    offered = small_spmv().origin.proposals()
    legal = [action for action in ALL.legal(schedules, ()) if action >= first]
    assert legal
    for action in legal:
        assert ALL.take(schedules, (), action) == (offered[action - first],)
    after = ALL.take(schedules, (), number("loop 1: split 4"))
    assert not [action for action in ALL.legal(schedules, after) if action >= first]
    with pytest.raises(IllegalActionError, match="proposal 0: expected one of 0 proposals"):
        ALL.take(schedules, after, first)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("loop 9: reverse", "loop 9: reverse: expected one of 4 loops"),
        ("tensor 7: cache_read", "tensor 7: cache_read: expected one of 3 tensors"),
        ("tensor 0: compute_inline", "expected a proposal for image, found none"),
    ],
)
def test_an_illegal_action_says_why(words, reason):
    env = gymnasium.make(DIRECTIVES_ID, problem=SMALL)
    env.reset(seed=0)
    _, earned, _, _, info = env.step(np.int64(number(words)))
    assert earned == 0
    assert reason in info["reason"]


def test_a_list_of_actions_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="actions: expected one of core, all, found 'most'"):
        gymnasium.make(SCHEDULE_ID, actions="most")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(PROBLEMS) - WITHOUT))
def test_every_problem_can_be_scheduled(name):
    env, rng = gymnasium.make(SCHEDULE_ID, problem={"name": name}, budget=3), None
    observation, info = env.reset(seed=0)
    rng = np.random.default_rng(1)
    for step in range(3):
        assert env.observation_space.contains(observation)
        legal = np.flatnonzero(info["action_mask"])
        observation, _, terminated, truncated, info = env.step(np.int64(rng.choice(legal)))
        assert "reason" not in info
        assert (terminated, truncated) == (False, step == 2)


def test_tensors_show_where_they_live_and_how_they_are_touched():
    trace = parse_trace("split('y', 4)\ncompute_at('blurx', 'yo')\nset_scope('blurx', 'stack')")
    table = tensor_table(apply_trace(small_blur(), trace), MAX_TENSORS)
    image, out, blurx = (dict(zip(TENSOR_FEATURES, row, strict=True)) for row in table[:3])
    assert not table[3:].any()
    assert (image["input"], out["output"], blurx["temporary"]) == (1, 1, 1)
    assert (blurx["scope_stack"], blurx["scope_auto"], image["scope_auto"]) == (1, 0, 1)
    assert (image["depth"], blurx["depth"]) == (0, 1)
    assert (image["reads"], image["writes"], out["writes"]) == (3, 0, 1)
    assert blurx["log2_bytes"] == pytest.approx(np.log2(6 * 16 * 4))


def test_events_count_what_loops_do_not_show():
    trace = parse_trace("stream_store('out')\nprefetch('image', 'yb', 1)")
    found = dict(zip(EVENTS, events(apply_trace(small_blur(), trace)), strict=True))
    assert found == {"calls": 0, "barriers": 0, "prefetches": 1, "streams": 1}


# Spaces


def test_the_core_space_is_the_default():
    plain, core = ScheduleSpace(small_blur()), ScheduleSpace(small_blur(), directives="core")
    for seed in range(8):
        drawn = [s.sample(np.random.default_rng(seed)) for s in (plain, core)]
        assert drawn[0] == drawn[1]
    assert plain.legal_moves(plain.default) == core.legal_moves(core.default)


def test_a_wide_space_draws_further_directives_and_all_of_them_are_legal():
    space = ScheduleSpace(small_blur(), directives=["compute_at", "cache_read", "stream_store"])
    rng, seen = np.random.default_rng(0), set()
    for _ in range(40):
        candidate = space.sample(rng)
        changed = space.mutate(candidate, rng)
        for each in (candidate, changed or candidate):
            assert space.check(each) == ()
            seen |= {directive.op for directive in each.payload}
    assert {"compute_at", "cache_read", "stream_store"} <= seen
    assert "pack" not in seen


def test_neighbours_hold_further_moves():
    core = ScheduleSpace(small_blur())
    wide = ScheduleSpace(small_blur(), directives=["compute_inline", "stream_store"])
    more = set(wide.neighbours(wide.default)) - set(core.neighbours(core.default))
    assert {c.payload[0].op for c in more} == {"compute_inline", "stream_store"}


def test_parallel_is_no_further_move_where_there_is_one_thread():
    space = ScheduleSpace(small_blur(), directives=["parallel"])
    assert all(move.op != "parallel" for move in space.legal_moves(space.default))


def test_draws_depend_on_the_generator_alone():
    first, second = (ScheduleSpace(small_matmul(), directives="all") for _ in range(2))
    for seed in range(6):
        drawn = [s.sample(np.random.default_rng(seed)) for s in (first, second)]
        assert drawn[0] == drawn[1]


def test_a_directive_that_does_not_exist_is_refused():
    with pytest.raises(OptionError, match="found 'cache_reed'; did you mean 'cache_read'"):
        ScheduleSpace(small_blur(), directives=["cache_reed"])
    assert set(PROPOSALS) == set(DIRECTIVES)


def test_storage_is_folded_where_one_loop_writes_and_reads():
    start = small_blur()
    assert list(proposals(start, "fold_storage")) == []
    near = apply_trace(start, parse_trace("compute_at('blurx', 'y')\nstore_root('blurx')"))
    assert {each.target for each in proposals(near, "fold_storage")} == {"blurx"}
