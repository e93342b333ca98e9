"""Rows of the compiler's table: how long it takes to prove a directive legal and apply it, to find
the dependences of a problem, and to lower a schedule to C.

Times are CPU times of this process, the best of a few runs, because other processes disturb what
they share; every memo of the compiler is emptied before each run, so that none hides what an answer
costs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from statistics import median
from time import process_time

from table import Row

from kernelwright.configs.resolve import resolve
from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.errors import CompilerError, ScheduleError
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.pipeline import lower
from kernelwright.env.compiler.poly.exact import NotAffineError, exact_dependences
from kernelwright.env.compiler.schedule import DIRECTIVES
from kernelwright.env.compiler.schedule.proposals import proposals
from kernelwright.env.compiler.schedule.trace import apply, parse_trace, print_trace
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.program import ProgramError, definition_of
from kernelwright.env.types import Directive

DIRECTIVE_MS = 5.0
DEPENDENCES_MS = 20.0
LOWERING_MS = 60.0
RUNS = 3
# Of the proposals of one directive for one program, how many are looked at and how many are timed.
OFFERED, TIMED = 6, 2

# A register tile of a product under blocks of its loops, with packed operands.
PACKED = """
split('p', 256)
split('i', 8)
split('j', 32)
split('ji', 16, 'ju', 'jv')
reorder('po', 'jo', 'io', 'pi', 'ii', 'ju', 'jv')
pack('A', 'i p -> i/8 p i%8', '', 'heap')
pack('B', 'p j -> j/32 p j%32', '', 'heap')
unroll('ii')
unroll('ju')
vectorize('jv')
scalar_replacement('C', 'pi')
parallel('jo')
"""
# Schedules by problem; every step of each is timed.
SCHEDULES: dict[str, tuple[str, ...]] = {
    "matmul": (
        PACKED,
        """
tile('i', 'j', 8, 16)
reorder('io', 'jo', 'p', 'ii', 'ji')
tensorize('p', 'fma_8x16_f32')
""",
        """
tile('i', 'j', 8, 48, 'partition')
reorder('p', 'ii', 'ji')
""",
        """
split('p', 8)
reassociate('C')
reorder('pi', 'po')
rfactor('pi', 'P', True)
""",
        """
split('j', 48)
reorder('jo', 'i', 'p', 'ji')
pack('B', 'p j -> j/48 p j%48', '', 'heap', 'zero')
cache_write('C', 'i', 'stack')
pad('C_write', 1, 48)
""",
        """
decompose_reduction('C', 'p')
fission('j', 1)
rename('i', 'row')
add_unit_loop('row', 'once')
""",
        """
split('p', 64)
cache_read('A', 'po')
software_pipeline('po')
""",
        """
split('p', 8)
decompose_reduction('C', 'po')
rfactor('pi', 'P', True)
reorder('pi', 'po')
set_scope('P', 'shared')
barrier('pi_final')
bind('i', 'block.x')
bind('pi_start', 'thread.x', 'pi')
""",
        """
cache_write('C', 'j', 'register')
prefetch('B', 'p', 4)
""",
        """
scalar_replacement('C', 'j')
unroll_and_jam('i', 4)
fuse('i_start', 'j_start')
""",
    ),
    "blur": (
        """
compute_inline('blurx')
stream_store('out')
vectorize('x', 8)
parallel('y')
""",
        """
split('y', 32)
compute_at('blurx', 'yi')
store_at('blurx', 'yo')
fold_storage('blurx', 0)
parallel('yo')
""",
        """
tile('y', 'x', 32, 256)
compute_at('blurx', 'xo')
storage_align('blurx', 0, 16)
reorder_storage('blurx', 1, 0)
vectorize('xi', 8)
""",
        """
compute_root('blurx')
compute_at('blurx', 'y')
store_root('blurx')
""",
        """
bound_storage('blurx', 0, 2052)
set_scope('blurx', 'heap')
fuse('yb', 'xb')
""",
    ),
    "jacobi1d": (
        "affine('step', 32)",
        "split('i', 256)\nparallel('io')",
        "peel('i', 1, 1)",
    ),
    "gauss_seidel": (
        "skew('i', 'j', 1)",
        "wavefront('i', 'j')",
        "unimodular('i', 'j', 1, 0, 1, 1)",
        "tile('i', 'j', 16, 16)",
        "affine('i', 8)",
        "reverse('ib')\nsplit('jb', 48)\npartition('jbo')",
    ),
    "scaled": (
        """
split('i', 8)
specialize('n % 8 == 0')
bound('io_special', 'n', 8)
vectorize('ii_special')
""",
    ),
}


@dataclass(frozen=True, slots=True)
class Timed:
    """What was timed, and how many milliseconds it took."""

    name: str
    ms: float

    def __str__(self) -> str:
        return f"{self.ms:.1f} ms ({self.name})"


def measured(work: Callable[[], object]) -> float:
    """The milliseconds of CPU time that something takes without memos, the least of `RUNS`."""
    taken = []
    for _ in range(RUNS):
        forget()
        began = process_time()
        work()
        taken.append(process_time() - began)
    return 1e3 * min(taken)


def forget() -> None:
    """Empty every memo of the compiler's functions."""
    for name, module in list(sys.modules.items()):
        if name.startswith("kernelwright.env.compiler."):
            for value in vars(module).values():
                clear = getattr(value, "cache_clear", None)
                if clear is not None:
                    clear()


