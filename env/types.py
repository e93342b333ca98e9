"""The records that flow: immutable values whose constructors refuse what cannot be.

A `Problem` is asked about, a `Candidate` proposed (in a `Proposal`), built into an `Artifact`,
judged (a `Request` gives a `Verdict` with its `Measurement`s) and recorded as a trial
(``search.trial``). Every record is a frozen, slotted dataclass of tuples; equal values are equal
records, and `env.records` writes and reads them as JSON. Times are nanoseconds, ratios are
reference / candidate, so above 1 the candidate is faster.

One module, although a long one: these are the words that every room speaks, and each is a few
lines.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Scalar: TypeAlias = int | float | str | bool
KnobPayload: TypeAlias = tuple[tuple[str, Scalar], ...]
Arrays: TypeAlias = dict[str, NDArray[np.generic]]


class Status(StrEnum):
    """What a judge concluded; the status decides which other fields a `Verdict` may have."""

    OK = "ok"
    WIN = "win"
    TIE = "tie"
    LOSS = "loss"
    WRONG = "wrong"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    BUILD_ERROR = "build_error"
    REJECTED = "rejected"
    TOO_FAST = "too_fast"
    OVER_LIMIT = "over_limit"
    UNSTABLE = "unstable"
    BROKEN = "broken"

    @property
    def is_claim(self) -> bool:
        """Whether this is the outcome of a confirmation."""
        return self in CLAIMS

    @property
    def passed(self) -> bool:
        """Whether the candidate was correct and timed."""
        return self is Status.OK or self in CLAIMS


CLAIMS = frozenset({Status.WIN, Status.TIE, Status.LOSS})
COMPARED = frozenset(
    {Status.OK, Status.WIN, Status.TIE, Status.LOSS, Status.WRONG, Status.UNSTABLE}
)


# Kinds of inputs that a problem may declare to be within its domain (`Problem.stress`).
STRESSES = (
    *("small", "large", "cancellation", "one_hot", "ramp", "subnormal"),
    # These of whole numbers, too, where a problem has no other inputs.
    *("permutation", "equal", "sorted"),
)

# The class code of a verdict that could not be reached because the other arm failed.
REFERENCE_FAILED = "reference_failed"
# The class code of an `unstable` verdict that is about the host and no candidate.
NOISY_HOST = "noisy_host"


class Stage(StrEnum):
    """How much a judge is asked for. Only ``confirm`` makes a claim."""

    SCREEN = "screen"
    RACE = "race"
    CONFIRM = "confirm"


class Evidence(StrEnum):
    """Where a time comes from: this machine's clock, a recording, or a model."""

    MEASURED = "measured"
    RECORDED = "recorded"
    MODELLED = "modelled"


class Language(StrEnum):
    """What a candidate is written in."""

    KNOBS = "knobs"
    SCHEDULE = "schedule"
    TEMPLATE = "template"
    SOURCE = "source"
    LIBRARY = "library"


class Role(StrEnum):
    """What a candidate is compared with."""

    BASELINE = "baseline"
    INCUMBENT = "incumbent"
    LIBRARY = "library"


class Arm(StrEnum):
    """The two sides of a pair."""

    CANDIDATE = "candidate"
    REFERENCE = "reference"


class CacheState(StrEnum):
    """Whether operands start in memory or in cache."""

    COLD = "cold"
    WARM = "warm"


def _refuse(condition: bool, message: str) -> None:
    if condition:
        raise ValueError(message)


def _whole(name: str, value: object, least: int = 0) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        raise ValueError(f"{name}: expected a whole number of at least {least}, found {value!r}")


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected text, found {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: expected text that UTF-8 can hold, found {value!r}") from None


def _facts(name: str, facts: tuple[tuple[str, float], ...]) -> None:
    for fact, value in facts:
        _text(name, fact)
        if not math.isfinite(value):
            raise ValueError(f"{name}: {fact}: expected a finite number, found {value!r}")


def _positive(name: str, values: tuple[float, ...]) -> None:
    for value in values:
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name}: expected positive finite nanoseconds, found {value!r}")


