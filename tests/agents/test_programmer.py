"""The simulated programmer's C: honest edits keep the meaning, planted mistakes do not."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
from toys import CPU_PROBLEMS

from kernelwright.agents.programmer import source, sourcefaults
from kernelwright.agents.programmer.ctext import all_loops, blanked, loops, statement_end
from kernelwright.agents.programmer.moves import accumulator, is_independent, moves, scalars_written
from kernelwright.agents.programmer.reading import Sheet
from kernelwright.configs.resolve import resolve
from kernelwright.env.compiler.runtime.toolchain import BuildError, find_toolchain
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.program import extent_macros
from kernelwright.env.problems.shapes import shape_of
from kernelwright.env.types import Candidate, Language

try:
    TOOLCHAIN = find_toolchain()
except BuildError:
    TOOLCHAIN = None
needs_cc = pytest.mark.skipif(TOOLCHAIN is None, reason="needs a C compiler: gcc, clang or ziglang")

SIZES = {"m": 21, "n": 37, "k": 13, "rows": 11, "cols": 45, "h": 9, "w": 23, "t": 5, "nnz": 60}
SHEET = Sheet("c", "", "", 0.0, (), (), (), "", None, "")
KERNELS = CPU_PROBLEMS

# Calls libraries in a process of its own, which may die; knows nothing but arrays.
CALL = """
import ctypes, sys
import numpy as np
entry, folder, *libraries = sys.argv[1:]
given = dict(np.load(folder + "/given.npz"))
extents = [ctypes.c_int64(int(e)) for e in given.pop("extents")]
outputs = str(given.pop("outputs")).split()
for library in libraries:
    arrays = {name: array.copy() for name, array in given.items()}
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays.values()]
    getattr(ctypes.CDLL(library), entry)(*pointers, *extents)
    np.savez(library + ".npz", **{name: arrays[name] for name in outputs})
"""


def problem_of(name):
    function = resolve(PROBLEMS, name)
    known = inspect.signature(function).parameters
    return function(**{key: value for key, value in SIZES.items() if key in known})


def is_right(problem, given, out):
    reference, bound = problem.reference(given), problem.error_model.bound
    for name, array in out.items():
        error = np.abs(array.astype(np.float64) - reference[name])
        if problem.magnitude is not None:
            if not (error <= bound * problem.magnitude(given)[name]).all():
                return False
        elif not np.linalg.norm(error) <= bound * np.linalg.norm(reference[name]):
            return False
    return True


class Bench:
    """One kernel's inputs on disk, and what becomes of texts on them."""

    def __init__(self, name, folder):
        self.problem, self.folder, self.count = problem_of(name), folder, 0
        work = self.problem.workloads[0]
        self.given = self.problem.inputs(work, np.random.default_rng(0))
        # In declared order, inputs first, as the calling convention has it; outputs hold rubbish.
        tensors = [
            t for role in ("input", "output") for t in self.problem.tensors if t.role == role
        ]
        arrays = {
            t.name: self.given[t.name]
            if t.role == "input"
            else np.full(shape_of(t, work.fixed), 77, t.dtype)
            for t in tensors
        }
        outputs = " ".join(t.name for t in tensors if t.role == "output")
        np.savez(folder / "given.npz", **arrays, extents=list(work.fixed.values()), outputs=outputs)

    def build(self, text):
        self.count += 1
        library = str(self.folder / f"{self.count}.so")
        whole = "\n".join([*extent_macros(self.problem.workloads[0]), text])
        TOOLCHAIN.compile(whole, library, ("-O2", "-fopenmp-simd"))
        return library

    def call(self, libraries, timeout=None):
        command = [sys.executable, "-P", "-c", CALL, self.problem.name, str(self.folder)]
        subprocess.run([*command, *libraries], check=True, capture_output=True, timeout=timeout)

    def is_right(self, library):
        with np.load(f"{library}.npz") as out:
            return is_right(self.problem, self.given, dict(out))

    def outcome(self, text):
        try:
            library = self.build(text)
            self.call([library], timeout=4)
        except BuildError:
            return "build_error"
        except subprocess.TimeoutExpired:
            return "timeout"
        except subprocess.CalledProcessError:
            return "crashed"
        return "right" if self.is_right(library) else "wrong"


