"""What the judge refuses of a binary before it is loaded, and how it says so.

These rules are no wall: a candidate is kept in by the isolation of its worker, and found out by the
checks of every call. They refuse what runs before the isolation does, and what no kernel needs,
with a reason and the key that allows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from kernelwright.evaluators.cpu.symbols import allowed, reason, shadows

if TYPE_CHECKING:  # the reader of ELF takes its time to import, and campaigns name only profiles
    from kernelwright.evaluators.cpu.facts import BinaryFacts

# How many names a sentence lists, and what a name looks like that C has.
_LISTED = 4
_PLAIN = re.compile(r"[A-Za-z0-9_.$@+-]{1,80}")
# Libraries that a C compiler links by itself; a musl system's C library has other names.
_LIBRARIES = (
    "libc.so*",
    "libc.musl-*",
    "ld-linux*.so.*",
    "ld-musl-*",
    "linux-vdso.so.*",
    "libm.so*",
    "libmvec.so.*",
    "libgcc_s.so.*",
    "libatomic.so.*",
)
# Constructors of libgcc's that come with what a text asks for.
_LIBGCCS = {"__cpu_indicator_init", "init_have_lse_atomics"}
_OPENMP_LIBRARIES = ("libgomp.so*", "libomp.so*", "libiomp5.so*", "libpthread.so*")


class Profile(StrEnum):
    """How suspicious the judge is."""

    STRICT = "strict"
    STANDARD = "standard"
    TRUSTED_CODEGEN = "trusted-codegen"


class Checking(StrEnum):
    """How outputs are compared: element by element, or by the problem's projection."""

    FULL = "full"
    PROJECTION = "projection"


class StaticState(StrEnum):
    """Whether a kernel may have memory that lasts from call to call."""

    ALLOW = "allow"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Policy:
    """What is refused of a binary.

    Args:
        profile: ``strict`` refuses all below; ``standard`` lets symbols pass, but no code that runs
            when a library is loaded; ``trusted-codegen`` refuses nothing.
        symbols: further symbols that may be called, as shell patterns.
        libraries: further libraries that may be loaded, as shell patterns of their names.
        static_state: whether writable static memory is allowed. No set of values is shown twice, so
            there is nothing to gain by remembering, and scratch memory is honest.
    """

    profile: Profile = Profile.STRICT
    symbols: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    static_state: StaticState = StaticState.ALLOW


@dataclass(frozen=True, slots=True)
class Judging:
    """The keys of a campaign's ``judge`` that concern a judge of binaries. The profile is said
    once: the policy gets this one.

    Raises:
        ValueError: if the policy already has another profile.
    """

    profile: Profile = Profile.STRICT
    check: Checking = Checking.FULL
    policy: Policy = Policy()

    def __post_init__(self) -> None:
        if self.policy.profile not in (self.profile, Profile.STRICT):
            raise ValueError(
                f"Judging.policy: expected the profile {self.profile}, found {self.policy.profile}"
            )
        object.__setattr__(self, "policy", replace(self.policy, profile=self.profile))


