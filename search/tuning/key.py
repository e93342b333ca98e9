"""What a time depends on besides its candidate: the key of a file in the tuning cache.

Two campaigns share a file exactly if their keys are equal, so whatever changes the meaning of a
time or of a status is in it: the problem with its tensors, definition and error bound; the extents;
the device; the compiler; what else the target was told; the judge's settings that say what passes
and where operands are. Knob values, constraints, drivers, budgets and the baseline are not: they
say which candidates are looked at, so a change of them leaves what is known.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kernelwright.env.types import ExtentRange, Problem, Workload

# An extent's name with the least and the greatest that it may be.
Span = tuple[str, int, int]


def spans(workload: Workload) -> tuple[Span, ...]:
    """A workload's extents as plain data."""
    return tuple(
        (name, extent.low, extent.high)
        if isinstance(extent, ExtentRange)
        else (name, extent, extent)
        for name, extent in workload.extents
    )


def extents_of(workload: tuple[Span, ...]) -> dict[str, int | str]:
    """Extents by name: numbers, or ``low..high`` for a range."""
    return {name: low if low == high else f"{low}..{high}" for name, low, high in workload}


def tensors_of(problem: Problem) -> str:
    """A problem's arguments as text: ``float32 A[m, k], …``, the outputs after an arrow."""
    said = {
        role: ", ".join(
            f"{t.dtype} {t.name}[{', '.join(map(str, t.shape))}]"
            for t in problem.tensors
            if t.role == role
        )
        for role in ("input", "output")
    }
    return f"{said['input']} -> {said['output']}"


def split_machine(machine: str) -> tuple[str, str]:
    """A measurement's machine as device and compiler."""
    device, _, toolchain = machine.partition("; ")
    return device, toolchain


@dataclass(frozen=True, slots=True)
class TuningKey:
    """One file's key.

    ``problem`` is ``name@version`` and ``tensors`` its arguments; ``computes`` a hash of definition
    and error bound;
    ``device`` the machine or the model's table; ``toolchain`` the compiler with its flags, and this
    package's version, whose code generator and models are part of it; ``options`` what else the
    target was told, ``judge`` what decides which candidates pass, both as canonical JSON; ``seed``
    that of simulated noise, None where there is none; ``files`` the data that the target stands on.
    """

    problem: str
    tensors: str
    computes: str
    workloads: tuple[tuple[Span, ...], ...]
    target: str
    device: str
    toolchain: str
    options: str
    judge: str
    seed: int | None = None
    files: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """32 hexadecimal digits that stand for it."""
        return hashlib.sha256(canonical(self.to_json()).encode()).hexdigest()[:32]

    def to_json(self) -> dict[str, Any]:
        """It as plain data."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TuningKey:
        """The key in plain data.

        Raises:
            ValueError: if there is none.
        """
        try:
            given = dict(data)
            given["workloads"] = tuple(
                tuple((str(name), int(low), int(high)) for name, low, high in workload)
                for workload in given["workloads"]
            )
            given["files"] = tuple((str(name), str(digest)) for name, digest in given["files"])
            return cls(**given)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"expected a tuning key, found {data!r:.200} ({error})") from None


def canonical(data: object) -> str:
    """The one JSON text of plain data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def octaves(left: tuple[Span, ...], right: tuple[Span, ...]) -> float | None:
    """How many doublings two workloads are apart, summed over extents, ranges taken at their
    geometric middle; None if their extents have other names.
    """
    if [name for name, _, _ in left] != [name for name, _, _ in right]:
        return None
    return sum(abs(_log2(a) - _log2(b)) for a, b in zip(left, right, strict=True))


def _log2(span: Span) -> float:
    return (math.log2(span[1]) + math.log2(span[2])) / 2
