"""What the options of problems, targets and drivers share: errors that name the option or blame the
problem, and a mark for file names.
"""

from __future__ import annotations

from dataclasses import dataclass


class OptionError(ValueError):
    """An option whose value does not exist or does not fit: what was expected, found and meant."""

    def __init__(self, option: str, expected: str, found: str, nearest: str | None = None) -> None:
        super().__init__(f"{option}: expected {expected}, found {found}")
        self.option, self.expected, self.found, self.nearest = option, expected, found, nearest


class ProblemError(ValueError):
    """A problem whose own parts do not fit together: its reference, its inputs, its tensors."""


@dataclass(frozen=True, slots=True)
class FileOption:
    """Marks, inside ``Annotated``, an option that may name a file with one of these endings.

    Such a name is relative to the campaign file.
    """

    endings: tuple[str, ...]
