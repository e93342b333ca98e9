"""What a candidate means, as text that is equal for equal programs.

A candidate's key names its payload, and a payload changes when a knob is added although the program
does not. So records are compared by meaning: knob values that stand for a schedule by that
schedule, values of macros by the template's text and what differs from its own fallbacks
(``#ifndef X`` / ``#define X 1``). What has no program (the knobs of a model or a recording) is
compared by its values, where a knob that a record lacks has its declared default.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from kernelwright.env.spaces.novelty import fallbacks, macro_text, macros_set
from kernelwright.env.types import Candidate, Language, Problem, Scalar
from kernelwright.search.tuning.key import canonical

_KNOBS = "knobs:"


def fallback_knobs(problem: Problem) -> dict[str, Scalar]:
    """The knobs of a template's problem at the text's own fallbacks, where those are among their
    values: what a configuration that lacks such a knob does.
    """
    own = fallbacks(problem.template or "")
    return {
        knob.name: value
        for knob in problem.knobs
        for value in knob.values
        if own.get(knob.name) == macro_text(value)
    }


def identity(problem: Problem, candidate: Candidate) -> str:
    """The meaning of a candidate of a problem."""
    match candidate.language:
        case Language.KNOBS if problem.template is not None:
            set_ = macros_set(problem.template, candidate.knobs)
            return f"macros:{_sha256(canonical([problem.template, set_]))}"
        case Language.KNOBS if problem.sketch is not None:
            trace = Candidate(Language.SCHEDULE, problem.sketch(candidate.knobs))
            return f"schedule:{trace.key}"
        case Language.KNOBS:
            return _KNOBS + canonical(candidate.knobs)
    return f"{candidate.language}:{candidate.key}"


def completed(meaning: str, defaults: Mapping[str, Scalar]) -> str:
    """The identity of a record as it reads today: a knob that it lacks has its default."""
    if not meaning.startswith(_KNOBS):
        return meaning
    return _KNOBS + canonical({**defaults, **json.loads(meaning.removeprefix(_KNOBS))})


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
