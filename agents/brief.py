"""What somebody is told who writes candidates by hand or by a program of their own: the task and
how a candidate is written, in the words in which a model is told; and how what they write is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kernelwright.agents.chat import Malformed
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.dialects.fences import blocks, fenced
from kernelwright.agents.sheet import lasting_values
from kernelwright.env.types import Candidate, Problem
from kernelwright.prompts import render as prompts

TEMPLATE = "_brief"


class Brief:
    """The task of a campaign, for a writer of candidates.

    Args:
        space: of the candidates.
        problem: what they compute.

    Raises:
        OptionError: if nobody writes candidates of the space's language.
    """

    def __init__(self, space: Any, problem: Problem) -> None:
        self._problem = problem
        self._dialect = dialect_for(space, problem)

    @property
    def text(self) -> str:
        """The task, the rules of the language, and what is handed in."""
        ((_, text),) = prompts.render(TEMPLATE, **lasting_values(self._problem, self._dialect))
        return text

    @property
    def start(self) -> str | None:
        """The candidate to start from, as it is written; None if there is none."""
        start = self._dialect.start()
        return None if start is None else self._dialect.show(start)

    def show(self, candidate: Candidate) -> str:
        """A candidate as it is written."""
        return self._dialect.show(candidate)

    def read(self, written: str | Mapping[str, Any]) -> Candidate | Malformed:
        """The candidate that somebody wrote, with its fence or without, or why it is none. It need
        not be in the space.
        """
        if not isinstance(written, str):
            written = json.dumps(written)
        is_bare = not blocks(written)
        return self._dialect.parse(fenced(written, self._dialect.fence) if is_bare else written)
