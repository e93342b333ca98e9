"""Hypothesis strategies for this project's own domain."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from kernelwright.env.landscape.record import COSTS, Entry, Failure, Landscape
from kernelwright.env.landscape.rows import FACTS, frozen
from kernelwright.env.types import (
    Arm,
    CacheState,
    Candidate,
    Directive,
    Evidence,
    Knob,
    Language,
    Measurement,
    ProcessPair,
    Proposal,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    Unpaired,
    Verdict,
)
from kernelwright.search.trial import Event, Trial

names = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)
times = st.floats(min_value=1e-3, max_value=1e12, allow_nan=False)
scalars = st.one_of(
    st.integers(-(2**53), 2**53),
    st.floats(-1e6, 1e6, allow_nan=False),
    st.booleans(),
    st.text(max_size=8),
)
knob_candidates = st.dictionaries(names, scalars, min_size=1, max_size=6).map(
    lambda d: Candidate(Language.KNOBS, tuple(d.items()))
)
directives = st.builds(Directive, names, names, st.lists(scalars, max_size=3).map(tuple))
candidates = st.one_of(
    knob_candidates,
    st.builds(Candidate, st.just(Language.SCHEDULE), st.lists(directives, max_size=4).map(tuple)),
    st.builds(Candidate, st.just(Language.SOURCE), st.text(min_size=1, max_size=40)),
)
pairs = st.lists(st.tuples(times, times), min_size=1, max_size=4).map(tuple)
process_pairs = st.builds(
    ProcessPair,
    st.sampled_from(Arm),
    st.sampled_from([(Arm.CANDIDATE, Arm.REFERENCE), (Arm.REFERENCE, Arm.CANDIDATE)]),
    pairs,
)
unpaired = st.builds(
    Unpaired,
    st.lists(times, min_size=1, max_size=5).map(tuple),
    st.lists(times, min_size=1, max_size=5).map(tuple),
)


def measurements(role: Role = Role.BASELINE) -> st.SearchStrategy[Measurement]:
    return st.builds(
        Measurement,
        workload=st.just("64x64"),
        role=st.just(role),
        reference_key=st.text("0123456789abcdef", min_size=1, max_size=32),
        samples=st.one_of(st.lists(process_pairs, min_size=1, max_size=3).map(tuple), unpaired),
        clock=names,
        cache_state=st.sampled_from(CacheState),
        evidence=st.sampled_from(Evidence),
        machine=names,
    )


passing_verdicts = st.builds(
    Verdict,
    status=st.sampled_from([s for s in Status if s.passed]),
    max_error=st.one_of(st.none(), st.floats(0, 1)),
    measurements=st.tuples(measurements()),
    facts=st.lists(st.tuples(names, st.floats(0, 1e9)), max_size=3).map(tuple),
    floors_ns=st.one_of(st.just(()), st.tuples(st.tuples(st.just("64x64"), times))),
)
failing_verdicts = st.builds(
    Verdict,
    status=st.sampled_from([s for s in Status if not s.passed]),
    code=names,
    evidence=st.text(max_size=30),
    log=st.text(max_size=30),
)
verdicts = st.one_of(passing_verdicts, failing_verdicts)
proposals = st.builds(
    Proposal,
    candidates,
    names,
    st.lists(names, max_size=2).map(tuple),
    tokens=st.integers(0, 9),
    usd=st.floats(0, 9),
)
requests = st.builds(
    Request,
    candidates,
    st.sampled_from(Stage),
    st.tuples(st.builds(Reference, st.sampled_from(Role), candidates)),
    trial=st.integers(0, 99),
    pairs=st.integers(1, 9),
)
events = st.builds(Event, names, st.integers(0, 99), st.integers(0, 9), st.just("{}"))


@st.composite
def trials(draw: st.DrawFn, number: int = 0) -> Trial:
    verdict = draw(verdicts)
    return Trial(
        number=number,
        candidate=draw(candidates),
        verdicts=((Stage.SCREEN, verdict),),
        objective=draw(st.floats(-20, 20)) if verdict.status.passed else None,
        proposer=draw(names),
        parents=draw(st.lists(names, max_size=2).map(tuple)),
        seed=draw(st.integers(0, 2**62)),
        ask=draw(st.integers(0, 99)),
    )


@st.composite
def knob_lists(draw: st.DrawFn) -> list[Knob]:
    found = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    values = st.lists(st.integers(0, 64), min_size=1, max_size=5, unique=True)
    return [Knob(name, tuple(draw(values))) for name in found]


@st.composite
def landscapes(draw: st.DrawFn) -> Landscape:
    """Landscapes as a file holds them: one unit of times and one of costs; of milliseconds with all
    digits, of others with as many as a move of the decimal point keeps.
    """
    knobs = draw(st.lists(names.map("k_{}".format), min_size=1, max_size=3, unique=True))
    choices = st.one_of(
        st.lists(st.integers(-64, 2**53), min_size=1, max_size=4, unique=True),
        st.lists(st.text(max_size=5), min_size=1, max_size=3, unique=True),
    )
    values = [draw(choices) for _ in knobs]
    product = [tuple(sorted(zip(knobs, c, strict=True))) for c in itertools.product(*values)]
    unit, cost_unit = draw(st.sampled_from(["ns", "us", "ms"])), draw(st.sampled_from(["s", "ms"]))
    digits = {"allow_nan": False, "min_value": 1e-3, "max_value": 1e9}
    sample = st.floats(**digits) if unit == "ms" else st.floats(**digits).map(_short)
    cost = st.floats(**digits).map(_short)
    metric = st.one_of(
        scalars, st.lists(st.integers(), max_size=2).map(frozen), st.none().map(frozen)
    )
    pairs = st.dictionaries(names.map("m_{}".format), metric, max_size=2)
    entries = []
    for knob in draw(st.lists(st.sampled_from(product), min_size=1, max_size=6, unique=True)):
        ran = draw(st.booleans())
        entries.append(
            Entry(
                knob,
                times=tuple(draw(st.lists(sample, min_size=1, max_size=4))) if ran else (),
                error=None if ran else draw(st.text(max_size=12)),
                max_error=draw(st.none() | st.floats(0, 1)),
                facts=tuple((n, draw(st.floats(0, 1e6))) for n in FACTS if draw(st.booleans())),
                failure=None if ran else draw(st.sampled_from(Failure)),
                costs=tuple((c, draw(cost)) for c in COSTS if draw(st.booleans())),
                timestamp=draw(st.none() | st.text(max_size=8)),
                metrics=tuple(sorted(draw(pairs).items())),
                unit=unit,
                cost_unit=cost_unit,
            )
        )
    return Landscape(
        kernel=draw(st.text(max_size=8)),
        device=draw(st.text(max_size=8)),
        extents=tuple(draw(st.dictionaries(names, st.integers(1, 2**40), max_size=3)).items()),
        knob_names=tuple(knobs),
        entries=tuple(entries),
        library=draw(st.none() | st.sampled_from(["cublas", "sdpa", "mine"])),
        library_ns=(),
        default=draw(st.none() | st.just(entries[0].knobs)),
        values=tuple(map(tuple, values)),
        objectives=tuple(draw(st.lists(st.sampled_from(["time", "GFLOP/s"]), max_size=1))),
        metadata=tuple(sorted(draw(pairs).items())),
    )


def _short(value: float) -> float:
    return float(f"{value:.12g}")
