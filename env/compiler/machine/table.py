"""Tables of numbers in YAML, read into dataclasses that say which keys there are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

from kernelwright.env.options import OptionError, nearest

T = TypeVar("T")
TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "str": (str,)}


def table_names(folder: Path) -> tuple[str, ...]:
    """The tables in a folder."""
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def table_path(option: str, folder: Path, name: str) -> Path:
    """The file of a table's name, or of a path.

    Raises:
        OptionError: about ``option``, if there is none; it has the nearest name.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
    known = table_names(folder)
    try:
        found = path.is_file()
    except (OSError, ValueError):
        found = False
    if not found:
        expected = f"a {option} table's YAML file or one of {', '.join(known)}"
        raise OptionError(option, expected, f"{name!r:.200}", nearest(name, known))
    return path


def table_sha256(option: str, folder: Path, name: str) -> str:
    """The hash of a table's file."""
    return hashlib.sha256(table_path(option, folder, name).read_bytes()).hexdigest()


def load_table(
    kind: Callable[..., T] | Mapping[str, Callable[..., T]], option: str, folder: Path, name: str
) -> T:
    """The table of a name, or of a YAML file's path, as a ``kind``: a frozen dataclass of numbers
    and texts with a ``name``. Of several kinds the table's key ``model`` names one; without that
    key it is the first.

    Raises:
        OptionError: if there is no such table, or it is not YAML, lacks a number, has an unknown
            one or a value of the wrong type; it says which.
    """
    path = table_path(option, folder, name)
    try:
        shown = path.stem if path.parent == folder else str(path)
        kinds = tuple(kind.items()) if isinstance(kind, Mapping) else (("", kind),)
        made: T = _parse(kinds, shown, path.read_text())
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise OptionError(option, f"a {option} table in {path}", str(error)) from None
    return made


@lru_cache(maxsize=64)
def _parse(kinds: tuple[tuple[str, Any], ...], name: str, text: str) -> Any:
    """The table in a text; keyed by the text, so an edited file is read again."""
    table = yaml.safe_load(text)
    if not isinstance(table, dict) or not isinstance(table.get("fitted", {}), dict):
        raise ValueError("expected a mapping of numbers with a mapping 'fitted'")
    models = dict(kinds)
    model = kinds[0][0] if len(models) == 1 else table.pop("model", kinds[0][0])
    if not isinstance(model, str) or model not in models:
        raise ValueError(f"model: expected one of {', '.join(models)}, found {model!r}")
    kind = models[model]
    values = {key: value for key, value in table.items() if key not in ("fitted", "sources")}
    values |= {**table.get("fitted", {}), "name": name}
    known = {item.name: item.type for item in fields(kind)}
    for key, value in values.items():
        if key not in known:
            raise ValueError(f"unknown key {key!r}; known: {', '.join(known)}")
        expected = TYPES[str(known[key])]
        if not isinstance(value, expected) or isinstance(value, bool):
            raise ValueError(f"{key}: expected {known[key]}, found {value!r}")
    missing = [key for key in known if key not in values]
    if missing:
        raise ValueError(f"missing key {missing[0]!r}")
    return kind(**values)
