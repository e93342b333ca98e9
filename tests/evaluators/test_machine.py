"""The machine's figures: what is measured, what is kept, and what floor follows from them. No test
here depends on how fast anything is.
"""

from __future__ import annotations

import json
import math
import platform
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import TOOLCHAINS, BuildError, find_toolchain
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.records import dumps, loads
from kernelwright.env.types import CacheState
from kernelwright.evaluators.machine import facts, probe
from kernelwright.evaluators.machine.facts import (
    fingerprint_of,
    machine_facts,
    read_entry,
    write_entry,
)
from kernelwright.evaluators.machine.measured import MEMORY, Cache, Machine, Throughput, greatest
from kernelwright.evaluators.machine.probe import (
    LEAST_BYTES,
    SOURCE,
    MachineError,
    WorkingSet,
    assembled,
    measure,
    parse,
    rounds,
    words_of,
    working_sets,
)
from kernelwright.evaluators.machine.topology import (
    CacheLevel,
    Topology,
    parse_cpus,
    parse_size,
    read_topology,
    usable_cpus,
)
from kernelwright.evaluators.target import roofline_ns

KIB = 1 << 10
# Two cores: a core does 10 operations and moves 100, 50 or 10 bytes a second.
MACHINE = Machine(
    name="a machine",
    cpus=2,
    vector_bytes=32,
    clock_hz=3e9,
    timer_resolution_s=1e-8,
    caches=(Cache("L1", 1000, 2), Cache("L2", 5000, 1)),
    fma_flops_per_s=(Throughput("float32", 8.0, 16.0), Throughput("float64", 4.0, 8.0)),
    peak_flops_per_s=(Throughput("float32", 10.0, 19.0), Throughput("float64", 5.0, 9.0)),
    integer_adds_per_s=(Throughput("int8", 80.0, 160.0), Throughput("int32", 20.0, 40.0)),
    bandwidth_bytes_per_s=(
        Throughput("L1", 100.0, 200.0),
        Throughput("L2", 50.0, 90.0),
        Throughput(MEMORY, 10.0, 15.0),
    ),
)


def topology(cpus=(1, 0), caches=None):
    if caches is None:
        alone = (frozenset({0}), frozenset({1}))
        caches = (
            CacheLevel("L1", 48 * KIB, alone),
            CacheLevel("L2", 1024 * KIB, alone),
            CacheLevel("L3", 32 * KIB * KIB, (frozenset({0, 1}),)),
        )
    return Topology("a machine", ("x86_64", "flags: fma"), tuple(cpus), tuple(caches))


# The floor


def floor(flops, moved, **how):
    return MACHINE.floor_s(flops, moved, **how)


@pytest.mark.parametrize(
    ("seconds", "flops", "moved", "how"),
    [
        # Operations: by dtype; one thread, two, and more than there are CPUs.
        (5, 50, 0, {}),
        (10, 50, 0, {"dtype": "float64"}),
        (2.5, 50, 0, {"threads": 2}),
        (2.5, 50, 0, {"threads": 9}),
        # Whole numbers may be packed as bytes; what was not measured bounds nothing.
        (2, 160, 0, {"dtype": "int32"}),
        (2, 160, 0, {"dtype": "uint64"}),
        (2, 160, 0, {"dtype": "bool"}),
        (0, 1e9, 0, {"dtype": "float16"}),
        # From memory, all of it; but what is moved twice need not come from there twice.
        (200, 0, 2000, {"state": CacheState.COLD}),
        (100, 0, 2000, {"state": CacheState.COLD, "working_set": 1000}),
        (200, 0, 2000, {"state": CacheState.COLD, "working_set": 9000}),
        (100, 0, 2000, {"state": CacheState.COLD, "threads": 2}),
        # Warm: what fits L1 passes L1; beyond it, at least what has no room there comes from L2,
        # and what has no room in either from memory.
        (10, 0, 1000, {}),
        (15, 0, 1500, {}),
        (20, 0, 2000, {}),
        (60, 0, 4000, {}),
        (120, 0, 7000, {}),
        (1000, 0, 16000, {}),
        (160, 0, 16000, {"working_set": 6000}),
        # Two threads have two of the first caches, and one of the second.
        (10, 0, 2000, {"threads": 2}),
        (100, 0, 9000, {"threads": 2}),
        # The longer of both.
        (50, 500, 1000, {}),
        (100, 500, 1000, {"state": CacheState.COLD}),
    ],
)
def test_the_floor_is_the_longest_of_what_each_part_takes(seconds, flops, moved, how):
    assert floor(flops, moved, **how) == pytest.approx(seconds)


