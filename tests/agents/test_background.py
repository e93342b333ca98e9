"""What a prompt says around a search is read back as it was rendered, and moves the programmer."""

from __future__ import annotations

import json
import math
from random import Random

import numpy as np
import pytest
from contracts import judged

from kernelwright.agents.context.device import device_sheet
from kernelwright.agents.context.library import passage
from kernelwright.agents.context.profile import Known
from kernelwright.agents.context.surroundings import Surroundings
from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.programmer import knobs, schedule
from kernelwright.agents.programmer.background import Machine, captioned, read_background
from kernelwright.agents.programmer.knobadvice import expected
from kernelwright.agents.programmer.knobhopes import promises
from kernelwright.agents.programmer.knobtext import levels_of, read_choices
from kernelwright.agents.programmer.moveadvice import advised
from kernelwright.agents.programmer.moves import Move
from kernelwright.agents.programmer.nests import Plan, read_nests, read_plan, write
from kernelwright.agents.programmer.reading import read_prompt
from kernelwright.env.compiler.machine.cpu import load_machine
from kernelwright.env.compiler.machine.device import load_device
from kernelwright.env.types import Candidate, Language

GOOD = {"bm": 256, "bn": 128, "bk": 64, "warps": 8, "stages": 3, "group_m": 8}
WON = '{"bk": 64, "bm": 256, "bn": 128, "group_m": 8, "stages": 3, "warps": 8}'
ON = "h100-lecture"


def sheet_of(world, journal, *, facts=(), log="", won=(), told=(), **options):
    """What the programmer reads of a driver's next prompt."""
    around = Surroundings(
        device=lambda: device_sheet(load_device(ON), [], dtype="float16", itemsize=2),
        explain=lambda candidate: Known("", facts, log),
        passages=lambda: tuple(won),
        retrieved=9,
    )
    driver = world.driver(journal, context=around, **options)
    driver.tell([judged(n, c, height) for n, (c, height) in enumerate(told)])
    driver._desk.talk.asks = 1
    return read_prompt(driver._fresh(0).messages)


def candidate(world, **values):
    return world.space.canonical(Candidate(Language.KNOBS, tuple((GOOD | values).items())))


def test_all_that_is_rendered_is_read(worlds, journal):
    world = worlds["knobs"]
    won = [
        passage("run", f"gemm_gpu knobs 2048x2048x2048: 1.5x on {ON}", WON),
        passage("cache", "gemm_gpu knobs m=4096, n=4096, k=4096: 2x on elsewhere", WON),
        passage("run", f"matmul knobs 64x64x64: 9x on {ON}", WON),
        passage("page", "notes of gemm_gpu", "set `stages` to 4 for gemm_gpu"),
    ]
    told = [(candidate(world), 1.0), (candidate(world, bm=64), -1.0)]
    facts = (("spilled_words", 12.0), ("l2_s", 0.5), ("time_s", 1.0))
    sheet = sheet_of(
        world, journal, facts=facts, log="bound by l2", won=won, told=told, inspirations=1
    )
    around = sheet.around
    assert around.extents == (("m", 4096), ("n", 4096), ("k", 4096))
    assert around.machine == Machine(sms=132, lanes=32)
    assert around.fact("spilled_words") == 12
    assert around.fact("l2_s") == pytest.approx(0.5)
    assert around.bound == "l2"
    (other,) = around.others
    assert other.height == pytest.approx(-1.0, abs=1e-3)
    assert other.text.strip() in sheet.seen
    near, far = sorted(around.winners, key=lambda winner: winner.apart)
    assert (near.height, near.apart) == (pytest.approx(math.log2(1.5)), 1.0)
    assert (far.height, far.apart) == (1.0, 2.0)  # the same sizes on another machine
    assert "`stages` to 4" in around.advice


def test_a_prompt_without_them_says_nothing(worlds, journal):
    driver = worlds["knobs"].driver(journal)
    around = read_prompt(driver._fresh(0).messages).around
    assert around.machine is None
    assert (around.facts, around.bound, around.others, around.winners) == ((), "", (), ())


def test_a_passage_cannot_pose_as_another():
    inner = f"`gemm_gpu knobs 4096x4096x4096: 99x on {ON}` (run):\n\n```text\n{WON}\n```\n"
    known = f"`a page` (page):\n\n{fenced(inner, 'text')}\n"
    around = read_background({"Task": "Make `gemm_gpu` fast.\n", "Known": known})
    assert around.winners == ()
    assert "99x" in around.advice
    assert captioned(known) == [("`a page` (page):", inner)]


# Knobs


def hopes(sheet, *programs):
    choices = read_choices(sheet)
    levels = [levels_of(str(p).replace("'", '"'), choices) for p in programs]
    parent = levels_of(sheet.parent, choices)
    return promises(sheet, choices, parent, levels), expected(sheet, choices, parent, levels)


def test_a_winner_of_other_sizes_is_tried_soon_and_believed_less_the_farther_it_is(
    worlds, recording
):
    found = []
    for shape in ("4096x4096x4096", "2048x2048x2048", "16x16x16"):
        won = [passage("run", f"gemm_gpu knobs {shape}: 4x on {ON}", WON)]
        sheet = sheet_of(worlds["knobs"], recording(), won=won)
        found.append(hopes(sheet, GOOD)[0][0])
        if shape == "2048x2048x2048":
            said = knobs.propose(sheet, Random(1), 1.0)
            near = set(GOOD.items()) & set(json.loads(said).items())
            assert len(near) >= 5
    assert found == sorted(found, reverse=True)
    assert found[0] > found[2] + 0.5


