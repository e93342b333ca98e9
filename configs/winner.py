"""The winner of a run: as C that compiles alone, as a callable on NumPy arrays, and step by step.

A run's folder holds its campaign and its trials, not its programs; a program is made again from the
problem and the candidate. So the files that the campaign stands on must be as they were.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.configs.build import Built
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import Campaign, read_config
from kernelwright.configs.places import to_write
from kernelwright.configs.spaces import with_template
from kernelwright.configs.steps import step_rows
from kernelwright.env.compiler.codegen.comment import block_comment
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, TOOLCHAINS
from kernelwright.env.compiler.schedule.decision import without_decisions
from kernelwright.env.compiler.schedule.explain import explain
from kernelwright.env.compiler.schedule.memo import Schedules
from kernelwright.env.compiler.schedule.trace import TraceError, parse_trace, print_trace
from kernelwright.env.problems.abi import abi, declaration
from kernelwright.env.problems.program import Program, ProgramError, definition_of, program
from kernelwright.env.types import Language, Problem, Workload
from kernelwright.search.claims import Names, claim_of
from kernelwright.search.store import DATABASE, SqliteStore
from kernelwright.search.summary import best_entry, best_trial
from kernelwright.search.tasks.summary import TASKS
from kernelwright.search.trial import Trial


class WinnerError(Exception):
    """What was asked of a run's winner and cannot be had."""


@dataclass(frozen=True)
class Winner:
    """The best trial of a run, with its problem and the resolved campaign."""

    trial: Trial
    problem: Problem
    resolved: Mapping[str, Any]

    def program(self, workload: Workload | None = None) -> Program:
        """Its C, for a workload (the first unless given).

        Raises:
            WinnerError: if it has no C form.
        """
        workload = workload or self.problem.workloads[0]
        try:
            return program(self.problem, self.trial.candidate, workload)
        except CompilerError as error:
            target = self.resolved["target"]["name"]
            raise WinnerError(
                f"expected a winner with a C form, found a run on target {target}: {error}"
            ) from None

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler flags that it was judged with."""
        return compile_flags(self.resolved["target"])


def compile_flags(target: Mapping[str, Any]) -> tuple[str, ...]:
    """The compiler flags that a target's options mean."""
    flags = tuple(target.get("flags", DEFAULT_FLAGS))
    threads = int(target.get("threads", 1))
    return (*flags, "-fopenmp") if threads > 1 and "-fopenmp" not in flags else flags


def winner(folder: str | Path) -> Winner:
    """The winner of a run's folder, finished or not.

    Raises:
        StoreError: if there is no run.
        ConfigError: if the campaign cannot be read again, or a file that it stands on has changed.
        WinnerError: if nothing valid was found.
    """
    folder = Path(folder)
    if folder.name == DATABASE:
        folder = folder.parent
    with SqliteStore(folder / DATABASE, readonly=True) as store:
        trial = best_trial(store.trials())
        tasks = json.loads(store.meta().get(TASKS, "[]"))
    if tasks:
        listed = f"{len(tasks)} tasks ({', '.join(list(tasks)[:3])}…)"
        raise WinnerError(f"{folder}: expected a run, found {listed}: name the folder of one")
    if trial is None:
        raise WinnerError(f"{folder}: expected a run with a winner, found nothing valid in it")
    campaign = read_config(folder / "config.yaml")
    _check_files(campaign)
    problem = campaign.problem.factory(**campaign.problem.options)
    file = campaign.file
    resolved = {"name": file.name, "target": campaign.target.plain, "baseline": file.baseline}
    return Winner(trial, with_template(campaign, problem), resolved)


def _check_files(campaign: Campaign) -> None:
    for name, digest in campaign.file.hashes.items():
        found = campaign.files.get(name, digest)
        if found != digest:
            expected = "the file as it was when the campaign ran"
            raise campaign.document.error(("hashes", name), expected, "a file that was changed")


def export(folder: str | Path, out: str | Path | None = None) -> str:
    """The winner as C that compiles alone; also written to ``out`` if that is given.

    Raises:
        StoreError, ConfigError, WinnerError: as `winner` does, or if it has no C form.
    """
    best = winner(folder)
    try:
        text = as_c(best)
    except WinnerError as error:
        if best.trial.candidate.language is not Language.KNOBS:
            raise
        hint = "its configuration is exported by --format triton or --format helion"
        raise WinnerError(f"{error}; {hint}") from None
    if out is not None:
        to_write(out).write_text(text, encoding="utf-8")
    return text


def best_c(built: Built, trial: Trial) -> str | None:
    """What ``best.c`` holds; None where the trial has no C form."""
    try:
        return as_c(Winner(trial, built.problem, built.resolved))
    except WinnerError:
        return None