def test_a_kernel_that_starts_cold_is_allowed_no_less():
    for moved in (1, 999, 1001, 5999, 6001, 10**6):
        for threads in (1, 2):
            warm = floor(10, moved, threads=threads)
            assert warm <= floor(10, moved, threads=threads, state=CacheState.COLD)


def test_more_threads_are_allowed_no_less():
    for moved in (10, 1500, 20000):
        for state in CacheState:
            assert floor(9, moved, state=state, threads=2) <= floor(9, moved, state=state)


def test_threads_do_no_more_than_each_alone_nor_than_twice_what_all_did():
    shared = Throughput(MEMORY, 10.0, 16.0)
    assert [shared.of(n) for n in (1, 2, 3, 4, 99)] == [10.0, 20.0, 30.0, 32.0, 32.0]
    # All measured too low, as a single CPU shows.
    low = Throughput(MEMORY, 10.0, 7.0)
    assert [low.of(n) for n in (1, 2, 3)] == [10.0, 20.0, 20.0]


def test_a_machine_is_a_roofline():
    problem = matmul(m=4, n=5, k=6)
    (workload,) = problem.workloads
    wanted = max(240 / 10, problem.moved_bytes(workload) / 100) * 1e9
    assert roofline_ns(MACHINE, problem, workload) == wanted


def test_without_known_caches_warm_data_are_as_near_as_can_be():
    near, *_, memory = MACHINE.bandwidth_bytes_per_s
    unknown = replace(MACHINE, caches=(), bandwidth_bytes_per_s=(near, memory))
    assert unknown.floor_s(0, 10**6) == 10**6 / 100
    assert unknown.floor_s(0, 10**6, state=CacheState.COLD) == 10**6 / 10


