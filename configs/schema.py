"""The campaign file: every key, its type and its range.

Choices (problem, target, driver) have the options of what they name. `PLANNED_KEYS` and
`PLANNED_VALUES` hold keys and values of the design that nothing reads yet: they are refused with
that reason, not as spelling mistakes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_WORKERS = 256
MAX_SEED = 2**63
PLANNED_KEYS: dict[tuple[str, ...], str] = {
    ("agents",): "drivers that ask a language model",
    ("budget", "tokens"): "drivers that ask a language model",
    ("budget", "usd"): "drivers that ask a language model",
    ("budget", "calls"): "drivers that ask a language model",
    ("judge", "screen"): "a target that measures in pairs",
    ("judge", "check"): "a target that compares values",
    ("judge", "policy"): "a judge that reads sources",
    ("space", "file"): "template and source spaces",
    ("space", "knobs"): "template spaces",
    ("space", "default"): "template spaces",
    ("space", "constraints"): "template spaces",
    ("space", "regions"): "source spaces",
}
PLANNED_VALUES: dict[tuple[str, ...], dict[str, str]] = {
    ("space", "kind"): dict.fromkeys(("schedule", "template", "source"), "the compiler"),
    ("judge", "profile"): {
        **dict.fromkeys(("strict", "standard", "trusted-codegen"), "the judge outside the process"),
        "naive": "the noise laboratory",
    },
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SpaceSection(_Strict):
    """Which language candidates are written in."""

    kind: Annotated[Literal["knobs"], Field(description="the candidates' language")] = "knobs"


class ConfirmSection(_Strict):
    """How finalists are confirmed."""

    finalists: Annotated[int, Field(ge=1, le=100, description="trials that are confirmed")] = 3
    process_pairs: Annotated[
        int | None, Field(ge=2, le=1000, description="pairs of processes a finalist (10)")
    ] = None
    pairs: Annotated[
        int | None, Field(ge=1, le=1000, description="pairs of samples in each (8)")
    ] = None


class JudgeSection(_Strict):
    """How candidates are judged. What a target has no use for is refused."""

    profile: Annotated[
        Literal["basic"] | None, Field(description="how suspicious the judge is (basic)")
    ] = None
    state: Annotated[Literal["cold", "warm"] | None, Field(description="cache state (cold)")] = None
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


class StopSection(_Strict):
    """When to stop early."""

    roofline: Annotated[
        float | None, Field(gt=0, le=1, description="share of the roofline that is enough")
    ] = None
    plateau: Annotated[int | None, Field(ge=1, description="trials without a better one")] = None


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Choice = Annotated[dict[str, Any], Field(description="a name and the options of what it names")]


class CampaignFile(_Strict):
    """A campaign."""

    name: Annotated[Name, Field(description="names the run's folder")]
    problem: Choice
    space: SpaceSection = SpaceSection()
    target: Choice
    baseline: Annotated[
        str, Field(min_length=1, description="unscheduled, default, library or a candidate's key")
    ] = "unscheduled"
    driver: Choice
    judge: JudgeSection = JudgeSection()
    budget: BudgetSection
    stop: StopSection = StopSection()
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
