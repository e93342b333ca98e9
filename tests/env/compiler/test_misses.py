from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from programs import add, f32, matmul, mul, tensor

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.codegen.addresses import address_stream
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.evaluate import Memory
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Cast,
    Const,
    For,
    If,
    Load,
    Prefetch,
    Procedure,
    Select,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.machine import lru
from kernelwright.env.compiler.machine.footprint import crossings
from kernelwright.env.compiler.machine.hierarchy import Cache
from kernelwright.env.compiler.machine.nest import read_nest
from kernelwright.env.compiler.misses import MissesError, MissRow, cache_misses, miss_table
from kernelwright.env.compiler.schedule.edit import parts
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace
from kernelwright.env.problems.blur import blur
from kernelwright.env.problems.histogram import histogram
from kernelwright.env.problems.jacobi1d import jacobi1d
from kernelwright.env.problems.prefix_sum import prefix_sum
from kernelwright.env.problems.program import definition_of
from kernelwright.env.problems.softmax import softmax
from kernelwright.env.problems.spmv import spmv
from kernelwright.search.models.ranks import spearman

pytestmark = pytest.mark.cc
CACHES = (Cache(512, 2, 32), Cache(2048, 4, 64))
TILES = "tile('i', 'j', 4, 4)\nsplit('k', 3)\nreorder('io', 'jo', 'ko', 'ki', 'ii', 'ji')"
BLOCKS = "tile('i', 'j', 16, 16)\nsplit('k', 4)\nreorder('io', 'jo', 'ko', 'ki', 'ii', 'ji')\n"
KINDS = "split('j', 4)\nvectorize('ji')\nunroll('k')\nparallel('i')"


def seen(procedure, inputs, extents, bases, caches, monkeypatch, sizes=None):
    """What the plain simulator sees of the accesses that the interpreter makes."""
    stream = []

    def recorded(method, write):
        def access(self, indices, *value):
            at = int(np.ravel_multi_index(self.place(indices), self.data.shape)) if indices else 0
            size = (sizes or {}).get(self.name, self.data.dtype.itemsize)
            stream.append((bases[self.name] + size * at, write, list(bases).index(self.name)))
            return method(self, indices, *value)

        return access

    memory = Memory
    with monkeypatch.context() as patched:
        patched.setattr(memory, "read", recorded(memory.read, False))
        patched.setattr(memory, "write", recorded(memory.write, True))
        interpret(procedure, inputs, extents)
    addresses, writes, tensors = (np.array(column) for column in zip(*stream, strict=True))
    return lru.replay(caches, addresses, writes, tensors, tuple(bases))


def places(procedure, gap=8):
    """An address for every tensor, in an order of their own."""
    names = [t.name for t in address_stream(procedure).tensors]
    return {name: 8 * gap * 1000 * (len(names) - number) for number, name in enumerate(names)}


def agrees(procedure, inputs, monkeypatch, *, trace="", extents=None, sizes=None):
    """The report on a procedure, if the interpreter's accesses lead to the same."""
    steps = parse_trace(trace)
    after = apply_trace(procedure, steps)
    bases = places(after)
    options = {"caches": CACHES, "extents": extents, "bases": bases, "element_bytes": sizes}
    found = cache_misses(procedure, steps, inputs=inputs, **options)
    assert found == seen(after, inputs, extents, bases, CACHES, monkeypatch, sizes)
    assert found.first.total.accesses > 0
    return found


def floats(*shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).random(shape).astype(dtype)


@pytest.mark.parametrize("trace", ["", "reorder('j', 'i')", TILES, KINDS])
def test_accesses_of_a_scheduled_nest_are_the_interpreter_s(trace, monkeypatch):
    inputs = {"A": floats(5, 7), "B": floats(7, 8)}
    found = agrees(matmul(5, 8, 7), inputs, monkeypatch, trace=trace)
    assert found.first.of("A").accesses == 5 * 8 * 7
    assert found.first.of("C").accesses == 5 * 8 * (2 * 7 + 1)


@pytest.mark.parametrize(
    "problem",
    [
        blur(h=6, w=9),
        softmax(rows=3, cols=7),
        histogram(n=40, bins=8),
        spmv(rows=12, cols=9, nnz=30),
        prefix_sum(n=25),
        jacobi1d(n=20, t=4),
    ],
    ids=lambda problem: problem.name,
)
def test_accesses_of_problems_are_the_interpreter_s(problem, monkeypatch):
    workload = problem.workloads[0]
    inputs = problem.inputs(workload, np.random.default_rng(1))
    agrees(definition_of(problem, workload), inputs, monkeypatch, extents=workload.fixed)


