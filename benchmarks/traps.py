"""Where changing one knob at a time gets stuck: the tables of docs/coordinate-descent.md, from the
shipped recordings of an H200 and the lecture's model.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import statistics
from collections.abc import Iterator

import numpy as np

from kernelwright.env.landscape.open import shipped_landscapes
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.evaluators.recorded import Recorded
from kernelwright.search.figures.gemm_space import SQUARE, times
from kernelwright.search.traps import Pair, Times, Traps, find_traps


def landscapes() -> Iterator[tuple[str, KnobSpace, Times]]:
    """Every landscape by name: its space and the true time of every combination."""
    yield ("lecture model 4096x4096x4096", *times(SQUARE))
    for name in shipped_landscapes():
        if not name.startswith("h200_gemm"):
            continue
        shape = name.rpartition("_")[2]
        m, n, k = map(int, shape.split("x"))
        problem = gemm_gpu(m=m, n=n, k=k)
        target = Recorded(problem, landscape=name)
        space = KnobSpace(problem.knobs, members=target.members(problem))
        true = np.full(space.combinations, np.nan)
        true[space.valid] = target.true_ns([space.candidate(i) for i in space.valid.tolist()])
        yield f"H200 {shape}", space, true


def counts(name: str, found: Traps) -> str:
    bad = sum(end > 1.05 for end in found.ends)
    share = f"{found.stuck} ({100 * found.stuck / found.configurations:.1f}%)"
    return (
        f"| {name} | {found.configurations:,} | {share} | {found.steps} | {bad} "
        f"| {statistics.median(found.ends):.2f} | {found.ends[-1]:.2f} | {100 * found.lost:.0f}% |"
    )


def example(name: str, pair: Pair) -> str:
    config = " ".join(f"{knob}={value}" for knob, value in pair.config)
    alone = [
        f"{knob}={value} alone {'does not run' if np.isinf(time) else f'{time:.2f}'}"
        for (knob, value), time in zip(pair.changes, pair.alone, strict=True)
    ]
    return f"| {name} | {config} | {pair.time:.2f} | {'; '.join(alone)} | {pair.together:.2f} |"


def main() -> None:
    found = [(name, find_traps(space, true)) for name, space, true in landscapes()]
    for name, traps in found:
        print(counts(name, traps))
    for name, traps in found:
        if traps.pair is not None:
            print(example(name, traps.pair))


if __name__ == "__main__":
    main()
