"""Whether a value follows a JSON Schema, as far as schemas go that servers enforce: types, enums,
objects with required and no further properties, lists, alternatives.

Other words of the standard are not looked at: a value is only said not to follow a schema where
that is certain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def conforms(text: str, schema: str) -> bool:
    """Whether a text is JSON that follows a schema, itself JSON text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return follows(value, json.loads(schema))


def is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def follows(value: Any, schema: Any) -> bool:
    """Whether a value follows a schema."""
    if not isinstance(schema, Mapping):
        return schema is not False
    if "type" in schema and not _is_typed(value, schema["type"]):
        return False
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        return False
    if "const" in schema and not _same(value, schema["const"]):
        return False
    for word in ("anyOf", "oneOf"):
        if word in schema and not any(follows(value, one) for one in schema[word]):
            return False
    if isinstance(value, dict) and not _fits(value, schema):
        return False
    items = schema.get("items")
    return not isinstance(value, list) or items is None or all(follows(v, items) for v in value)


def _fits(value: dict[str, Any], schema: Mapping[str, Any]) -> bool:
    known = schema.get("properties", {})
    if any(name not in value for name in schema.get("required", ())):
        return False
    if schema.get("additionalProperties") is False and any(name not in known for name in value):
        return False
    return all(follows(value[name], known[name]) for name in value if name in known)


def _is_typed(value: Any, wanted: Any) -> bool:
    names = wanted if isinstance(wanted, list) else [wanted]
    return any(_has_type(value, str(name)) for name in names)


def _has_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(name, (object,)))


def _same(one: Any, other: Any) -> bool:
    """Equality in which true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
