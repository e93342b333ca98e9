"""From a campaign's space section to a space, and to the problem that its candidates belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias
from weakref import WeakValueDictionary

from kernelwright.configs.errors import NoCandidatesError
from kernelwright.configs.load import WAYS, Campaign
from kernelwright.configs.macros import name_fault, value_fault
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.options import OptionError
from kernelwright.env.problems.program import definition_of
from kernelwright.env.spaces.expressions import Constraint, ExpressionError, own_rule
from kernelwright.env.spaces.knobs import EmptySpaceError, KnobSpace, TemplateSpace
from kernelwright.env.spaces.schedule import ProgramSpace, ScheduleSpace
from kernelwright.env.spaces.schedule.further import CORE
from kernelwright.env.spaces.schedule.program import SpaceFunction
from kernelwright.env.spaces.schedule.rules import sketch_program
from kernelwright.env.spaces.schedule.template import Template, template_program
from kernelwright.env.spaces.source import SourceSpace
from kernelwright.env.types import Knob, Problem
from kernelwright.evaluators.target import Target

# Spaces in use, by what they were made of. A space does not change, and most of what it holds is
# computed once, so the tasks of a campaign that differ by shape alone have one.
_SHARED: WeakValueDictionary[tuple[object, ...], KnobSpace] = WeakValueDictionary()

AnySpace: TypeAlias = KnobSpace | ScheduleSpace | SourceSpace


def with_template(campaign: Campaign, problem: Problem) -> Problem:
    """The problem with the knobs of the campaign's template as its own.

    Raises:
        ConfigError: if knobs or defaults are not values of C macros.
    """
    section, document = campaign.file.space, campaign.document
    if section.kind != "template":
        return problem
    knobs = []
    for knob in _own_knobs(campaign):
        knobs.append(knob)
        path = ("space", "knobs", knob.name)
        fault = name_fault(knob.name, problem)
        if fault is not None:
            raise document.error(path, "a macro's name", f"{knob.name!r}, {fault}")
        for value in knob.values:
            fault = value_fault(value)
            if fault is not None:
                raise document.error(path, "a macro's value", f"{value!r}: {fault}")
    known = {knob.name: knob for knob in knobs}
    default = {knob.name: knob.values[0] for knob in knobs}
    for name, value in (section.default or {}).items():
        choices = known[name].values if name in known else ()
        if not any(value == v and type(value) is type(v) for v in choices):
            listed = ", ".join(map(str, choices or known))
            expected = f"one of {listed}" if choices else f"one of the knobs {listed}"
            raise document.error(("space", "default", name), expected, repr(value))
        default[name] = value
    return replace(
        problem,
        knobs=tuple(knobs),
        unscheduled=tuple(default.items()),
        template=campaign.space_text,
        spaces=tuple(dict.fromkeys((*problem.spaces, "template"))),
    )


def make_space(campaign: Campaign, problem: Problem, target: Target) -> AnySpace:
    """The space of a campaign.

    Raises:
        ConfigError: if problem, target and section do not make one.
    """
    kind = campaign.file.space.kind
    if kind == "schedule":
        return _schedule_space(campaign, problem, target)
    if kind == "source":
        return _source_space(campaign, problem)
    names = frozenset(knob.name for knob in problem.knobs)
    rules = tuple(_rule(campaign, place, names) for place in range(_count(campaign)))
    what, cls = ("space", TemplateSpace) if kind == "template" else ("target", KnobSpace)
    constraints = (*target.constraints, *_owned(campaign, problem, names), *rules)

    def make() -> AnySpace:
        members, default = target.members(problem), target.unscheduled(problem)
        # As text, in which 1, 1.0 and true differ.
        known = (cls, repr((problem.knobs, constraints, tuple(default))))
        found = _SHARED.get(known) if members is None else None
        if found is None:
            found = cls(
                problem.knobs,
                constraints,
                members=members,
                members_reason=target.members_reason,
                default=default,
            )
            if members is None:
                _SHARED[known] = found
        return found

    return _made(campaign, (what,), make)


def _owned(campaign: Campaign, problem: Problem, names: frozenset[str]) -> tuple[Constraint, ...]:
    """The problem's own rules."""
    try:
        return tuple(own_rule(text, names) for text in problem.constraints)
    except ExpressionError as error:
        raise campaign.document.error(
            ("problem", "constraints"), "expressions over knobs", str(error)
        ) from None


