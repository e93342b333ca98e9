"""From a campaign file's text to a checked, resolved campaign: every default filled in, every path
absolute.
"""

from __future__ import annotations

import copy
import hashlib
import json
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pydantic

from kernelwright.agents import AGENT_DRIVERS, BACKENDS
from kernelwright.agents.backends.limits import Limits
from kernelwright.configs.context import check_retrieval, resolved_context
from kernelwright.configs.errors import ConfigError, nearest
from kernelwright.configs.folders import cache_folder_of, check_cache
from kernelwright.configs.inner import Inner, choose_inner, place_folders, plainly, reaching
from kernelwright.configs.instructions import declare_instructions
from kernelwright.configs.resolve import (
    Given,
    UnknownNameError,
    file_options,
    is_plugin,
    options_model,
    parameter_name,
    placed_name,
    plugin_files,
    resolve,
)
from kernelwright.configs.schema import PLANNED_KEYS, CampaignFile, plain_prices
from kernelwright.configs.tree import Document, from_mapping, parse_document
from kernelwright.env.problems import PROBLEMS
from kernelwright.evaluators import PLANNED, TARGETS
from kernelwright.search.drivers import DRIVERS, FED_DRIVERS
from kernelwright.search.store import DATABASE
from kernelwright.search.tasks import SCHEDULERS

CONFIGS_DIR = Path(__file__).parent
# Keyword arguments that the framework gives to what a choice names, so they are not options.
# What a driver that asks a model gets beside what every driver does.
AGENT_PARTS = ("problem", "backend", "prompt", "journal", "context")
GIVEN = {
    "problem": Given(0, ()),
    "target": Given(1, ("seed", "judging")),
    "driver": Given(1, ("seed", "batch", *AGENT_PARTS)),
    "backend": Given(0, ("seed",)),
    "scheduler": Given(0, ()),
}
TABLES: dict[str, Mapping[str, str]] = {
    "problem": PROBLEMS,
    "target": TARGETS,
    "driver": {**DRIVERS, **AGENT_DRIVERS, **FED_DRIVERS},
    "backend": BACKENDS,
    "scheduler": SCHEDULERS,
}
# Where choices stand in a campaign.
CHOICES = (
    *(("problem",), ("target",), ("driver",)),
    *(("agents", "backend"), ("tasks", "scheduler")),
)
# What a space of each kind takes, and what it must have.
_SPACE_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "knobs": ((), ()),
    "schedule": (
        ("program", "sketch", "template", "knobs", "constraints", "instructions", "directives"),
        (),
    ),
    "template": (("file", "knobs", "default", "constraints"), ("file", "knobs")),
    "source": (("file", "regions"), ()),
}


@dataclass(frozen=True)
class Chosen:
    """What a choice names, and the checked options it is called with; ``reaching`` are those of a
    backend that are no part of a campaign's identity.
    """

    name: str
    factory: Callable[..., Any]
    options: dict[str, Any]
    plain: dict[str, Any]
    inner: dict[str, Inner] = field(default_factory=dict)
    limits: Limits | None = None
    reaching: tuple[str, ...] = ()


@dataclass(frozen=True)
class Campaign:
    """A checked campaign file, and the document it came from (for errors found later)."""

    file: CampaignFile
    problem: Chosen
    target: Chosen
    driver: Chosen
    backend: Chosen | None
    prompt: str | None
    space_text: str | None
    space_function: Callable[..., Any] | None
    folder: Path
    document: Document
    files: dict[str, str]


def shipped_configs() -> dict[str, Path]:
    """The shipped campaigns by bare name; those that stand on files of their own have a folder."""
    found = [*CONFIGS_DIR.glob("*.yaml"), *CONFIGS_DIR.glob("*/*.yaml")]
    return {path.stem: path for path in sorted(found, key=lambda path: path.stem)}


