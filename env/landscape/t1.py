"""T1 1.0.0, the input format of the auto-tuning community: the parameters of a kernel with their
values, and the conditions that hold between them. It describes a space and has no results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.env.landscape.python_values import values_of
from kernelwright.env.landscape.record import Landscape
from kernelwright.env.landscape.rows import knob_value
from kernelwright.env.landscape.source import Source
from kernelwright.env.types import Scalar

_TYPES = {"int": int, "uint": int, "float": float, "bool": bool, "string": str}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its name, its type in T1's words, its values and the default one, if any."""

    name: str
    kind: str
    values: tuple[Scalar, ...]
    default: Scalar | None = None


@dataclass(frozen=True, slots=True)
class SpaceFile:
    """What a T1 file says of a space: parameters, conditions (expressions over them), the kernel
    and its problem size; ``rest`` is the file's text, whatever else stands in it.
    """

    kernel: str
    parameters: tuple[Parameter, ...]
    conditions: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    sha256: str = ""
    rest: str = "{}"


def from_t1(source: Source) -> SpaceFile:
    """Read a description.

    Raises:
        LandscapeError: naming the file and the place, if it is no T1.
    """
    with source.read_as("t1"):
        return _read(source)


def _read(source: Source) -> SpaceFile:
    document = source.document
    if not source.whole:  # conditions may be what is missing, and without them it is another space
        raise source.error(f"expected a whole description of a space: {'; '.join(source.notes)}")
    space = document.get("ConfigurationSpace") if isinstance(document, dict) else None
    space = space if isinstance(space, dict) else {}
    given = space.get("TuningParameters")
    if not isinstance(given, list) or not given:
        raise source.error("expected a list of ConfigurationSpace.TuningParameters (T1)")
    parameters = []
    for place, one in enumerate(given):
        try:
            parameters.append(_parameter(one))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise source.error(str(error), f"TuningParameters[{place}]") from None
    conditions = []
    for place, one in enumerate(space.get("Conditions") or ()):
        text = one.get("Expression") if isinstance(one, dict) else one
        if not isinstance(text, str):
            expected = f"Expression: expected text, found {text!r:.80}"
            raise source.error(expected, f"Conditions[{place}]")
        conditions.append(text)
    for key in ("General", "KernelSpecification"):
        if not isinstance(document.get(key, {}), dict):
            raise source.error(f"expected a mapping, found {document[key]!r:.80}", key)
    kernel = document.get("KernelSpecification", {})
    sizes = kernel.get("ProblemSize")
    sizes = sizes if isinstance(sizes, list) else []
    fits = all(type(size) is int and size > 0 for size in sizes)
    return SpaceFile(
        str(kernel.get("KernelName") or ""),
        tuple(parameters),
        tuple(conditions),
        tuple(sizes) if fits else (),
        source.sha256,
        json.dumps(document),
    )


def _parameter(one: Mapping[str, Any]) -> Parameter:
    kind = one.get("Type", "int")
    if kind not in _TYPES:
        raise ValueError(f"Type: expected one of {', '.join(_TYPES)}, found {kind!r:.80}")
    name, given = str(one["Name"]), one["Values"]
    values = values_of(given) if isinstance(given, str) else given
    if not isinstance(values, list) or not values:
        raise ValueError(f"{name}: Values: expected a list, found {given!r:.80}")
    default = one.get("Default")
    default = default[0] if isinstance(default, list) and default else default
    typed = [_typed(name, kind, value) for value in values]
    return Parameter(
        name, kind, tuple(typed), None if default is None else _typed(name, kind, default)
    )


def _typed(name: str, kind: str, value: Any) -> Scalar:
    wanted = _TYPES[kind]
    if wanted is float and type(value) is int:
        return float(value)
    if wanted is bool and value in (0, 1):
        return bool(value)
    if type(value) is not wanted or (kind == "uint" and isinstance(value, int) and value < 0):
        raise ValueError(f"{name}: expected a value of type {kind}, found {value!r:.80}")
    return knob_value(name, value)


def space_of(landscape: Landscape) -> SpaceFile:
    """The space of a landscape; conditions between its knobs are not known."""
    default = dict(landscape.default or ())
    parameters = [
        Parameter(name, _kind(values), values, default.get(name))
        for name, values in zip(landscape.knob_names, landscape.values, strict=True)
    ]
    sizes = tuple(size for _, size in landscape.extents)
    return SpaceFile(landscape.kernel, tuple(parameters), (), sizes)


def _kind(values: tuple[Scalar, ...]) -> str:
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return "float"
    return (
        {int: "int", float: "float", bool: "bool"}.get(kinds.pop(), "string")
        if len(kinds) == 1
        else "string"
    )


def to_t1(space: SpaceFile | Landscape) -> tuple[str, tuple[str, ...]]:
    """A space as the text of a T1 file, and what is lost of a landscape."""
    lost: tuple[str, ...] = ()
    if isinstance(space, Landscape):
        lost = (f"the results of all {len(space.entries):,} configurations", *_lost(space))
        space = space_of(space)
    document = json.loads(space.rest)
    names = [parameter.name for parameter in space.parameters]
    document.setdefault("General", {}).setdefault("FormatVersion", 1)
    document["ConfigurationSpace"] = {
        "TuningParameters": [_written(parameter) for parameter in space.parameters],
        "Conditions": [
            {"Expression": text, "Parameters": [n for n in names if n in _words(text)]}
            for text in space.conditions
        ],
    }
    kernel = document.setdefault("KernelSpecification", {"Language": "CUDA"})
    if space.kernel:
        kernel["KernelName"] = space.kernel
    if space.sizes:
        kernel["ProblemSize"] = list(space.sizes)
    return json.dumps(document, indent=2) + "\n", lost


def _lost(landscape: Landscape) -> Iterator[str]:
    """What a description of a space has no word for, beside results."""
    if landscape.device:
        yield f"the device {landscape.device!r}"
    if landscape.library is not None:
        yield f"the times of the library {landscape.library!r}"
    held = {"problem_size"} if landscape.extents else set()
    rest = [name for name, _ in landscape.metadata if name not in held]
    if rest:
        yield f"metadata: {', '.join(rest)}"
    for name, values in zip(landscape.knob_names, landscape.values, strict=True):
        if len({*map(type, values)}) > 1:
            yield f"the types of the values of {name}, which are of several"


def _words(text: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


def _written(parameter: Parameter) -> dict[str, Any]:
    plain = (
        list(map(str, parameter.values)) if parameter.kind == "string" else list(parameter.values)
    )
    out: dict[str, Any] = {"Name": parameter.name, "Type": parameter.kind, "Values": repr(plain)}
    if parameter.default is not None:
        out["Default"] = parameter.default
    return out