def as_c(best: Winner) -> str:
    """A winner as C, what is known of it in a comment at the head.

    Raises:
        WinnerError: if it has no C form.
    """
    made = best.program()
    try:
        return "\n".join([block_comment(_facts(best, made)), "", unit(best.problem, made)])
    except ProgramError as error:
        raise WinnerError(f"expected a winner with a C form: {error}") from None


def unit(problem: Problem, made: Program) -> str:
    """A program with the prototype in front: a translation unit."""
    return "\n".join(["#include <stdint.h>", f"{declaration(problem)};", "", made.text.strip(), ""])


def _facts(best: Winner, made: Program) -> list[str]:
    trial, problem = best.trial, best.problem
    entry = best_entry(trial)
    measured = trial.measured
    assert measured is not None
    measurement = measured.measurements[0]
    # What has C was judged on this machine, where the problem names the library.
    library = None if problem.library is None else problem.library.name
    said = claim_of(trial, Names(best.resolved["baseline"], library))
    shapes = problem.workloads[0]
    lines = [
        f"{problem.identity} for {sizes(shapes)}, by kernelwright",
        "",
        f"  {declaration(problem)};",
        "",
        *([f"WARNING: {entry['warning']}"] if entry["warning"] else []),
        f"{said} ({entry['evidence']}, operands {measurement.cache_state.value})",
        f"campaign:  {best.resolved['name']}, trial {trial.number}",
        f"candidate: {trial.candidate.key} ({trial.candidate.language.value})",
        f"machine:   {measurement.machine}",
        f"compile:   {_command(best)}",
    ]
    if len(problem.workloads) > 1:
        lines.append(f"one of {len(problem.workloads)} shapes; the others differ in their macros")
    trace = print_trace(made.trace).splitlines() if made.trace else []
    return [*lines, *(["", "schedule:", *(f"  {line}" for line in trace)] if trace else [])]


def sizes(workload: Workload) -> str:
    """A workload's extents by name: ``m=64, n=1..8``."""
    return ", ".join(
        f"{name}={extent if isinstance(extent, int) else f'{extent.low}..{extent.high}'}"
        for name, extent in workload.extents
    )


def _command(best: Winner) -> str:
    """The command that compiles it as it was judged; the flags are in gcc's words."""
    name = best.resolved["target"].get("toolchain") or _compiler(best.trial) or "cc"
    compiler = "python -m ziglang cc" if name == "zig" else name
    return " ".join([compiler, *best.flags, "-c best.c"])


def _compiler(trial: Trial) -> str | None:
    """The toolchain that a trial's measurements name in their machine."""
    measured = trial.measured
    machine = measured.measurements[0].machine.lower() if measured else ""
    return next((name for name in TOOLCHAINS[::-1] if name in machine), None)


def schedule_steps(folder: str | Path) -> list[dict[str, Any]]:
    """The program before the winner's schedule and after each of its directives, as `step_rows` has
    it.

    Raises:
        StoreError, ConfigError, WinnerError: as `winner` does, or if it has no schedule.
    """
    best = winner(folder)
    made = best.program()
    if made.trace is None:
        language = best.trial.candidate.language.value
        raise WinnerError(f"expected a winner with a schedule, found one in language {language}")
    return step_rows(best.problem, made.trace)


def problem_steps(name: str, text: str = "", overrides: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A problem by name before a schedule and after each of its directives, as `step_rows` has it;
    ``text`` is the schedule as Python, and ``overrides`` are options given as ``key=value``.

    Raises:
        ConfigError: if there is no such problem or option.
        WinnerError: if the text is no schedule, the problem cannot be scheduled, or a directive is
            refused; then with its line, and with what would be accepted there.
    """
    problem = _problem("--nest", name, overrides)
    try:
        trace = without_decisions(parse_trace(text))
        refusal = explain(Schedules(definition_of(problem, problem.workloads[0])), trace)
    except (TraceError, ProgramError) as error:
        raise WinnerError(str(error)) from None
    if refusal is not None:
        raise WinnerError(str(refusal))
    return step_rows(problem, trace)


def interface(name: str, overrides: Sequence[str] = ()) -> str:
    """The C header of a problem by name, with options given as ``key=value``.

    Raises:
        ConfigError: if there is no such problem or option.
        WinnerError: if the problem has no C form.
    """
    try:
        return abi(_problem("--abi", name, overrides))
    except ProgramError as error:
        raise WinnerError(str(error)) from None


def _problem(option: str, name: str, overrides: Sequence[str]) -> Problem:
    """The problem that an option of the command line names.

    Raises:
        ConfigError: if there is no such problem or option of it.
    """
    whole = {
        "name": "interface",
        "problem": {"name": name},
        "target": {"name": "cpu"},
        "driver": {"name": "random"},
        "budget": {"trials": 1},
    }
    campaign = read_config(whole, [f"problem.{override}" for override in overrides])
    try:
        problem: Problem = campaign.problem.factory(**campaign.problem.options)
    except ValueError as error:
        raise ConfigError(
            option, None, "problem", "a problem that can be made", str(error)
        ) from None
    return problem
