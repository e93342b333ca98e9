"""What of a template nothing shows: blocks that no message has, and text outside of all blocks.
Jinja passes over both without a word.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import jinja2
from jinja2 import nodes

MOST_SHOWN = 60
# What puts text where it stands.
_SHOWS = (nodes.Block, nodes.Output, nodes.Include)


@dataclass(frozen=True, slots=True)
class Stray:
    """What is not shown, on which line, and what it may have been meant for."""

    expected: str
    found: str
    nearest: str | None = None


def stray(environment: jinja2.Environment, name: str, messages: Iterable[str]) -> Stray | None:
    """The first part of a template, or of those that it extends, that no message shows.

    Args:
        environment: where templates are found.
        name: the template's.
        messages: the blocks that are messages.

    Raises:
        jinja2.TemplateError: if there is no such template, or it is none.
    """
    family = list(_family(environment, name))
    if any(family[-1].find_all(nodes.Extends)):
        return None  # what it extends is put together while it is rendered
    if not any(isinstance(node, nodes.Block) for node in _outermost(family[-1])):
        return None  # there is no message at all, which is said elsewhere
    for place, tree in enumerate(family):
        # What a template replaces, its forebears have; at the end of the line stand the messages.
        known = {
            block.name for elder in family[place + 1 :] for block in elder.find_all(nodes.Block)
        }
        known = known or set(messages)
        for node in _outermost(tree):
            found = _judged(node, known)
            if found is not None:
                return found
    return None


def _family(environment: jinja2.Environment, name: str) -> Iterator[nodes.Template]:
    """A template and those that it extends, as far as they are named in plain words."""
    seen = set[str]()
    while name not in seen:
        seen.add(name)
        assert environment.loader is not None
        tree = environment.parse(environment.loader.get_source(environment, name)[0], name)
        yield tree
        parent = next(tree.find_all(nodes.Extends), None)
        if parent is None or not isinstance(parent.template, nodes.Const):
            return
        name = str(parent.template.value)


def _outermost(node: nodes.Node) -> Iterator[nodes.Node]:
    """Blocks and what shows text, outside of blocks and of macros."""
    for child in node.iter_child_nodes():
        if isinstance(child, _SHOWS):
            yield child
        elif not isinstance(child, (nodes.Macro, nodes.AssignBlock)):
            yield from _outermost(child)


def _judged(node: nodes.Node, known: set[str]) -> Stray | None:
    line = f"line {node.lineno}"
    if isinstance(node, nodes.Block):
        if node.name in known:
            return None
        near = next(iter(difflib.get_close_matches(node.name, sorted(known), 1)), None)
        expected = f"blocks of {', '.join(sorted(known))}"
        return Stray(expected, f"{node.name!r} ({line}), which nothing shows", near)
    if isinstance(node, nodes.Output):
        texts = [
            n.data.strip() if isinstance(n, nodes.TemplateData) else "{{ … }}" for n in node.nodes
        ]
        shown = next(filter(None, texts), None)
    else:
        shown = "{% include … %}"
    if shown is None:
        return None
    return Stray("text inside of blocks only", f"{shown[:MOST_SHOWN]!r} ({line}) outside of them")