@dataclass(frozen=True, slots=True)
class Directive:
    """One step of a schedule: an environment's action, a mutation and a model's edit are all
    this.

    A step whose name begins with ``sample_`` is a decision instead: it records what a program that
    writes schedules drew (`env.compiler.schedule.decision`) and does nothing to loops.
    """

    op: str
    target: str
    args: tuple[Scalar, ...] = ()

    def __post_init__(self) -> None:
        _refuse(not self.op, "Directive.op: expected a directive's name, found an empty string")
        for value in self.args:
            _refuse(
                isinstance(value, float) and not math.isfinite(value),
                f"{self.op}: expected finite arguments, found {value!r}",
            )

    @property
    def is_decision(self) -> bool:
        """Whether this records a decision and is no directive."""
        return self.op.startswith(DECISION_PREFIX)


DECISION_PREFIX = "sample_"
Payload: TypeAlias = KnobPayload | tuple[Directive, ...] | str


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A program of one language; ``key`` is the hash of its canonical form.

    There is no provenance in the key, so the same program found twice is one candidate. The payload
    is a tuple of (name, value) pairs for ``knobs`` (kept sorted by name), a tuple of directives for
    ``schedule`` and text for the others. Decisions that a schedule records beside its directives
    are no part of its key: what is compiled does not depend on them.

    Raises:
        ValueError: if the payload does not belong to the language, or a knob is named twice.
    """

    language: Language
    payload: Payload
    key: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "language", Language(self.language))
        payload = self.payload
        if self.language is Language.KNOBS:
            payload = _canonical_knobs(payload)
            object.__setattr__(self, "payload", payload)
            body: object = payload
        elif self.language is Language.SCHEDULE:
            if not isinstance(payload, tuple) or not all(isinstance(d, Directive) for d in payload):
                raise ValueError(f"schedule candidate: expected directives, found {payload!r}")
            body = [
                [d.op, d.target, list(d.args)]
                for d in payload
                if isinstance(d, Directive) and not d.is_decision
            ]
        else:
            if not isinstance(payload, str) or not payload:
                raise ValueError(f"{self.language} candidate: expected text, found {payload!r}")
            _text(f"{self.language} candidate", payload)
            body = payload
        text = json.dumps([self.language.value, body], separators=(",", ":"), ensure_ascii=False)
        digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        object.__setattr__(self, "key", digest)

    @classmethod
    def canonical(cls, payload: KnobPayload, key: str) -> Candidate:
        """A knob candidate whose payload is sorted by name and whose key was computed by
        `knob_key`; for spaces, which make many. Nothing is checked.
        """
        made = object.__new__(cls)
        object.__setattr__(made, "language", Language.KNOBS)
        object.__setattr__(made, "payload", payload)
        object.__setattr__(made, "key", key)
        return made

    @property
    def knobs(self) -> dict[str, Scalar]:
        """The knob values by name.

        Raises:
            TypeError: if the candidate is not a knob candidate.
        """
        if self.language is not Language.KNOBS or not isinstance(self.payload, tuple):
            raise TypeError(f"expected a knobs candidate, found {self.language}")
        return dict(self.payload)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        # By key: 1, 1.0 and True are equal numbers and different programs.
        return self.key == other.key if isinstance(other, Candidate) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        if self.language is Language.KNOBS:
            return " ".join(f"{name}={value}" for name, value in self.knobs.items())
        return f"{self.language}:{self.key[:12]}"


def knob_text(name: str, value: Scalar) -> str:
    """A knob's part of the text that a candidate's key is the hash of."""
    return json.dumps([name, value], separators=(",", ":"), ensure_ascii=False)


def knob_key(parts: Iterable[str]) -> str:
    """The key of a knob candidate from its knobs' texts in the order of their names."""
    text = f'["{Language.KNOBS.value}",[{",".join(parts)}]]'
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _canonical_knobs(payload: Payload) -> KnobPayload:
    pairs: list[tuple[str, Scalar]] = []
    if not isinstance(payload, tuple) or not payload:
        raise ValueError(f"knobs candidate: expected (name, value) pairs, found {payload!r}")
    for item in payload:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)):
            raise ValueError(f"knobs candidate: expected a (name, value) pair, found {item!r}")
        value = item[1]
        if not isinstance(value, int | float | str | bool):
            raise ValueError(
                f"knobs candidate: {item[0]}: expected a number or text, found {value!r}"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(
                f"knobs candidate: {item[0]}: expected a finite value, found {value!r}"
            )
        pairs.append((item[0], value))
    pairs.sort(key=lambda pair: pair[0])
    for (left, _), (right, _) in pairwise(pairs):
        if left == right:
            raise ValueError(f"knobs candidate: knob {left!r} is named twice")
    return tuple(pairs)


def knob_candidate(values: Mapping[str, Scalar]) -> Candidate:
    """The knob candidate with these values."""
    return Candidate(Language.KNOBS, tuple(values.items()))


@dataclass(frozen=True, slots=True)
class Knob:
    """A named choice among discrete values, in the order in which one step goes up.

    Raises:
        ValueError: if there is no value, or one stands twice.
    """

    name: str
    values: tuple[Scalar, ...]
    doc: str = ""

    def __post_init__(self) -> None:
        _refuse(
            not self.name.isidentifier(), f"Knob.name: expected an identifier, found {self.name!r}"
        )
        _refuse(not self.values, f"knob {self.name}: expected at least one value")
        for value in self.values:
            exact = not isinstance(value, int | float) or abs(value) <= 2**53
            _refuse(not exact, f"knob {self.name}: expected numbers up to 2^53, found {value!r}")
        typed = {(type(value), value) for value in self.values}
        _refuse(
            len(typed) != len(self.values), f"knob {self.name}: a value stands twice: {self.values}"
        )


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One argument of a kernel: its name, shape (extent names or numbers), dtype and role (input,
    output or scratch).
    """

    name: str
    shape: tuple[str | int, ...]
    dtype: str
    role: str

    def __post_init__(self) -> None:
        _refuse(
            self.role not in ("input", "output", "scratch"),
            f"tensor {self.name}: expected role input, output or scratch, found {self.role!r}",
        )
        np.dtype(self.dtype)


@dataclass(frozen=True, slots=True)
class ExtentRange:
    """An extent that may take any value from ``low`` to ``high``, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        _refuse(
            not 0 < self.low <= self.high,
            f"expected 0 < low <= high, found {self.low}..{self.high}",
        )


@dataclass(frozen=True, slots=True)
class Workload:
    """Extents by name: numbers, or ranges that a judge draws from."""

    extents: tuple[tuple[str, int | ExtentRange], ...]

    def __post_init__(self) -> None:
        for name, extent in self.extents:
            if not isinstance(extent, ExtentRange):
                _whole(f"extent {name}", extent, 1)

    @property
    def fixed(self) -> dict[str, int]:
        """The extents by name.

        Raises:
            ValueError: if one of them is a range.
        """
        out: dict[str, int] = {}
        for name, extent in self.extents:
            if isinstance(extent, ExtentRange):
                raise ValueError(f"extent {name}: expected a number, found the range {extent}")
            out[name] = extent
        return out

    @property
    def label(self) -> str:
        """The extents as ``4096x4096x4096``; a range prints as ``1..64``."""
        return "x".join(
            str(e) if isinstance(e, int) else f"{e.low}..{e.high}" for _, e in self.extents
        )


@dataclass(frozen=True, slots=True)
class ErrorModel:
    """How far an output may be from the float64 reference, and where the bound comes from.

    A problem with a ``magnitude`` is bounded element by element: |out − ref| ≤ ``bound`` ·
    magnitude. One without is bounded as a whole: ‖out − ref‖ ≤ ``bound`` · ‖ref‖. A bound of 0
    means exact.
    """

    bound: float
    source: str

    def __post_init__(self) -> None:
        _refuse(
            not 0 <= self.bound < 1, f"error bound: expected 0 <= bound < 1, found {self.bound}"
        )
        _refuse(not self.source, "error model: expected the source of its bound")


@dataclass(frozen=True, slots=True)
class Library:
    """A library's kernel for a problem: its name, and the dotted path of a function that is called
    with input and output arrays by name and writes the outputs.

    The function is imported in a process of its own; ``needs`` is the distribution that it stands
    on.
    """

    name: str
    function: str
    needs: str = "numpy"


@dataclass(frozen=True, slots=True)
class Projection:
    """How a large matrix is checked for much less than it costs to compute: by its products with
    secret random signs (Freivalds, Probabilistic machines can use less running time, IFIP 1977).

    ``output`` is the name of the output, of shape (m, n). ``product`` maps inputs and signs of
    shape (n, v) to the reference's product with them in float64, of shape (m, v). ``rows`` maps
    inputs and row numbers to those rows of the reference and of its magnitude. ``row_norms`` maps
    inputs to a bound, of shape (m,), of the Euclidean norms of the magnitude's rows.
    """

    output: str
    product: Callable[[Arrays, NDArray[np.float64]], NDArray[np.float64]]
    rows: Callable[[Arrays, NDArray[np.int64]], tuple[NDArray[np.float64], NDArray[np.float64]]]
    row_norms: Callable[[Arrays], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Followers:
    """Inputs that hold the elements of others again, as a matrix in a second format: their names,
    and the inputs with them made anew from the others.
    """

    names: frozenset[str]
    made: Callable[[Arrays], Arrays]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be computed, and all that a judge needs to know about it.

    ``reference`` maps input arrays to output arrays in float64, ``inputs`` draws input arrays for a
    workload, ``flops`` and ``moved_bytes`` count a workload's operations and its compulsory memory
    traffic (for the roofline). ``knobs`` are the values the problem offers to a knob space; a
    target adds the constraints. ``unscheduled`` are the knob values of the plain configuration.

    What compiles for a CPU has more. ``definition`` gives the unscheduled LoopIR `Procedure` of a
    workload of fixed extents; ``plain_c`` is the plain loops as C text after the calling
    convention; ``library`` is who else computes it. Knob values become a program by ``sketch``,
    which maps them to a schedule of the definition, or by ``template``, C text in which they are
    macros. ``magnitude`` maps input arrays to what each output element's error is measured in, by
    output. ``exact_on_integers``: float inputs that are small whole numbers have whole results that
    every order of summation gives exactly. ``stress`` are the kinds of `STRESSES` that its inputs
    may be of besides those that it draws; ``non_finite`` says that NaN and infinity may be
    answers; ``projection`` checks a large output for little. ``constraints`` are rules over its
    knobs, in the language of `env.spaces.expressions`; ``traits`` are what it is beyond its
    extents, which a recording that states one must share. ``followers`` are inputs that hold what
    others do, in another form: who changes inputs changes the others alone.
    """

    name: str
    version: int
    tensors: tuple[TensorSpec, ...]
    workloads: tuple[Workload, ...]
    error_model: ErrorModel
    reference: Callable[[Arrays], Arrays]
    inputs: Callable[[Workload, np.random.Generator], Arrays]
    flops: Callable[[Workload], int]
    moved_bytes: Callable[[Workload], int]
    spaces: tuple[str, ...]
    knobs: tuple[Knob, ...] = ()
    unscheduled: tuple[tuple[str, Scalar], ...] = ()
    magnitude: Callable[[Arrays], Arrays] | None = None
    definition: Callable[[Workload], Any] | None = None
    plain_c: str | None = None
    library: Library | None = None
    sketch: Callable[[Mapping[str, Scalar]], tuple[Directive, ...]] | None = None
    template: str | None = None
    exact_on_integers: bool = False
    stress: tuple[str, ...] = ()
    non_finite: bool = False
    projection: Projection | None = None
    constraints: tuple[str, ...] = ()
    traits: tuple[tuple[str, Scalar], ...] = ()
    followers: Followers | None = None

    def __post_init__(self) -> None:
        unknown = sorted(set(self.stress) - set(STRESSES))
        _refuse(
            bool(unknown),
            f"problem {self.name}: stress: expected some of {', '.join(STRESSES)}, found {unknown}",
        )
        _refuse(
            self.version < 1, f"problem {self.name}: expected version >= 1, found {self.version}"
        )
        _refuse(not self.workloads, f"problem {self.name}: expected at least one workload")
        _refuse(
            "knobs" in self.spaces and not self.knobs,
            f"problem {self.name}: offers knobs but has none",
        )
        names = [t.name for t in self.tensors]
        _refuse(
            len(set(names)) != len(names), f"problem {self.name}: a tensor is named twice: {names}"
        )

    def is_own(self, tensor: str) -> bool:
        """Whether an input does not follow from others."""
        return self.followers is None or tensor not in self.followers.names

    def agreed(self, arrays: Arrays) -> Arrays:
        """Inputs of which some were changed, with those that follow from them."""
        return arrays if self.followers is None else self.followers.made(arrays)

    @property
    def identity(self) -> str:
        """``name@version``."""
        return f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a driver's ``ask`` returns: a candidate, where it came from and what it cost."""

    candidate: Candidate
    proposer: str
    parents: tuple[str, ...] = ()
    prompt_hash: str | None = None
    tokens: int = 0
    usd: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.candidate, Candidate):
            raise ValueError(f"Proposal.candidate: expected a candidate, found {self.candidate!r}")
        for word in (self.proposer, *self.parents):
            _text("Proposal", word)
        _whole("Proposal.tokens", self.tokens)
        _refuse(not 0 <= self.usd < math.inf, f"Proposal.usd: expected >= 0, found {self.usd}")


@dataclass(frozen=True, slots=True)
class Reference:
    """The other arm of a comparison."""

    role: Role
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a comparison is a claim.

    ``alpha`` is the chance with which a kernel that is no faster may be called a win (and one that
    is no slower a loss): one-sided, so the interval that decides has the level 1 - 2 ``alpha``.
    ``least_effect`` is the ratio less 1 that a claim has to be beyond, since identical kernels
    differ by as much on this host.
    """

    alpha: float = 0.025
    least_effect: float = 0.0

    def __post_init__(self) -> None:
        _refuse(not 0 < self.alpha < 0.5, f"alpha: expected 0 < alpha < 0.5, found {self.alpha}")
        _refuse(
            not 0 <= self.least_effect < math.inf,
            f"least_effect: expected a finite value of at least 0, found {self.least_effect}",
        )


@dataclass(frozen=True, slots=True)
class Request:
    """What a judge is asked: one candidate, one stage, how many samples, and against what.

    ``trial`` is the trial's number (simulated drift depends on it); ``first_repeat`` is the number
    of the first sample, so that no two stages draw the same one; ``state`` is where operands are
    when a call starts; ``alpha`` is the error rate that a confirmation may spend (see `Terms`).
    ``cut_ns`` are times, for 2, 3, … samples, above which all of so many show a screened candidate
    to be slow, so that no more need be taken; none unless a target can stop.
    """

    candidate: Candidate
    stage: Stage
    against: tuple[Reference, ...]
    trial: int = 0
    process_pairs: int = 1
    pairs: int = 1
    first_repeat: int = 0
    state: CacheState = CacheState.COLD
    alpha: float = 0.025
    cut_ns: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        Terms(self.alpha)
        _positive("Request.cut_ns", self.cut_ns)
        object.__setattr__(self, "stage", Stage(self.stage))
        object.__setattr__(self, "state", CacheState(self.state))
        for name, least in (("trial", 0), ("first_repeat", 0), ("process_pairs", 1), ("pairs", 1)):
            _whole(f"Request.{name}", getattr(self, name), least)
        roles = [r.role for r in self.against]
        _refuse(not roles, "Request.against: expected at least one reference")
        _refuse(len(set(roles)) != len(roles), f"Request.against: a role stands twice: {roles}")


@dataclass(frozen=True, slots=True)
class Artifact:
    """What a build gives: code and library where there are any, the build log, and resource facts
    (registers, shared memory, …).
    """

    entry: str
    code: str | None = None
    flags: tuple[str, ...] = ()
    library: str | None = None
    log: str = ""
    facts: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        _facts("Artifact.facts", self.facts)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the host did while a pair of times was taken: the clock of the kernels' core in Hz, by a
    trusted probe; the time in ns for which a hypervisor or another process had that core; and how
    often a kernel was interrupted.
    """

    clock_hz: float
    stolen_ns: float
    interruptions: int

    def __post_init__(self) -> None:
        _positive("Conditions.clock_hz", (self.clock_hz,))
        _refuse(
            not 0 <= self.stolen_ns < math.inf,
            f"Conditions.stolen_ns: expected a finite time of at least 0, found {self.stolen_ns}",
        )
        _whole("Conditions.interruptions", self.interruptions)


@dataclass(frozen=True, slots=True)
class ProcessPair:
    """Samples of one pair of processes: who started first, who was called first in the first pair,
    and (candidate, reference) times in ns, with what the host did during each where a host was
    watched. ``discarded`` pairs were dropped, whatever their times, because of what the host did.
    """

    started_first: Arm
    roles: tuple[Arm, Arm]
    samples_ns: tuple[tuple[float, float], ...]
    conditions: tuple[Conditions, ...] = ()
    discarded: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "started_first", Arm(self.started_first))
        _refuse(
            set(self.roles) != set(Arm),
            f"ProcessPair.roles: expected both arms, found {self.roles}",
        )
        _refuse(not self.samples_ns, "ProcessPair.samples_ns: expected at least one pair of times")
        for pair in self.samples_ns:
            _refuse(len(pair) != 2, f"ProcessPair.samples_ns: expected two times, found {pair}")
            _positive("ProcessPair.samples_ns", pair)
        count = len(self.samples_ns)
        _refuse(
            len(self.conditions) not in (0, count),
            f"ProcessPair.conditions: expected {count} or none, found {len(self.conditions)}",
        )
        _whole("ProcessPair.discarded", self.discarded)


