"""What there is, for ``list``: one row a name, with the first sentence of its documentation."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from kernelwright.agents import BACKENDS
from kernelwright.configs.load import shipped_configs
from kernelwright.configs.resolve import resolve
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.spaces import SPACES
from kernelwright.evaluators import TARGETS
from kernelwright.search.drivers import DRIVERS

CATALOGUE: dict[str, Mapping[str, str] | None] = {
    "problems": PROBLEMS,
    "spaces": SPACES,
    "directives": {},
    "drivers": DRIVERS,
    "targets": TARGETS,
    "backends": BACKENDS,
    "configs": None,
}


def catalogue(what: str) -> list[dict[str, str]]:
    """The rows of one table; ``what`` is a key of `CATALOGUE`."""
    table = CATALOGUE[what]
    if table is None:
        paths = shipped_configs()
        return [{"name": name, "doc": _first_comment(paths[name].read_text())} for name in paths]
    return [{"name": name, "doc": _first_sentence(resolve(table, name))} for name in table]


def _first_sentence(thing: object) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _first_comment(text: str) -> str:
    return text.splitlines()[0].lstrip("# ").strip()
