"""Reading JSON that a model wrote, by one rule wherever it is read."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from kernelwright.agents.chat import Malformed

# How deep objects and lists may stand in each other. Python's own limit depends on who calls.
MOST_DEPTH = 32
_BRACKETS = re.compile(r'"(?:\\.|[^"\\])*"?|[\[\]{}]', re.DOTALL)


def read_json(text: str) -> Any | Malformed:
    """The value of a JSON text. A name that an object has twice, numbers that are none, and
    nesting beyond `MOST_DEPTH` are refused.
    """
    depth = most = 0
    for found in _BRACKETS.finditer(text):
        depth += (found[0] in ("[", "{")) - (found[0] in ("]", "}"))
        most = max(most, depth)
    if most > MOST_DEPTH:
        return Malformed("unparsable", f"expected JSON at most {MOST_DEPTH} deep, found {most}")
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_each_once)
    except _TwiceError as error:
        return Malformed("wrong_schema", str(error))
    except ValueError as error:
        return Malformed("unparsable", f"expected JSON, found {error}")


class _TwiceError(Exception):
    """A name that an object has twice."""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, whose second value for a name would silently take the first one's place."""
    times = Counter(name for name, _ in pairs)
    for name, found in times.items():
        if found > 1:
            raise _TwiceError(f"expected one value for {name!r:.40}, found {found}")
    return dict(pairs)


def _no_constant(text: str) -> float:
    raise ValueError(f"{text}, which is no JSON")
