"""Knobs as a JSON object: one value for each knob."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kernelwright.agents.chat import Malformed
from kernelwright.agents.dialects.fences import answer_block, fenced, spoken
from kernelwright.agents.dialects.json_text import read_json
from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.novelty import Forms, as_declared
from kernelwright.env.types import Candidate, Language, Problem, Scalar

HINTS = (
    "change one knob of the parent by one step",
    "change two knobs of the parent that act on each other",
    "change one knob of the parent by more than one step",
    "try a part of the space from which no result is listed",
    "mix the parent with another good result",
)


class Knobs:
    """The dialect of a `KnobSpace`."""

    name = "knobs"
    fence = "json"
    hints = HINTS

    def __init__(self, space: KnobSpace, problem: Problem) -> None:
        self._space = space
        # Where knobs are macros of a C text, that text says more than their names.
        self._template = problem.template
        self._by_name = {knob.name: knob for knob in space.knobs}
        self._forms = Forms(space, problem)

    def facts(self) -> Mapping[str, Any]:
        """The knobs, and the rules between them."""
        return {
            "knobs": [
                {"name": knob.name, "doc": knob.doc, "listed": ", ".join(map(_json, knob.values))}
                for knob in self._space.knobs
            ],
            "rules": list(map(_rule, self._space.constraints)),
            "template": None if self._template is None else fenced(self._template, "c"),
        }

    def start(self) -> Candidate | None:
        """The space's default."""
        return self._space.default

    def show(self, candidate: Candidate) -> str:
        """A JSON object, knobs in the space's order."""
        return self.brief(candidate)

    def brief(self, candidate: Candidate) -> str:
        """The same: it is one line."""
        values = candidate.knobs
        return json.dumps({name: values[name] for name in self._space.names})

    def form(self, candidate: Candidate) -> str:
        """The schedule, macros or values that the knobs stand for."""
        return self._forms.of(candidate)

    def parse(self, reply: str, parent: Candidate | None = None) -> Candidate | Malformed:
        """The candidate of a JSON object, fenced or alone, which has every knob."""
        del parent
        bare = spoken(reply).strip()
        is_bare = bare.startswith("{") and bare.endswith("}")
        text = bare if is_bare else answer_block(reply, ("json",))
        if isinstance(text, Malformed):
            return text
        found = read_json(text)
        if isinstance(found, Malformed):
            return found
        if not isinstance(found, dict):
            kind = type(found).__name__
            return Malformed("wrong_schema", f"expected a JSON object, found a {kind}")
        return self._candidate(found)

    def _candidate(self, found: dict[str, object]) -> Candidate | Malformed:
        unknown = [name for name in found if name not in self._by_name]
        lacking = [name for name in self._by_name if name not in found]
        if unknown or lacking:
            parts = [f"unknown knob {name!r:.40}" for name in unknown[:4]]
            parts += [f"no value for {name}" for name in lacking]
            return Malformed("wrong_schema", "; ".join(parts))
        values: dict[str, Scalar] = {}
        for name, value in found.items():
            if not isinstance(value, str | int | float | bool):
                wanted = f"{name}: expected a number or text"
                return Malformed("wrong_schema", f"{wanted}, found {json.dumps(value):.80}")
            values[name] = as_declared(self._by_name[name], value)
        try:
            return Candidate(Language.KNOBS, tuple(values.items()))
        except ValueError as error:
            return Malformed("wrong_schema", str(error)[:200])

    def schema(self) -> Mapping[str, Any] | None:
        """An object with one enumeration for each knob, in the subset every server knows."""
        names = list(self._space.names)
        choices = {knob.name: {"enum": list(knob.values)} for knob in self._space.knobs}
        return {
            "type": "object",
            "properties": choices,
            "required": names,
            "additionalProperties": False,
        }


def _json(value: Scalar) -> str:
    """A value as it is written in an answer."""
    return json.dumps(value)


def _rule(constraint: Constraint) -> str:
    """A rule as text, then the names that it defines, each from those before it."""
    given = [f"{name} = {value}" for name, value in constraint.constants]
    given += [f"{name} = {text}" for name, text in constraint.where]
    return "; ".join([constraint.text, *given])
