"""A kernel's calling convention, read out of the prototype that a prompt shows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelwright.agents.programmer.reading import Sheet

_PROTOTYPE = re.compile(r"\bvoid\s+(\w+)\s*\(([^(){};]*)\)\s*[;{]")
_POINTER = re.compile(r"(const\s+)?(\w+)\s*\*\s*(?:restrict\s+|__restrict__\s+)?(\w+)")
_EXTENT = re.compile(r"int64_t\s+(\w+)")
# What a shape may be made of to be written as C.
_SHAPE = re.compile(r"[\w +*/()-]+")


@dataclass(frozen=True, slots=True)
class Signature:
    """One function: ``inputs`` and ``outputs`` as (type, name), ``extents`` by name; ``size`` is C
    for the number of elements of the first output.
    """

    entry: str
    declared: str
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    extents: tuple[str, ...]
    size: str

    @property
    def call(self) -> str:
        """The arguments, passed on."""
        names = [name for _, name in (*self.inputs, *self.outputs)]
        return ", ".join([*names, *self.extents])


def read_signature(sheet: Sheet) -> Signature | None:
    """The kernel's signature, from the rules of the language or else from the parent itself; None
    if it is of another form than the convention's.
    """
    found = [m for text in (sheet.rules, sheet.parent) for m in _PROTOTYPE.finditer(text)]
    if not found:
        return None
    entry, declared = found[0][1], " ".join(found[0][2].split())
    inputs, outputs = list[tuple[str, str]](), list[tuple[str, str]]()
    extents = list[str]()
    for part in declared.split(", "):
        pointer, extent = _POINTER.fullmatch(part), _EXTENT.fullmatch(part)
        if pointer:
            (inputs if pointer[1] else outputs).append((pointer[2], pointer[3]))
        elif extent:
            extents.append(extent[1])
        else:
            return None
    if not inputs or not outputs or not extents:
        return None
    size = _size(dict(sheet.outputs).get(outputs[0][1], ""))
    return Signature(entry, declared, tuple(inputs), tuple(outputs), tuple(extents), size)


def _size(shape: str) -> str:
    """The product of a shape's extents as C; one element where the prompt does not say."""
    parts = [part.strip() for part in shape.split(",")]
    if not all(part and _SHAPE.fullmatch(part) for part in parts):
        return "(int64_t)1"
    return " * ".join(part if part.isalnum() else f"({part})" for part in parts)
