"""What a prompt shows of the machine, the parent's run and the search, and what is cut of it."""

from __future__ import annotations

import pytest
from contracts import judged

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.context.device import DeviceSheet, device_sheet
from kernelwright.agents.context.library import passage
from kernelwright.agents.context.parts import PARTS
from kernelwright.agents.context.profile import Known, ProfileSheet, profile_sheet
from kernelwright.agents.context.shrink import shrink, tokens_of
from kernelwright.agents.context.surroundings import (
    CUT,
    LOOKED,
    RETRIEVED,
    SEEN,
    Seen,
    Surroundings,
)
from kernelwright.agents.context.variety import Archive, apart, marks_of, spread
from kernelwright.agents.memory import Failure, Row
from kernelwright.agents.programmer.reading import sections
from kernelwright.env.compiler.machine.cpu import load_machine
from kernelwright.env.compiler.machine.device import load_device
from kernelwright.env.options import OptionError
from kernelwright.env.types import Candidate, Language, knob_candidate
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.evaluators.machine.measured import Cache, Machine, Throughput
from kernelwright.evaluators.target import SpeedOfLight

BOUND = SpeedOfLight("m=64", 1500.0, "memory")
MEASURED = Machine(
    name="Some CPU",
    cpus=4,
    vector_bytes=64,
    clock_hz=3e9,
    timer_resolution_s=1e-9,
    caches=(Cache("L1", 1 << 15, 4), Cache("L2", 1 << 20, 4)),
    fma_flops_per_s=(Throughput("float32", 1e11, 4e11),),
    peak_flops_per_s=(Throughput("float32", 2e11, 8e11),),
    integer_adds_per_s=(Throughput("int8", 1e12, 4e12),),
    bandwidth_bytes_per_s=(
        Throughput("L1", 5e11, 2e12),
        Throughput("L2", 2e11, 8e11),
        Throughput("memory", 5e10, 8e10),
    ),
)


def test_a_gpu_is_told_by_its_table():
    sheet = device_sheet(load_device("h200"), [BOUND], dtype="float16", itemsize=2)
    text = "\n".join(sheet.lines)
    assert sheet.name == "NVIDIA H200"
    for fact in ("132 SMs", "989.4 TFLOP/s", "4.8 TB/s", "206 operations a byte", "228 KiB an SM"):
        assert fact in text
    assert "at most 255 a thread" in text
    assert sheet.lines[0] == "no program takes less than 1.5 us at m=64, by memory"


def test_a_cpu_is_told_by_its_table():
    table = load_machine("cpu-lecture")
    sheet = device_sheet(table, [], dtype="float32", itemsize=4, threads=2)
    text = "\n".join(sheet.lines)
    assert "2 of 8 cores may be used" in text
    assert f"{2 * table.peak_flops(4) / 1e9:.4g} Gflop/s" in text
    assert "32 vector registers of 64 bytes (16 values)" in text
    assert "at least 8 independent vectors" in text
    assert "L1 32 KiB, L2 1 MiB, L3 32 MiB, lines of 64 bytes" in text


def test_a_measured_machine_is_told_by_its_figures():
    sheet = device_sheet(MEASURED, [], dtype="float32", itemsize=4, threads=1)
    text = "\n".join(sheet.lines)
    assert "1 of 4 CPUs may be used, at 3 GHz; together 200 Gop/s on float32" in text
    assert "memory gives 50 GB/s, so arithmetic is the limit above 4 operations a byte" in text
    assert "vectors of 64 bytes" in text
    assert "L1 32 KiB (500 GB/s), L2 1 MiB (200 GB/s)" in text


def test_of_an_unknown_machine_only_the_name_is_told():
    assert device_sheet(None, [], dtype="float32", itemsize=4) == DeviceSheet()