def read_config(config: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Campaign:
    """Read and check a campaign: a file's path, a shipped name, or a mapping.

    Raises:
        ConfigError: at the first fault.
    """
    return check_document(*read_document(config, overrides))


def read_document(
    config: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()
) -> tuple[Document, Path]:
    """A campaign as it is written, not checked, and the folder that its names are relative to.

    Raises:
        ConfigError: if it cannot be read.
    """
    if isinstance(overrides, str):
        raise TypeError(f"overrides: expected a list of 'a.b=value', found {overrides!r}")
    if isinstance(config, Mapping):
        return from_mapping(copy.deepcopy(dict(config)), overrides), Path()
    if not isinstance(config, str | Path):
        raise TypeError(f"config: expected a path, a name or a mapping, found {config!r}")
    shipped = shipped_configs()
    path = Path(config)
    if str(config) in shipped and not _is_file(path):
        path = shipped[str(config)]
    if path.is_dir():
        raise _a_folder(path)
    if not _is_file(path):
        near = nearest(str(config), shipped)
        looks_like_a_file = path.suffix in (".yaml", ".yml") or len(path.parts) > 1
        known = "a shipped name (`kernelwright list configs`)"
        expected = "a file" if looks_like_a_file else f"a file or {known}"
        raise ConfigError(f"{config!s:.200}", None, "", expected, "nothing there", near)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte {error.start} is not"
        raise ConfigError(str(path), None, "", "UTF-8 text", found) from None
    except OSError as error:
        raise ConfigError(str(path), None, "", "a readable file", str(error)) from None
    return parse_document(text, str(path), overrides), path.parent.resolve()


def _a_folder(path: Path) -> ConfigError:
    """The refusal of a folder, with the campaign that lies in it."""
    inside = [path / "config.yaml", *sorted(path.glob("*.yaml"))]
    near = next((str(file) for file in inside if file.is_file()), None)
    found = "a folder"
    if (path / DATABASE).is_file():
        found = f"the folder of a run (kernelwright show {path})"
    return ConfigError(f"{path!s:.200}", None, "", "a campaign file", found, near)


def check_file(document: Document) -> CampaignFile:
    """The keys of a document, each of its type and in its range; choices are not looked into.

    Raises:
        ConfigError: at the first fault.
    """
    _refuse_planned(document)
    _refuse_bare_names(document)
    return cast(CampaignFile, _validate(document, (), CampaignFile, document.data))


def check_document(document: Document, folder: Path) -> Campaign:
    """Check a document; names relative to ``folder``.

    Raises:
        ConfigError: at the first fault.
    """
    file = check_file(document)
    if file.tasks is not None:
        expected = "a campaign of one task (run, check and show take many)"
        raise document.error(("tasks",), expected, "tasks")
    files: dict[str, str] = {}
    chosen = {
        key: choose(document, (key,), getattr(file, key), folder, files)
        for key in ("problem", "target", "driver")
    }
    backend, prompt = None, None
    if file.agents is not None:
        prompt = _prompt(document, file.agents.prompt, folder, files)
        path = ("agents", "backend")
        backend = choose(document, path, file.agents.backend, folder, files)
        check_retrieval(document, file, folder, files)
    if all(limit is None for limit in file.budget.model_dump().values()):
        expected = "at least one of trials, seconds, calls, tokens, usd"
        raise document.error(("budget",), expected, "none")
    check_cache(document, file.cache, folder)
    text = _space_text(document, file, folder, files)
    declare_instructions(document, file.space.instructions or [], folder, files)
    function = _space_function(document, file, folder, files)
    return Campaign(
        file,
        chosen["problem"],
        chosen["target"],
        chosen["driver"],
        backend,
        prompt,
        text,
        function,
        folder,
        document,
        files,
    )


def _prompt(document: Document, name: str, folder: Path, files: dict[str, str]) -> str:
    """A prompt's name, or the absolute path of a template of one's own."""
    if not name.endswith(".j2"):
        return name
    read_text_file(document, ("agents", "prompt"), "a template", name, folder, files)
    return str((folder / name).resolve())


def _space_text(
    document: Document, file: CampaignFile, folder: Path, files: dict[str, str]
) -> str | None:
    """The C text that a space starts from, where it names one; refuses keys of other kinds."""
    legal, required = _SPACE_KEYS[file.space.kind]
    given = file.space.model_dump(exclude_none=True, exclude={"kind"})
    for key in given:
        if key not in legal:
            takes = f"one of {', '.join(legal)}" if legal else "no further key"
            expected = f"{takes} in a space of kind {file.space.kind}"
            raise document.error(("space", key), expected, repr(key))
    for key in required:
        if key not in given:
            expected = f"the key {key!r} of a space of kind {file.space.kind}"
            raise document.error(("space",), expected, "none")
    if file.space.file is None:
        return None
    path = ("space", "file")
    return read_text_file(document, path, "a C file", file.space.file, folder, files)


# The ways to write a space of schedules, of which a campaign has one at most.
WAYS = ("program", "sketch", "template")
# The template that a problem brings with it.
PROBLEMS_OWN = "problem"


def _space_function(
    document: Document, file: CampaignFile, folder: Path, files: dict[str, str]
) -> Callable[..., Any] | None:
    """The function that a space of schedules is written by, where it names one."""
    section = file.space
    if section.kind != "schedule":
        return None
    given = [way for way in WAYS if getattr(section, way) is not None]
    if len(given) > 1:
        expected = f"one of {', '.join(WAYS)} in a space of kind schedule"
        raise document.error(("space", given[1]), expected, " and ".join(given))
    if given and section.directives is not None:
        expected = f"no 'directives' beside {given[0]!r}, which says itself what it writes"
        raise document.error(("space", "directives"), expected, repr(section.directives))
    own = section.template is not None and section.template != PROBLEMS_OWN
    for key, takes in (("knobs", own), ("constraints", section.template is not None)):
        if getattr(section, key) is not None and not takes:
            expected = f"no {key!r} but with a template{' of your own' if key == 'knobs' else ''}"
            raise document.error(("space", key), expected, repr(key))
    if section.program is not None:
        return _own_function(document, ("space", "program"), section.program, folder, files)
    if section.template is None or not own:
        return None
    found = _own_function(document, ("space", "template"), section.template, folder, files)
    if section.knobs is None:
        raise document.error(("space",), "the key 'knobs' beside a template of your own", "none")
    return found


def _own_function(
    document: Document, path: tuple[str, ...], name: str, folder: Path, files: dict[str, str]
) -> Callable[..., Any]:
    """A function of the user's by name; the files that it stands on become the campaign's."""
    if not is_plugin(name):
        near = PROBLEMS_OWN if path[-1] == "template" else None
        own = f"{PROBLEMS_OWN}, " if near else ""
        expected = f"{own}a dotted path or file.py:function"
        raise document.error(path, expected, repr(name), near)
    try:
        found = resolve({}, name, folder)
    except UnknownNameError as error:
        raise document.error(path, error.expected, error.found, error.near) from None
    if not callable(found):
        raise document.error(path, "a function", f"{name!r}, which is a {type(found).__name__}")
    files |= plugin_files(placed_name(name, folder))
    function: Callable[..., Any] = found
    return function


def read_text_file(
    document: Document,
    path: tuple[str, ...],
    what: str,
    name: str,
    folder: Path,
    files: dict[str, str],
) -> str:
    """The text of a file that a campaign names; its content becomes part of the campaign.

    Raises:
        ConfigError: if it cannot be read.
    """
    place = (folder / name).resolve()
    try:
        content = place.read_bytes()
        text = content.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise document.error(path, what, f"{name!r:.200} ({error})") from None
    files[str(place)] = hashlib.sha256(content).hexdigest()
    return text


def _refuse_planned(document: Document) -> None:
    for path, what in PLANNED_KEYS.items():
        parent = document.get(*path[:-1]) if len(path) > 1 else document.data
        if isinstance(parent, dict) and path[-1] in parent:
            raise document.error(
                path, "a key that is built", f"{path[-1]!r}, which waits for {what}"
            )


def _refuse_bare_names(document: Document) -> None:
    """Refuse a choice that is only a word, and say how it is written."""
    for path in CHOICES:
        word = document.get(*path)
        if not isinstance(word, str):
            continue
        known = TABLES[path[-1]]
        name = word if word in known or is_plugin(word) else nearest(word, known)
        dotted, near = ".".join(path), None
        if name is not None:
            given = path in document.overrides
            near = f"{dotted}.name={name}" if given else f"{dotted}: {{name: {name}}}"
        raise document.error(path, "a mapping {name: NAME, …}", _show(word), near)


def _validate(
    document: Document,
    path: tuple[str, ...],
    model: type[pydantic.BaseModel],
    data: Any,
    *,
    through_json: bool = False,
) -> pydantic.BaseModel:
    """The checked data; ``through_json`` lets a list be a tuple and a word an enum's member."""
    try:
        if through_json:
            return model.model_validate_json(json.dumps(data))
        return model.model_validate(data)
    except pydantic.ValidationError as error:
        faults = error.errors(include_url=False)
    # Unknown keys first: a misspelt key also shows up as the missing one.
    fault = next((f for f in faults if f["type"] == "extra_forbidden"), faults[0])
    where = (*path, *_plain_path(fault["loc"], data))
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        known = _keys_at(model, fault["loc"][:-1])
        key = where[-1]
        expected = f"one of the keys {', '.join(known)}" if known else "no options"
        raise document.error(where, expected, repr(key), nearest(key, known))
    if fault["type"] in ("missing", "missing_argument"):
        known = _keys_at(model, fault["loc"][:-1])
        raise document.error(where[:-1], f"the key {where[-1]!r} (of {', '.join(known)})", "none")
    expected, words = _expectation(fault)
    found = fault["input"]
    raise document.error(
        where, expected, _show(found), nearest(str(found), words) if words else None
    )


def _plain_path(loc: tuple[int | str, ...], data: Any) -> tuple[str, ...]:
    """A pydantic location without the names of models and union members that it puts between
    keys.
    """
    out: list[str] = []
    for i, part in enumerate(loc):
        if part == "[key]":  # it is the key before that is wrong
            break
        inside = isinstance(data, dict) and part in data
        last = i == len(loc) - 1
        if (
            inside
            or (isinstance(data, list) and isinstance(part, int))
            or (last and isinstance(data, dict))
        ):
            out.append(str(part))
            data = data[part] if inside or isinstance(data, list) else None
    return tuple(out)


def _keys_at(model: Any, loc: tuple[int | str, ...]) -> list[str]:
    for part in loc:
        fields = _fields(model)
        if part in fields:
            model = fields[part].annotation
    return list(_fields(model))


def _fields(model: Any) -> dict[str, Any]:
    """The fields of a model, or of the one among the members of a union."""
    own = getattr(model, "model_fields", None) or getattr(model, "__pydantic_fields__", None)
    if own:
        return dict(own)
    return next((found for arg in typing.get_args(model) if (found := _fields(arg))), {})


# What pydantic's error types expect, in this project's words.
_WORDS = {
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "greater_than": "more than {gt}",
    "less_than": "less than {lt}",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "dict_type": "a mapping",
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "a list"),
    "too_short": "at least {min_length} of them",
    "too_long": "at most {max_length} of them",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
    "none_required": "nothing",
    "multiple_of": "a multiple of {multiple_of}",
    "enum": "{expected}",
    "model_type": "a mapping",
    "finite_number": "a finite number",
    "string_pattern_mismatch": "text that matches {pattern}",
    "string_too_short": "at least {min_length} character(s)",
    "string_too_long": "at most {max_length} characters",
}


