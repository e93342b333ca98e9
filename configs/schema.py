"""The campaign file: every key, its type and its range.

Choices (problem, target, driver) have the options of what they name. `PLANNED_KEYS` holds keys of
the design that nothing reads yet: they are refused with that reason, not as spelling mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

MAX_WORKERS = 256
MAX_SEED = 2**63
PLANNED_KEYS: dict[tuple[str, ...], str] = {}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Scalars = int | float | bool | str


class SpaceSection(_Strict):
    """Which language candidates are written in. ``template`` takes ``file knobs default
    constraints``, ``source`` takes ``file regions``, ``schedule`` takes ``instructions`` and one of
    ``program``, ``sketch``, ``directives`` and ``template``, the last with ``knobs constraints``.
    """

    kind: Annotated[
        Literal["knobs", "schedule", "template", "source"],
        Field(description="the candidates' language"),
    ] = "knobs"
    file: Annotated[
        str | None, Field(min_length=1, description="the C text that candidates are made of")
    ] = None
    knobs: Annotated[
        dict[str, list[Scalars]] | None,
        Field(description="a template's macros or knobs and their values"),
    ] = None
    default: Annotated[
        dict[str, Scalars] | None, Field(description="a template's default values (the first)")
    ] = None
    constraints: Annotated[
        list[str] | None, Field(description="what the values of a template must satisfy")
    ] = None
    regions: Annotated[
        list[str] | None, Field(description="the parts of a source that may be edited (all)")
    ] = None
    program: Annotated[
        str | None,
        Field(min_length=1, description="a function that writes schedules and draws its decisions"),
    ] = None
    sketch: Annotated[
        Literal["all"] | list[str] | None,
        Field(description="the rules that write schedules from a program's structure"),
    ] = None
    template: Annotated[
        str | None,
        Field(min_length=1, description="problem, or a function from knob values to directives"),
    ] = None
    directives: Annotated[
        Literal["core", "all"] | list[str] | None,
        Field(description="directives that moves are drawn from (core): core, all, or some more"),
    ] = None
    instructions: Annotated[
        list[str] | None,
        Field(description="instructions that schedules may use beside those of the compiler"),
    ] = None


class ScreenSection(_Strict):
    """How a new candidate is measured."""

    pairs: Annotated[
        int | None, Field(ge=1, le=1000, description="pairs of samples in a screen (5)")
    ] = None
    cut: Annotated[
        float | None,
        Field(gt=1, le=100, description="ratio to the best time from which a screen may end early"),
    ] = None


class RaceSection(_Strict):
    """How finalists are chosen, on fresh samples."""

    rounds: Annotated[
        int | None, Field(ge=0, le=20, description="rounds of fresh pairs at most (5)")
    ] = None
    extra: Annotated[
        float | None,
        Field(gt=0, le=10, description="samples of the race at most, as a share of the screens'"),
    ] = None


class ConfirmSection(_Strict):
    """How finalists are confirmed, one after the other until one wins."""

    finalists: Annotated[int, Field(ge=1, le=100, description="trials that may be confirmed")] = 3
    alpha: Annotated[
        float,
        Field(ge=1e-6, le=0.1, description="chance that a search claims what is no faster"),
    ] = 0.01
    process_pairs: Annotated[
        int | None, Field(ge=2, le=1000, description="pairs of processes a finalist (10)")
    ] = None
    pairs: Annotated[
        int | None, Field(ge=1, le=1000, description="pairs of samples in each (8)")
    ] = None


Pattern = Annotated[str, Field(pattern=r"^\S+$", max_length=200)]


class PolicySection(_Strict):
    """What a judge of binaries lets pass beyond what it always does."""

    symbols: Annotated[
        list[Pattern] | None, Field(description="symbols that may be called, as shell patterns")
    ] = None
    libraries: Annotated[
        list[Pattern] | None, Field(description="libraries that may be loaded, as shell patterns")
    ] = None
    static_state: Annotated[
        Literal["allow", "refuse"] | None, Field(description="writable static memory (allow)")
    ] = None


class JudgeSection(_Strict):
    """How candidates are judged. What a target has no use for is refused."""

    profile: Annotated[
        Literal["strict", "standard", "trusted-codegen", "naive", "basic"] | None,
        Field(description="how suspicious the judge is (strict; basic on a model)"),
    ] = None
    check: Annotated[
        Literal["full", "projection"] | None, Field(description="how outputs are compared (full)")
    ] = None
    policy: PolicySection = PolicySection()
    state: Annotated[Literal["cold", "warm"] | None, Field(description="cache state (cold)")] = None
    screen: ScreenSection = ScreenSection()
    race: RaceSection = RaceSection()
    confirm: ConfirmSection = ConfirmSection()


class BudgetSection(_Strict):
    """What may be spent; at least one limit."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    trials: Annotated[int | None, Field(ge=1, le=10_000_000, description="screened candidates")] = (
        None
    )
    seconds: Annotated[
        float | None,
        Field(gt=0, allow_inf_nan=False, description="wall time, confirmation included"),
    ] = None
    calls: Annotated[int | None, Field(ge=1, description="calls of a language model")] = None
    tokens: Annotated[
        int | None, Field(ge=1, description="tokens to and from a language model")
    ] = None
    usd: Annotated[
        float | None,
        Field(gt=0, allow_inf_nan=False, description="money for a language model"),
    ] = None


class TimeTarget(_Strict):
    """A time that is enough, over several workloads their geometric mean."""

    us: Annotated[float, Field(gt=0, allow_inf_nan=False, description="microseconds")]


def _goal(value: object) -> str:
    return "time" if isinstance(value, dict | TimeTarget) else "speedup"


