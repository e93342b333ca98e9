"""The one error of a campaign file: where it is, what was expected there, what was found, and the
nearest known word.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from kernelwright.env.options import nearest as nearest


@dataclass
class ConfigError(Exception):
    """A campaign that is refused. ``line`` counts from 1 and is None where there is no file;
    ``path`` is dotted.
    """

    file: str
    line: int | None
    path: str
    expected: str
    found: str
    nearest: str | None = None

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        key = f" {self.path}:" if self.path else ""
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        return f"{where}:{key} expected {self.expected}, found {self.found}{hint}"

    def to_json(self) -> dict[str, Any]:
        """The object printed under ``--json``."""
        return {"error": asdict(self)}


class NoCandidatesError(ConfigError):
    """A space in which nothing satisfies the constraints: not a mistake where there are others."""