# The record


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"clock_hz": 0.0}, "clock_hz: expected a number > 0, found 0.0"),
        ({"cpus": 0}, "cpus: expected"),
        ({"timer_resolution_s": math.nan}, "timer_resolution_s"),
        ({"peak_flops_per_s": ()}, "peak_flops_per_s: expected at least one dtype"),
        ({"caches": MACHINE.caches[:1]}, "expected L1, memory, found"),
        ({"bandwidth_bytes_per_s": MACHINE.bandwidth_bytes_per_s[:2]}, "expected L1, L2, memory"),
        ({"caches": (), "bandwidth_bytes_per_s": ()}, "bandwidth_bytes_per_s"),
    ],
)
def test_what_no_machine_is_is_refused(changes, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        replace(MACHINE, **changes)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_what_no_rate_is_is_refused(rate):
    with pytest.raises(ValueError, match="L1: expected a rate > 0"):
        Throughput("L1", rate, 1.0)
    with pytest.raises(ValueError, match="L1: expected a rate > 0"):
        Throughput("L1", 1.0, rate)


def test_a_machine_goes_to_json_and_back():
    assert loads(Machine, dumps(MACHINE)) == MACHINE


def test_of_two_measurements_the_greatest_of_each_figure_is_kept():
    other = replace(
        MACHINE,
        clock_hz=4e9,
        timer_resolution_s=2e-8,
        fma_flops_per_s=greatest(Throughput(r.name, 9.0, 1.0) for r in MACHINE.fma_flops_per_s),
    )
    for merged in (MACHINE.merged(other), other.merged(MACHINE)):
        assert (merged.clock_hz, merged.timer_resolution_s) == (4e9, 1e-8)
        assert [(r.one, r.all) for r in merged.fma_flops_per_s] == [(9.0, 16.0), (9.0, 8.0)]
        assert merged.bandwidth_bytes_per_s == MACHINE.bandwidth_bytes_per_s


# What the system says


def test_sizes_and_lists_of_cpus_are_read():
    assert [parse_size(text) for text in ("48K\n", "32M", "1G", "512")] == [
        48 * KIB,
        32 * KIB**2,
        KIB**3,
        512,
    ]
    assert parse_cpus("0-2,8\n") == {0, 1, 2, 8}
    for text in ("", "K", "-1K", "0K", "4KK2"):
        with pytest.raises(ValueError, match=r"."):
            parse_size(text)
    with pytest.raises(ValueError, match=r"."):
        parse_cpus("")


def cache_of(system, cpu, index, level, kind, size, shared):
    folder = system / f"cpu{cpu}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in (("level", level), ("type", kind), ("size", size)):
        (folder / name).write_text(f"{text}\n")
    (folder / "shared_cpu_list").write_text(f"{shared}\n")


def test_the_caches_and_the_fastest_cpu_are_found(tmp_path):
    # Two threads of a core, and a small core; the process may use two of three.
    for cpu, shared in ((0, "0-1"), (1, "0-1"), (2, "2")):
        size = "32K" if cpu == 2 else "48K"
        cache_of(tmp_path, cpu, 0, 1, "Data", size, shared)
        cache_of(tmp_path, cpu, 1, 1, "Instruction", "64K", shared)
        cache_of(tmp_path, cpu, 2, 2, "Unified", "2048K", "0-2")
        (tmp_path / f"cpu{cpu}" / "cpufreq").mkdir()
        khz = 2000000 if cpu == 0 else 3000000
        (tmp_path / f"cpu{cpu}" / "cpufreq" / "cpuinfo_max_freq").write_text(f"{khz}\n")
    info = tmp_path / "info"
    info.write_text("processor\t: 0\nmodel name\t: A CPU @ 3: fast\nflags\t\t: fma avx2\n")
    found = read_topology((0, 2), system=tmp_path, info=info)
    assert found.name == "A CPU @ 3: fast"
    assert found.facts[1:] == ("flags: fma avx2", "model name: A CPU @ 3: fast")
    assert found.cpus == (2, 0)
    assert found.caches == (
        CacheLevel("L1", 48 * KIB, (frozenset({0}), frozenset({2}))),
        CacheLevel("L2", 2048 * KIB, (frozenset({0, 2}),)),
    )
    assert [cache.bytes_per_cpu for cache in found.caches] == [48 * KIB, 1024 * KIB]


def test_a_system_that_tells_nothing_has_no_known_caches(tmp_path):
    cache_of(tmp_path, 0, 0, 1, "Data", "much", "0")
    found = read_topology((0,), system=tmp_path, info=tmp_path / "nowhere")
    assert (found.caches, found.cpus) == ((), (0,))
    assert found.name == platform.machine()


# What is measured


def test_every_level_is_measured_on_what_fills_it_and_memory_evicted():
    sets = working_sets([("L1", 48 * KIB), ("L2", 1024 * KIB), ("L3", 32 * KIB**2)])
    by_level = {}
    for each in sets:
        by_level.setdefault(each.level, []).append(each.size_bytes)
        assert each.evicted == (each.level == MEMORY)
    assert by_level == {
        "L1": [24 * KIB],
        "L2": [192 * KIB, 512 * KIB],
        "L3": [4096 * KIB, 16 * KIB**2],
        MEMORY: [512 * KIB, 16 * KIB**2, 128 * KIB**2],
    }


def test_no_working_set_is_larger_or_smaller_than_it_may_be():
    sets = working_sets([("L1", 4 * KIB), ("L2", 100 * KIB)], most_bytes=20 * KIB)
    assert {each.level for each in sets} == {"L1", "L2", MEMORY}
    assert all(LEAST_BYTES <= each.size_bytes <= 20 * KIB for each in sets)


def test_what_is_near_and_what_is_far_is_measured_without_known_caches():
    assert {each.level for each in working_sets(())} == {"L1", MEMORY}


def test_cpus_that_share_a_cache_have_a_part_of_it_each():
    alone = words_of(topology(), (1,), 1 << 40)
    both = words_of(topology(), (1, 0), 1 << 40)
    assert (alone[0], both[0]) == ("1", "1,0")
    assert WorkingSet("L3", 16 * KIB**2, evicted=False).words == alone[13:16]
    assert WorkingSet("L3", 8 * KIB**2, evicted=False).words == both[13:16]


def test_all_processes_together_take_a_part_of_the_memory():
    words = words_of(topology(), (0, 1), 64 * KIB**2)
    assert max(int(size) for size in words[2::3]) <= 8 * KIB**2


def test_rounds_change_cpus_and_end_with_all():
    single = probe.ROUNDS
    several = rounds(topology((3, 1, 2)))
    assert several[:single] == tuple(((3,), (1,), (2,))[i % 3] for i in range(single))
    assert several[single:] == ((3, 1, 2),) * probe.ROUNDS_OF_ALL
    assert rounds(topology((5,))) == ((5,),) * single


SAID = """clock hz 3e9
fma float32 8
peak float32 8
peak float32 9.5
add int8 80
traffic L1 100
traffic L1 90
traffic memory 10
clock hz 2.9e9
timer s 2e-8
timer s 1e-8
vector bytes 32
"""


def test_of_alike_readings_the_greatest_counts_and_of_the_timer_s_the_least():
    found = parse(SAID)
    assert found["clock", "hz"] == 3e9
    assert found["peak", "float32"] == 9.5
    assert found["traffic", "L1"] == 100
    assert found["timer", "s"] == 1e-8


NONSENSE = (
    *(f"fma float32{value}" for value in ("", " fast", " -1", " 0", " nan", " inf", " 1 2")),
    "",
    "[the rest is cut off]",
)


@pytest.mark.parametrize("line", NONSENSE)
def test_what_is_no_reading_is_refused(line):
    with pytest.raises(MachineError, match=r"line 2: expected 'WHAT WHICH VALUE'.*found"):
        parse(f"clock hz 3e9\n{line}\n")


def test_a_machine_is_put_together_from_its_rounds():
    slow = parse(SAID)
    fast = parse(SAID.replace("fma float32 8", "fma float32 9").replace("memory 10", "memory 7"))
    both = parse(SAID.replace("fma float32 8", "fma float32 15"))
    caches = topology().caches[:1]
    made = assembled(topology(caches=caches), [slow, fast], [both])
    assert made.caches == (Cache("L1", 48 * KIB, 2),)
    assert made.fma_flops_per_s == (Throughput("float32", 9.0, 15.0),)
    assert made.bandwidth_bytes_per_s[-1] == Throughput(MEMORY, 10.0, 10.0)
    assert (made.cpus, made.vector_bytes, made.name) == (2, 32, "a machine")
    alone = assembled(topology((0,), caches), [slow, fast], [])
    assert alone.fma_flops_per_s == (Throughput("float32", 9.0, 9.0),)


@pytest.mark.parametrize("lost", ["clock", "timer", "fma", "traffic memory", "vector"])
def test_a_figure_that_was_not_measured_is_missed(lost):
    said = "\n".join(line for line in SAID.splitlines() if not line.startswith(lost))
    with pytest.raises(MachineError, match="roofline: "):
        assembled(topology(caches=topology().caches[:1]), [parse(said)], [])


# The program


def compiler(name):
    try:
        return find_toolchain(name)
    except BuildError:
        pytest.skip(f"no {name} on this machine")


@pytest.mark.cc
@pytest.mark.parametrize("name", TOOLCHAINS)
def test_every_compiler_makes_a_program_that_measures_everything(name, tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "ROUNDS", 1)
    monkeypatch.setattr(probe, "ROUNDS_OF_ALL", 1)
    where = read_topology(usable_cpus())
    # Small caches, so that little is measured.
    small = replace(where, caches=(CacheLevel("L1", 32 * KIB, (frozenset(where.cpus),)),))
    found = measure(small, compiler(name), BuildCache(tmp_path))
    assert found.cpus == len(usable_cpus())
    assert found.vector_bytes in (16, 32, 64)
    assert {rate.name for rate in found.fma_flops_per_s} == {"float32", "float64"}
    assert {rate.name for rate in found.peak_flops_per_s} == {"float32", "float64"}
    assert {rate.name for rate in found.integer_adds_per_s} == {"int8", "int16", "int32", "int64"}
    assert [rate.name for rate in found.bandwidth_bytes_per_s] == ["L1", MEMORY]
    for fma, peak in zip(found.fma_flops_per_s, found.peak_flops_per_s, strict=True):
        assert fma.one > 0
        assert peak.one > 0


@pytest.mark.cc
def test_a_cpu_that_cannot_be_used_is_an_error_that_names_it(tmp_path):
    nowhere = topology((4095,))
    with pytest.raises(MachineError, match=r"exit status 3 and said 'CPU 4095: "):
        measure(nowhere, compiler(None), BuildCache(tmp_path))


@pytest.mark.cc
def test_a_program_that_does_not_end_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "LIMIT_S", 0.01)
    with pytest.raises(MachineError, match=r"took longer than 0\.01 s"):
        measure(read_topology(usable_cpus()), compiler(None), BuildCache(tmp_path))


