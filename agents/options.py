"""Options that several agents have, with their ranges and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import Field

from kernelwright.agents.dialects.dialect import Edits

History: TypeAlias = Annotated[
    int, Field(ge=1, le=100, description="tried candidates that a prompt lists")
]
Parents: TypeAlias = Annotated[
    int, Field(ge=1, le=100, description="how many of the best are improved upon")
]
Attempts: TypeAlias = Annotated[
    int, Field(ge=1, le=8, description="calls for one idea: the first, then mending")
]
MaxTokens: TypeAlias = Annotated[
    int, Field(ge=16, le=1_000_000, description="tokens of one answer at most")
]
Temperature: TypeAlias = Annotated[
    float, Field(ge=0, le=2, description="the model's sampling temperature")
]
Structured: TypeAlias = Annotated[
    bool, Field(description="ask the server for JSON by schema, where replies are JSON")
]
EditForm: TypeAlias = Annotated[
    Edits, Field(description="C and schedules come whole, as edits of the parent, or either")
]
Inspirations: TypeAlias = Annotated[
    int, Field(ge=0, le=16, description="good programs shown whole beside the parent")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The options of all agents, but those that would mean nothing to one (`agents.agent`)."""

    history: History = 8
    parents: Parents = 3
    inspirations: Inspirations = 0
    attempts: Attempts = 2
    max_tokens: MaxTokens = 4096
    temperature: Temperature = 0.8
    structured: Structured = False
    edits: EditForm = "whole"
