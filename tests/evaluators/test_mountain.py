"""What is measured of memory for the model of sparse kernels. No test here depends on how fast
anything is.
"""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from kernelwright.env.compiler.machine.cpu import load_machine
from kernelwright.env.compiler.machine.memory import MemoryCosts
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import find_toolchain
from kernelwright.evaluators.machine import mountain
from kernelwright.evaluators.machine.measured import MEMORY, Cache, Machine, Throughput
from kernelwright.evaluators.machine.mountain import SIZES, as_cpu, memory_costs, parse_costs
from kernelwright.evaluators.machine.probe import MachineError

TEXT = """\
stream 4096 2e-10
gathered 4096 3e-10
stream 1024 1e-10
gathered 1024 1e-10
merge 0 3e-9
mispredict 0 4e-9
"""
TABLE = load_machine("cpu-lecture")
# Four billion cycles a second; two pipes of 512 bits do 256 Gflop/s in float32 at most.
MACHINE = Machine(
    name="a machine",
    cpus=4,
    vector_bytes=64,
    clock_hz=4e9,
    timer_resolution_s=1e-8,
    caches=(Cache("L1", 48 << 10, 4), Cache("L2", 2 << 20, 4)),
    fma_flops_per_s=(Throughput("float32", 240e9, 900e9), Throughput("float64", 120e9, 450e9)),
    peak_flops_per_s=(Throughput("float32", 240e9, 900e9),),
    integer_adds_per_s=(Throughput("int8", 500e9, 900e9),),
    bandwidth_bytes_per_s=(
        Throughput("L1", 500e9, 900e9),
        Throughput("L2", 190e9, 700e9),
        Throughput(MEMORY, 28e9, 50e9),
    ),
)


def test_readings_become_curves_by_size():
    costs = parse_costs(TEXT)
    assert costs == MemoryCosts((1024, 4096), (1e-10, 2e-10), (1e-10, 3e-10), 3e-9, 4e-9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("stream 1024 1e-10", "stream 1024", "line 3: expected 'WHAT BYTES SECONDS'"),
        ("stream 1024 1e-10", "stream 1024 nan", "line 3: expected"),
        ("gathered 1024 1e-10", "gathered 1024 -1", "line 4: expected"),
        ("gathered 1024 1e-10\n", "", "expected a reading gathered 1024, found none"),
        ("merge 0 3e-9\n", "", "expected a reading merge 0, found none"),
    ],
)
def test_nonsense_is_refused(old, new, message):
    assert old in TEXT
    with pytest.raises(MachineError, match=message):
        parse_costs(TEXT.replace(old, new))


def test_nothing_said_is_refused():
    with pytest.raises(MachineError, match="expected"):
        parse_costs("merge 0 1\nmispredict 0 1\n")


def test_measured_figures_take_the_place_of_a_tables():
    cpu = as_cpu(MACHINE, TABLE)
    assert (cpu.name, cpu.cores, cpu.clock_hz) == ("a machine", 4, 4e9)
    assert (cpu.simd_bytes, cpu.register_bytes) == (64, 64)
    assert cpu.peak_flops(4) == pytest.approx(240e9)
    assert cpu.peak_flops(8) == pytest.approx(120e9)
    assert (cpu.l1_bytes, cpu.l2_bytes) == (48 << 10, 2 << 20)
    assert (cpu.l2_bytes_per_s, cpu.dram_bytes_per_s) == (190e9, 28e9)
    # What is not measured stays: latencies, and a level that the machine does not have.
    assert (cpu.fma_latency, cpu.issue_width) == (TABLE.fma_latency, TABLE.issue_width)
    assert (cpu.l3_bytes, cpu.l3_bytes_per_s) == (TABLE.l3_bytes, TABLE.l3_bytes_per_s)


def test_pipes_of_half_the_width_do_half_as_much():
    slower = tuple(Throughput(r.name, r.one / 2, r.all) for r in MACHINE.fma_flops_per_s)
    cpu = as_cpu(replace(MACHINE, fma_flops_per_s=slower, vector_bytes=64), TABLE)
    assert (cpu.simd_bytes, cpu.register_bytes) == (32, 64)


@pytest.mark.cc
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_this_machine_has_costs(tmp_path, monkeypatch):
    monkeypatch.setattr(mountain, "SIZES", SIZES[:3])
    costs = memory_costs(find_toolchain("gcc"), BuildCache(tmp_path))
    assert costs.sizes_bytes == SIZES[:3]


@pytest.mark.cc
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_a_program_that_fails_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(mountain, "SIZES", (1 << 60,))
    with pytest.raises(MachineError, match="mountain ended with exit status 1 and said"):
        memory_costs(find_toolchain("gcc"), BuildCache(tmp_path))
