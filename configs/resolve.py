"""From a name to an object, and from an object's keyword-only parameters to the schema of its
options.

A name is short (a row of a room's table), dotted (``package.module:attr``) or a file's
(``my_driver.py:MyDriver``, relative to the campaign file). Whatever it stands for is called with
keyword arguments, so its signature is its schema: no registry, no base class.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import keyword
import sys
import traceback
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import pydantic

from kernelwright.configs.errors import nearest
from kernelwright.env.options import FileOption

T = typing.TypeVar("T")


class UnknownNameError(ValueError):
    """A name that stands for nothing; ``expected`` lists what is known."""

    def __init__(self, expected: str, found: str, near: str | None = None) -> None:
        super().__init__(f"expected {expected}, found {found}")
        self.expected, self.found, self.near = expected, found, near


class Given(typing.NamedTuple):
    """What the framework passes to a factory: leading positional arguments, and keywords."""

    positional: int
    names: tuple[str, ...]


def is_plugin(name: str) -> bool:
    """Whether a name is dotted or a file's, not a short one."""
    return ":" in name or "." in name


def resolve(
    table: Mapping[str, str],
    name: str,
    folder: Path | None = None,
    planned: Mapping[str, str] | None = None,
) -> Any:
    """The object a name stands for.

    Raises:
        UnknownNameError: if there is none; it lists the known names.
    """
    known = ", ".join(sorted(table))
    if name in table:
        return _attribute(table[name])
    if planned and name in planned:
        raise UnknownNameError(f"one of {known}", f"{name!r}, which waits for {planned[name]}")
    if not is_plugin(name):
        raise UnknownNameError(
            f"one of {known}, a dotted path or file.py:name", repr(name), nearest(name, table)
        )
    file, colon, attribute = name.rpartition(":")
    if file.endswith(".py"):
        return _from_file((folder or Path()) / file, attribute)
    if not colon and name.endswith(".py"):
        raise UnknownNameError("what to take from the file", repr(name), f"{name}:NAME")
    target = name if colon else ":".join(name.rsplit(".", 1))
    if not all(part.isidentifier() for part in target.replace(":", ".").split(".")):
        raise UnknownNameError(f"one of {known}, a dotted path or file.py:name", f"{name!r:.200}")
    try:
        return _attribute(target)
    except Exception as error:
        expected = f"an importable dotted path or one of {known}"
        raise UnknownNameError(expected, f"{name!r} ({type(error).__name__}: {error})") from error


def _attribute(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


# What each plug-in file stands on: itself and what it imported from its own folder, with hashes.
_PLUGINS: dict[str, tuple[types.ModuleType, dict[str, str]]] = {}


def placed_name(name: str, folder: Path) -> str:
    """A name with the absolute path of its file, where it is a file's."""
    file, _, attribute = name.rpartition(":")
    return f"{(folder / file).resolve()}:{attribute}" if file.endswith(".py") else name


def plugin_files(name: str) -> dict[str, str]:
    """SHA-256 of the file of a loaded plug-in and of the neighbours that it imported, by the name
    with the absolute path; none where a name is no file's.
    """
    file, _, _ = name.rpartition(":")
    return dict(_PLUGINS[file][1]) if file.endswith(".py") else {}


def _from_file(path: Path, attribute: str) -> Any:
    try:
        path = path.resolve()
        path.read_bytes()
    except (OSError, ValueError) as error:
        raise UnknownNameError("a Python file", f"{str(path)!r:.200} ({error})") from None
    known = _PLUGINS.get(str(path))
    if known is None or any(_sha256(file) != digest for file, digest in known[1].items()):
        known = _PLUGINS[str(path)] = _load(path)
    module = known[0]
    try:
        return getattr(module, attribute)
    except AttributeError:
        public = ", ".join(sorted(n for n in vars(module) if not n.startswith("_")))
        raise UnknownNameError(
            f"a name in {path.name} (it has {public})", repr(attribute)
        ) from None


def _load(path: Path) -> tuple[types.ModuleType, dict[str, str]]:
    """Execute a plug-in's file. As for a script, it may import what lies beside it, at its top.

    Neighbours are taken out of ``sys.modules`` again: another plug-in's neighbour may have the same
    name.
    """
    name = f"kernelwright_plugin_{path.stem}_{_sha256(str(path))[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    importlib.invalidate_caches()
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UnknownNameError("a Python file that imports", _raised(path, error)) from error
    finally:
        sys.path.remove(str(path.parent))
        neighbours = _neighbours(path, set(sys.modules) - before - {name})
        for neighbour in neighbours:
            del sys.modules[neighbour]
    files = [str(path), *sorted(neighbours.values())]
    return module, {file: _sha256(file) for file in files}


def _neighbours(path: Path, names: set[str]) -> dict[str, str]:
    """Which of these modules lie below a plug-in's folder, with their files."""
    found = {}
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        if (
            file
            and Path(file).resolve().is_relative_to(path.parent)
            and "site-packages" not in file
        ):
            found[name] = str(Path(file).resolve())
    return found


def _sha256(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""


def _raised(path: Path, error: BaseException) -> str:
    """What a plug-in raised, and on which of its lines."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    where = path.name if line is None else f"{path.name}:{line}"
    return f"{type(error).__name__}: {error} ({where})"


def option_name(parameter: str) -> str:
    """The name of the option that is a parameter: ``from_`` is ``from``, which no parameter can be
    called.
    """
    bare = parameter.removesuffix("_")
    return bare if keyword.iskeyword(bare) else parameter


def parameter_name(option: str) -> str:
    """The parameter of an option."""
    return f"{option}_" if keyword.iskeyword(option) else option


def parameters(factory: Callable[..., Any]) -> set[str]:
    """The names of a factory's parameters."""
    return set(inspect.signature(factory).parameters)


def options_model(factory: Callable[..., Any], given: Given) -> type[pydantic.BaseModel]:
    """A strict model of a factory's parameters, without those that the framework gives; made once,
    as the tasks of a campaign ask for it again and again.
    """
    known = isinstance(factory, Hashable)
    return _remembered_model(factory, given) if known else _options_model(factory, given)


def _options_model(factory: Callable[..., Any], given: Given) -> type[pydantic.BaseModel]:
    hints = _hints(factory)
    fields: dict[str, Any] = {}
    extra: typing.Literal["allow", "forbid"] = "forbid"
    parameters = list(inspect.signature(factory).parameters.values())
    for place, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = "allow"
        named = parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if not named or parameter.name in given.names or place < given.positional:
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[option_name(parameter.name)] = (hints.get(parameter.name, Any), default)
    config = pydantic.ConfigDict(extra=extra, strict=True, frozen=True, protected_namespaces=())
    return pydantic.create_model(
        getattr(factory, "__name__", "Options"), __config__=config, **fields
    )


_remembered_model = functools.lru_cache(maxsize=64)(_options_model)


def file_options(factory: Callable[..., Any]) -> dict[str, tuple[str, ...]]:
    """The options of a factory that may name a file, with the endings of such names."""
    marks = marked_options(factory, FileOption)
    return {name: mark.endings for name, mark in marks.items()}


def marked_options(factory: Callable[..., Any], kind: type[T]) -> dict[str, T]:
    """The options of a factory whose annotations have a mark of this class, with it."""
    return {
        option_name(name): mark
        for name, hint in _hints(factory).items()
        for mark in getattr(hint, "__metadata__", ())
        if isinstance(mark, kind)
    }


def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    function = factory.__init__ if inspect.isclass(factory) else factory
    return typing.get_type_hints(function, include_extras=True)
