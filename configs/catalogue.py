"""What there is, for ``list``: one row a name, with the first sentence of its documentation."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from kernelwright.agents import BACKENDS
from kernelwright.agents.context.prompter import shipped_prompts
from kernelwright.configs.exchange import describe
from kernelwright.configs.load import GIVEN, TABLES, shipped_configs
from kernelwright.configs.resolve import options_model, resolve
from kernelwright.env.compiler.machine.cpu import load_machine, machine_names
from kernelwright.env.compiler.machine.device import device_names, load_device
from kernelwright.env.compiler.schedule import known_directives
from kernelwright.env.landscape.open import shipped_landscapes
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.spaces import SPACES
from kernelwright.evaluators import TARGETS
from kernelwright.search.tasks import SCHEDULERS

CATALOGUE: dict[str, Mapping[str, str] | None] = {
    "problems": PROBLEMS,
    "spaces": SPACES,
    "directives": known_directives(),
    "drivers": TABLES["driver"],
    "targets": TARGETS,
    "schedulers": SCHEDULERS,
    "backends": BACKENDS,
    "prompts": None,
    "configs": None,
    "landscapes": None,
    "devices": None,
}


def catalogue(what: str) -> list[dict[str, Any]]:
    """The rows of one table; ``what`` is a key of `CATALOGUE`."""
    table = CATALOGUE[what]
    if table is not None:
        return [{"name": name, "doc": _first_sentence(resolve(table, name))} for name in table]
    if what == "prompts":
        return [{"name": name, "doc": text} for name, text in shipped_prompts().items()]
    if what == "configs":
        texts = {name: path.read_text() for name, path in shipped_configs().items()}
        return [{"name": name, "doc": _first_comment(text)} for name, text in texts.items()]
    if what == "devices":
        rows = [{"name": name, "doc": load_device(name).title} for name in device_names()]
        rows += [{"name": name, "doc": load_machine(name).title} for name in machine_names()]
        return rows
    return [describe(name) for name in shipped_landscapes()]


# What names in a table are, as far as they take options.
OPTIONED = {
    "problems": "problem",
    "drivers": "driver",
    "targets": "target",
    "schedulers": "scheduler",
    "backends": "backend",
}


def options_of(what: str, name: str) -> list[dict[str, Any]]:
    """The options of what a name stands for: ``name default doc`` and ``value``, a JSON Schema.

    Raises:
        UnknownNameError: if there is no such name.
    """
    kind = OPTIONED[what]
    model = options_model(resolve(TABLES[kind], name), GIVEN[kind])
    required = {key for key, field in model.model_fields.items() if field.is_required()}
    return [
        {
            "name": key,
            "default": "required" if key in required else repr(model.model_fields[key].default),
            "doc": str(told.pop("description", "")),
            "value": {k: v for k, v in told.items() if k not in ("title", "default")},
        }
        for key, told in model.model_json_schema().get("properties", {}).items()
    ]


_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "string": "text",
    "array": "a list",
    "object": "a mapping",
    "null": "none",
}


def words(value: Mapping[str, Any]) -> str:
    """An option's values on one line, from their JSON Schema."""
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(map(words, value["anyOf"])))
    if "enum" in value or "const" in value:
        return ", ".join(map(str, value.get("enum", [value.get("const")])))
    kind = _KINDS.get(str(value.get("type")))
    if kind is None:
        return json.dumps(value)
    low = value.get("minimum", value.get("exclusiveMinimum"))
    high = value.get("maximum", value.get("exclusiveMaximum"))
    above = "above" if "exclusiveMinimum" in value else "from"
    below = "below" if "exclusiveMaximum" in value else "to"
    limits = [f"{above} {low:,}"] if low is not None else []
    limits += [f"{below} {high:,}"] if high is not None else []
    return " ".join([kind, *limits])


def _first_sentence(thing: object) -> str:
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return text.replace("``", "")


def _first_comment(text: str) -> str:
    return text.splitlines()[0].lstrip("# ").strip()
