"""YAML as plain data with the line of every key, and the overrides of ``--set`` on top.

Stricter than YAML where YAML hides mistakes: a key that stands twice is refused, so is anything but
one mapping, and tags that build objects do not exist. Looser in one thing: ``1e-3`` is a number, as
in YAML 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from kernelwright.configs.errors import ConfigError

Path = tuple[str, ...]
MAX_NODES = 10_000
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class _Loader(yaml.SafeLoader):
    """SafeLoader with YAML 1.2 floats and without YAML 1.1's dates, sexagesimals and yes/no
    booleans.
    """


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag.endswith((":null", ":merge"))]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"^[-+]?(?:[0-9][0-9_]*|0x[0-9a-fA-F]+)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
        r"|\.inf|\.Inf|\.nan|\.NaN)$"
    ),
    list("-+0123456789."),
)


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "")
    return int(text, 16) if "x" in text else int(text)


def _construct_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(
        str(loader.construct_scalar(node))
        .replace("_", "")
        .lower()
        .replace(".inf", "inf")
        .replace(".nan", "nan")
    )


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


@dataclass
class Document:
    """A campaign as plain data, knowing where each key stands."""

    file: str
    data: dict[str, Any]
    lines: dict[Path, int] = field(default_factory=dict)
    overrides: dict[Path, str] = field(default_factory=dict)

    def error(
        self, path: Path, expected: str, found: str, nearest: str | None = None
    ) -> ConfigError:
        """An error at a path; where the path does not exist, at the innermost part that does."""
        dotted = ".".join(path)
        inside = next((p for p in self.overrides if path and p[: len(path)] == path), None)
        if inside is not None:
            label = f"--set {self.overrides[inside]}"
            return ConfigError(label, None, dotted, expected, found, nearest)
        for end in range(len(path), -1, -1):
            if path[:end] in self.overrides:
                return ConfigError(
                    f"--set {self.overrides[path[:end]]}", None, dotted, expected, found, nearest
                )
            if path[:end] in self.lines:
                return ConfigError(
                    self.file, self.lines[path[:end]], dotted, expected, found, nearest
                )
        return ConfigError(self.file, None, dotted, expected, found, nearest)

    def get(self, *path: str) -> Any:
        """The value at a path, None if there is none."""
        value: Any = self.data
        for key in path:
            if not isinstance(value, dict) or key not in value:
                return None
            value = value[key]
        return value


def parse_document(text: str, file: str, overrides: Sequence[str] = ()) -> Document:
    """Read a campaign.

    Raises:
        ConfigError: with file and line, if it is not YAML, not a mapping, or a key stands twice.
    """
    root = _compose(text, file)
    if root is None:
        raise ConfigError(file, 1, "", "a mapping of keys", "an empty file")
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(file, root.start_mark.line + 1, "", "a mapping of keys", _kind(root))
    document = Document(file, {}, {(): 1})
    document.data = _Builder(document).build(root, ())
    for override in overrides:
        _override(document, override)
    return document


def from_mapping(data: dict[str, Any], overrides: Sequence[str] = ()) -> Document:
    """A campaign that is already data; errors name paths only."""
    document = Document("<mapping>", data)
    for override in overrides:
        _override(document, override)
    return document


def _compose(text: str, file: str) -> yaml.Node | None:
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = (error.problem or "a syntax error").removeprefix("found ")
        raise ConfigError(file, line, "", "valid YAML", problem.removeprefix("but ")) from None
    except yaml.YAMLError as error:
        raise ConfigError(file, 1, "", "valid YAML", str(error).splitlines()[0]) from None
    except RecursionError:
        raise ConfigError(file, 1, "", "valid YAML", "thousands of nested brackets") from None
    return node


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return repr(node.value)
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


class _Builder:
    """Turns YAML nodes into plain data, noting lines and refusing what YAML would let pass."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._loader = _Loader("")
        self._count = 0

    def build(self, node: yaml.Node, path: Path, open_nodes: tuple[int, ...] = ()) -> Any:
        self._count += 1
        line = self._document.lines.setdefault(path, node.start_mark.line + 1)
        problem = None
        if id(node) in open_nodes:
            problem = "a node inside itself"
        elif self._count > MAX_NODES:
            problem = "aliases that multiply without end"
        elif isinstance(node, yaml.CollectionNode) != (node.tag in _COLLECTIONS):
            problem = f"the tag {node.tag!r}"
        if problem:
            where = ".".join(path)
            raise ConfigError(self._document.file, line, where, "plain data", problem)
        inside = (*open_nodes, id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, inside)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, str(i)), inside) for i, item in enumerate(node.value)]
        try:
            return self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError, KeyError, AttributeError, OverflowError) as error:
            # A tag that does not fit its text raises whatever its constructor stumbles over.
            problem = getattr(error, "problem", None) or f"{node.value!r:.80} as {node.tag}"
            where = ".".join(path)
            raise ConfigError(self._document.file, line, where, "plain data", problem) from None

    def _mapping(
        self, node: yaml.MappingNode, path: Path, inside: tuple[int, ...]
    ) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError(
                    self._document.file, line, ".".join(path), "a word as key", _kind(key_node)
                )
            key = str(key_node.value)
            here = (*path, key)
            if key in out:
                first = self._document.lines[here]
                raise ConfigError(
                    self._document.file,
                    line,
                    ".".join(here),
                    "each key once",
                    f"it again (first on line {first})",
                )
            self._document.lines[here] = line
            out[key] = self.build(value_node, here, inside)
        return out


def _override(document: Document, override: str) -> None:
    label = f"--set {override}"
    dotted, sign, text = override.partition("=")
    path = tuple(dotted.split("."))
    if not sign or not all(path):
        raise ConfigError(label, None, dotted, "a.b=value", repr(override))
    node = _compose(text, label)
    value: Any = None
    if node is not None:
        scratch = Document(label, {})
        value = _Builder(scratch).build(node, path)
    target = document.data
    for depth, key in enumerate(path[:-1]):
        if key not in target:
            document.overrides[path[: depth + 1]] = override
        below = target.setdefault(key, {})
        if not isinstance(below, dict):
            raise ConfigError(
                label, None, dotted, f"a mapping at {'.'.join(path[: depth + 1])}", repr(below)
            )
        target = below
    target[path[-1]] = value
    for known in [p for p in document.lines if p[: len(path)] == path]:
        del document.lines[known]
    document.overrides[path] = override