# Told apart by their form, so that an error speaks of the one that is meant.
Goal = Annotated[
    Annotated[float, Field(gt=0, allow_inf_nan=False), Tag("speedup")]
    | Annotated[TimeTarget, Tag("time")],
    Discriminator(_goal),
]


class StopSection(_Strict):
    """When to stop early."""

    roofline: Annotated[
        float | None, Field(gt=0, le=1, description="share of the roofline that is enough")
    ] = None
    plateau: Annotated[int | None, Field(ge=1, description="trials without a better one")] = None
    target: Annotated[
        Goal | None,
        Field(description="speedup over the baseline that is enough, or {us: TIME}"),
    ] = None


class CacheSection(_Strict):
    """The tuning cache: what was judged before is served, and what is judged is kept."""

    folder: Annotated[
        str | None, Field(min_length=1, description="the cache's folder (the user's own)")
    ] = None
    read: Annotated[bool, Field(description="whether known verdicts are served")] = True
    write: Annotated[bool, Field(description="whether new verdicts are kept")] = True
    near: Annotated[
        int,
        Field(
            ge=0, le=1000, description="configurations tried first, the best of earlier searches"
        ),
    ] = 0


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Choice = Annotated[dict[str, Any], Field(description="a name and the options of what it names")]


class TaskParts(_Strict):
    """What a task adds to the campaign's problem and target, and how often its kernel is called."""

    weight: Annotated[
        float,
        Field(gt=0, allow_inf_nan=False, description="calls in a unit of traffic"),
    ] = 1.0
    problem: Annotated[dict[str, Any], Field(description="options of the problem")] = {}
    target: Annotated[dict[str, Any], Field(description="options of the target")] = {}


class TaskEntry(TaskParts):
    """A task with a name of its own."""

    name: Annotated[Name, Field(description="names the task's folder")]


class TasksSection(_Strict):
    """Many tasks under one budget: those that are listed, and the product of lists."""

    listed: Annotated[list[TaskEntry], Field(description="tasks, one by one")] = []
    product: Annotated[
        list[dict[Name, TaskParts]],
        Field(description="parts of tasks by name; every combination is a task, weights multiply"),
    ] = []
    scheduler: Annotated[
        dict[str, Any], Field(description="who gets the next batch: a name and its options")
    ] = {"name": "gradient"}
    share: Annotated[
        bool, Field(description="whether tasks try the best candidates of their neighbours")
    ] = True


Usd = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


class PriceSection(_Strict):
    """What a million tokens of a model cost in USD."""

    prompt: Annotated[Usd, Field(description="tokens of the question")]
    completion: Annotated[Usd, Field(description="tokens of the answer")]
    cached: Annotated[
        Usd | None, Field(description="tokens of the question that were read before (as prompt)")
    ] = None


class ContextSection(_Strict):
    """What a model is shown."""

    tokens: Annotated[
        int | None, Field(ge=256, le=10_000_000, description="tokens of a question, as estimated")
    ] = None
    device: Annotated[bool, Field(description="whether it is told the machine's figures")] = True
    profile: Annotated[
        bool, Field(description="whether it is told what a model of the machine says of the parent")
    ] = True


class RetrievalSection(_Strict):
    """Passages that a model is shown where their words fit the question."""

    passages: Annotated[int, Field(ge=1, le=16, description="passages of a question at most")] = 3
    directives: Annotated[
        bool,
        Field(description="whether directives have pages, of schedules and of C"),
    ] = True
    pages: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        Field(description="Markdown files, of which each section is a passage"),
    ] = []
    runs: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        Field(description="folders of runs, whose winners are passages"),
    ] = []
    cache: Annotated[
        int,
        Field(
            ge=0,
            le=200,
            description="passages of the tuning cache's best, at other shapes and devices",
        ),
    ] = 0


class AgentsSection(_Strict):
    """The language model of a driver that asks one."""

    backend: Choice
    prompt: Annotated[str, Field(min_length=1, description="the prompt's template")] = "refine"
    prices: Annotated[
        dict[str, PriceSection], Field(description="prices by model, before the backend's own")
    ] = {}
    context: ContextSection = ContextSection()
    retrieval: RetrievalSection | None = None


class CampaignFile(_Strict):
    """A campaign."""

    name: Annotated[Name, Field(description="names the run's folder")]
    problem: Choice
    tasks: TasksSection | None = None
    space: SpaceSection = SpaceSection()
    target: Choice
    baseline: Annotated[
        str,
        Field(
            min_length=1, description="unscheduled, default, library, FILE.c or a candidate's key"
        ),
    ] = "unscheduled"
    driver: Choice = {"name": "auto"}
    agents: AgentsSection | None = None
    judge: JudgeSection = JudgeSection()
    budget: BudgetSection
    stop: StopSection = StopSection()
    cache: CacheSection | None = None
    batch: Annotated[int, Field(ge=1, le=100_000, description="proposals asked for at a time")] = 8
    seed: Annotated[
        int, Field(ge=0, lt=MAX_SEED, description="seeds the driver and all simulated noise")
    ] = 0
    workers: Annotated[
        int, Field(ge=1, le=MAX_WORKERS, description="threads; never changes a result")
    ] = 1
    hashes: Annotated[
        dict[str, str], Field(description="SHA-256 of the files this campaign stands on")
    ] = {}


def plain_prices(prices: Mapping[str, PriceSection]) -> dict[str, dict[str, float]]:
    """Price lists as `agents.chat.price` reads them."""
    return {
        model: {
            name: usd
            for name, usd in (
                ("prompt", row.prompt),
                ("completion", row.completion),
                ("cached", row.cached),
            )
            if usd is not None
        }
        for model, row in prices.items()
    }