@pytest.mark.cc
def test_a_program_that_cannot_be_compiled_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "FLAGS", ("-fno-such-flag",))
    with pytest.raises(MachineError, match=r"(?s)roofline\.c cannot be compiled: .*no-such-flag"):
        measure(topology(), compiler(None), BuildCache(tmp_path))


@pytest.mark.cc
@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for instructions of x86")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
@pytest.mark.parametrize("name", TOOLCHAINS)
def test_the_loops_are_the_instructions_that_they_count(name, tmp_path):
    target = tmp_path / "roofline"
    flags = ("-O3", "-mavx2", "-mfma")
    compiler(name).compile(SOURCE.read_text(), str(target), flags, executable=True)
    dump = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(target)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    functions = {
        head.group(1): body
        for body in re.split(r"\n(?=[0-9a-f]+ <)", dump)
        if (head := re.match(r"[0-9a-f]+ <(\w+)>:", body.lstrip()))
    }
    for precision, letter in (("float", "s"), ("double", "d")):
        fused = rf"vfn?m(add|sub)\d+p{letter}\s.*%ymm"
        assert len(re.findall(fused, functions[f"fma_{precision}_32"])) == 120
        mixed = functions[f"mix_1_{precision}_32"]
        assert len(re.findall(fused, mixed)) == 120
        assert len(re.findall(rf"vaddp{letter}\s.*%ymm", mixed)) >= 120
    # 14 chains in 16 registers: were one kept in memory, the sum would be a store each time.
    body = functions["add_uint32_t_32"]
    assert len(re.findall(r"vpaddd\s.*%ymm", body)) >= 14
    assert not re.search(r"vmovdq\w+\s+%ymm\d+,.*\(%r[sb]p\)", body)