def test_a_profile_has_the_share_of_the_roofline_and_no_time():
    facts = (
        ("time_s", 2e-3),
        ("flop_s", 1e-3),
        ("vector_efficiency", 0.25),
        ("host.clock_hz", 3e9),
    )
    facts += (("compile_s", 1.5), ("elf.undefined", 3.0))
    (_, verdict) = judged(
        0, Candidate(Language.SCHEDULE, ()), 1.0, facts=facts, log="w: bound by l2",
        floors_ns=(("w", 0.25),),
    ).verdicts[0]  # fmt: skip
    sheet = profile_sheet(verdict, Known("a model", (("vector_efficiency", 0.9), ("calls", 2.0))))
    assert sheet.lines == (
        "roofline: 0.25 of what the machine allows at w",
        "flop_s: 50% of the time, arithmetic alone",
        "vector_efficiency: 0.25, used share of the vector lanes",
        "calls: 2, calls that are left (by a model)",
    )
    assert sheet.log == "```text\nw: bound by l2\n```"
    assert profile_sheet(None, None) == ProfileSheet()


def test_the_model_of_a_gpu_says_what_bounds_a_program_but_not_its_time(worlds):
    world = worlds["knobs"]
    target = GpuModel(world.problem)
    artifact = target.build(world.space.default)
    sheet = profile_sheet(None, Known("", artifact.facts, artifact.log))
    text = "\n".join(sheet.lines)
    assert "registers: " in text
    assert "occupancy: " in text
    assert "bound by " in sheet.log
    assert f"{dict(artifact.facts)['time_s']:.6g}" not in text


def knobs(**values):
    return knob_candidate(values)


def test_distance_is_the_share_of_marks_that_one_has():
    a, b = knobs(x=1, y=2), knobs(x=1, y=3)
    assert apart(marks_of(a), marks_of(a)) == 0
    assert apart(marks_of(a), marks_of(b)) == pytest.approx(2 / 3)
    lines = Candidate(Language.SOURCE, "a;\nb;\n"), Candidate(Language.SOURCE, "  a;\n\nc;\n")
    assert apart(*map(marks_of, lines)) == pytest.approx(2 / 3)


def test_an_archive_keeps_the_best_of_each_kind():
    archive = Archive(2)
    for number, (x, y, height) in enumerate([(1, 1, 0.0), (9, 9, 0.0), (1, 2, 1.0), (9, 8, -1.0)]):
        archive.add(judged(number, knobs(x=x, y=y, z=x), height))
    assert [t.number for t in archive.trials] == [2, 1]


def test_what_is_spread_begins_with_the_best_and_goes_far():
    trials = [judged(i, knobs(x=x, y=0), h) for i, (x, h) in enumerate([(1, 2.0), (2, 1.0)])]
    trials.append(judged(2, knobs(x=7, y=7), 0.0))
    assert [t.number for t in spread(trials, 2)] == [0, 2]
    assert [t.number for t in spread(trials, 3, but=[trials[0].candidate])] == [1, 2]


def everything():
    return {
        "tried": [Row(f"row {n} {'x' * 40}", "1x", n) for n in (9, 3, 5, 1)],
        "inspirations": ["a" * 100, "b" * 100],
        "known": ["k" * 100],
        "profile": ProfileSheet(("line " * 10,), "log " * 20),
        "failures": [
            Failure("f1", "wrong", None, "d" * 80),
            Failure("f2", "wrong", None, "e" * 80),
        ],
        "pending": ["p" * 60],
        "device": DeviceSheet("machine", ("m" * 90,)),
    }


def written(values):
    rows = [f"{r.number}" * len(r.text) for r in values["tried"]]
    parts = [*rows, *values["inspirations"], *values["known"], *values["profile"].lines]
    parts += [values["profile"].log, *(f.text + f.detail for f in values["failures"])]
    parts += [*values["pending"], *values["device"].lines, "always here " * 4]
    return (("user", "".join(parts)),)


def test_a_prompt_within_its_budget_is_left_alone():
    found = shrink(everything(), 1000, written)
    assert found.messages == written(everything())
    assert (found.cut, found.over) == ((), 0)
    assert shrink(everything(), None, written).messages == found.messages


