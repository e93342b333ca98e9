"""Places chosen by memory that nobody writes: what loops carry there, and boxes of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from programs import add, mul

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Cast,
    Const,
    For,
    If,
    Load,
    Procedure,
    Store,
    Tensor,
    Var,
    loops,
    map_statements,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import lower as generate
from kernelwright.env.compiler.poly.dependence import Dependences, counterexample
from kernelwright.env.compiler.poly.distance import carries_nothing
from kernelwright.env.compiler.schedule.edit import replace_variables
from kernelwright.env.compiler.schedule.proposals import proposals
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, parse_trace
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.storage import from_dense

SPMV = "y(i) = A(i,j) * x(j)"
BLOCKS = "dense(i/8) compressed(j/8) dense(j%8) dense(i%8)"
STRIPS = "dense(i/8) compressed(j) dense(i%8)"
I, J, K = (Var(name) for name in "ijk")  # noqa: E741
ZERO = Const(0.0, "float64")
PLACES = 40


def memory(name, *places, dtype="int64"):
    found = Load(name, places)
    return found if dtype == "int64" else Cast("int64", found)


def nest(body, extents=None, outputs=()):
    """Loops i, j and k around stores to ``y``, with whole numbers in ``a`` and ``b``."""
    tensors = (
        Tensor("a", (whole(4),), "int64", "input"),
        Tensor("b", (whole(4),), "int64", "input"),
        Tensor("y", (whole(PLACES),), "float64", "output"),
        *outputs,
    )
    for var, extent in reversed((extents or {"i": 3, "j": 4}).items()):
        body = For(var, whole(extent), body)
    zero = For("z", whole(PLACES), Store("y", (Var("z"),), ZERO))
    return verify(Procedure("f", (), tensors, Block((zero, body))))


def sparse(statement, forms, sizes, rng, density=0.3):
    """A lowered statement with its inputs."""
    counts, inputs, stored = {}, {}, {}
    for name, (form, shape) in forms.items():
        dense = np.where(rng.random(shape) < density, rng.integers(1, 9, shape), 0).astype(float)
        if form is None:
            inputs[name] = rng.integers(1, 9, shape).astype(float)
            continue
        packed = from_dense(parse_format(form, len(shape)), dense)
        stored[name] = packed.format
        own = packed.arguments(name)
        counts |= {key[:-4]: array.size for key, array in own.items() if key.endswith("_crd")}
        inputs |= own
    known = dict(program(statement, stored, sizes=sizes).counts)
    counts = {level: count for level, count in counts.items() if level in known}
    made = lower(program(statement, stored, sizes=sizes, counts=counts))
    return made, {
        tensor.name: inputs[tensor.name] for tensor in made.tensors if tensor.role == "input"
    }


def spmv(form, n=16, m=24, seed=0, density=0.3):
    rng = np.random.default_rng(seed)
    forms = {"A": (form, (n, m)), "x": (None, (m,))}
    return sparse(SPMV, forms, {"i": n, "j": m}, rng, density)


def mttkrp(seed=0):
    rng = np.random.default_rng(seed)
    sizes = {"i": 6, "j": 5, "k": 4, "r": 16}
    forms = {"T": ("csf", (6, 5, 4)), "C": (None, (5, 16)), "D": (None, (4, 16))}
    return sparse("M(i,r) = T(i,j,k) * C(j,r) * D(k,r)", forms, sizes, rng)


def same(before, after, inputs):
    wanted, got = (interpret(each, inputs, {}) for each in (before, after))
    for name, array in wanted.items():
        np.testing.assert_array_equal(got[name], array, err_msg=print_procedure(after))


A = memory("a", I)


@pytest.mark.parametrize(
    ("place", "other", "carrying"),
    [
        # A row that memory chooses: nothing within it, anything between two.
        (add(A, J), add(A, J), "i"),
        (add(mul(A, whole(2)), J), add(mul(A, whole(2)), J), "i"),
        (add(Binary("max", A, whole(2)), J), add(Binary("max", A, whole(2)), J), "i"),
        (add(A, mul(J, whole(2))), add(A, add(mul(J, whole(2)), whole(1))), "i"),
        (add(A, J), add(A, add(J, whole(1))), "ij"),
        (add(Binary("floordiv", A, whole(2)), J), add(Binary("floordiv", A, whole(2)), J), "i"),
        # Its remainder by 2 and twice a loop leave no other element the same.
        (add(Binary("mod", A, whole(2)), mul(J, whole(2))), mul(J, whole(2)), "i"),
        (add(Binary("mod", A, whole(3)), mul(J, whole(2))), mul(J, whole(2)), "ij"),
        # It moves with the loop.
        (memory("a", J), memory("a", J), "ij"),
        (add(memory("a", J), I), add(memory("a", J), I), "ij"),
        # The same number wherever it is read.
        (add(memory("a", whole(1)), add(mul(I, whole(4)), J)),) * 2 + ("",),
        # Other terms: other memory, other places of it.
        (add(A, J), add(memory("b", I), J), "ij"),
        (add(A, J), add(memory("a", add(I, whole(1))), J), "ij"),
        (add(A, J), J, "ij"),
        (add(mul(A, A), J), add(mul(A, A), J), "i"),
    ],
)
def test_what_loops_carry(place, other, carrying):
    procedure = nest(
        Store("y", (place,), Binary("add", Load("y", (other,)), Const(1.0, "float64")))
    )
    inner = replace(procedure, body=procedure.body.body[1])
    found = {loop.var for loop in loops(inner) if Dependences(inner).carried_by(loop.var)}
    assert found == set(carrying)
    for loop in loops(inner):
        trace = parse_trace(f'parallel("{loop.var}")')
        if loop.var in carrying:
            with pytest.raises(ScheduleError, match="carries a dependence"):
                apply_trace(procedure, trace)
        else:
            apply_trace(procedure, trace)


def test_memory_that_is_written_is_not_one_number():
    """The row is chosen anew by every iteration of j."""
    counter = Tensor("c", (whole(4),), "int64", "output")
    body = Block(
        (
            Store("y", (add(memory("c", I), J),), ZERO),
            Store("c", (I,), whole(1), "add"),
        )
    )
    zero = Store("c", (I,), whole(0))
    procedure = nest(body, outputs=(counter,))
    start, found = procedure.body.body
    procedure = replace(
        procedure,
        body=Block((For("q", whole(4), replace(zero, indices=(Var("q"),))), start, found)),
    )
    inner = replace(procedure, body=found)
    assert Dependences(inner).carried_by("j") is not None
    # Of y alone, too: c is what it meets by.
    only = [each for each in Dependences(inner).model.instances if each.store.tensor == "y"]
    assert len(only) == 1
    with pytest.raises(ScheduleError, match="carries a dependence"):
        apply_trace(verify(procedure), parse_trace('parallel("j")'))


@pytest.mark.parametrize(
    ("step", "legal", "across"),
    [
        ((-1, -1), True, False),
        ((-1, 0), True, False),
        ((0, -1), True, True),
        ((-1, 1), False, False),
    ],
)
def test_orders_inside_of_a_row(step, legal, across):
    """A stencil in a plane that memory chooses: its loops may be exchanged where it allows that."""
    shape = (whole(4), whole(6), whole(6))
    tensors = (
        Tensor("a", (whole(4),), "int64", "input"),
        Tensor("t", shape, "float64", "output"),
    )
    plane = memory("a", I)
    j, k = add(J, whole(1)), add(K, whole(1))
    read = Load("t", (plane, add(j, whole(step[0])), add(k, whole(step[1]))))
    body = Store("t", (plane, j, k), Binary("add", read, Const(1.0, "float64")))
    for var, extent in (("k", 4), ("j", 4), ("i", 3)):
        body = For(var, whole(extent), body)
    names = [Var(name) for name in ("p", "q", "r")]
    zero = Store("t", tuple(names), ZERO)
    for var, extent in zip(reversed(names), reversed(shape), strict=True):
        zero = For(var.name, extent, zero)
    procedure = verify(Procedure("f", (), tensors, Block((zero, body))))
    for trace in ('reorder("j", "k", "k j")', 'tile("j", "k", 2, 2)'):
        directives = parse_trace(trace.replace('"j", "k", "k j"', '"k", "j"'))
        if legal:
            after = apply_trace(procedure, directives)
            rng = np.random.default_rng(0)
            for _ in range(5):
                same(procedure, after, {"a": rng.integers(0, 4, 4)})
        else:
            with pytest.raises(ScheduleError, match="turns a dependence around"):
                apply_trace(procedure, directives)
    # Two planes may be one.
    if across:
        apply_trace(procedure, parse_trace('reorder("j", "i")'))
    else:
        with pytest.raises(ScheduleError, match="turns a dependence around"):
            apply_trace(procedure, parse_trace('reorder("j", "i")'))


def random_index(rng):
    """A sum of loop variables and of terms that read memory, some in minima and quotients."""
    out = whole(int(rng.integers(4, 8)))
    for name in "ijk":
        if factor := int(rng.choice((0, 0, 1, 1, 2))):
            out = add(out, mul(Var(name), whole(factor)))
    for _ in range(int(rng.integers(0, 3))):
        place = Var(str(rng.choice(list("ijk")))) if rng.random() < 0.8 else whole(1)
        if rng.random() < 0.2:
            place = add(place, whole(1))
        term = memory(str(rng.choice(("a", "b"))), place)
        if rng.random() < 0.4:
            op = str(rng.choice(("min", "max", "floordiv", "mod")))
            term = Binary(op, term, whole(int(rng.integers(2, 4))))
        out = add(out, mul(term, whole(int(rng.integers(1, 4)))))
    return out


def number(node, values, memory):
    match node:
        case Const(value):
            return int(value)
        case Var(name):
            return values[name]
        case Load(name, (place,)):
            return int(memory[name][number(place, values, memory)])
        case Binary(op, left, right):
            a, b = number(left, values, memory), number(right, values, memory)
            return {
                "add": a + b,
                "mul": a * b,
                "min": min(a, b),
                "max": max(a, b),
                "floordiv": a // b if b else 0,
                "mod": a % b if b else 0,
            }[op]
    raise AssertionError(node)


def meeting_loops(writes, reads, extents, memory):
    """The loops with two iterations of one run that meet at an element."""
    touched = {}
    names = list(extents)
    for at in product(*(range(extent) for extent in extents.values())):
        values = dict(zip(names, at, strict=True))
        for index, is_write in [*((w, True) for w in writes), *((r, False) for r in reads)]:
            place = number(index, values, memory)
            touched.setdefault(place, []).append((at, is_write))
    found = set()
    for uses in touched.values():
        for (one, w1), (other, w2) in product(uses, uses):
            if (w1 or w2) and one != other:
                depth = next(d for d in range(len(one)) if one[d] != other[d])
                found.add(names[depth])
    return found


def test_random_programs_against_all_their_iterations():
    """What a loop is said not to carry no contents of memory show; interval arithmetic proves no
    more than isl; and most of what isl finds some contents do show.
    """
    rng = np.random.default_rng(2)
    extents = {"i": 2, "j": 3, "k": 2}
    free = proved = claimed = shown = 0
    for _ in range(120):
        write, read = random_index(rng), random_index(rng)
        read = write if rng.random() < 0.5 else read
        body = Store("y", (write,), Binary("add", Load("y", (read,)), Const(1.0, "float64")))
        procedure = nest(body, extents)
        inner = replace(procedure, body=procedure.body.body[1])
        dependences = Dependences(inner)
        carried = {var for var in extents if dependences.carried_by(var) is not None}
        quick = {var for var in extents if carries_nothing(dependences.model, var)}
        exact = {var for var in extents if _by_isl(dependences, var)}
        assert carried == exact, print_procedure(inner)
        assert not (quick & exact)
        seen = set()
        for _ in range(60):
            contents = {name: rng.integers(0, 5, 4) for name in "ab"}
            seen |= meeting_loops([write], [read], extents, contents)
        assert seen <= carried, print_procedure(procedure)
        free += len(extents) - len(carried)
        proved += len(quick)
        claimed += len(carried)
        shown += len(seen)
    assert proved > 40, proved
    assert free > proved
    assert shown > 0.9 * claimed, (shown, claimed)


def _by_isl(dependences, var):
    inside = list(dependences.model.instances)
    run = dependences._equal(inside, lambda i: i.variables[: i.variables.index(var)])
    iteration = dependences._equal(inside, lambda i: (var,))
    pairs = dependences.pairs.intersect(run).subtract(iteration)
    return counterexample(dependences.model, pairs) is not None


@pytest.mark.parametrize(
    ("form", "accepted", "refused"),
    [
        ("dia", ("i",), ("A_diagonal",)),
        ("dcsr", (), ("i", "j")),
        ("ellslots(24)", ("i",), ("j",)),
        (BLOCKS, ("io", "ii"), ("jo", "ji")),
    ],
)
def test_loops_of_formats(form, accepted, refused):
    procedure, inputs = spmv(form)
    for var, op in product(accepted, ("parallel", "vectorize")):
        lanes = ", 8" if op == "vectorize" and var != "ii" else ""
        if op == "vectorize" and var == "io":
            continue
        after = apply_trace(procedure, parse_trace(f'{op}("{var}"{lanes})'))
        same(procedure, after, inputs)
        generate(after, ())
    for var in refused:
        with pytest.raises(ScheduleError, match="carries a dependence"):
            apply_trace(procedure, parse_trace(f'parallel("{var}")'))


def test_a_row_of_a_factor():
    procedure, inputs = mttkrp()
    for trace in ('vectorize("r", 8)', 'parallel("r")', 'reorder("r", "k")'):
        same(procedure, apply_trace(procedure, parse_trace(trace)), inputs)
    for var in "ijk":
        with pytest.raises(ScheduleError, match="carries a dependence"):
            apply_trace(procedure, parse_trace(f'parallel("{var}")'))


REGISTERS = 'cache_write("y", "io", "register")\nvectorize("y_write_out0")'


@pytest.mark.parametrize(
    ("form", "trace", "shape"),
    [
        ("dcsr", 'cache_write("y", "i", "register")', "y_write: float64[1]"),
        ("dcsr", 'scalar_replacement("y", "j")', "y_register: float64[1]"),
        (BLOCKS, f'vectorize("iiz")\nvectorize("ii")\nunroll("ji")\n{REGISTERS}', "float64[8]"),
        (STRIPS, f'vectorize("iiz")\nvectorize("ii")\n{REGISTERS}', "float64[8]"),
        ("ellslots(24)", f'vectorize("i", 8)\n{REGISTERS}', "float64[8]"),
        ("dia", 'split("i", 32, "", "", "partition")\nvectorize("ii", 8)\nunroll("iio")', ""),
    ],
)
def test_rows_in_registers(form, trace, shape):
    procedure, inputs = spmv(form, 40, 40)
    after = apply_trace(procedure, parse_trace(trace))
    assert shape in print_procedure(after)
    same(procedure, after, inputs)
    source = generate(procedure, parse_trace(trace)).source
    if shape.endswith("[8]"):
        assert "f64x8 kw_y_write_0;" in source


def test_a_row_of_numbers_in_registers():
    procedure, inputs = mttkrp()
    trace = 'vectorize("r", 8)\nunroll("ro")\nscalar_replacement("M", "j")\n'
    after = apply_trace(procedure, parse_trace(trace))
    assert "M_register: float64[1, 16]" in print_procedure(after)
    same(procedure, after, inputs)
    assert "f64x8 kw_M_register_" in generate(procedure, parse_trace(trace)).source


def test_an_empty_row_may_have_the_coordinate_of_none():
    """The copy is made where the statement would touch the row, and nowhere else."""
    procedure, inputs = spmv("dcsr", density=0.2)
    pos, crd = inputs["A2_pos"].copy(), inputs["A1_crd"].copy()
    assert len(crd) > 3
    pos[2], crd[1] = pos[1], 1000
    inputs = {**inputs, "A2_pos": pos, "A1_crd": crd}
    for trace in ('cache_write("y", "i", "register")', 'scalar_replacement("y", "j")'):
        same(procedure, apply_trace(procedure, parse_trace(trace)), inputs)


NEVER = Binary("lt", J, whole(0))


def guarded_rows(guard):
    """A row that is only touched under a guard, and whose number may be that of none."""
    tensors = (
        Tensor("a", (whole(4),), "int64", "input"),
        Tensor("b", (whole(4),), "int64", "input"),
        Tensor("y", (whole(6),), "float64", "output"),
    )
    store = Store("y", (memory("a", I),), Const(1.0, "float64"), "add")
    inner = For("j", memory("b", I), For("k", whole(2), If(guard, store)))
    body = Block((For("z", whole(6), Store("y", (Var("z"),), ZERO)), For("i", whole(4), inner)))
    return verify(Procedure("f", (), tensors, body))


@pytest.mark.parametrize(
    ("guard", "numbers"),
    [
        # The guard says of which rows there is a place.
        (Binary("lt", A, whole(6)), ([2, 9, 5, 7], [1, 2, 0, 3])),
        # Only some iterations have one, which memory decides.
        (Binary("lt", memory("a", J), whole(6)), ([2, 5, 9, 3], [1, 2, 0, 1])),
        # No iteration has.
        (NEVER, ([9, 9, 9, 9], [3, 3, 3, 3])),
        (Binary("lt", J, whole(1)), ([1, 3, 9, 9], [3, 3, 0, 0])),
    ],
)
def test_rows_under_guards(guard, numbers):
    procedure = guarded_rows(guard)
    inputs = {name: np.array(each) for name, each in zip("ab", numbers, strict=True)}
    for trace in (
        'cache_write("y", "i", "register")',
        'scalar_replacement("y", "j")',
        'scalar_replacement("y", "k")',
    ):
        after = apply_trace(procedure, parse_trace(trace))
        # What never runs touches no row of its own.
        size = 6 if guard == NEVER else 1
        assert f": float64[{size}]  # register" in print_procedure(after)
        same(procedure, after, inputs)


def test_a_number_that_is_read_only_behind_another_is_not_asked_first():
    """An empty outer loop leaves the number of the inner one unread: it may have no place."""
    inner = For("k", memory("b", memory("a", I)), Store("y", (A,), Const(1.0, "float64"), "add"))
    tensors = (
        Tensor("a", (whole(4),), "int64", "input"),
        Tensor("b", (whole(4),), "int64", "input"),
        Tensor("c", (whole(4),), "int64", "input"),
        Tensor("y", (whole(6),), "float64", "output"),
    )
    nest_ = For("i", whole(4), For("j", memory("c", I), inner))
    zero = For("z", whole(6), Store("y", (Var("z"),), ZERO))
    procedure = verify(Procedure("f", (), tensors, Block((zero, nest_))))
    inputs = {
        "a": np.array([2, 1000, 1, -5]),
        "b": np.array([3, 2, 1, 0]),
        "c": np.array([2, 0, 1, -1]),
    }
    for trace in ('cache_write("y", "i", "register")', 'scalar_replacement("y", "j")'):
        after = apply_trace(procedure, parse_trace(trace))
        assert ": float64[1]" in print_procedure(after)
        same(procedure, after, inputs)


def test_a_row_that_changes_meanwhile_is_copied_whole():
    """The place is another in the next iteration: there is no one element."""
    body = Store("y", (memory("a", J),), Const(1.0, "float64"), "add")
    after = apply_trace(nest(body), parse_trace('cache_write("y", "i", "stack")'))
    assert f"y_write: float64[{PLACES}]" in print_procedure(after)
    inner = apply_trace(nest(body), parse_trace('cache_write("y", "j", "register")'))
    assert "y_write: float64[1]" in print_procedure(inner)


def test_two_rows_that_memory_chooses_are_copied_whole():
    read = Load("y", (memory("b", I),))
    body = Store("y", (add(memory("a", I), J),), Binary("add", read, Const(1.0, "float64")))
    after = apply_trace(nest(body), parse_trace('cache_write("y", "i", "stack")'))
    assert f"y_write: float64[{PLACES}]" in print_procedure(after)


FUZZED = {
    "dia": lambda seed: spmv("dia", 10, 12, seed),
    "dcsr": lambda seed: spmv("dcsr", 10, 12, seed),
    "csr": lambda seed: spmv("csr", 9, 8, seed),
    "csc": lambda seed: spmv("csc", 9, 8, seed),
    "coo": lambda seed: spmv("coo", 9, 8, seed),
    "ellslots": lambda seed: spmv("ellslots(12)", 10, 12, seed),
    "blocks": lambda seed: spmv("dense(i/4) compressed(j/2) dense(j%2) dense(i%4)", 10, 12, seed),
    "whole blocks": lambda seed: spmv("bcsr(4,2)", 8, 12, seed),
    "csf": mttkrp,
}
OPS = (
    *("vectorize", "parallel", "unroll", "reorder", "split", "fuse", "tile", "reverse", "peel"),
    *("cache_write", "cache_read", "scalar_replacement", "unroll_and_jam", "partition", "fission"),
)


def backwards(procedure):
    """Loops whose iterations have no order from the last to the first."""

    def turned(node):
        if isinstance(node, For) and str(node.kind) in ("parallel", "vectorized"):
            last = Binary("sub", Binary("sub", node.extent, whole(1)), Var(node.var))
            return replace(node, body=replace_variables(node.body, {node.var: last}))
        return node

    return replace(procedure, body=map_statements(procedure.body, lambda e: e, turned))


@pytest.mark.parametrize("name", sorted(FUZZED))
def test_random_schedules_of_sparse_nests(name):
    """Three directives at random, of those that are accepted: the results stay the same."""
    rng = np.random.default_rng(len(name))
    accepted = 0
    for seed in range(6):
        procedure, inputs = FUZZED[name](seed)
        for _ in range(4):
            now = procedure
            for _ in range(3):
                offers = list(proposals(now, str(rng.choice(OPS))))
                for at in rng.permutation(len(offers))[:4]:
                    try:
                        now = apply(now, offers[at])
                    except ScheduleError:
                        continue
                    accepted += 1
                    break
            same(procedure, now, inputs)
            same(procedure, backwards(now), inputs)
    assert accepted > 20
