"""Problems with sparse operands in several formats; what holds of all problems is in
test_problems.py.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from toys import FORMATTED

from kernelwright.configs.load import GIVEN
from kernelwright.configs.resolve import options_model, resolve
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.schedule.trace import apply_trace
from kernelwright.env.compiler.sparse.format import Mode
from kernelwright.env.compiler.sparse.named import format_text, parse_format
from kernelwright.env.compiler.sparse.storage import SparseTensor
from kernelwright.env.options import OptionError
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.integers import integer_inputs
from kernelwright.env.problems.matrices import KINDS
from kernelwright.env.problems.shapes import Range, shape_of
from kernelwright.env.problems.sparse.build import OF_MATRICES
from kernelwright.env.problems.sparse.copies import FullError, copy_of, prefixes
from kernelwright.env.problems.sparse.operand import operand
from kernelwright.env.types import STRESSES, Directive, Workload
from kernelwright.evaluators.cpu.stress import stressed

PLACES = {"rows": 11, "cols": 9, "nnz": 30}
SIZED = {
    "spmv_formats": {**PLACES, "formats": list(OF_MATRICES)},
    "spmm": {**PLACES, "width": 3, "formats": list(OF_MATRICES)},
    "sddmm": {**PLACES, "depth": 4},
    "spadd": PLACES,
    "sparse_mul": PLACES,
    "spgemm": {"rows": 7, "cols": 9, "inner": 8, "nnz": 20},
    "mttkrp": {"rows": 5, "cols": 4, "depth": 6, "rank": 3, "nnz": 30},
    "ttv": {"rows": 5, "cols": 4, "depth": 6, "nnz": 30},
    "block_scores": {"length": 12, "depth": 4, "block": 3, "per_row": 2},
    "moe_matmul": {"tokens": 8, "experts": 3, "depth": 4, "width": 5, "block": 2},
    "paged_scores": {"pages": 4, "memory": 6, "page": 3, "depth": 5},
}
STATEMENTS = {
    "spmv_formats": "ij,j->i",
    "spmm": "ij,jk->ik",
    "sddmm": "ij,ik,jk->ij",
    "sparse_mul": "ij,ij->ij",
    "spgemm": "ik,kj->ij",
    "mttkrp": "ijk,jr,kr->ir",
    "ttv": "ijk,k->ij",
    "block_scores": "ij,id,jd->ij",
    "moe_matmul": "te,ef->tf",
    "paged_scores": "bp,ptd,d->bt",
}


def made(name, **options):
    return resolve(PROBLEMS, name)(**{**SIZED[name], **options})


def drawn(problem, seed=0):
    return problem.inputs(problem.workloads[0], np.random.default_rng(seed))


def program_of(problem):
    return problem.definition(problem.workloads[0]).origin


def shape_in(program, tensor):
    (access,) = [a for a in program.accesses if a.tensor == tensor]
    return tuple(program.size(index).value for index in access.indices)


def used(form, shape, prefix, arrays):
    """A copy as a tensor, what lies behind its last positions left out."""
    levels, above = {}, 1
    for number, ((kind, _), extent) in enumerate(
        zip(form.levels, form.extents(shape), strict=True), start=1
    ):
        start = f"{prefix}{number}_"
        own = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
        if "pos" in own:
            own["pos"] = own["pos"][: above + 1]
        above = kind.check(own, above, extent)
        levels[number] = own
    return SparseTensor.checked(form, shape, levels, arrays[f"{prefix}_vals"])


def dense_of(form, shape, prefix, arrays):
    if prefix in arrays:
        return arrays[prefix]
    return used(form, shape, prefix, arrays).to_dense()


def operands(problem, arrays):
    """Every sparse operand as an array, from its first copy."""
    program = program_of(problem)
    return {
        tensor: dense_of(*offered[0][:1], shape_in(program, tensor), offered[0][1], arrays)
        for tensor, offered in program.choices
    }


def result_of(problem, outputs, arrays):
    """The result as an array."""
    program = program_of(problem)
    name = program.assignment.target.tensor
    if name in outputs:
        return outputs[name]
    shape = shape_in(program, name)
    if program.structure is not None:
        ((form, prefix),) = dict(program.choices)[program.structure][:1]
        values = {f"{prefix}_vals": outputs[f"{name}_vals"]}
        return used(form, shape, prefix, {**arrays, **values}).to_dense()
    whole = {key: array.astype(np.int64) for key, array in outputs.items() if "2_" in key}
    return used(parse_format("csr"), shape, name, {**outputs, **whole}).to_dense()


def accepted(problem, arrays, got):
    reference, magnitude = problem.reference(arrays), problem.magnitude(arrays)
    assert set(got) == set(reference) == set(magnitude)
    return all(
        bool((abs(got[key] - wanted) <= problem.error_model.bound * magnitude[key]).all())
        for key, wanted in reference.items()
    )


def test_every_problem_is_here():
    of_formats = {name for name, place in PROBLEMS.items() if ".problems.sparse." in place}
    assert set(SIZED) == set(FORMATTED) == of_formats
    assert set(STATEMENTS) | {"spadd"} == set(SIZED)


@pytest.mark.parametrize("name", sorted(SIZED))
@pytest.mark.parametrize("seed", [0, 1])
def test_the_reference_is_the_dense_computation(name, seed):
    problem = made(name, dtype="float64")
    arrays = drawn(problem, seed)
    sparse = operands(problem, arrays)
    dense = [arrays[t.name] for t in problem.tensors if t.name in arrays and "_" not in t.name]
    if name == "spadd":
        wanted = sparse["A"] + sparse["B"]
    else:
        wanted = np.einsum(STATEMENTS[name], *sparse.values(), *dense)
    got = result_of(problem, problem.reference(arrays), arrays)
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", sorted(SIZED))
def test_every_format_computes_the_reference(name):
    problem = made(name)
    arrays, (chosen,) = drawn(problem), problem.workloads
    procedure = problem.definition(chosen)
    offered = procedure.origin.choices
    texts = [[format_text(form) for form, _ in forms] for _, forms in offered]
    assert len(list(product(*texts))) > 1 or name == "block_scores"
    for choice in product(*texts):
        storage = tuple(
            Directive("storage", tensor, (text,))
            for (tensor, _), text in zip(offered, choice, strict=True)
        )
        scheduled = apply_trace(procedure, storage)
        assert scheduled.tensors == procedure.tensors
        assert scheduled.extents == procedure.extents
        assert accepted(problem, arrays, interpret(scheduled, arrays, chosen.fixed)), choice


def test_a_schedule_that_names_another_format_is_refused():
    problem = made("spmv_formats", formats="coo")
    with pytest.raises(CompilerError, match=r"storage: A: expected one of csr, coo, found dia"):
        apply_trace(
            problem.definition(problem.workloads[0]), (Directive("storage", "A", ("dia",)),)
        )


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("seed", [1, 2])
def test_all_copies_are_one_matrix_with_nothing_behind_its_end(kind, seed):
    problem = made("spmv_formats", rows=24, cols=17, nnz=70, matrix=kind)
    arrays = drawn(problem, seed)
    (_, offered), *_ = program_of(problem).choices
    first = dense_of(*offered[0][:1], (24, 17), offered[0][1], arrays)
    assert np.count_nonzero(first) == 70
    assert len(offered) == len(OF_MATRICES)
    for form, prefix in offered[1:]:
        np.testing.assert_array_equal(dense_of(form, (24, 17), prefix, arrays), first)
    for spec in problem.tensors:
        if spec.role == "input":
            array = arrays[spec.name]
            assert array.shape == shape_of(spec, problem.workloads[0].fixed)
            if spec.name.endswith("_pos"):
                assert (np.diff(array) >= 0).all()
    last = arrays["A_bcsr_4_4_2_pos"][-1]
    assert not arrays["A_bcsr_4_4_2_crd"][last:].any()
    assert not arrays["A_bcsr_4_4__vals"][16 * last :].any()


def test_capacities_have_room_and_what_has_none_is_refused():
    rng = np.random.default_rng(0)
    few = np.array([[0, 0, 5], [0, 1, 5]])
    copy = copy_of("bcsr(2,2)", "A_bcsr", (40, 40), few, "float32")
    assert copy.counts == (("A_bcsr2", 3),)  # two blocks and eight more, of which three can be
    assert copy_of("bcsr(2,2)", "A", (40, 40), few, "float32", varies=False).counts == (("A2", 2),)
    many = np.array([np.arange(0, 40, 4), np.arange(0, 40, 4)])
    with pytest.raises(FullError):
        copy.arrays(many, rng.standard_normal(10).astype(np.float32))
    assert copy.arrays(few, np.ones(3, np.float32))["A_bcsr_vals"].size == 12


def test_draws_that_do_not_fit_are_drawn_again():
    calls = []

    def draw(rng):
        # The capacities are made from the first draw; the next one has other blocks in use.
        calls.append(len(calls))
        step = 8 if len(calls) == 2 else 1
        return np.array([np.arange(0, 100, step)[:13], np.arange(0, 100, step)[:13]])

    found = operand("A", (100, 100), "float32", draw, ("csr", "bcsr(8,8)"), varies=False)
    arrays = found.inputs(draw, np.random.default_rng(0))
    assert len(calls) == 3
    assert arrays["A_bcsr_vals"].size == 2 * 64
    never = operand("A", (100, 100), "float32", lambda rng: draw(rng)[:, :2], ("csr", "bcsr(8,8)"))
    with pytest.raises(ValueError, match=r"A: expected room for one of 64 draws, found A_"):
        never.inputs(draw, np.random.default_rng(0))


def test_copies_that_do_not_pay_are_made_only_when_asked_for():
    def texts(**options):
        problem = resolve(PROBLEMS, "spmv_formats")(rows=256, cols=256, nnz=600, **options)
        return [format_text(form) for form, _ in program_of(problem).choices[0][1]]

    assert {"csr", "coo", "csc"} <= set(texts()) < set(OF_MATRICES)
    assert "dia" not in texts()
    assert "dia" in texts(matrix="banded")
    assert "ell" not in texts(matrix="dense_rows")
    assert texts(matrix="dense_rows", formats="ell") == ["csr", "ell"]
    assert texts(formats=["csr"]) == ["csr"]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("spmv_formats", {"formats": ["cs"]}, "formats: expected a format that holds"),
        ("spmv_formats", {"formats": ["hash"]}, "formats: expected levels whose size follows"),
        ("spmv_formats", {"formats": ["nm(1,4)"]}, "formats: expected a format that holds"),
        ("spmv_formats", {"formats": ["dense(i) compressed(j)"]}, "expected a format by name"),
        ("spmv_formats", {"nnz": 100}, "nnz: expected at most rows x cols = 99"),
        ("sddmm", {"formats": "csc"}, "formats: expected some of csr, dcsr, coo, found csc"),
        ("spadd", {"formats": ["ell"]}, "formats: expected some of csr, dcsr, coo, found ell"),
        ("spadd", {"nnz": 2}, "nnz: expected at least 3"),
        ("ttv", {"nnz": 121}, "nnz: expected at most rows x cols x depth = 120"),
        ("block_scores", {"length": 13}, "length: expected a multiple of block = 3"),
        ("moe_matmul", {"tokens": 9}, "tokens: expected a multiple of block = 2"),
        ("paged_scores", {"pages": 7}, "pages: expected at most memory = 6"),
    ],
)
def test_options_that_fit_nothing_are_refused(name, options, said):
    with pytest.raises(OptionError, match=said):
        made(name, **options)


def test_formats_with_one_name_are_told_apart():
    assert prefixes("A", ["csr", "bcsr(4,4)"]) == ("A_csr", "A_bcsr")
    assert prefixes("A", ["bcsr(2,2)", "bcsr(4,4)"]) == ("A_bcsr_2_2_", "A_bcsr_4_4_")
    with pytest.raises(OptionError, match="every format once"):
        prefixes("A", ["csr", "csr"])


@pytest.mark.parametrize("name", sorted(SIZED))
def test_other_extents_than_its_own_are_refused(name):
    problem = made(name)
    (chosen,) = problem.workloads
    other = Workload(tuple((key, n + 1) for key, n in chosen.extents))
    for use in (problem.definition, lambda w: problem.inputs(w, np.random.default_rng(0))):
        with pytest.raises(ValueError, match=f"{name}: expected {chosen.label}"):
            use(other)


@pytest.mark.parametrize("name", sorted(SIZED))
def test_sizes_kinds_and_formats_are_options_of_a_campaign(name):
    model = options_model(resolve(PROBLEMS, name), GIVEN["problem"])
    extents = [key for key, _ in made(name).workloads[0].extents]
    sizes = [key for key in model.model_fields if key not in ("matrix", "formats", "dtype")]
    assert set(sizes) == set(extents) - {"room"}
    assert getattr(model.model_validate_json(f'{{"{sizes[0]}": 7}}'), sizes[0]) == 7
    with pytest.raises(ValueError, match="int"):
        model.model_validate({sizes[0]: Range(low=1, high=2)})
    if "matrix" in model.model_fields:
        assert model.model_validate_json('{"matrix": "banded"}').matrix == "banded"
        with pytest.raises(ValueError, match="uniform"):
            model.model_validate_json('{"matrix": "bandid"}')
    if "formats" in model.model_fields:
        assert model.model_validate_json('{"formats": ["csr"]}').formats == ["csr"]


@pytest.mark.parametrize("name", sorted(SIZED))
def test_whole_numbers_and_stressed_values_are_the_same_in_every_copy(name):
    problem = made(name)
    arrays, (chosen,) = drawn(problem), problem.workloads
    rng = np.random.default_rng(3)
    given = [integer_inputs(problem, arrays, rng)]
    given += [stressed(problem, arrays, kind, rng) for kind in STRESSES]
    for changed in given:
        assert list(changed) == list(arrays)
        for tensor, offered in program_of(problem).choices:
            shape = shape_in(program_of(problem), tensor)
            first = dense_of(*offered[0][:1], shape, offered[0][1], changed)
            for form, prefix in offered[1:]:
                np.testing.assert_array_equal(dense_of(form, shape, prefix, changed), first)
    whole = given[0]
    got = interpret(problem.definition(chosen), whole, chosen.fixed)
    for key, wanted in problem.reference(whole).items():
        np.testing.assert_array_equal(got[key], wanted)


def test_a_change_reaches_what_follows_from_it_and_nothing_else():
    problem = made("spmv_formats", formats=["coo"])
    arrays = drawn(problem)
    assert problem.followers.names == {"A_coo_vals"}
    assert not problem.is_own("A_coo_vals")
    assert problem.is_own("A_csr_vals")
    assert problem.is_own("x")
    changed = problem.agreed({**arrays, "A_csr_vals": 2 * arrays["A_csr_vals"]})
    np.testing.assert_array_equal(changed["A_coo_vals"], 2 * arrays["A_coo_vals"])
    for key in set(arrays) - {"A_csr_vals", "A_coo_vals"}:
        np.testing.assert_array_equal(changed[key], arrays[key])
    plain = replace(problem, followers=None)
    assert plain.agreed(arrays) is arrays
    assert plain.is_own("A_coo_vals")


def test_sums_that_happen_to_be_zero_are_stored():
    problem = made("spadd", dtype="float64")
    arrays = drawn(problem)
    ones = {key: np.sign(abs(a)) if key.endswith("_vals") else a for key, a in arrays.items()}
    ones = {key: -a if key.startswith("B") and "vals" in key else a for key, a in ones.items()}
    got = problem.reference(ones)
    assert np.count_nonzero(got["C_vals"] == 0) == 30 // 4
    assert got["C2_pos"][-1] == 30
    interpreted = interpret(problem.definition(problem.workloads[0]), ones, PLACES)
    for key, wanted in got.items():
        np.testing.assert_array_equal(interpreted[key], wanted)


@pytest.mark.parametrize("name", ["spadd", "sparse_mul"])
def test_scipy_s_zeros_are_put_back(name):
    pytest.importorskip("scipy")
    from kernelwright.env.problems.sparse import library

    problem = made(name)
    arrays = drawn(problem)
    for key in ("A_csr_vals", "B_csr_vals"):
        arrays[key] = np.ones_like(arrays[key]) * (0 if name == "sparse_mul" else 1)
    if name == "spadd":
        arrays["B_csr_vals"] *= -1
    outputs = {
        spec.name: np.empty(shape_of(spec, PLACES), spec.dtype)
        for spec in problem.tensors
        if spec.role == "output"
    }
    getattr(library, name)(arrays, outputs)
    for key, wanted in problem.reference(arrays).items():
        np.testing.assert_array_equal(outputs[key], wanted)


def test_bytes_are_those_of_the_smallest_copy():
    rows, nnz = PLACES["rows"], PLACES["nnz"]
    problem = made("spmv_formats", formats=["coo"])
    assert problem.moved_bytes(problem.workloads[0]) == 4 * (
        min(rows + 1 + 2 * nnz, 2 + 3 * nnz) + PLACES["cols"] + rows
    )


def test_a_dense_copy_is_an_array():
    problem = made("spmv_formats", formats=["dense"])
    arrays = drawn(problem)
    assert arrays["A_dense"].shape == (11, 9)
    assert all(isinstance(d, Mode) for _, d in parse_format("dense", 2).levels)
    np.testing.assert_array_equal(arrays["A_dense"], operands(problem, arrays)["A"])