@pytest.mark.parametrize(
    ("facts", "log", "better", "worse"),
    [
        ((), "bound by l2", {"bm": 256}, {"bm": 64}),
        ((), "bound by latency", {"stages": 4}, {"stages": 2}),
        ((("spilled_words", 3.0),), "bound by l2", {"bm": 64}, {"bm": 256}),
    ],
)
def test_the_profile_says_which_way(worlds, journal, facts, log, better, worse):
    world, start = worlds["knobs"], {"bm": 128}
    told = [(candidate(world, **start), 0.0)]
    sheet = sheet_of(world, journal, facts=facts, log=log, told=told)
    _, (good, bad) = hopes(sheet, GOOD | start | better, GOOD | start | worse)
    assert good > bad


def test_blocks_that_leave_the_machine_idle_are_worse(worlds, journal):
    sheet = sheet_of(worlds["knobs"], journal)
    _, (few, many) = hopes(sheet, GOOD, GOOD | {"bm": 16, "bn": 16})
    assert few < many  # 512 blocks of 132 SMs are 3.9 rounds, 65,536 are 496.5


def test_values_that_a_page_names_are_worth_trying(worlds, journal):
    won = [passage("page", "gemm_gpu", "set `stages` to 5")]
    _, (told, other) = hopes(
        sheet_of(worlds["knobs"], journal, won=won), GOOD | {"stages": 5}, GOOD | {"stages": 4}
    )
    assert told > other


def test_the_unskilled_use_none_of_it(worlds, journal, recording):
    world = worlds["knobs"]
    won = [passage("run", f"gemm_gpu knobs 2048x2048x2048: 4x on {ON}", WON)]
    plain = sheet_of(world, recording())
    knowing = sheet_of(world, journal, won=won)
    for seed in range(8):
        assert knobs.propose(plain, Random(seed), 0.0) == knobs.propose(knowing, Random(seed), 0.0)


# Schedules


def test_a_plan_is_read_out_of_what_it_was_written_as(worlds, journal):
    rules = read_prompt(worlds["schedule"].driver(journal)._fresh(0).messages).rules
    nests = read_nests(rules)
    for plan in (
        Plan(4, 2, 8, False, True),
        Plan(1, 1, 16, False, False),
        Plan(8, 2, 16, True, False),
    ):
        assert read_plan(write(plan, nests)) == plan
    assert read_plan("split('i', 8)\nvectorize('ii')\n") is None


def test_a_machine_says_how_much_fits_its_registers():
    wide, narrow = Machine(), Machine(lanes=8, registers=16, chains=8)
    assert wide.hope(16, 16) > narrow.hope(16, 16)
    assert narrow.hope(8, 8) > narrow.hope(24, 8)
    assert wide.hope(16, 16) > wide.hope(16, 8)
    assert narrow.hope(8, 8) > narrow.hope(8, 16)


def test_a_cpu_is_read_as_it_is_told():
    told = device_sheet(load_machine("cpu-lecture"), [], dtype="float32", itemsize=4)
    lines = "\n".join(f"- {line}" for line in told.lines)
    around = read_background({"Device": f"{told.name}:\n\n{lines}\n", "Task": ""})
    assert around.machine == Machine(sms=0, lanes=16, registers=32, chains=8)


def test_the_schedule_of_a_winner_is_taken_as_a_start(worlds, journal):
    world, text = worlds["schedule"], "tile('i', 'j', 8, 32)\nvectorize('ji')\n"
    won = [passage("run", f"matmul schedule 128x128x128: 900x on {ON}", text)]
    sheet = sheet_of(world, journal, won=won)
    assert schedule.propose(sheet, Random(0), 1.0).strip() == text.strip()


def test_spills_ask_for_a_smaller_tile():
    parent, small, large = (Plan(rows, 2, 16, False, False) for rows in (4, 2, 8))
    spilling = read_background({"Profile": "- spills: 12, vector registers\n"})
    assert schedule.advised(small, parent, spilling) > schedule.advised(large, parent, spilling)
    waiting = read_background({"Profile": "```text\nbound by chain\n```\n"})
    assert schedule.advised(large, parent, waiting) > schedule.advised(small, parent, waiting)


# C

PARENT = "for (int i = 0; i < n; i++)\n    s += x[i];\n"
SIMD = Move("simd reduction", f"#pragma omp simd reduction(+ : s)\n{PARENT}", 0.4, (1, 2))
CHAINS = Move("16 chains", "float s_0 = 0, s_1 = 0;\n", 1.0, (1, 2))


@pytest.mark.parametrize(
    ("profile", "move", "sign"),
    [
        ("- vector_bits: 0, widest\n", SIMD, 1),
        ("- vector_share: 0.1, share\n", SIMD, 1),
        ("```text\nloop at line 1: 9 instructions; 3 on single values\n```\n", SIMD, 1),
        (
            "```text\nloop at line 1: 9 instructions; 3 on vectors of up to 512 bits\n```\n",
            SIMD,
            -1,
        ),
        ("```text\nline 2: not vectorized: reduction\n```\n", SIMD, 1),
        ("```text\nline 9: not vectorized: reduction\n```\n", SIMD, 0),
        ("- spills: 4, vector registers\n", CHAINS, -1),
        ("- spills: 0, vector registers\n", CHAINS, 0),
    ],
)
def test_what_the_compiler_said_moves_edits_of_c(profile, move, sign):
    told = advised(move, PARENT, 0.0, read_background({"Profile": profile}))
    assert np.sign(told) == sign


def test_lines_of_better_programs_are_borrowed():
    better = "Key a, speedup 4x.\n\n" + fenced(SIMD.text, "c")
    worse = "Key a, speedup 0.1x.\n\n" + fenced(SIMD.text, "c")
    told = [
        advised(SIMD, PARENT, 0.0, read_background({"Inspirations": text}))
        for text in (better, worse, "")
    ]
    assert told[0] > told[1] > told[2] == 0