# What is kept


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A machine that counts how often it is measured, each time with a higher clock."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    times = []

    def fake(*_):
        times.append(1)
        return replace(MACHINE, clock_hz=1e9 * len(times))

    monkeypatch.setattr(facts, "measure", fake)
    return times


def the_entry(tmp_path):
    (entry,) = (tmp_path / "kernelwright" / "machine").glob("*.json")
    return entry


@pytest.mark.cc
def test_a_machine_is_measured_once(measured, tmp_path):
    first = machine_facts()
    assert machine_facts() == first
    assert len(measured) == 1
    left = {path.name for path in the_entry(tmp_path).parent.iterdir()}
    assert left == {the_entry(tmp_path).name, ".lock"}


def changed(text, **changes):
    return json.dumps(json.loads(text) | changes)


DAMAGES = {
    "gone": None,
    "empty": lambda text: "",
    "cut off": lambda text: text[: len(text) // 2],
    "no text": lambda text: "\udcff",
    "another record": lambda text: text.replace("1000000000.0", "9000000000.0"),
    "another machine": lambda text: changed(text, fingerprint="{}"),
    "no record": lambda text: changed(text, machine=None),
    "a list": lambda text: "[]",
    "deep": lambda text: "[" * 100_000,
}


@pytest.mark.cc
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_entry_is_measured_again(damage, measured, tmp_path):
    machine_facts()
    entry = the_entry(tmp_path)
    if DAMAGES[damage] is None:
        entry.unlink()
    else:
        text = entry.read_text()
        made = DAMAGES[damage](text)
        assert made != text
        entry.write_bytes(made.encode(errors="surrogateescape"))
    assert machine_facts().clock_hz == 2e9
    assert machine_facts().clock_hz == 2e9
    assert len(measured) == 2


def test_a_record_that_no_machine_is_is_not_believed(tmp_path):
    entry = tmp_path / "e.json"
    write_entry(entry, "f", MACHINE)
    assert read_entry(entry, "f") == MACHINE
    record = dumps(MACHINE).replace('"cpus":2', '"cpus":0')
    about = {"fingerprint": "f", "sha256": facts.hashlib.sha256(record.encode()).hexdigest()}
    entry.write_text(json.dumps({**about, "machine": record}))
    assert read_entry(entry, "f") is None


@pytest.mark.cc
def test_a_refresh_keeps_the_greatest_of_old_and_new(measured, monkeypatch):
    machine_facts()
    assert machine_facts(refresh=True).clock_hz == 2e9
    monkeypatch.setattr(facts, "measure", lambda *_: replace(MACHINE, clock_hz=1.0))
    assert machine_facts(refresh=True).clock_hz == 2e9
    assert machine_facts().clock_hz == 2e9


def test_the_fingerprint_is_all_that_a_measurement_depends_on(monkeypatch):
    one = facts.Toolchain("gcc", ("gcc",), "gcc 12")
    known = {fingerprint_of(topology(), one)}
    assert fingerprint_of(topology(), one) in known
    for other in (
        (replace(topology(), facts=("x86_64", "flags: sse2")), one),
        (topology((0,)), one),
        (topology(caches=topology().caches[:2]), one),
        (topology(), replace(one, version="gcc 13")),
        (topology(), replace(one, name="clang")),
    ):
        known.add(fingerprint_of(*other))
    monkeypatch.setattr(facts.platform, "release", lambda: "another kernel")
    known.add(fingerprint_of(topology(), one))
    assert len(known) == 7


def test_another_text_of_the_program_is_another_measurement(tmp_path, monkeypatch):
    toolchain = facts.Toolchain("gcc", ("gcc",), "gcc 12")
    before = fingerprint_of(topology(), toolchain)
    monkeypatch.setattr(facts, "SOURCE", tmp_path / "roofline.c")
    facts.SOURCE.write_text(SOURCE.read_text() + "\n")
    assert fingerprint_of(topology(), toolchain) != before


RACER = """
import sys, time
from dataclasses import replace
from kernelwright.env.records import dumps, loads
from kernelwright.evaluators.machine import facts
from kernelwright.evaluators.machine.measured import Machine

def fake(*_):
    with open(sys.argv[1], "a") as log:
        log.write("measured\\n")
    time.sleep(0.2)
    return loads(Machine, sys.argv[2])

facts.measure = fake
print(dumps(facts.machine_facts()))
"""


@pytest.mark.cc
def test_processes_that_race_measure_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = [sys.executable, "-P", "-c", RACER, str(tmp_path / "log"), dumps(MACHINE)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate()[0].strip() for process in running]
    assert said == [dumps(MACHINE)] * 3
    assert (tmp_path / "log").read_text() == "measured\n"


@pytest.mark.cc
def test_readers_see_a_whole_entry_while_it_is_refreshed(measured, tmp_path):
    machine_facts()
    entry = the_entry(tmp_path)
    fingerprint = json.loads(entry.read_text())["fingerprint"]
    seen, done = [], threading.Event()

    def read():
        while not done.is_set():
            seen.append(read_entry(entry, fingerprint))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        machine_facts(refresh=True)
    done.set()
    reader.join()
    assert None not in seen


def test_without_a_compiler_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("kernelwright.env.compiler.runtime.toolchain.find_spec", lambda name: None)
    with pytest.raises(MachineError, match="without a C compiler: expected one of gcc, clang"):
        machine_facts()


# The command


def kernelwright(*arguments):
    command = [sys.executable, "-P", "-m", "kernelwright", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A machine of round figures in the place where this one's are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(facts, "measure", lambda *_: MACHINE)
    return machine_facts()


@pytest.mark.cc
def test_the_command_prints_one_json_object(kept):
    result = kernelwright("machine", "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    judge, isolation = (dict(row[:2] for row in found.pop(k)) for k in ("judge", "isolation"))
    assert {"harness floor", "worker start", "noise floor", "cores"} <= judge.keys()
    assert set(isolation.values()) <= {"in force", "missing", "not needed", "root", "ordinary"}
    assert isolation["seccomp"] == "in force"
    assert found == {
        "name": "a machine",
        "cpus": 2,
        "vector_bytes": 32,
        "clock_hz": 3e9,
        "timer_resolution_s": 1e-8,
        "caches": [
            {"level": "L1", "bytes": 1000, "count": 2},
            {"level": "L2", "bytes": 5000, "count": 1},
        ],
        "roofline": {
            "fma_flops_per_s": {
                "float32": {"one": 8.0, "all": 16.0},
                "float64": {"one": 4.0, "all": 8.0},
            },
            "peak_flops_per_s": {
                "float32": {"one": 10.0, "all": 19.0},
                "float64": {"one": 5.0, "all": 9.0},
            },
            "integer_adds_per_s": {
                "int8": {"one": 80.0, "all": 160.0},
                "int32": {"one": 20.0, "all": 40.0},
            },
            "bandwidth_bytes_per_s": {
                "L1": {"one": 100.0, "all": 200.0},
                "L2": {"one": 50.0, "all": 90.0},
                "memory": {"one": 10.0, "all": 15.0},
            },
        },
    }


@pytest.mark.cc
def test_the_command_prints_a_table_that_fits_a_terminal(kept):
    result = kernelwright("machine")
    assert result.returncode == 0, result.stderr
    rows = {" ".join(line.split()) for line in result.stdout.splitlines()}
    assert {"a machine, 2 CPUs", "clock 3.00 GHz dependent adds, one a cycle"} <= rows
    assert "multiply-adds, float32 8e-09 1.6e-08 Gflop/s" in rows
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_the_command_without_a_compiler_fails_with_a_reason(tmp_path):
    code = (
        "import kernelwright.env.compiler.runtime.toolchain as t; t.TOOLCHAINS = ();"
        "import sys; sys.argv[1:] = ['machine', '--json'];"
        "from kernelwright.cli import main; main()"
    )
    command = [sys.executable, "-P", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 1
    assert "without a C compiler" in json.loads(result.stdout)["error"]["found"]


def test_the_page_names_every_key(kept):
    page = (Path(facts.__file__).parents[2] / "docs" / "machine.md").read_text()
    body = kept.to_json()
    for key in (*body, *body["roofline"], *body["caches"][0], "one", "all"):
        assert f"`{key}`" in page