@needs_cc
@pytest.mark.parametrize("name", KERNELS)
def test_every_edit_computes_the_same(name, tmp_path):
    bench = Bench(name, tmp_path)
    text = bench.problem.plain_c
    first = moves(text, [(0, len(text))])
    assert first
    first = first[:: max(1, len(first) // 16)]
    texts = [text, *(move.text for move in first)]
    for move in first:  # and one of the edits of each edit
        then = moves(move.text, [(0, len(move.text))])
        texts += [then[len(texts) % len(then)].text]
    built = [bench.build(each) for each in texts]
    bench.call(built)
    wrong = [
        each for each, library in zip(texts, built, strict=True) if not bench.is_right(library)
    ]
    assert wrong == []


@needs_cc
@pytest.mark.parametrize("name", ["histogram", "softmax"])
@pytest.mark.parametrize("mistake", sourcefaults.MISTAKES)
def test_every_planted_mistake_is_one(name, mistake, tmp_path):
    bench = Bench(name, tmp_path)
    text, tag = sourcefaults.plant(mistake, SHEET, bench.problem.plain_c)
    expected = {
        "off_by_one": "wrong",
        "wrong_operator": "wrong",
        "nan": "wrong",
        "null_dereference": "crashed",
        "abort": "crashed",
        "endless_loop": "timeout",
        "syntax_error": "build_error",
    }
    assert bench.outcome(text) == expected[tag]


def test_regions_confine_edits(worlds):
    world = worlds["regions"]
    rules = "may change, for NAME in: exponentials, normalise."
    text = world.space.text
    sheet = Sheet("c", rules, text, 0.0, (), (), (), "", None, "")
    offered = moves(text, source.spans(sheet, text))
    assert offered
    for move in offered:
        assert not world.space.check(Candidate(Language.SOURCE, move.text))


LOOP = "for (int64_t j = {first}; j < n; j++) {body}"


@pytest.mark.parametrize(
    ("body", "independent", "written", "sum_of"),
    [
        ("y[j] = x[j];", True, set(), None),
        ("y[j] += x[j] * a[i * n + j];", True, set(), None),
        ("y[j] = y[j - 1] + x[j];", False, set(), None),
        ("y[x[j]] = 1;", False, set(), None),
        ("y[x[j]]++;", False, set(), None),
        ("s += x[j];", True, {"s"}, "s"),
        ("{ s += x[j]; y[j] = s; }", True, {"s"}, None),
        ("{ float t = x[j]; s += t; }", True, {"s"}, "s"),
        ("{ s += x[j]; k++; }", True, {"s", "?"}, "s"),
        ("*p = x[j];", False, set(), None),
        ("{ y[j] = z(y); }", False, set(), None),
        ("/* s += 1 */ y[j] = 1;", True, set(), None),
    ],
)
def test_what_a_body_writes_is_seen(body, independent, written, sum_of):
    (loop,) = loops(LOOP.format(first=0, body=body))
    assert is_independent(loop.body) is independent
    if independent:
        assert scalars_written(loop.body) == written
        assert accumulator(loop.body) == sum_of


@pytest.mark.parametrize(
    ("text", "count", "counting"),
    [
        ("for (int i = 0; i < n; i++) x;", 1, 1),
        ("for (int i = 0; i < n; i += 2) x;", 1, 0),
        ("for (; i < n; i++) x;", 1, 0),
        ("for (int i = 0; i < n; ++i)\n  for (int j = i; j < m; j += 1) { x; y; }", 2, 2),
        ("// for (int i = 0; i < n; i++) x;", 0, 0),
        ('s = "for (int i = 0; i < n; i++) x;";', 0, 0),
        ("for (int i = 0; i < n; i++) { x;", 0, 0),
    ],
)
def test_loops_are_found(text, count, counting):
    assert (len(all_loops(text)), len(loops(text))) == (count, counting)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("x = 1; y", "x = 1;"),
        ("{ a; { b; } } c", "{ a; { b; } }"),
        ("if (a) b; else c; d", "if (a) b; else c;"),
        ("if (a) if (b) c; else d; e", "if (a) if (b) c; else d;"),
        ("for (;;) { a; } b", "for (;;) { a; }"),
        ("\n#pragma GCC unroll 4\nfor (;;) a; b", "\n#pragma GCC unroll 4\nfor (;;) a;"),
    ],
)
def test_statements_end_where_they_do(text, end):
    assert statement_end(blanked(text), 0) == len(end)


def test_a_pragma_belongs_to_its_loop():
    loop = "for (int i = 0; i < n; i++) x[i] = 0;"
    text = f"    #pragma GCC ivdep\n    #pragma GCC unroll 4\n    {loop}\n"
    (found,) = loops(text)
    assert text[found.start :].startswith("#pragma GCC ivdep")
    for move in moves(text, [(0, len(text))]):
        assert move.text.count("#pragma") == 1
