"""How each language is spoken with a model: what it is told of it, how a candidate is shown, and
how a reply is read. `DIALECTS` has one for every language a model can write.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kernelwright.agents.dialects.dialect import Dialect, Edits
from kernelwright.env.options import OptionError
from kernelwright.env.types import Language, Problem

DIALECTS: dict[Language, str] = {
    Language.KNOBS: "kernelwright.agents.dialects.knobs:Knobs",
    Language.SCHEDULE: "kernelwright.agents.dialects.schedule:Schedule",
    Language.SOURCE: "kernelwright.agents.dialects.source:Source",
}
# Languages whose candidates can be given as edits of the parent.
EDITED = frozenset({Language.SCHEDULE, Language.SOURCE})


def dialect_for(space: Any, problem: Problem, *, edits: Edits = "whole") -> Dialect:
    """The dialect of a space's language.

    Args:
        space: whose candidates are written.
        problem: what they compute.
        edits: how a text is given: as a whole, as edits of the parent, or as either.

    Raises:
        OptionError: if no model is asked for candidates of that language, or they have no edits.
    """
    language = space.language
    if language not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise OptionError("name", f"a space in one of the languages {known}", str(language))
    module, _, name = DIALECTS[language].partition(":")
    options = {}
    if edits != "whole":
        if language not in EDITED:
            expected = f"whole, because candidates in the language {language} have no edits"
            raise OptionError("edits", expected, repr(edits))
        options = {"edits": edits}
    dialect: Dialect = getattr(import_module(module), name)(space, problem, **options)
    return dialect