@dataclass(frozen=True, slots=True)
class Unpaired:
    """Samples that were not taken in pairs; ``reference_exact`` says that the reference is a true
    time, not a sample.
    """

    candidate_ns: tuple[float, ...]
    reference_ns: tuple[float, ...]
    reference_exact: bool = False

    def __post_init__(self) -> None:
        _refuse(not self.candidate_ns, "Unpaired.candidate_ns: expected at least one time")
        _refuse(not self.reference_ns, "Unpaired.reference_ns: expected at least one time")
        _refuse(
            self.reference_exact and len(self.reference_ns) != 1,
            f"Unpaired: an exact reference is one time, found {len(self.reference_ns)}",
        )
        _positive("Unpaired.candidate_ns", self.candidate_ns)
        _positive("Unpaired.reference_ns", self.reference_ns)


@dataclass(frozen=True, slots=True)
class Measurement:
    """Raw samples of one (workload, reference). Medians, ratios and intervals are derived, never
    stored instead.
    """

    workload: str
    role: Role
    reference_key: str
    samples: tuple[ProcessPair, ...] | Unpaired
    clock: str
    cache_state: CacheState
    evidence: Evidence
    machine: str

    def __post_init__(self) -> None:
        for name, kind in (("role", Role), ("cache_state", CacheState), ("evidence", Evidence)):
            object.__setattr__(self, name, kind(getattr(self, name)))
        _refuse(self.samples == (), "Measurement.samples: expected at least one process pair")
        _refuse(not self.clock, "Measurement.clock: expected a clock's name")
        _refuse(not self.machine, "Measurement.machine: expected a machine's fingerprint")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge found: a status, a class code with its evidence, and samples only if the
    candidate passed.

    ``max_error`` is the largest error in units of the problem's error model (|out − ref| /
    magnitude, or ‖out − ref‖ / ‖ref‖), present only if values were compared.
    ``floors_ns`` are the physical floors of the workloads, in the order of `Measurement`s against
    the baseline; no candidate is credited below its floor. ``terms`` are those of a claim.

    Raises:
        ValueError: if a failed candidate has measurements, a passed one has none, a failure has no
            code, or an error has no comparison.
    """

    status: Status
    code: str | None = None
    evidence: str = ""
    max_error: float | None = None
    measurements: tuple[Measurement, ...] = ()
    facts: tuple[tuple[str, float], ...] = ()
    log: str = ""
    floors_ns: tuple[tuple[str, float], ...] = ()
    terms: Terms | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", Status(self.status))
        status = self.status
        if status.passed:
            _refuse(not self.measurements, f"verdict {status}: expected measurements, found none")
            _refuse(
                self.code is not None,
                f"verdict {status}: expected no class code, found {self.code!r}",
            )
            wanted = Role.BASELINE if status.is_claim else None
            roles = {m.role for m in self.measurements}
            _refuse(
                wanted is not None and wanted not in roles,
                f"verdict {status}: a claim needs a measurement against the baseline",
            )
        else:
            _refuse(
                bool(self.measurements), f"verdict {status}: a failed candidate has no measurement"
            )
            _refuse(not self.code, f"verdict {status}: expected a class code")
        cells = [(m.workload, m.role) for m in self.measurements]
        _refuse(
            len(set(cells)) != len(cells), f"verdict: a (workload, reference) stands twice: {cells}"
        )
        if self.max_error is not None:
            _refuse(
                status not in COMPARED,
                f"verdict {status}: max_error without a comparison of values",
            )
            _refuse(
                not 0 <= self.max_error < math.inf,
                f"max_error: expected a finite value >= 0, found {self.max_error}",
            )
        _facts("Verdict.facts", self.facts)
        for name in ("code", "evidence", "log"):
            _text(f"Verdict.{name}", getattr(self, name) or "")
        for name, value in self.floors_ns:
            _positive(f"floor of {name}", (value,))
