"""Every problem's winner as a callable on arrays, and what calling it leaves alone."""

from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from toys import CPU_PROBLEMS, FORMATTED

from kernelwright.configs import api
from kernelwright.configs.loaded import Loaded, load
from kernelwright.configs.resolve import resolve
from kernelwright.configs.winner import WinnerError, as_c, winner
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.call import Argument, CallError, Kernel, prototype
from kernelwright.env.compiler.runtime.toolchain import BuildError, find_toolchain
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.abi import abi
from kernelwright.env.problems.program import ProgramError
from kernelwright.env.problems.shapes import Range, solved
from kernelwright.env.types import (
    Candidate,
    ExtentRange,
    Language,
    TensorSpec,
    Workload,
    knob_candidate,
)

try:
    TOOLCHAIN = find_toolchain()
except BuildError:
    TOOLCHAIN = None
pytestmark = pytest.mark.skipif(TOOLCHAIN is None, reason="no C compiler on this machine")

# Sizes of which no two are alike, so that no extent can stand in for another.
SIZES = {"h": 5, "w": 7, "m": 3, "n": 11, "k": 6, "rows": 4, "cols": 9, "nnz": 13}
SIZES |= {"batch": 2, "images": 2, "channels": 3, "filters": 4}
FIXED = {"bins": 7, "t": 3}
CPU = CPU_PROBLEMS


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A finished run of a problem whose shapes are expressions."""
    folder = tmp_path_factory.mktemp("runs") / "blur"
    campaign = {
        "name": "blur",
        "problem": {"name": "blur", "h": 8, "w": 16},
        "space": {"kind": "schedule"},
        "target": {"name": "cpu"},
        "driver": {"name": "random"},
        "budget": {"trials": 2},
        "judge": {
            "screen": {"pairs": 1},
            "confirm": {"finalists": 1, "process_pairs": 2, "pairs": 1},
        },
    }
    api.run(campaign, folder)
    return folder


def made(name, **options):
    factory = resolve(PROBLEMS, name)
    return factory(**options)


def sizes_of(name):
    if name in FORMATTED:
        return dict(made(name, **FORMATTED[name]).workloads[0].extents)
    names = [key for key, _ in made(name).workloads[0].extents]
    return {key: {**SIZES, **FIXED}[key] for key in names}


def winning(found, problem, candidate=None, **target):
    """What `load` gives if this candidate for this problem had won."""
    best = winner(found)
    candidate = candidate or Candidate(Language.SOURCE, problem.plain_c)
    resolved = {**best.resolved, "target": {**best.resolved["target"], **target}}
    trial = replace(best.trial, candidate=candidate)
    return Loaded(replace(best, trial=trial, problem=problem, resolved=resolved))


def close(problem, arrays, got):
    reference = problem.reference(arrays)
    several = got if isinstance(got, tuple) else (got,)
    outputs = dict(zip(reference, several, strict=True))
    limits = dict.fromkeys(reference, 0.0)
    if problem.magnitude is not None:
        magnitude = problem.magnitude(arrays)
        limits = {name: problem.error_model.bound * m for name, m in magnitude.items()}
    return all(
        outputs[name].shape == wanted.shape
        and bool(np.all(abs(outputs[name].astype(np.float64) - wanted) <= limits[name]))
        for name, wanted in reference.items()
    )


def drawn(problem, extents):
    return problem.inputs(Workload(tuple(extents.items())), np.random.default_rng(0))


def test_a_run_of_a_problem_with_shapes_that_are_expressions_is_loaded(found):
    blur = load(found)
    arrays = drawn(blur.problem, {"h": 8, "w": 16})
    assert close(blur.problem, arrays, blur(**arrays))
    assert close(blur.problem, arrays, blur(arrays["image"]))


@pytest.mark.parametrize("name", CPU)
def test_every_problem_is_called_with_what_it_draws(name, found):
    problem = made(name, **FORMATTED.get(name, sizes_of(name)))
    arrays = drawn(problem, sizes_of(name))
    candidates = [Candidate(Language.SCHEDULE, ()), Candidate(Language.SOURCE, problem.plain_c)]
    if problem.sketch is not None:
        candidates.append(knob_candidate(dict(problem.unscheduled)))
    for candidate in candidates:
        got = winning(found, problem, candidate)(**arrays)
        assert close(problem, arrays, got), candidate.language


@pytest.mark.parametrize("name", sorted(set(CPU) - set(FORMATTED)))
def test_every_problem_with_ranges_finds_its_extents_in_the_inputs(name, found):
    sizes = sizes_of(name)
    ranges = {
        key: value if key in FIXED else Range(low=value - 1, high=value + 2)
        for key, value in sizes.items()
    }
    problem = made(name, **ranges)
    loaded = winning(found, problem)
    for more in (0, 1, 2):
        extents = {key: value + more * (key not in FIXED) for key, value in sizes.items()}
        arrays = drawn(problem, extents)
        assert close(problem, arrays, loaded(**arrays)), extents
    beyond = {key: value + 3 * (key not in FIXED) for key, value in sizes.items()}
    with pytest.raises(CallError, match=rf"{name}: expected .*\.\..*, found "):
        loaded(**drawn(problem, beyond))


def shaped(problem, **shapes):
    return {
        spec.name: np.ones(shapes[spec.name], spec.dtype)
        for spec in problem.tensors
        if spec.role == "input"
    }


def test_inputs_that_disagree_are_refused(found):
    ranged = Range(low=1, high=9)
    spmv = winning(found, made("spmv", rows=ranged, cols=ranged, nnz=1))
    with pytest.raises(
        CallError, match="axis 0 of vals: expected 3, as axis 0 of crd has it, found 2"
    ):
        spmv(**shaped(spmv.problem, pos=4, crd=3, vals=2, x=5))
    conv = winning(found, made("conv3x3", h=ranged, w=ranged))
    with pytest.raises(CallError, match="axis 1 of weights: expected 3, as the problem has it"):
        conv(**shaped(conv.problem, image=(5, 6), weights=(3, 2)))
    with pytest.raises(CallError, match=r"expected h=1\.\.9, w=1\.\.9, found h=0, w=4"):
        conv(**shaped(conv.problem, image=(2, 6), weights=(3, 3)))
    with pytest.raises(CallError, match=r"found h=-1, w=4"):
        conv(**shaped(conv.problem, image=(1, 6), weights=(3, 3)))


def test_extents_that_no_input_says_are_refused(found):
    """Products and sums of extents say nothing alone; next to what is known they are checked."""
    problem = made("row_sum", rows=2, cols=3)
    x, y = problem.tensors
    ranges = Workload((("rows", ExtentRange(1, 9)), ("cols", ExtentRange(1, 9))))

    def loaded(*shape, workloads=(ranges,)):
        changed = (replace(x, shape=shape), y)
        return winning(found, replace(problem, tensors=changed, workloads=workloads))

    with pytest.raises(CallError, match="row_sum: no input says the extent rows"):
        loaded("rows * cols", 2)(np.ones((6, 2), np.float32))
    with pytest.raises(CallError, match="row_sum: no input says the extent cols"):
        loaded("rows", "rows + 1")(np.ones((2, 3), np.float32))
    with pytest.raises(CallError, match=r"axis 1 of x: expected 4, 2 \* cols with .*cols=2"):
        loaded("cols", "2 * cols", workloads=problem.workloads)(np.ones((2, 5), np.float32))


@pytest.mark.parametrize(
    ("entry", "size", "known", "wanted"),
    [
        ("n", 7, {}, ("n", 7)),
        ("n + 2", 7, {}, ("n", 5)),
        ("2 + n", 7, {}, ("n", 5)),
        ("n - 1", 7, {}, ("n", 8)),
        ("9 - n", 7, {}, ("n", 2)),
        ("2 * n + 1", 7, {}, ("n", 3)),
        ("n + m", 7, {"m": 3}, ("n", 4)),
        ("n * m", 6, {"m": 3}, ("n", 2)),
        ("2 * n", 7, {}, None),
        ("n * n", 9, {}, None),
        ("n - n", 0, {}, None),
        ("n + m", 7, {}, None),
        ("n", 7, {"n": 7}, None),
        (7, 7, {}, None),
        ("n / 2", 7, {}, None),
        ("n +", 7, {}, None),
    ],
)
def test_entries_of_shapes_are_solved_for_one_extent(entry, size, known, wanted):
    assert solved(entry, size, known) == wanted


def test_a_kernel_without_numbers_for_its_shape_is_refused(found):
    library = winner_library(found)
    argument = Argument("image", ("h + 2", "w"), "float32", True)
    kernel = Kernel(library, "blur", (argument,), ("h", "w"))
    with pytest.raises(
        CallError, match=r"image: expected sizes .*the extents h, w, found 'h \+ 2'"
    ):
        kernel({"image": np.ones((3, 1), np.float32)}, {"h": 1, "w": 1})


def winner_library(found, text=None, flags=("-O1",)):
    cache = BuildCache(found.parent / "builds")
    return cache.build(text or as_c(winner(found)), TOOLCHAIN, flags).library


def test_a_mask_is_refused_and_never_dropped(found):
    blur = load(found)
    image = np.ones((10, 18), np.float32)
    for mask in (image > 2, np.ma.nomask):
        with pytest.raises(CallError, match=r"image: expected a NumPy array .*a MaskedArray"):
            blur(np.ma.masked_array(image, mask=mask))
    kernel = Kernel(
        winner_library(found),
        "blur",
        (
            Argument("image", (10, 18), "float32", True),
            Argument("out", (8, 16), "float32", False),
        ),
        ("h", "w"),
    )
    with pytest.raises(CallError, match="image: expected an array without a mask"):
        kernel({"image": np.ma.masked_array(image)}, {"h": 8, "w": 16})


FLUSHES = """
import sys
import numpy as np
from pathlib import Path
from kernelwright.env.compiler.runtime.call import Argument, Kernel

