"""What makes an agent of a class that states only what is its own.

A class takes a `Desk` and its own options; `agent` gives it the constructor that campaigns know,
with the parts that a campaign hands to a driver that asks a model, and the options that all agents
have (`options.Common`). They stand in its signature, so they are checked and listed like any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

from kernelwright.agents.chat import ChatModel
from kernelwright.agents.context.surroundings import NOTHING, Surroundings
from kernelwright.agents.desk import Desk
from kernelwright.agents.options import Common
from kernelwright.env.types import Problem
from kernelwright.search.driver import Journal

T = TypeVar("T")


def agent(name: str, *, without: tuple[str, ...] = (), **defaults: Any) -> Callable[[T], T]:
    """A class decorator; the class is made as ``cls(desk, **its own options)``.

    Args:
        name: the proposer's, in the record.
        without: common options that would mean nothing. One that the class has itself takes the
            common one's place, too.
        defaults: of common options, where they are others than `Common` has.
    """

    def compose(cls: Any) -> Any:
        made = cls.__init__
        own = [p for p in inspect.signature(made).parameters.values() if p.kind is p.KEYWORD_ONLY]
        named = {*without, *(parameter.name for parameter in own)}
        shared = {
            field.name: defaults.get(field.name, field.default)
            for field in fields(Common)
            if field.name not in named
        }

        def __init__(  # noqa: N807 - it becomes the class's
            self: Any,
            space: Any,
            *,
            seed: int,
            batch: int,
            problem: Problem,
            backend: ChatModel,
            prompt: str,
            journal: Journal,
            context: Surroundings = NOTHING,
            **given: Any,
        ) -> None:
            common = {option: given.pop(option, shared[option]) for option in shared}
            desk = Desk(
                space,
                name=name,
                seed=seed,
                batch=batch,
                problem=problem,
                backend=backend,
                prompt=prompt,
                journal=journal,
                context=context,
                options=Common(**common),
            )
            made(self, desk, **given)

        kinds = get_type_hints(Common, include_extras=True)
        parts = [
            parameter
            for parameter in inspect.signature(__init__).parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        options = [
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default)
            for option, default in shared.items()
        ]
        hints = get_type_hints(__init__) | get_type_hints(made, include_extras=True)
        hints |= {option: kinds[option] for option in shared}
        hints = {name: hint for name, hint in hints.items() if name not in ("desk", "given")}
        __init__.__annotations__ = hints
        __init__.__signature__ = inspect.Signature([*parts, *own, *options])  # type: ignore[attr-defined]
        __init__.__wrapped__ = made  # type: ignore[attr-defined]
        cls.__init__ = __init__
        return cls

    return compose
