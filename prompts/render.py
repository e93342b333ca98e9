"""From a template's name and values to messages.

A template is a Jinja file with a block for each message, named after its role (``system``,
``user``). An undefined value is an error, not an empty place. A user's own template is a file that
ends in ``.j2``; it may include the shipped parts, or extend a shipped template (``{% extends
'refine.j2' %}``) and replace single blocks of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import jinja2
import jinja2.meta
import jinja2.nodes
import jinja2.sandbox

from kernelwright.env.options import OptionError
from kernelwright.prompts.blocks import stray

TEMPLATES = Path(__file__).parent / "templates"
ENDING = ".j2"
ROLES = ("system", "user")
# What a message may be, so that a template whose loops have no end comes to one.
MOST_CHARACTERS = 2**26
MOST_PIECES = 2**21
# What a template may do wrong while it is rendered.
_FAULTS = (
    *(jinja2.TemplateError, ArithmeticError, AttributeError, LookupError),
    *(MemoryError, RecursionError, TypeError, ValueError),
)
# What the shipped prompts are for.
PROMPTS: dict[str, str] = {
    "blind": "What a program is, and nothing of what was tried, for very small models.",
    "refine": "The task, the machine, a program to improve, and what was tried.",
    "repair": "What was wrong with an answer; it follows in the same conversation.",
}


class PromptError(ValueError):
    """A template that cannot be rendered: which one, and what it lacks."""


def templates() -> tuple[str, ...]:
    """The names of the shipped prompts; files that begin with ``_`` are parts of others."""
    found = (path.name.removesuffix(ENDING) for path in TEMPLATES.glob(f"*{ENDING}"))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def check(name: str) -> None:
    """Refuse a name that stands for no template, and a template with parts that nothing shows.

    Raises:
        OptionError: if there is none, or it is no template; it lists the shipped ones. If it has a
            block that no message has, with the nearest that one has.
    """
    try:
        _template(name)
        found = stray(*_place(name), ROLES)
    except (jinja2.TemplateError, OSError, UnicodeDecodeError) as error:
        expected = f"one of {', '.join(templates())} or a {ENDING} file"
        raise OptionError("prompt", expected, f"{name!r} ({error})") from None
    if found is not None:
        raise OptionError("prompt", found.expected, f"{name}: {found.found}", found.nearest)


def render(name: str, **values: object) -> tuple[tuple[str, str], ...]:
    """The messages of a prompt as (role, text), in the order of `ROLES`.

    Raises:
        PromptError: if the template needs a value that is not there, fails in another way, or has
            no message of the user.
    """
    try:
        template = _template(name)
        inherits = _extends(template)
        out = []
        for role in ROLES:
            context = template.new_context(dict(values))
            if inherits:
                # What a template inherits is in its context once all of it was rendered.
                _bounded(template.root_render_func(context))
            if role in context.blocks:
                text = _bounded(context.blocks[role][0](context)).strip()
                if text:
                    out.append((role, f"{text}\n"))
    except _FAULTS as error:
        raise PromptError(f"prompt {name}: {type(error).__name__}: {error}") from None
    if "user" not in dict(out):
        raise PromptError(f"prompt {name}: expected a block named user with text, found none")
    return tuple(out)


def part(name: str, **values: object) -> str:
    """The text of a shipped part, without its last line end.

    Raises:
        PromptError: if it needs a value that is not there.
    """
    try:
        return _template(name).render(values).removesuffix("\n")
    except jinja2.TemplateError as error:
        raise PromptError(f"part {name}: {type(error).__name__}: {error}") from None


def _bounded(pieces: Iterable[str]) -> str:
    """The text of some pieces.

    Raises:
        ValueError: if it has no end.
    """
    out, size = list[str](), 0
    for piece in pieces:
        out.append(piece)
        size += len(piece)
        if size > MOST_CHARACTERS or len(out) > MOST_PIECES:
            raise ValueError("expected a text that ends, found a loop that goes on and on")
    return "".join(out)


def version(*names: str) -> str:
    """The hash of some prompts: of their templates and of all that those may include or extend.

    Raises:
        PromptError: if there is no such template, or one that it names.
    """
    texts = hashlib.blake2b(digest_size=8)
    for name in names:
        for part, text in sorted(sources(name).items()):
            texts.update(f"{part}\0{text}\0".encode())
    return texts.hexdigest()


def sources(name: str) -> dict[str, str]:
    """The texts of a prompt's template and of all that it may include or extend, by file.

    Raises:
        PromptError: if there is no such template, or one that it names.
    """
    try:
        return _sources(*_place(name))
    except (jinja2.TemplateError, OSError, UnicodeDecodeError) as error:
        raise PromptError(f"prompt {name}: {type(error).__name__}: {error}") from None


def file_name(name: str) -> str:
    """The file of a prompt's template, in its folder."""
    return _place(name)[1]


def _sources(environment: jinja2.Environment, first: str) -> dict[str, str]:
    """The texts of a template and of those that it names, by name; where a name is put together
    while it is rendered, any shipped part may be meant.
    """
    found, left = dict[str, str](), [first]
    while left:
        name = left.pop()
        if name in found:
            continue
        assert environment.loader is not None
        found[name] = environment.loader.get_source(environment, name)[0]
        for named in _named(environment, found[name]):
            left += [named] if named is not None else _parts()
    return found


@lru_cache(maxsize=256)
def _named(environment: jinja2.Environment, text: str) -> tuple[str | None, ...]:
    """The templates that a text names; None for a name that is put together."""
    return tuple(jinja2.meta.find_referenced_templates(environment.parse(text)))


def _parts() -> list[str]:
    return sorted(path.name for path in TEMPLATES.glob(f"_*{ENDING}"))


def _place(name: str) -> tuple[jinja2.Environment, str]:
    """Where a prompt's template is found, and its name there."""
    if name.endswith(ENDING):
        path = Path(name)
        return _environment(str(path.parent)), path.name
    return _environment(None), name + ENDING


def _template(name: str) -> jinja2.Template:
    environment, place = _place(name)
    return environment.get_template(place)


@lru_cache(maxsize=64)
def _extends(template: jinja2.Template) -> bool:
    """Whether a template extends another."""
    environment = template.environment
    assert environment.loader is not None
    assert template.name is not None
    source = environment.loader.get_source(environment, template.name)[0]
    return "extends" in source and any(environment.parse(source).find_all(jinja2.nodes.Extends))


@lru_cache(maxsize=8)
def _environment(folder: str | None) -> jinja2.Environment:
    folders = [str(TEMPLATES)] if folder is None else [folder, str(TEMPLATES)]
    # A template may come with somebody else's campaign: it reads values, and runs nothing. What is
    # shipped needs no sandbox, which would take a third of the time of a question.
    sandbox = jinja2.sandbox.ImmutableSandboxedEnvironment
    kind: type[jinja2.Environment] = jinja2.Environment if folder is None else sandbox
    return kind(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # prompts are text, not HTML
        auto_reload=folder is not None,  # the shipped ones do not change
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
