"""The audit of noise, composed: rules by name, and the judge of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernelwright.configs.errors import ConfigError
from kernelwright.configs.resolve import UnknownNameError, resolve
from kernelwright.evaluators.cpu.target import Cpu
from kernelwright.search.laboratory import RULES
from kernelwright.search.laboratory.audit import (
    OURS,
    QUICK,
    Job,
    Laboratory,
    RuleError,
    Sizes,
    audit,
    run_job,
)
from kernelwright.search.laboratory.bench import Rule
from kernelwright.search.laboratory.noise import HARDEST
from kernelwright.search.laboratory.real import planted_problem


def rule_of(name: str) -> Rule:
    """The rule that a name stands for: a short one, a dotted path, or ``file.py:name``.

    Raises:
        UnknownNameError: if there is none.
    """
    rule: Rule = resolve(RULES, name)
    return rule


def audit_noise(
    *,
    quick: bool = False,
    rules: Sequence[str] = (),
    on_machine: bool = True,
    seen: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """What rules claim where the truth is known: every shipped one, and those that are named.

    Args:
        quick: a part of it, for a first look.
        rules: further rules, by name.
        on_machine: whether real kernels are judged on this machine besides.
        seen: told what is done next.

    Raises:
        ConfigError: if a name stands for no rule, or for what cannot be called.
    """
    for name in rules:
        try:
            rule = rule_of(name)
        except UnknownNameError as error:
            raise _refused("--rule", error.expected, error.found, error.near) from None
        if not callable(rule):
            found = f"{name}, which is {type(rule).__name__}"
            raise _refused("--rule", "a rule: a function of a bench", found)
        try:
            run_job(rule_of, Job(name, HARDEST, 1.0, 3, (0,)))
        except RuleError as error:
            expected = "a rule that claims one of three candidates, or None"
            raise _refused("--rule", expected, str(error)) from None
    chosen = list(dict.fromkeys([OURS, *RULES, *rules]))
    judge = Cpu(planted_problem())
    sizes = QUICK if quick else Sizes()
    with Laboratory(rule_of, progress=seen) as laboratory:
        return audit(judge, sizes, chosen, laboratory, with_real=on_machine)


def _refused(path: str, expected: str, found: str, nearest: str | None = None) -> ConfigError:
    """Why an option of the audit cannot be taken."""
    return ConfigError(
        file="audit noise", line=None, path=path, expected=expected, found=found, nearest=nearest
    )


def drawn(report: dict[str, Any], folder: str) -> list[Path]:
    """Plots of a report, as SVG files in a folder.

    Raises:
        ConfigError: if what draws them is not installed.
    """
    try:
        from kernelwright.search.laboratory.plots import plots
    except ImportError as error:
        expected = "matplotlib (pip install 'kernelwright[plots]')"
        raise _refused("--plots", expected, str(error)) from None
    return plots(report, Path(folder))
