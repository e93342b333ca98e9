"""The tools of a desk by name: what is said of each, the schema of its arguments, and how it is
called with a stranger's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pydantic

from kernelwright.configs.resolve import Given, options_model
from kernelwright.configs.tools.desk import Desk
from kernelwright.configs.tools.session import Refused

# Characters of all arguments as JSON.
MOST_ARGUMENTS = 400_000


class Tool:
    """A tool of a desk: its name, what is said of it, the schema of its arguments."""

    def __init__(self, name: str, *, reads_only: bool) -> None:
        self.name, self.reads_only = name, reads_only
        function = getattr(Desk, name)
        self._model = options_model(function, Given(1, ()))
        self.description = " ".join((function.__doc__ or "").split())
        self.schema = self._model.model_json_schema()

    def call(self, desk: Desk, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a call.

        Raises:
            Refused: if the arguments are none of this tool, or it cannot be done.
        """
        try:
            text = json.dumps(arguments)
        except (TypeError, ValueError, RecursionError) as error:
            raise Refused(f"arguments: expected JSON: {error}") from None
        if len(text) > MOST_ARGUMENTS:
            found = f"{len(text)}"
            raise Refused(f"arguments: expected at most {MOST_ARGUMENTS} characters, found {found}")
        try:
            checked = self._model.model_validate(arguments)
        except pydantic.ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"])) or "arguments"
            raise Refused(f"{where}: {fault['msg']}, found {fault['input']!r:.120}") from None
        given = {name: getattr(checked, name) for name in type(checked).model_fields}
        answer: dict[str, Any] = getattr(desk, self.name)(**given)
        return answer


TOOLS = tuple(
    Tool(name, reads_only=name not in ("submit", "finish"))
    for name in (
        *("campaign", "problems", "problem", "check", "estimate"),
        *("submit", "verdicts", "leaderboard", "finish"),
    )
)
