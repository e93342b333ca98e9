"""What a dialect offers to a driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias

from kernelwright.agents.chat import Malformed
from kernelwright.env.types import Candidate

# How a text is given in a reply: as a whole, as edits of the parent, or as either.
Edits: TypeAlias = Literal["whole", "search_replace", "either"]


class Dialect(Protocol):
    """One language, as a model reads and writes it.

    ``name`` names the templates of its rules and of its answer format, ``fence`` is what its fenced
    blocks are marked with. ``hints`` are directions to try, so that several requests about one
    parent differ.
    """

    name: str
    fence: str
    hints: tuple[str, ...]

    def facts(self) -> Mapping[str, Any]:
        """What the templates of the rules need to know."""
        ...

    def start(self) -> Candidate | None:
        """The candidate that a search starts from, if the space has one."""
        ...

    def show(self, candidate: Candidate) -> str:
        """A candidate as the text of a fenced block."""
        ...

    def brief(self, candidate: Candidate) -> str:
        """A candidate in one short line, for lists."""
        ...

    def form(self, candidate: Candidate) -> str:
        """What a candidate means: equal for the same program, however it is spelled
        (`env.spaces.novelty`).
        """
        ...

    def parse(self, reply: str, parent: Candidate | None = None) -> Candidate | Malformed:
        """The candidate in a reply, which may be edits of the parent that was shown. It need not be
        in the space.
        """
        ...

    def schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema of a reply, where replies can be JSON alone."""
        ...
