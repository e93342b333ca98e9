"""Mutants: wrong kernels, each of which a sound judge must refuse.

``MUTANTS`` is made when it is first asked for: from the plain loops of every problem of the
catalogue by the operators of `mutation`, at the first and the last place that each finds, and from
the files in ``wrong/``, written by hand. What is in `EQUIVALENT` is left out: it computes what it
should, or what the error model allows. That all others are wrong is proved without a judge
(`proof`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kernelwright.env.types import Candidate, Language
from kernelwright.evaluators.corpus.mutation import Mutation, mutations
from kernelwright.evaluators.corpus.specimen import Named, Specimen, named, read_all

MUTANTS: tuple[Mutant, ...]

# No extent is a multiple of eight, and the loops of reductions are longer than 64.
_BASES = (
    "blur h=13 w=27",
    "conv3x3 h=13 w=27",
    "gelu n=301",
    "histogram n=1001 bins=37",
    "jacobi1d n=203 t=7",
    "layer_norm rows=9 cols=75",
    "matmul m=21 n=19 k=70",
    "prefix_sum n=301",
    "prefix_sum n=301 dtype=int32",
    "row_sum rows=11 cols=93",
    "row_sum rows=11 cols=93 dtype=float64",
    "softmax rows=11 cols=71",
    "spadd rows=41 cols=37 nnz=300 formats=csr",
    "spmm rows=41 cols=37 width=9 nnz=300 formats=csr",
    "spmv rows=41 cols=37 nnz=300",
    "spmv_formats rows=41 cols=37 nnz=300 formats=csr",
    "transpose rows=23 cols=37",
)
_ELEMENTS = {"float32": "float", "float64": "double", "int32": "int32_t"}

EQUIVALENT: dict[str, str] = {
    "layer_norm_minus_to_plus_0": "Σ (x + m)(x - m) is Σ (x - m)² for the mean m",
    "spadd_half_precision_10": "positions up to 300 are whole numbers that half precision has",
    "spadd_one_element_nudged_0": "a column of at most 36 times 1.001 is cut to itself",
    "spadd_one_element_nudged_6": "a position of 300 times 1.001 is cut to itself",
    "spadd_sum_overwritten_0": "the sum is zero before its first term",
}
"""Mutants that compute what they should, with the reason."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong kernel: C text of a problem's function, and what was done to it.

    ``operator`` is a mutation operator's name, or the kind of mistake for those written by hand;
    ``shows`` says what is wrong.
    """

    name: str
    problem: Named
    source: str
    operator: str
    shows: str
    by_hand: bool = False
    threads: int = 1

    @property
    def candidate(self) -> Candidate:
        """What a judge is asked about."""
        return Candidate(Language.SOURCE, self.source)


@cache
def _mutants() -> tuple[Mutant, ...]:
    made = [mutant for text in _BASES for mutant in _systematic(named(text))]
    written = map(_by_hand, read_all(Path(__file__).parent / "wrong"))
    return (*(mutant for mutant in made if mutant.name not in EQUIVALENT), *written)


def _systematic(base: Named) -> list[Mutant]:
    """The mutants of a problem's plain loops: two places at most for each operator."""
    problem = base.make()
    assert problem.plain_c is not None
    outputs = [spec.dtype for spec in problem.tensors if spec.role == "output"]
    element = next((dtype for dtype in outputs if dtype.startswith("float")), outputs[0])
    places: dict[str, list[Mutation]] = {}
    for mutation in mutations(problem.plain_c, _ELEMENTS[element]):
        places.setdefault(mutation.operator, []).append(mutation)
    dtype = "".join(f"_{value}" for key, value in base.options if key == "dtype")
    return [
        Mutant(
            f"{problem.name}{dtype}_{mutation.operator}_{mutation.place}",
            base,
            mutation.text,
            mutation.operator,
            mutation.changed,
        )
        for found in places.values()
        for mutation in (found if len(found) < 3 else (found[0], found[-1]))
    ]


def _by_hand(specimen: Specimen) -> Mutant:
    (kind,) = specimen.tags
    return Mutant(
        specimen.name,
        specimen.problem,
        specimen.source,
        kind,
        specimen.shows,
        by_hand=True,
        threads=specimen.threads,
    )


def __getattr__(name: str) -> Any:
    if name == "MUTANTS":
        return _mutants()
    raise AttributeError(f"module {__name__} has no attribute {name!r}")