def _expectation(fault: Any) -> tuple[str, list[str]]:
    context = fault.get("ctx", {})
    if fault["type"] == "literal_error":
        listed = str(context["expected"])
        return listed, [word.strip(" '") for word in listed.replace(" or ", ",").split(",")]
    if fault["type"] in _WORDS:
        return _WORDS[fault["type"]].format(**context), []
    return str(fault["msg"]).removeprefix("Input should be ").removeprefix("Value error, "), []


def _show(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def choose(
    document: Document,
    path: tuple[str, ...],
    section: dict[str, Any],
    folder: Path,
    files: dict[str, str],
    kind: str | None = None,
) -> Chosen:
    """What a section names, from the table of its kind (its last key unless given), with its
    options checked; the hashes of files that it stands on are added to ``files``.

    Raises:
        ConfigError: if there is no such name, or an option is refused.
    """
    key = kind or path[-1]
    if "name" not in section:
        raise document.error(path, "the key 'name'", "none")
    name = section["name"]
    if not isinstance(name, str):
        raise document.error((*path, "name"), "a name", _show(name))
    try:
        factory = resolve(TABLES[key], name, folder, PLANNED if key == "target" else None)
    except UnknownNameError as error:
        raise document.error((*path, "name"), error.expected, error.found, error.near) from None
    if not callable(factory):
        found = f"{name!r}, which is a {type(factory).__name__}"
        raise document.error((*path, "name"), "a class or function", found)
    plain = {k: v for k, v in section.items() if k != "name"}
    name = placed_name(name, folder)
    files |= plugin_files(name)
    try:
        endings = file_options(factory)
        model = options_model(factory, GIVEN[key])
    except Exception as error:
        # Whatever a stranger's annotations make pydantic or typing stumble over.
        found = f"{name!r} ({type(error).__name__}: {error})"
        raise document.error((*path, "name"), "a signature that can be read", found) from error
    limits = _limits(document, path, plain) if key == "backend" else None
    place_folders(factory, plain, folder)
    for option, known in endings.items():
        found_files = _place_files(plain, option, known, folder)
        # What a driver or a problem reads is the campaign's; a target names its files itself.
        if key in ("driver", "problem"):
            files |= found_files
    checked = _validate(document, path, model, plain, through_json=True)
    options = {
        parameter_name(option): getattr(checked, option)
        for option in (*type(checked).model_fields, *(checked.model_extra or {}))
    }
    try:
        dumped = checked.model_dump(mode="json")
    except ValueError as error:
        found = f"{name!r} ({error})"
        raise document.error((*path, "name"), "options that JSON can hold", found) from None
    inner = choose_inner(
        document,
        path,
        factory,
        plain,
        lambda at, section: choose(document, at, section, folder, files, key),
    )
    dumped |= {option: plainly(found) for option, found in inner.items()}
    if limits is not None:
        dumped["limits"] = limits.model_dump(exclude_none=True)
    reaching_ = reaching(factory, inner, is_backend=key == "backend")
    return Chosen(name, factory, options, {"name": name, **dumped}, inner, limits, reaching_)


def _limits(document: Document, path: tuple[str, ...], plain: dict[str, Any]) -> Limits | None:
    """What a backend is limited to, taken out of its options."""
    given = plain.pop("limits", None)
    if given is None:
        return None
    return cast(Limits, _validate(document, (*path, "limits"), Limits, given))


def _place_files(
    options: dict[str, Any], option: str, endings: tuple[str, ...], folder: Path
) -> dict[str, str]:
    """Make the files that an option names absolute, be it one or a list; their SHA-256 by name."""
    found: dict[str, str] = {}

    def placed(value: Any) -> Any:
        if not (isinstance(value, str) and value.endswith(endings) and _is_file(folder / value)):
            return value
        place = (folder / value).resolve()
        found[str(place)] = hashlib.sha256(place.read_bytes()).hexdigest()
        return str(place)

    if option in options:
        given = options[option]
        several = isinstance(given, list)
        options[option] = [placed(each) for each in given] if several else placed(given)
    return found


def _is_file(path: Path) -> bool:
    """Whether this is a file; a name that no file can have is not one."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def resolved_config(
    campaign: Campaign, hashes: Mapping[str, str], judge: Mapping[str, Any]
) -> dict[str, Any]:
    """The campaign with every default and absolute path: what ``config.yaml`` holds. It can be run
    again.
    """
    file = campaign.file
    chosen = {"problem", "target", "driver", "agents", "judge", "hashes"}
    plain = file.model_dump(mode="json", exclude=chosen)
    out = {
        key: plain[key]
        for key in ("name", "space", "baseline", "budget", "stop", "batch", "seed", "workers")
    }
    for section in ("space", "budget", "stop"):
        out[section] = {key: value for key, value in out[section].items() if value is not None}
    if not out["stop"]:
        del out["stop"]
    for key in ("problem", "target", "driver"):
        out[key] = cast(Chosen, getattr(campaign, key)).plain
    if file.space.file is not None:
        out["space"]["file"] = str((campaign.folder / file.space.file).resolve())
    for way in ("program", "template"):
        if way in out["space"]:
            out["space"][way] = placed_name(out["space"][way], campaign.folder)
    if file.space.instructions is not None:
        names = file.space.instructions
        out["space"]["instructions"] = [placed_name(name, campaign.folder) for name in names]
    if file.baseline.endswith(".c"):
        out["baseline"] = str((campaign.folder / file.baseline).resolve())
    if file.agents is not None and campaign.backend is not None:
        out["agents"] = {"backend": campaign.backend.plain, "prompt": campaign.prompt}
        if file.agents.prices:
            out["agents"]["prices"] = plain_prices(file.agents.prices)
        out["agents"] |= resolved_context(file.agents, campaign.folder)
    out["judge"] = dict(judge)
    out["hashes"] = dict(sorted(hashes.items()))
    if file.cache is not None:
        folder = cache_folder_of(file.cache, campaign.folder)
        out["cache"] = {
            "folder": str(folder),
            "read": file.cache.read,
            "write": file.cache.write,
            "near": file.cache.near,
        }
    order = typing.get_type_hints(CampaignFile)
    return {key: out[key] for key in order if key in out}