def test_what_matters_least_goes_first_and_no_more_than_needed():
    whole = tokens_of(written(everything()))
    order = []
    for tokens in range(whole, 34, -1):
        found = shrink(everything(), tokens, written)
        assert tokens_of(found.messages) <= tokens
        assert found.over == 0
        for name, _ in found.cut:
            if name not in order:
                order.append(name)
    assert order == [part.name for part in PARTS]
    first = shrink(everything(), whole - 1, written)
    assert first.cut == (("tried", 1),)
    assert "1111" not in first.messages[0][1]  # the oldest that is not among the best
    assert "9999" in shrink(everything(), 35, written).messages[0][1]


def test_what_cannot_be_cut_is_said():
    found = shrink(everything(), 5, written)
    assert found.over == tokens_of(found.messages) - 5
    assert dict(found.cut)["tried"] == 2


def test_a_part_has_its_size_without_any_budget():
    values = everything() | {"inspirations": ["i" * 10_000] * 4}
    assert dict(shrink(values, None, written).cut) == {"inspirations": 2}


def test_a_driver_cuts_its_questions_and_records_what(worlds, recording):
    world, journal = worlds["schedule"], recording()
    plain = world.driver(journal)
    least = tokens_of(plain._fresh(0).messages)
    assert not any(e.kind == CUT for e in journal.events)
    around = Surroundings(tokens=least + 60)
    journal = recording()
    driver = world.driver(journal, context=around, history=20)
    world.play(driver, asks=6)
    cuts = [e for e in journal.events if e.kind == CUT]
    assert cuts
    assert all(e.data["budget"] == least + 60 for e in cuts)
    assert all(e.data["tokens"] <= least + 60 or e.data["over"] for e in cuts)
    assert any(e.data["cut"].get("tried") for e in cuts)


def test_a_budget_below_what_is_never_cut_is_refused_before_anything_is_asked(worlds, journal):
    with pytest.raises(OptionError, match="tokens: expected at least") as caught:
        worlds["schedule"].driver(journal, context=Surroundings(tokens=300))
    assert caught.value.option == "tokens"


def test_a_mended_answer_is_quoted_as_far_as_there_is_room(worlds, journal):
    world = worlds["knobs"]
    plain = tokens_of(world.driver(journal)._fresh(0).messages)
    driver = world.driver(journal, context=Surroundings(tokens=plain + 250))
    again = driver._desk.prompter.mend(driver._fresh(0).messages, "x" * 5000, "truncated", "cut")
    assert 400 <= len(again[2][1]) < 1000
    free = world.driver(journal)
    assert (
        len(free._desk.prompter.mend(free._fresh(0).messages, "x" * 5000, "a", "b")[2][1]) >= 4000
    )


def test_the_machine_is_looked_at_once_and_then_read_from_the_record(worlds, recording):
    world, journal, looks = worlds["knobs"], recording(), []

    def look():
        looks.append(1)
        return DeviceSheet("thing", (f"figure {len(looks)}",))

    around = Surroundings(device=look)
    driver = world.driver(journal, context=around)
    assert looks == []
    first, _ = world.play(driver, asks=3)
    (seen,) = [e for e in journal.events if e.kind == SEEN]
    assert Seen.of_event(seen).device.lines == ("figure 1",)
    again, _ = world.play(world.driver(journal, context=around), asks=3)
    assert looks == [1]
    assert again == first


def test_sections_that_have_nothing_to_say_are_not_there(worlds, journal):
    world = worlds["source"]
    told = sections(world.driver(journal)._fresh(0).messages[1][1])
    assert not {"Device", "Profile", "Inspirations", "Failures", "Known"} & set(told)