tiny = np.float64(5e-324)
def alive():
    return float(tiny * np.float64(1.0)) > 0 and float(np.array([1e-310])[0] * 0.5) > 0

assert alive()
arguments = (Argument("x", (4,), "float32", True), Argument("y", (4,), "float32", False))
for library in sys.argv[1:]:
    kernel = Kernel(Path(library), "twice", arguments, ())
    assert alive(), "flushed after loading"
    got = kernel({"x": np.ones(4, np.float32)}, {})["y"]
    assert got.tolist() == [2.0] * 4
    assert alive(), "flushed after the call"
    assert 0.1 + 0.2 == 0.30000000000000004 and np.float64(1) / np.float64(3) == 1 / 3
    third = np.float32(1) / np.float32(3)
    assert third == np.float32(0.33333334), "another rounding"
print("alive")
"""
TWICE = """
void twice(const float *restrict x, float *restrict y)
{
    for (int i = 0; i < 4; i++)
        y[i] = 2 * x[i];
}
"""
SETS = """
#include <fenv.h>
#include <immintrin.h>
void twice(const float *restrict x, float *restrict y)
{
    for (int i = 0; i < 4; i++)
        y[i] = 2 * x[i];
    fesetround(FE_DOWNWARD);
    _mm_setcsr(_mm_getcsr() | 0x8040);
}
"""


def with_start_files(gcc, folder):
    """A library as gcc by itself links it with fast mathematics: loading it flushes."""
    library = folder / "flushes.so"
    command = [*gcc.command, "-shared", "-fPIC", "-Ofast", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=TWICE, text=True, check=True)
    return library


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_loading_and_calling_leave_subnormal_numbers_alive(found, compiler):
    """Neither a flag nor a kernel has the thread flush them to zero or round otherwise."""
    try:
        toolchain = find_toolchain(compiler)
    except BuildError:
        pytest.skip(f"no {compiler}")
    cache = BuildCache(found.parent / "builds")
    cases = [(TWICE, ("-O3", "-ffast-math")), (TWICE, ("-Ofast",))]
    if platform.machine() == "x86_64":
        cases.append((SETS, ("-O1",)))
    libraries = [str(cache.build(text, toolchain, flags).library) for text, flags in cases]
    if compiler == "gcc" and platform.machine() == "x86_64":
        libraries.append(str(with_start_files(toolchain, found.parent)))
    command = [sys.executable, "-P", "-c", FLUSHES, *libraries]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "alive\n"), ran.stderr


def test_a_library_that_flushes_is_what_the_test_above_is_about(found):
    """Loaded as it is, it does what `Kernel` protects from: else that test could not fail."""
    if platform.machine() != "x86_64" or TOOLCHAIN.name != "gcc":
        pytest.skip("gcc on x86 has crtfastmath.o")
    library = with_start_files(TOOLCHAIN, found.parent)
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(5e-324 * float(sys.argv[2]) > 0)"
    command = [sys.executable, "-P", "-c", code, str(library), "1.0"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_a_dtype_that_c_does_not_have_is_refused_by_name(found):
    problem = made("row_sum", rows=2, cols=3)
    x, y = problem.tensors
    half = replace(problem, tensors=(replace(x, dtype="complex64"), y))
    said = "x: expected one of bool, int8, .*, float64, which C has, found complex64"
    with pytest.raises(WinnerError, match=f"expected a winner with a C form: row_sum: {said}"):
        winning(found, half)
    with pytest.raises(ProgramError, match=f"row_sum: {said}"):
        abi(half)
    with pytest.raises(CallError, match=said):
        prototype("f", (Argument("x", (2,), "complex64", True),), ())
    for alias in ("f4", "complex128", "uint64"):
        odd = replace(problem, tensors=(TensorSpec("x", ("rows", "cols"), alias, "input"), y))
        with pytest.raises(ProgramError, match=f"found {alias}"):
            abi(odd)
