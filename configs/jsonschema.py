"""The campaign file's JSON Schema, for editors and other programs: the pydantic schema with every
known choice spelt out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelwright.agents.backends.limits import Limits
from kernelwright.configs.load import GIVEN, TABLES
from kernelwright.configs.resolve import marked_options, options_model, resolve
from kernelwright.configs.schema import CampaignFile
from kernelwright.env.options import ChoiceOption

SCHEMA_FILE = Path(__file__).parent / "campaign.schema.json"


def campaign_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a campaign file."""
    schema = CampaignFile.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "kernelwright campaign"
    definitions = schema.setdefault("$defs", {})
    for key in ("problem", "target", "driver"):
        schema["properties"][key] = _choice(key, TABLES[key], definitions)
    tasks = definitions["TasksSection"]["properties"]
    tasks["scheduler"] = _choice("scheduler", TABLES["scheduler"], definitions)
    agents = definitions["AgentsSection"]["properties"]
    definitions["Backend"] = _choice("backend", TABLES["backend"], definitions)
    agents["backend"] = {"$ref": "#/$defs/Backend"}
    return schema


def _choice(key: str, table: Mapping[str, str], definitions: dict[str, Any]) -> dict[str, Any]:
    known = []
    for name in table:
        model = options_model(resolve(table, name), GIVEN[key])
        options = model.model_json_schema()
        definitions.update(options.pop("$defs", {}))
        options["title"] = f"{key} {name}"
        options["properties"] = {"name": {"const": name}, **options.get("properties", {})}
        if key == "backend":
            options["properties"] |= _inner(resolve(table, name), options["properties"])
        options["required"] = ["name", *options.get("required", [])]
        known.append(options)
    plugin = {
        "title": f"your own {key}: a dotted path or file.py:name",
        "type": "object",
        "properties": {"name": {"type": "string", "pattern": "[.:]"}},
        "required": ["name"],
    }
    return {"anyOf": [*known, plugin]}


def _inner(factory: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    """What every backend takes, and its options that are backends themselves."""
    one = {"$ref": "#/$defs/Backend"}
    found: dict[str, Any] = {"limits": Limits.model_json_schema()}
    for option, mark in marked_options(factory, ChoiceOption).items():
        about = {"description": properties[option]["description"]}
        several = {"type": "object", "additionalProperties": one}
        found[option] = {**about, **several} if mark.several else {**about, "anyOf": [one]}
    return found


def write_schema() -> None:
    """Write the schema beside this module, where the package ships it."""
    SCHEMA_FILE.write_text(json.dumps(campaign_schema(), indent=2) + "\n")


if __name__ == "__main__":
    write_schema()
