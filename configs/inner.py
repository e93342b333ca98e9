"""What stands inside a choice and is not simply an option of it: folders, choices of others, and
the limits that every backend takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.configs.resolve import marked_options
from kernelwright.configs.tree import Document
from kernelwright.env.options import ChoiceOption, FolderOption, ReachOption

Factory = Callable[..., Any]
Place = tuple[str, ...]


@dataclass(frozen=True)
class Inner:
    """The choices in an option: one, or several by names of one's own."""

    one: Any = None
    several: dict[str, Any] | None = None


def place_folders(factory: Factory, options: dict[str, Any], beside: Path) -> None:
    """Make the folders that options name absolute: beside the campaign file, or where there is
    nothing of that name, in the folder that the run is started in.
    """

    def placed(name: Any) -> Any:
        if not isinstance(name, str):
            return name
        here, there = beside / name, Path(name)
        try:
            found = there if there.exists() and not here.exists() else here
            return str(found.resolve())
        except (OSError, ValueError):
            return name

    for option in marked_options(factory, FolderOption):
        if option in options:
            given = options[option]
            several = isinstance(given, list)
            options[option] = [placed(one) for one in given] if several else placed(given)


def choose_inner(
    document: Document,
    path: Place,
    factory: Factory,
    options: dict[str, Any],
    choose_one: Callable[[Place, dict[str, Any]], Any],
) -> dict[str, Inner]:
    """What the options name that are choices themselves.

    Raises:
        ConfigError: if one is no choice, or is refused.
    """
    found = {}
    for option, mark in marked_options(factory, ChoiceOption).items():
        given, at = options.get(option), (*path, option)
        if given is None:
            continue
        if not mark.several:
            found[option] = Inner(one=choose_one(at, _mapping(document, at, given)))
            continue
        sections = _mapping(document, at, given, "a mapping from names to choices")
        chosen = {
            name: choose_one((*at, name), _mapping(document, (*at, name), section))
            for name, section in sections.items()
        }
        found[option] = Inner(several=chosen)
    return found


def _mapping(
    document: Document, path: Place, value: Any, expected: str = "a mapping {name: NAME, …}"
) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise document.error(path, expected, f"{value!r:.80}")
    return value


def plainly(inner: Inner) -> dict[str, Any]:
    """An inner choice as it is written, with every default."""
    if inner.several is None:
        return dict(inner.one.plain)
    return {name: chosen.plain for name, chosen in inner.several.items()}


def reaching(factory: Factory, inner: dict[str, Inner], *, is_backend: bool) -> tuple[str, ...]:
    """The options that say only how a model is reached, those of inner choices by their paths."""
    if not is_backend:
        return ()
    own = ["limits", *marked_options(factory, ReachOption)]
    for option, found in inner.items():
        chosen = {"": found.one} if found.several is None else found.several
        for name, one in chosen.items():
            at = ".".join(filter(None, (option, name)))
            own += [f"{at}.{key}" for key in one.reaching]
    return tuple(own)
