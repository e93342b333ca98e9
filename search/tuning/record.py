"""A line of the tuning cache: a judged configuration, or the choice that a search ended with.

Lines are JSON with the hash of their content and the digest of their file's key, so a damaged line,
and one that was copied from another device's file, are told apart from a record and refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Candidate, Stage, Status, Verdict
from kernelwright.search.tuning.key import canonical

TRIAL, CHOICE, KEY = "trial", "choice", "key"
# What says who found a record and when, and not what it says: two of these records are one.
_PROVENANCE = ("at", "run", "trial", "sha256")
_NO_FAILURES = frozenset({Status.UNSTABLE, *(status for status in Status if status.passed)})


@dataclass(frozen=True, slots=True)
class Record:
    """A judged configuration.

    ``means`` and ``baseline`` are identities (see ``identity``); ``objective`` the log2 speedup
    over that baseline, None if the candidate failed; ``verdicts`` what judges said, by stage, as
    they stand in the file; ``run`` and ``trial`` who found it, ``at`` when, in s since 1970.
    """

    means: str
    baseline: str
    candidate: Candidate
    objective: float | None
    verdicts: tuple[tuple[Stage, Mapping[str, Any]], ...]
    run: str
    trial: int
    at: float

    def verdict(self, stage: Stage) -> Verdict | None:
        """The verdict of a stage, if it was reached.

        Raises:
            ValueError: if this version cannot read it.
        """
        found = next((data for known, data in self.verdicts if known is stage), None)
        return None if found is None else loads(Verdict, json.dumps(found))

    @property
    def failure(self) -> Stage | None:
        """The first stage whose verdict is a failure of the candidate, None if there is none."""
        return next(
            (s for s, data in self.verdicts if data.get("status") not in _NO_FAILURES), None
        )

    def to_line(self) -> dict[str, Any]:
        """It as plain data."""
        return {
            "kind": TRIAL,
            "means": self.means,
            "baseline": self.baseline,
            "candidate": json.loads(dumps(self.candidate)),
            "objective": self.objective,
            "verdicts": [[stage.value, dict(data)] for stage, data in self.verdicts],
            "run": self.run,
            "trial": self.trial,
            "at": self.at,
        }

    @classmethod
    def from_line(cls, data: Mapping[str, Any]) -> Record:
        """The record in a line.

        Raises:
            ValueError: if there is none.
        """
        try:
            return cls(
                means=str(data["means"]),
                baseline=str(data["baseline"]),
                candidate=loads(Candidate, json.dumps(data["candidate"])),
                objective=data["objective"],
                verdicts=tuple((Stage(stage), found) for stage, found in data["verdicts"]),
                run=str(data["run"]),
                trial=int(data["trial"]),
                at=float(data["at"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            what = str(error).splitlines()[0]
            raise ValueError(f"expected a record, found damage: {what}") from None


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain data."""
    plain: dict[str, Any] = json.loads(dumps(verdict))
    return plain


def sealed(data: Mapping[str, Any], digest: str) -> str:
    """A line: the data with the key's digest and the hash of both."""
    body = {**data, "key": digest}
    # The hash is of the canonical text; the line keeps the order in which a reader wants it.
    sealed_ = {**body, "sha256": _sha256(body)}
    return json.dumps(sealed_, separators=(",", ":"), allow_nan=False)


def opened(line: str, digest: str) -> dict[str, Any]:
    """The data of a line of the file of that key.

    Raises:
        ValueError: if it is no whole line, or one of another key.
    """
    try:
        data = json.loads(line)
        found = data.pop("sha256")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("expected a line of JSON with its hash, found damage") from None
    if found != _sha256(data):
        raise ValueError("expected a line as it was written, found another hash")
    if data.get("key") != digest:
        expected = f"expected a record of key {digest}"
        raise ValueError(f"{expected}, found one of another key, {data.get('key')!s:.40}")
    return dict(data)


def content(data: Mapping[str, Any]) -> str:
    """The hash of what a line says, whoever found it and whenever."""
    said = {name: value for name, value in data.items() if name not in _PROVENANCE}
    if said.get("kind") == CHOICE:
        said["row"] = {name: value for name, value in said["row"].items() if name != "when"}
    return _sha256(said)


def _sha256(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(data).encode()).hexdigest()[:32]
