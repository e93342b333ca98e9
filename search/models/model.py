"""The seam between drivers that rank and models that learn, and from a model's name to a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.types import Problem
from kernelwright.search.models import MODELS

Array = NDArray[np.float64]


class Model(Protocol):
    """Learns log2 time, up to a constant, from rows of features.

    A model that says something with fewer samples than two has an attribute ``needs``, the number.
    One that decides what it believes has ``note``, a word or two that change when it changes its
    mind, and ``says``, a sentence.
    """

    @property
    def count(self) -> int:
        """How many samples it has learned."""
        ...

    def add(self, rows: Array, targets: Array) -> None:
        """Learn rows of features, shape (samples, features), with their targets."""
        ...

    def predict(self, rows: Array) -> Array:
        """Predicted targets for rows of features."""
        ...


@runtime_checkable
class Spreads(Protocol):
    """A model that tells how sure it is."""

    def spread(self, rows: Array) -> Array:
        """A standard deviation for each prediction."""
        ...


def make_model(name: str, space: Space, **parts: object) -> Model:
    """The model of a name in `MODELS` or of a dotted path; ``parts`` are given to what names them.

    Raises:
        OptionError: if there is none, or it cannot learn from this space or problem.
    """
    factory = _found(name)
    wanted = set(inspect.signature(factory).parameters)
    model = factory(space, **{key: part for key, part in parts.items() if key in wanted})
    lacking = [part for part in ("add", "predict", "count") if not hasattr(model, part)]
    if lacking:
        raise OptionError("model", "add, predict and count", f"{name} without {', '.join(lacking)}")
    made: Model = model
    return made


def _found(name: str) -> Callable[..., Any]:
    target = MODELS.get(name, name)
    module, colon, attribute = target.partition(":")
    if not colon:
        module, _, attribute = target.rpartition(".")
    expected = f"one of {', '.join(MODELS)} or a dotted path"
    if not module or not attribute:
        raise OptionError("model", expected, repr(name))
    try:
        factory: Callable[..., Any] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError("model", expected, f"{name!r} ({error})") from None
    return factory


def needs(model: Model) -> int:
    """From how many samples on a model is asked."""
    return int(getattr(model, "needs", 2))


def note(model: Model) -> str:
    """What a model believes now, in a word or two; empty if it has nothing to decide."""
    return str(getattr(model, "note", ""))


def problem_name(problem: Problem | None) -> str:
    """A problem's name, for messages."""
    return "no problem" if problem is None else problem.name
