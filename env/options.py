"""What the options of problems, targets and drivers share: errors that name the option or blame the
problem, and marks for options that are more than a value.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that looks most like this one, if one does."""
    found = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.6)
    return found[0] if found else None


class OptionError(ValueError):
    """An option whose value does not exist or does not fit: what was expected, found and meant."""

    def __init__(self, option: str, expected: str, found: str, nearest: str | None = None) -> None:
        hint = f"; did you mean {nearest!r}?" if nearest else ""
        super().__init__(f"{option}: expected {expected}, found {found}{hint}")
        self.option, self.expected, self.found, self.nearest = option, expected, found, nearest


class ProblemError(ValueError):
    """A problem whose own parts do not fit together: its reference, its inputs, its tensors."""


@dataclass(frozen=True, slots=True)
class FileOption:
    """Marks, inside ``Annotated``, an option that may name a file with one of these endings.

    Such a name is relative to the campaign file.
    """

    endings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FolderOption:
    """Marks, inside ``Annotated``, an option that names a folder, or a list of them.

    Such a name is relative to the campaign file, or else to the folder that the run is started in.
    """


@dataclass(frozen=True, slots=True)
class ChoiceOption:
    """Marks, inside ``Annotated``, an option that is itself a choice: a name with options, or where
    ``several`` a mapping from names of one's own to such choices. What takes the option is given
    what the choices make.
    """

    several: bool = False


@dataclass(frozen=True, slots=True)
class ReachOption:
    """Marks, inside ``Annotated``, an option of a backend that says only how a model is reached,
    such as an address or a time limit. It is no part of a campaign's identity: a run goes on when
    it is changed.
    """