DEFAULT_JUDGING = Judging()


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a binary breaks: the class code of a verdict, and its evidence."""

    code: str
    evidence: str


def check(
    facts: BinaryFacts, policy: Policy, threads: int, *, openmp: bool = False
) -> tuple[Violation, ...]:
    """What is refused of a binary, the gravest first; empty if nothing is.

    Args:
        facts: what it is, beyond the toolchain's own.
        policy: what is refused.
        threads: how many threads a kernel may have; with more than one OpenMP may be called.
        openmp: whether the campaign's flags ask for OpenMP, however many threads there are.
    """
    if policy.profile is Profile.TRUSTED_CODEGEN:
        return ()
    in_play = openmp or threads > 1
    always = [
        *_before_the_call(facts),
        *_layout(facts),
        *_libraries(facts, policy, openmp=in_play),
    ]
    if policy.static_state is StaticState.REFUSE:
        always += _static_state(facts)
    if policy.profile is Profile.STANDARD:
        return tuple(always)
    return (*_symbols(facts, policy, openmp=in_play), *always)


def reported(
    facts: BinaryFacts, policy: Policy, threads: int, *, openmp: bool = False
) -> tuple[Violation, ...]:
    """The symbols that ``standard`` lets pass and ``strict`` refuses; arguments as of `check`."""
    if policy.profile is not Profile.STANDARD:
        return ()
    return tuple(_symbols(facts, policy, openmp=openmp or threads > 1))


def numbers(facts: BinaryFacts) -> tuple[tuple[str, float], ...]:
    """What is known of a binary, as the facts of a verdict."""
    return (
        ("elf.undefined", float(len(facts.undefined))),
        ("elf.constructors", float(len(facts.constructors))),
        ("elf.destructors", float(len(facts.destructors))),
        ("elf.ifuncs", float(len(facts.ifuncs))),
        ("elf.static_bytes", float(facts.static_bytes)),
        ("elf.tls_bytes", float(facts.tls_bytes)),
    )


def _before_the_call(facts: BinaryFacts) -> Iterator[Violation]:
    """Code that runs outside the call, before the worker is isolated or after it is done."""
    for names, when in (
        (facts.constructors, "when the library is loaded, before the worker is wholly isolated"),
        (facts.destructors, "when the library is unloaded, after the last call"),
    ):
        if names:
            instead = "fill a table at its first use, or write it down as a constant"
            if set(names) <= _LIBGCCS:
                instead = (
                    "leave out __builtin_cpu_supports: the kernel is compiled for this machine, "
                    "and macros such as __AVX2__ say the same"
                )
            yield Violation(
                "constructor",
                f"{_listed(names)} runs {when}: expected that nothing of a kernel runs outside its "
                f"call; {instead}",
            )
    if facts.ifuncs:
        yield Violation(
            "ifunc",
            f"{_listed(facts.ifuncs)} is chosen by a function that runs when the library is loaded "
            "(ifunc, target_clones), before the worker is wholly isolated: expected plain "
            "functions; the kernel is compiled for this machine, so no choice is left",
        )


def _layout(facts: BinaryFacts) -> Iterator[Violation]:
    """Memory that can be executed and should not, or written and should not."""
    why = "no kernel needs code that it writes itself, and no key allows it"
    if facts.executable_stack:
        yield Violation(
            "executable_stack",
            "the library asks for an executable stack, as the address of a nested function or an "
            "assembler text without .note.GNU-stack does: expected functions at the top level; "
            f"{why}",
        )
    if facts.writable_code:
        yield Violation(
            "writable_code",
            f"the segment at {_listed(facts.writable_code)} can be written and executed: expected "
            f"one or the other; {why}",
        )
    if facts.text_relocations:
        yield Violation(
            "text_relocation",
            "its code is written to when it is loaded (text relocations, as of assembler with "
            f"absolute addresses): expected position-independent code; {why}",
        )
    if facts.search_paths:
        yield Violation(
            "search_path",
            f"it has libraries looked for in {_listed(facts.search_paths)} (RPATH or RUNPATH): "
            "expected the system's libraries; link without -rpath, for no key allows it",
        )


def _libraries(facts: BinaryFacts, policy: Policy, *, openmp: bool) -> Iterator[Violation]:
    known = (*_LIBRARIES, *(_OPENMP_LIBRARIES if openmp else ()), *policy.libraries)
    foreign = [name for name in facts.needed if not _matches(name, known)]
    if foreign:
        threaded = [name for name in foreign if _matches(name, _OPENMP_LIBRARIES)]
        why = (
            "OpenMP is there for target.threads above 1 or the flag -fopenmp"
            if threaded
            else "the judged kernel must be its own code, and a library's own code runs at loading"
        )
        yield Violation(
            "forbidden_library",
            f"it loads {_listed(foreign)}: expected the C library, libm and the compiler's own; "
            f"{why}{_key('libraries', foreign)}",
        )


def _symbols(facts: BinaryFacts, policy: Policy, *, openmp: bool) -> Iterator[Violation]:
    """Symbols that a kernel has no use for, one violation for each reason."""
    wanted = [
        name
        for name in dict.fromkeys(facts.undefined)
        if not allowed(name, openmp=openmp) and not _matches(name, policy.symbols)
    ]
    grouped: dict[str, list[str]] = {}
    for name in wanted:
        grouped.setdefault(reason(name), []).append(name)
    for why, names in grouped.items():
        yield Violation(
            "forbidden_symbol",
            f"it uses {_listed(names)}: {why}{_key('symbols', names)}",
        )
    shadowed = [
        name for name in facts.exported if shadows(name) and not _matches(name, policy.symbols)
    ]
    if shadowed:
        yield Violation(
            "forbidden_symbol",
            f"it exports {_listed(shadowed)}, a name that the C library, OpenMP or the "
            f"worker use: expected another name, or static{_key('symbols', shadowed)}",
        )


def _static_state(facts: BinaryFacts) -> Iterator[Violation]:
    found = facts.static_bytes + facts.tls_bytes
    if found:
        largest = [f"{_shown(name)} ({size} bytes)" for name, size in facts.objects[:_LISTED]]
        named = f", the largest {', '.join(largest)}" if largest else ""
        yield Violation(
            "static_state",
            f"{found} bytes of static memory last from call to call{named}: expected none, as "
            "judge.policy.static_state says; take scratch memory from the stack or from malloc, "
            "and make tables const",
        )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(map(_shown, names[:_LISTED])) + (f" and {more} more" if more > 0 else "")


def _shown(name: str) -> str:
    """A name out of a binary; what no tool would make of C is quoted and cut, since whoever wrote
    the text chose it, and people and models read it.
    """
    return name if _PLAIN.fullmatch(name) else f"{name!a:.40}"


def _key(name: str, found: Sequence[str]) -> str:
    """How a campaign allows what was found, where it has names that can be written there."""
    plain = [each for each in found if _PLAIN.fullmatch(each)]
    listed = ", ".join(plain[:_LISTED])
    return f" (judge.policy.{name}: [{listed}] allows it)" if plain else ""