def test_only_what_decides_is_asked_for_and_computed():
    assert address_stream(matmul()).inputs == ()
    problem = spmv(rows=12, cols=9, nnz=30)
    procedure = definition_of(problem, problem.workloads[0])
    stream = address_stream(procedure)
    assert set(stream.inputs) == {"pos", "crd"}
    with pytest.raises(MissesError, match="expected its values, which decide what is accessed"):
        cache_misses(procedure, caches=CACHES, extents=problem.workloads[0].fixed)


def test_a_choice_reads_one_side_only(monkeypatch):
    i = Var("i")
    left, right = Load("x", (i,)), Load("y", (Binary("sub", whole(9), i),))
    first = Binary("gt", Load("m", (i,)), Const(0, "int32"))
    both = Binary("and", first, Binary("gt", Load("x", (i,)), f32(0.5)))
    either = Binary("or", both, Binary("lt", Load("y", (i,)), f32(0.2)))
    store = Store("out", (i,), Select(either, left, add(right, f32(1.0))))
    tensors = (
        tensor("m", 10, dtype="int32"),
        tensor("x", 10),
        tensor("y", 10),
        tensor("out", 10, role="output"),
    )
    procedure = Procedure("choose", (), tensors, For("i", whole(10), store))
    mask = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 1], np.int32)
    inputs = {"m": mask, "x": floats(10), "y": floats(10, seed=2)}
    found = agrees(procedure, inputs, monkeypatch)
    assert found.first.of("m").accesses == 10
    assert found.first.of("x").accesses < 16


def test_indices_that_the_procedure_computes_itself(monkeypatch):
    """A permutation is written, then read as an index, its sums and extremes included."""
    i, j = Var("i"), Var("j")
    rank = Tensor("rank", (whole(8),), "int64")
    start = Store("rank", (i,), whole(0))
    smaller = Binary("lt", Load("key", (j,)), Load("key", (i,)))
    count = If(smaller, Store("rank", (i,), whole(1), "add"))
    ranked = For("i", whole(8), Block((start, For("j", whole(8), count))))
    p = Var("p")
    place = Load("rank", (p,))
    scatter = For("p", whole(8), Store("out", (place,), Load("key", (p,))))
    body = Allocate(rank, Block((ranked, scatter)))
    tensors = (tensor("key", 8), tensor("out", 8, role="output"))
    procedure = Procedure("sort", (), tensors, body)
    agrees(procedure, {"key": np.random.default_rng(3).permutation(8).astype("f4")}, monkeypatch)


def test_outputs_may_decide_too(monkeypatch):
    i, q = Var("i"), Var("q")
    most = For("i", whole(6), Store("top", (), Load("n", (i,)), "max"))
    start = Store("top", (), whole(0))
    loaded = For("q", Load("top", ()), Store("y", (), Load("x", (q,)), "add"))
    tensors = (
        tensor("n", 6, dtype="int64"),
        tensor("x", 50),
        tensor("top", dtype="int64", role="output"),
        tensor("y", role="output"),
    )
    body = Block((start, most, Store("y", (), f32(0.0)), loaded))
    procedure = Procedure("upto", (), tensors, body)
    inputs = {"n": np.array([3, 9, 30, 2, 1, 0]), "x": floats(50)}
    assert agrees(procedure, inputs, monkeypatch).first.of("x").accesses == 30


def test_extents_are_given_and_shape_temporaries(monkeypatch):
    i = Var("i")
    temporary = Tensor("t", (add(Var("n"), whole(1)),), "float64")
    fill = For("i", Var("n"), Store("t", (i,), Cast("float64", Load("x", (i,)))))
    q = Var("q")
    use = For("q", Var("n"), Store("y", (q,), Load("t", (q,))))
    tensors = (tensor("x", "n"), tensor("y", "n", dtype="float64", role="output"))
    procedure = Procedure("f", ("n",), tensors, Allocate(temporary, Block((fill, use))))
    agrees(procedure, {"x": floats(37)}, monkeypatch, extents={"n": 37})
    # One behind the other: 4, 8 and 8 bytes an element, t one longer.
    line = cache_misses(procedure, caches=[Cache(1 << 16, 8, 64)], extents={"n": 16}).first
    assert line.total.misses == line.total.compulsory == 1 + 2 + 2
    for extents, message in (
        ({}, "expected extents"),
        ({"n": -1}, "whole number"),
        ({"n": 2**31}, "whole number"),
    ):
        with pytest.raises(MissesError, match=message):
            cache_misses(procedure, caches=CACHES, extents=extents)


def test_sizes_of_elements_may_be_given(monkeypatch):
    inputs = {"A": floats(5, 7), "B": floats(7, 8)}
    found = agrees(matmul(5, 8, 7), inputs, monkeypatch, sizes={"A": 1, "B": 16})
    assert found != agrees(matmul(5, 8, 7), inputs, monkeypatch)
    for sizes, message in (
        ({"D": 4}, "expected one of A, B, C"),
        ({"A": 3}, r"expected 2\^n"),
        ({"A": 4.0}, r"expected 2\^n, found 4.0"),
        ({"A": True}, r"expected 2\^n, found True"),
    ):
        with pytest.raises(ValueError, match=message):
            cache_misses(matmul(), caches=CACHES, element_bytes=sizes)
    with pytest.raises(MissesError, match="no longer than a line of 32 bytes"):
        cache_misses(matmul(), caches=CACHES, element_bytes={"A": 64})