def test_every_block_comes_under_its_heading(worlds, journal):
    world = worlds["source"]
    around = Surroundings(
        device=lambda: DeviceSheet("thing", ("fast",)),
        explain=lambda c: Known("it", (("fma", 3.0),)),
    )
    driver = world.driver(journal, context=around, inspirations=1)
    texts = [world.problem.plain_c + f"// {i}\n" * i for i in range(3)]
    found = [Candidate(Language.SOURCE, text) for text in texts]
    driver.tell([judged(0, found[0], 1.0, log="note: loop vectorized"), judged(1, found[1], 0.5)])
    driver.tell([judged(2, found[2], None, log="error: no")])
    told = sections(driver._fresh(0).messages[1][1])
    assert "- fast" in told["Device"]
    assert "- fma: 3, multiply-add instructions (by it)" in told["Profile"]
    assert "note: loop vectorized" in told["Profile"]
    assert f"Key {found[1].key[:8]}, speedup 1.414x." in told["Inspirations"]
    assert "So far: 1 build_error (made_up)." in told["Failures"]


def test_what_a_look_at_a_parent_found_is_read_from_the_record(worlds, recording):
    world, journal, looks = worlds["source"], recording(), []

    def examine(candidate):
        looks.append(candidate.key)
        return Known("its code", (("spills", float(len(looks))),), f"look {len(looks)}")

    around = Surroundings(examine=examine)
    driver = world.driver(journal, context=around)
    assert looks == []
    first, _ = world.play(driver, asks=4)
    assert len(set(looks)) == len(looks) > 1
    events = list(journal.events)
    looked = len(looks)
    again, _ = world.play(world.driver(journal, context=around), asks=4)
    assert again == first
    assert journal.events == events
    assert len(looks) == looked


def test_a_look_that_finds_nothing_says_nothing(worlds, recording):
    world, journal = worlds["source"], recording()
    around = Surroundings(examine=lambda candidate: None)
    for _ in range(2):
        driver = world.driver(journal, context=around)
        driver.ask(1)
        assert "Profile" not in sections(driver._fresh(0).messages[1][1])


@pytest.mark.parametrize(("name", "tokens"), [("knobs", 1000), ("source", 1400)])
def test_a_search_with_all_of_it_goes_on_wherever_it_was_interrupted(
    worlds, recording, name, tokens
):
    world = worlds[name]

    def look(candidate):
        return Known("its code", (("spills", float(int(candidate.key[:2], 16))),))

    def driver(journal):
        pages = tuple(passage("page", f"page {i}", f"gemm softmax {i}") for i in range(4))
        around = Surroundings(
            tokens=tokens,
            device=lambda: DeviceSheet("thing", ("fast",)),
            explain=lambda c: Known("a model", (("registers", 8.0),)),
            examine=look,
            passages=lambda: pages,
        )
        options = {"faults": 0.3, "history": 20, "inspirations": 2}
        return world.driver(journal, context=around, **options)

    whole = recording()
    straight, _ = world.play(driver(whole), asks=5)
    kinds = {e.kind for e in whole.events}
    assert {SEEN, RETRIEVED, LOOKED, CUT, "model_call"} <= kinds
    for kept in range(0, len(whole.events), 11):
        torn = recording()
        for event in whole.events[:kept]:
            torn.record(event)
        asked, _ = world.play(driver(torn), asks=5)
        assert asked == straight
        assert torn.events == whole.events


@pytest.mark.parametrize(
    ("agent", "options"),
    [("refine", {"turns": 32}), ("tool_loop", {"steps": 32, "measurements": 8})],
)
def test_a_long_conversation_forgets_its_oldest_turns_and_runs_again(
    worlds, recording, agent, options
):
    def search(journal, backend):
        context = Surroundings(tokens=1200)
        driver = worlds["knobs"].driver(
            journal, agent=agent, backend=backend, context=context, **options
        )
        return worlds["knobs"].play(driver, asks=8, batch=2)[0]

    journal, model = recording(), Mock(seed=2, skill=0.7)
    first = search(journal, model)
    cut = [event.data["cut"] for event in journal.events if event.kind == "context_cut"]
    assert max(each.get("turns", 0) for each in cut) >= 1
    before = list(journal.events)
    assert search(journal, model) == first
    assert journal.events == before