def times() -> Iterator[Row]:
    """Rows of directives, of refusals, of dependences, and of a whole lowering."""
    yield from directive_rows()
    yield refusal_row()
    yield dependence_row()
    yield lowering_row()


def directive_rows() -> Iterator[Row]:
    """Every directive at all places of the schedules above, and some that proposals find."""
    found: dict[str, list[Timed]] = {op: [] for op in DIRECTIVES}
    for procedure, directive in applications():
        name = f"{print_trace((directive,)).strip()} on {procedure.name}"
        ms = measured(partial(apply, procedure, directive))
        found[directive.op].append(Timed(name, ms))
    for op, taken in sorted(found.items()):
        if not taken:
            yield f"legality of {op}", f"<= {DIRECTIVE_MS:g} ms", "no application", False
            continue
        middle, worst = median(each.ms for each in taken), max(taken, key=lambda each: each.ms)
        shown = f"median {middle:.1f} ms of {len(taken)}, worst {worst}"
        yield f"legality of {op}", f"<= {DIRECTIVE_MS:g} ms", shown, worst.ms <= DIRECTIVE_MS
    every = [each.ms for taken in found.values() for each in taken]
    within = sum(ms <= DIRECTIVE_MS for ms in every)
    yield (
        "legality of a directive, over all",
        f"<= {DIRECTIVE_MS:g} ms",
        f"median {median(every):.1f} ms, {within} of {len(every)} within",
        within == len(every),
    )


def refusal_row() -> Row:
    """What saying no costs, with the iterations that it names: of every directive the first few
    refused proposals on each program.
    """
    taken = []
    for name in SCHEDULES:
        procedure = scaled() if name == "scaled" else defined(name)
        for op in DIRECTIVES:
            refused = filter(
                lambda each: _conflicts(procedure, each),
                islice(proposals(procedure, op), OFFERED),
            )
            for directive in islice(refused, TIMED):
                shown = f"{print_trace((directive,)).strip()} on {procedure.name}"
                taken.append(Timed(shown, measured(partial(_conflicts, procedure, directive))))
    worst = max(taken, key=lambda each: each.ms)
    within = sum(each.ms <= DIRECTIVE_MS for each in taken)
    return (
        "refusal of a directive with its counterexample, over all",
        f"<= {DIRECTIVE_MS:g} ms",
        f"median {median(each.ms for each in taken):.1f} ms, {within} of {len(taken)} within, "
        f"worst {worst}",
        within == len(taken),
    )


def _conflicts(procedure: Procedure, directive: Directive) -> bool:
    """Whether a directive is refused with a counterexample."""
    try:
        apply(procedure, directive)
    except ScheduleError as error:
        return error.conflict is not None
    return False


def applications() -> Iterator[tuple[Procedure, Directive]]:
    """Procedures with directives that may be applied to them."""
    for name, schedules in SCHEDULES.items():
        start = scaled() if name == "scaled" else defined(name)
        yield from proposed(start)
        for text in schedules:
            procedure = start
            for directive in parse_trace(text):
                yield procedure, directive
                procedure = apply(procedure, directive)


def proposed(procedure: Procedure) -> Iterator[tuple[Procedure, Directive]]:
    """Of every directive, the first few legal proposals."""
    for op in DIRECTIVES:
        legal = filter(
            lambda each: is_legal(procedure, each), islice(proposals(procedure, op), OFFERED)
        )
        for directive in islice(legal, TIMED):
            yield procedure, directive


def is_legal(procedure: Procedure, directive: Directive) -> bool:
    """Whether a directive may be applied."""
    try:
        apply(procedure, directive)
    except CompilerError:
        return False
    return True


def scaled() -> Procedure:
    """A program whose extents are known when it is called."""
    x = te.placeholder("x", ("n",))
    double = te.compute("double", ("n",), lambda i: x[i] * 2.0, [x])
    return te.lower("scaled", [double])


def defined(name: str) -> Procedure:
    """The procedure of a problem at the size that it has by default."""
    problem = resolve(PROBLEMS, name)()
    return definition_of(problem, problem.workloads[0])


def dependence_row() -> Row:
    """The exact dependences of all problems at the sizes that they have by default."""
    taken = [
        Timed(name, measured(partial(exact_dependences, procedure)))
        for name, procedure in affine_problems()
    ]
    late = [each for each in taken if each.ms > DEPENDENCES_MS]
    worst = max(taken, key=lambda each: each.ms)
    return (
        f"dependences of a problem, each of {len(taken)}",
        f"<= {DEPENDENCES_MS:g} ms",
        f"median {median(each.ms for each in taken):.1f} ms, worst {worst}",
        not late,
    )


def affine_problems() -> Iterator[tuple[str, Procedure]]:
    """The problems whose dependences are known exactly."""
    for name in PROBLEMS:
        try:
            procedure = defined(name)
            exact_dependences(procedure)
        except (ProgramError, NotAffineError, TypeError):
            continue  # no definition, needs a file, or reads its indices from memory
        yield name, procedure


def lowering_row() -> Row:
    """The product with packing and a register tile, from the definition to the text of its C."""
    trace, procedure = parse_trace(PACKED), defined("matmul")
    # What a trace leads to is remembered by the program's text: another name is another program.
    names = (replace(procedure, name=f"matmul_{run}") for run in count())
    ms = measured(lambda: lower(next(names), trace))
    return (
        f"lowering of matmul with {len(trace)} directives, before the C compiler",
        f"<= {LOWERING_MS:g} ms",
        f"{ms:.1f} ms",
        ms <= LOWERING_MS,
    )


GROUPS = {"times": times}