def test_what_is_no_access():
    """Registers, writes past the caches and prefetches; an instruction is what it stands for."""
    i = Var("i")
    kept = Tensor("r", (), "float32", scope="register")
    body = Block(
        (
            Store("r", (), mul(Load("x", (i,)), f32(2.0))),
            Prefetch("x", (Binary("min", add(i, whole(4)), whole(15)),)),
            Call("write_past", Store("y", (i,), Load("r", ()), None, True)),
        )
    )
    tensors = (tensor("x", 16), tensor("y", 16, role="output"))
    procedure = Procedure("f", (), tensors, For("i", whole(16), Allocate(kept, body)))
    first = cache_misses(procedure, caches=CACHES).first
    assert first.total.accesses == first.of("x").accesses == 16
    waiting = Procedure("f", (), tensors, For("i", whole(16), Barrier()))
    with pytest.raises(CodegenError, match="expected no barrier"):
        cache_misses(waiting, caches=CACHES)


def test_addresses_are_all_given_or_none():
    with pytest.raises(MissesError, match=r"expected one for each of \['A', 'B', 'C'\]"):
        cache_misses(matmul(), caches=CACHES, bases={"A": 0})
    with pytest.raises(MissesError, match="B: expected a multiple of an element's 4 bytes"):
        cache_misses(matmul(), caches=CACHES, bases={"A": 0, "B": 1026, "C": 4096})
    with pytest.raises(MissesError, match=r"B: expected a multiple .* found 1024\.0"):
        cache_misses(matmul(), caches=CACHES, bases={"A": 0, "B": 1024.0, "C": 4096})
    with pytest.raises(MissesError, match="A: expected addresses of 0 to"):
        cache_misses(matmul(), caches=CACHES, bases={"A": -64, "B": 0, "C": 4096})


def test_inputs_of_another_kind_are_refused():
    problem = histogram(n=40, bins=8)
    procedure = definition_of(problem, problem.workloads[0])
    (name,) = address_stream(procedure).inputs
    extents = problem.workloads[0].fixed
    with pytest.raises(MissesError, match=f"{name}: expected .*, found float64"):
        cache_misses(procedure, caches=CACHES, extents=extents, inputs={name: np.zeros(40)})


def test_an_illegal_schedule_is_refused():
    with pytest.raises(ScheduleError):
        cache_misses(matmul(), parse_trace("vectorize('k')"), caches=CACHES)


@pytest.mark.parametrize("n", [60, 64, 128])
def test_footprints_are_near_what_is_simulated(n):
    """The model of `footprint` beside the simulator: orders, sizes and pitches, conflicts too."""
    orders = ("", "reorder('i', 'k', 'j')", BLOCKS, f"{BLOCKS}reorder('jo', 'io')")
    a, b, k = te.placeholder("A", (n, n)), te.placeholder("B", (n, n)), te.reduce_axis("k", n)
    c = te.compute(
        "C", (n, n), lambda i, j: te.reduce_sum(a[i, k.value] * b[k.value, j], k), [a, b]
    )
    update = parts(te.lower("matmul", [c]))[-1]
    modelled, simulated = [], []
    for trace, cache in product(orders, (Cache(8192, 4, 64), Cache(32768, 8, 64))):
        procedure = apply_trace(update, parse_trace(trace))
        nest = read_nest(procedure, 1)
        reads = replace(nest, accesses=tuple(a for a in nest.accesses if not a.writes))
        ((found,),) = crossings(reads, [cache])
        modelled.append(found.lines)
        simulated.append(cache_misses(procedure, caches=[cache]).first.total.misses)
    ratios = np.array(modelled) / np.array(simulated)
    assert ratios.min() > 1 / 2
    assert ratios.max() < 3
    assert np.median(np.abs(np.log(ratios))) < 0.25
    assert spearman(np.array(modelled), np.array(simulated)) > 0.75


def test_the_table_has_a_row_an_order():
    x = te.placeholder("x", (64, 64))
    turned = te.lower("turn", [te.compute("y", (64, 64), lambda i, j: x[j, i], [x])])
    orders = {"rows": (turned, ()), "tiles": (turned, parse_trace("tile('i', 'j', 16, 16)"))}
    rows, tiles = miss_table(orders, Cache(8192, 4, 64))
    assert rows == MissRow("rows", 8192, 4352, 512, 0, 3840)
    assert tiles.misses < rows.misses
    assert tiles.compulsory + tiles.capacity + tiles.conflict == tiles.misses
