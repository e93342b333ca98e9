"""Candidates from files: nothing is searched, everything that is listed is judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from kernelwright.env.options import FileOption, OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.source import SourceSpace
from kernelwright.env.types import Candidate, Language, Proposal
from kernelwright.search.trial import Trial


class Listed:
    """C texts from files, one candidate each, in the list's order or in one that the seed draws.

    Args:
        space: a space of sources.
        seed: of the order.
        batch: not used.
        files: C files.
        shuffle: whether the seed draws the order.

    Raises:
        OptionError: if the space is of another kind, or a file cannot be read.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        files: Annotated[
            tuple[str, ...],
            Field(min_length=1, description="C files, one candidate each"),
            FileOption((".c",)),
        ],
        shuffle: Annotated[bool, Field(description="whether the seed draws the order")] = False,
    ) -> None:
        del batch
        if not isinstance(space, SourceSpace):
            found = f"{type(space).__name__}, whose candidates are no texts"
            raise OptionError("name", "a space of kind source", found)
        order = (
            np.random.default_rng(seed).permutation(len(files)) if shuffle else range(len(files))
        )
        self._proposals = [_proposal(files[place]) for place in order]
        self._next = 0

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        count = len(self._proposals)
        return f"all {count} files were proposed" if self._next == count else None

    def ask(self, n: int) -> list[Proposal]:
        """The next ``n`` files, fewer at the end of the list."""
        out = self._proposals[self._next : self._next + n]
        self._next += len(out)
        return out

    def tell(self, trials: Sequence[Trial]) -> None:
        """Nothing: the list is what it is."""


def _proposal(name: str) -> Proposal:
    try:
        candidate = Candidate(Language.SOURCE, Path(name).read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise OptionError("files", "C files", f"{name!r:.200} ({error})") from None
    return Proposal(candidate, f"listed {Path(name).name}")
