"""That the corpus is what it says: honest kernels are right, mutants are wrong, both seen by the
witness on the corpus's own inputs, without any judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, Toolchain
from kernelwright.evaluators.corpus.draws import draws, instances
from kernelwright.evaluators.corpus.mutants import Mutant
from kernelwright.evaluators.corpus.specimen import Specimen
from kernelwright.evaluators.corpus.witness import SANITIZERS, Observation, WitnessError, observe

# As fast as it gets, and watched.
_BUILDS = (DEFAULT_FLAGS, SANITIZERS)
# Honest kernels see every input twice in one process: they may not remember anything.
_ROUNDS = 2
# A mutant has so many chances to be seen: what finds it may be rare among drawn inputs.
_CHANCES = 3


def fault_of(specimen: Specimen, toolchain: Toolchain, rng: np.random.Generator) -> str | None:
    """What is wrong with a kernel that should be right, None if nothing was seen.

    Args:
        specimen: the kernel.
        toolchain: the compiler.
        rng: where inputs come from.
    """
    return _first(_observations(specimen, specimen.flags, toolchain, rng, _ROUNDS))


def refuted(mutant: Mutant, toolchain: Toolchain, rng: np.random.Generator) -> str | None:
    """How a mutant was seen to be wrong, None if it was not: beyond the error model on some inputs,
    or, with sanitizers, beside its arrays.

    Args:
        mutant: the wrong kernel.
        toolchain: the compiler.
        rng: where inputs come from.

    Raises:
        WitnessError: if it does not compile.
    """
    for _ in range(_CHANCES):
        found = _first(_observations(mutant, (), toolchain, rng, 1))
        if found is not None:
            return found
    return None


def unsound(
    honest: Iterable[Specimen], mutants: Iterable[Mutant], toolchain: Toolchain
) -> Iterator[str]:
    """What is in the corpus and should not be, with the reason: honest kernels that are wrong, and
    mutants that are not or do not compile.

    Args:
        honest: what should be right.
        mutants: what should be wrong.
        toolchain: the compiler.
    """
    rng = np.random.default_rng()
    for specimen in honest:
        try:
            fault = fault_of(specimen, toolchain, rng)
        except WitnessError as error:
            fault = str(error)
        if fault is not None:
            yield f"{specimen.name} should be right: {fault}"
    for mutant in mutants:
        try:
            if refuted(mutant, toolchain, rng) is None:
                yield f"{mutant.name} should be wrong, and nothing was seen of it"
        except WitnessError as error:
            yield f"{mutant.name} should be wrong, not broken: {error}"


def _observations(
    kernel: Specimen | Mutant,
    flags: Sequence[str],
    toolchain: Toolchain,
    rng: np.random.Generator,
    rounds: int,
) -> Iterator[Observation]:
    problem = kernel.problem.make()
    for workload in instances(problem, rng):
        given = draws(problem, workload, rng) * rounds
        for build in _BUILDS:
            yield observe(
                kernel.source,
                problem,
                workload,
                given,
                toolchain,
                flags=(*build, *flags),
                threads=kernel.threads,
            )


def _first(seen: Iterable[Observation]) -> str | None:
    """The first observation that is not right, in words."""
    for one in seen:
        if not one.is_right:
            error = f"error {one.error:.3g} on {one.draw}" if one.error is not None else ""
            return ", ".join(part for part in (one.fault, error) if part)
    return None
