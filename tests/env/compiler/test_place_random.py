"""Random pipelines under random schedules: what is accepted computes the same bits, and reads
nothing undefined or outside its tensor.
"""

from __future__ import annotations

import random

import numpy as np
import pipelines
import pytest
from test_place import inputs_of

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import Allocate, For, Store, loops, statements
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.schedule.producer import scope_of
from kernelwright.env.compiler.schedule.trace import apply, print_trace
from kernelwright.env.types import Directive

INDEX = {
    "same": (lambda v: v, lambda last: last),
    "up": (lambda v: v // 2, lambda last: last // 2),
    "down": (lambda v: 2 * v, lambda last: 2 * last),
}


def random_pipeline(rng):
    """Two or three stages of one or two axes, each a weighted sum of places of the one before."""
    rank = rng.choice((1, 2, 2))
    shape = [rng.randrange(4, 8) for _ in range(rank)]
    plan = []
    for _ in range(rng.randrange(2, 4)):
        kinds = [rng.choice(("same", "same", "same", "up", "down")) for _ in range(rank)]
        steps = [[rng.randrange(3) for _ in range(rank)] for _ in range(rng.randrange(1, 4))]
        plan.append((kinds, steps, list(shape)))
        shape = [
            INDEX[kind][1](size - 1) + max(step[axis] for step in steps) + 1 + rng.randrange(2)
            for axis, (kind, size) in enumerate(zip(kinds, shape, strict=True))
        ]
    current = te.placeholder("x", shape)
    for number, (kinds, steps, size) in enumerate(reversed(plan)):
        over = te.reduce_axis(f"r{number}", 2) if rng.random() < 0.2 else None

        def body(*places, before=current, kinds=kinds, steps=steps, over=over):
            total = None
            for weight, step in enumerate(steps):
                read = [
                    INDEX[kind][0](place) + offset
                    for kind, place, offset in zip(kinds, places, step, strict=True)
                ]
                term = before[tuple(read)] * float(weight + 1)
                total = term if total is None else total + term
            if over is None:
                return total
            return te.reduce_sum(total * te.cast(over.value, "float32"), over)

        axes = [f"{'yx'[axis]}{number}" for axis in range(rank)]
        current = pipelines.stage(f"s{number}", size, axes, body, [current])
    return te.lower("p", [current])


def temporaries(procedure):
    return [s.tensor.name for s in statements(procedure.body) if isinstance(s, Allocate)]


def consumer_loops(procedure):
    """The loops of the nest that writes the output."""
    output = procedure.tensors[-1].name
    for nest in scope_of(procedure.body):
        if any(isinstance(s, Store) and s.tensor == output for s in statements(nest)):
            return [s.var for s in statements(nest) if isinstance(s, For)]
    raise AssertionError(output)


def plan(rng, procedure):
    """A likely schedule, a step at a time: split, place from the last stage on, store from the
    first on, fold, and anything.
    """
    names = temporaries(procedure)
    for _ in range(rng.randrange(3)):
        yield lambda now: Directive(
            "split", rng.choice(consumer_loops(now)), (rng.randrange(2, 4),)
        )
    for name in reversed(names):
        if rng.random() < 0.75:
            yield lambda now, name=name: Directive(
                "compute_at", name, (rng.choice(consumer_loops(now)),)
            )
        elif rng.random() < 0.5:
            yield lambda now, name=name: Directive("compute_inline", name)
    for name in names:
        if rng.random() < 0.5:
            yield lambda now, name=name: Directive("store_root", name)
        else:
            yield lambda now, name=name: Directive(
                "store_at", name, (rng.choice(consumer_loops(now)),)
            )
    for name in names:
        yield lambda now, name=name: Directive(
            "fold_storage", name, (rng.randrange(2), rng.choice((0, 0, 2, 3, 4)))
        )
    for op in ("reverse_compute_at", "parallel", "vectorize", "unroll"):
        if op == "reverse_compute_at":
            yield lambda now: Directive(
                "reverse_compute_at",
                rng.choice([*temporaries(now), now.tensors[-1].name]),
                (rng.choice(loops(now)).var,),
            )
        else:
            yield lambda now, op=op: Directive(op, rng.choice(loops(now)).var)


@pytest.mark.parametrize("seed", [*range(24), 30221])
def test_what_is_accepted_computes_the_same_bits(seed):
    rng = random.Random(seed)
    procedure = random_pipeline(rng)
    inputs, extents = inputs_of(procedure, seed)
    expected = interpret(procedure, inputs, extents)
    current, trace = procedure, []
    for step in plan(rng, procedure):
        directive = step(current)
        try:
            current = apply(current, directive)
        except ScheduleError:
            continue
        trace.append(directive)
        found = interpret(current, inputs, extents)
        for name, values in expected.items():
            shown = f"{print_trace(trace)}{print_procedure(current)}"
            np.testing.assert_array_equal(found[name], values, err_msg=shown)


def test_a_window_that_jumps_leaves_out_what_nobody_reads():
    """Every second place is read, five of every six in a block: no block computes the sixth."""
    x = te.placeholder("x", (15,))
    a = te.compute("a", (14,), lambda i: x[i] + x[i + 1] * 2.0, [x])
    b = te.compute("b", (7,), lambda p: a[2 * p + 1] * 3.0, [a])
    procedure = te.lower("jumps", [b])
    current = procedure
    for directive in (
        Directive("split", "p", (3,)),
        Directive("compute_at", "a", ("po",)),
        Directive("store_root", "a"),
    ):
        current = apply(current, directive)
    inputs, extents = inputs_of(procedure)
    expected = interpret(procedure, inputs, extents)["b"]
    np.testing.assert_array_equal(interpret(current, inputs, extents)["b"], expected)
