"""From a template's name and values to messages.

A template is a Jinja file with a block for each message, named after its role (``system``,
``user``). An undefined value is an error, not an empty place. A user's own template is a file that
ends in ``.j2``; it may include the shipped parts.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import jinja2

from kernelwright.env.options import OptionError

TEMPLATES = Path(__file__).parent / "templates"
ENDING = ".j2"
ROLES = ("system", "user")


class PromptError(ValueError):
    """A template that cannot be rendered: which one, and what it lacks."""


def templates() -> tuple[str, ...]:
    """The names of the shipped prompts; files that begin with ``_`` are parts of others."""
    found = (path.name.removesuffix(ENDING) for path in TEMPLATES.glob(f"*{ENDING}"))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def check(name: str) -> None:
    """Refuse a name that stands for no template.

    Raises:
        OptionError: if there is none, or it is no template; it lists the shipped ones.
    """
    try:
        _template(name)
    except (jinja2.TemplateError, OSError, UnicodeDecodeError) as error:
        expected = f"one of {', '.join(templates())} or a {ENDING} file"
        raise OptionError("prompt", expected, f"{name!r} ({error})") from None


def render(name: str, **values: object) -> tuple[tuple[str, str], ...]:
    """The messages of a prompt as (role, text), in the order of `ROLES`.

    Raises:
        PromptError: if the template needs a value that is not there, or has no message.
    """
    try:
        template = _template(name)
        out = []
        for role in ROLES:
            if role in template.blocks:
                context = template.new_context(dict(values))
                text = "".join(template.blocks[role](context)).strip()
                out.append((role, f"{text}\n"))
    except jinja2.TemplateError as error:
        raise PromptError(f"prompt {name}: {type(error).__name__}: {error}") from None
    if not out:
        raise PromptError(f"prompt {name}: expected a block named {' or '.join(ROLES)}, found none")
    return tuple(out)


def _template(name: str) -> jinja2.Template:
    if name.endswith(ENDING):
        path = Path(name)
        return _environment(str(path.parent)).get_template(path.name)
    return _environment(None).get_template(name + ENDING)


@lru_cache(maxsize=8)
def _environment(folder: str | None) -> jinja2.Environment:
    folders = [str(TEMPLATES)] if folder is None else [folder, str(TEMPLATES)]
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # prompts are text, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
