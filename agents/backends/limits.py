"""What a backend of any kind may be limited to: the key ``limits`` of its section."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Limits(BaseModel):
    """How a backend is asked: how often, how many at a time, and when no more."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    requests_per_minute: Annotated[
        float | None, Field(gt=0, le=1e9, description="requests in any minute")
    ] = None
    tokens_per_minute: Annotated[
        float | None, Field(gt=0, le=1e12, description="tokens to and from the model in any minute")
    ] = None
    concurrency: Annotated[
        int | None, Field(ge=1, le=1000, description="requests at the same time")
    ] = None
    breaker: Annotated[
        int | None,
        Field(ge=1, le=1000, description="failures in a row after which it is left alone"),
    ] = None
    cooldown: Annotated[
        float, Field(gt=0, le=86400, description="seconds it is left alone before one more try")
    ] = 60.0
    retries: Annotated[
        int, Field(ge=0, le=20, description="calls after the first, if it failed in passing")
    ] = 0
    seconds: Annotated[
        float | None,
        Field(gt=0, le=1e9, description="seconds from the first call of a sitting to the last"),
    ] = None