def _made(campaign: Campaign, path: tuple[str, ...], make: Callable[[], AnySpace]) -> AnySpace:
    try:
        return make()
    except OptionError as error:
        raise campaign.document.error(
            (*path, error.option), error.expected, error.found, error.nearest
        ) from None
    except (ValueError, CompilerError) as error:
        found = f"{type(error).__name__}: {error}"
        refused = campaign.document.error(path, f"a {path[0]} that can be made", found)
        if isinstance(error, EmptySpaceError):
            refused = NoCandidatesError(**vars(refused))
        raise refused from None


def _count(campaign: Campaign) -> int:
    return len(campaign.file.space.constraints or ())


def _rule(campaign: Campaign, place: int, names: frozenset[str]) -> Constraint:
    """A template's constraint; its own text is the reason that is shown."""
    text = (campaign.file.space.constraints or [])[place]
    path = ("space", "constraints", str(place))
    try:
        return own_rule(text, names)
    except ExpressionError as error:
        raise campaign.document.error(path, "an expression over knobs", str(error)) from None


def _schedule_space(campaign: Campaign, problem: Problem, target: Target) -> AnySpace:
    threads = int(getattr(target, "threads", 1))
    workload = problem.workloads[0]
    if len(problem.workloads) != 1:
        found = f"{len(problem.workloads)} of {problem.name}"
        raise campaign.document.error(("space", "kind"), "one workload to schedule", found)
    writes = _writer(campaign, problem)

    def make() -> AnySpace:
        procedure = definition_of(problem, workload)
        if writes is None:
            further = campaign.file.space.directives
            wanted = CORE if further is None else further
            return ScheduleSpace(procedure, threads=threads, directives=wanted)
        return ProgramSpace(procedure, writes, threads=threads)

    try:
        return make()
    except OptionError as error:
        way = next((w for w in WAYS if getattr(campaign.file.space, w) is not None), "kind")
        path = ("space", error.option if error.option == "directives" else way)
        raise campaign.document.error(path, error.expected, error.found, error.nearest) from None
    except (ValueError, CompilerError) as error:
        found = f"{type(error).__name__}: {error}"
        expected = "a space that can be made"
        raise campaign.document.error(("space", "kind"), expected, found) from None


def _writer(campaign: Campaign, problem: Problem) -> SpaceFunction | None:
    """The program that writes the schedules of a campaign, None where it names none.

    Raises:
        ConfigError: if a rule, a knob or a constraint is none, or the problem has no template.
    """
    section, document = campaign.file.space, campaign.document
    if section.sketch is not None:
        try:
            return sketch_program(() if section.sketch == "all" else section.sketch)
        except OptionError as error:
            path = ("space", "sketch")
            raise document.error(path, error.expected, error.found, error.nearest) from None
    if section.template is None:
        return campaign.space_function
    template: Template | None = campaign.space_function
    knobs = problem.knobs if template is None else tuple(_own_knobs(campaign))
    template = problem.sketch if template is None else template
    if template is None:
        expected = f"a function of your own, because {problem.name} has no template"
        raise document.error(("space", "template"), expected, repr(section.template))
    names = frozenset(knob.name for knob in knobs)
    owned = () if campaign.space_function is not None else _owned(campaign, problem, names)
    rules = tuple(_rule(campaign, place, names) for place in range(_count(campaign)))
    return template_program(knobs, template, (*owned, *rules))


def _own_knobs(campaign: Campaign) -> Iterator[Knob]:
    """The knobs of a template of the user's own, one by one.

    Raises:
        ConfigError: at the first that is none.
    """
    for name, values in (campaign.file.space.knobs or {}).items():
        try:
            yield Knob(name, tuple(values))
        except ValueError as error:
            path = ("space", "knobs", name)
            raise campaign.document.error(path, "a knob", str(error)) from None


def _source_space(campaign: Campaign, problem: Problem) -> AnySpace:
    text = campaign.space_text or problem.plain_c
    if text is None:
        expected = f"a file, because {problem.name} has no plain C of its own"
        raise campaign.document.error(("space",), f"the key 'file': {expected}", "none")
    regions = tuple(campaign.file.space.regions or ())
    return _made(
        campaign, ("space",), lambda: SourceSpace(text, entry=problem.name, regions=regions)
    )
