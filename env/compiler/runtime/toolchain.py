"""Toolchains: gcc, clang, or zig's clang, and what a campaign's flags mean to each.

Flags are written in gcc's words. Every toolchain gets them translated; what it cannot translate it
refuses, so that no flag is dropped in silence. Graphite's flags are refused everywhere: gcc 12
compiles correct loop nests to wrong code with them.

gcc and clang link libraries without start files, so that nothing runs when one is loaded but what
its text asks for: neither the functions that such files call if somebody defines them, nor the
constructor that comes with fast mathematics and has the whole process flush denormal numbers to
zero. zig links its start files whatever it is told, though not that constructor.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.runtime.bounded import TimeLimitError, run_bounded
from kernelwright.env.compiler.runtime.folders import user_folder

DEFAULT_FLAGS = ("-O3", "-march=native")
TOOLCHAINS = ("gcc", "clang", "zig")
# How the folders begin in which zig keeps a text while it compiles it.
ZIG_SCRATCH = "kernelwright-zig-"
# Whole numbers wrap as NumPy's do; nothing else of C's meaning is changed.
ALWAYS = ("-std=gnu11", "-fwrapv")
SHARED = ("-shared", "-fPIC", "-fno-semantic-interposition")
# No start files; zig would only warn that it ignores this.
_BARE = {"gcc": ("-nostartfiles",), "clang": ("-nostartfiles",)}
# Flags that are refused, by how they begin, and why.
_REFUSED = {
    **dict.fromkeys(
        ("-fgraphite", "-floop-nest-optimize", "-floop-parallelize-all"),
        "no Graphite flag; it miscompiles correct loops",
    ),
    **dict.fromkeys(
        ("-mpc32", "-mpc64", "-mpc80"),
        "no flag that sets the floating-point mode of the whole process",
    ),
}
# gcc's words that clang spells otherwise.
_CLANG = {"-fno-tree-vectorize": "-fno-vectorize", "-ftree-vectorize": "-fvectorize"}
# clang only warns of what it ignores.
_NOTHING_IGNORED = (
    "-Werror=ignored-optimization-argument",
    "-Werror=unused-command-line-argument",
)
# What each compiler needs to be the C compiler that this project means. gcc's steps talk through
# pipes. zig keeps frame pointers and, without optimisation, traps on undefined behaviour.
_OWN = {
    "gcc": ("-pipe",),
    "clang": _NOTHING_IGNORED,
    "zig": (*_NOTHING_IGNORED, "-fno-sanitize=all", "-fomit-frame-pointer"),
}
# zig knows two levels and takes them for clang's second and none; the word after it is for clang.
_ZIG_LEVELS = {
    "-O": ("-O1", "-Xclang", "-O1"),
    "-O1": ("-O1", "-Xclang", "-O1"),
    "-Og": ("-O1", "-Xclang", "-O1"),
    "-O3": ("-O3", "-Xclang", "-O3"),
    "-Ofast": ("-O3", "-Xclang", "-O3", "-ffast-math"),
}


class BuildError(CompilerError):
    """A compiler that is missing or refuses the code; ``log`` is what it said."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(f"{message}\n{log}" if log else message)
        self.log = log


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A C compiler: its command, and the first line of its ``--version``."""

    name: str
    command: tuple[str, ...]
    version: str

    def translate(self, flags: Sequence[str]) -> tuple[str, ...]:
        """The flags in this compiler's words.

        Raises:
            BuildError: for a flag that is known to compile correct code wrongly, or that this
                compiler would not honour.
        """
        for flag in flags:
            for start, expected in _REFUSED.items():
                if flag.startswith(start):
                    raise BuildError(f"{flag}: expected {expected}")
        if self.name == "gcc":
            return tuple(flags)
        words = tuple(_CLANG.get(flag, flag) for flag in flags)
        return _zig_words(words) if self.name == "zig" else words

    def words(self, flags: Sequence[str], *, executable: bool = False) -> tuple[str, ...]:
        """All that this compiler is told beyond the text: what decides what comes out.

        Raises:
            BuildError: for a flag that `translate` refuses.
        """
        kind = () if executable else (*SHARED, *_BARE.get(self.name, ()))
        return (*ALWAYS, *_OWN.get(self.name, ()), *kind, *self.translate(flags))

    def compile(
        self,
        source: str,
        target: str,
        flags: Sequence[str],
        limit_s: float = 60.0,
        *,
        executable: bool = False,
        rule: str | None = None,
        confined: bool = False,
    ) -> str:
        """Compile C text to a shared library, or a program, at ``target``; the compiler's log.

        The compiler runs in the target's folder, sees little of this process's environment, and is
        killed with all that it started when its time is over. ``rule`` is a file into which it
        writes a make rule of all that it read. ``confined`` keeps a text that nobody vouches for
        from the files of this user, but for those that the flags name (`confine`).

        Raises:
            BuildError: with the log, if the compiler refuses or takes longer than ``limit_s``.
        """
        path = Path(target).absolute()
        read = () if rule is None else ("-MD", "-MF", str(Path(rule).absolute()))
        words = self.words(flags, executable=executable)
        command = [*self.command, *words, "-x", "c", "-", *read, "-o", str(path), "-lm"]
        given = [*_named(flags), path.parent if rule is None else Path(rule).absolute().parent]
        try:
            status, log = self._run(command, source, path.parent, limit_s, given, confined)
        except TimeLimitError:
            raise BuildError(f"{self.name} took longer than {limit_s:g} s") from None
        except OSError as error:
            raise BuildError(f"{self.name} cannot be run: {error}") from None
        if status:
            raise BuildError(f"{self.name} {_refusal(status, flags, log)}", log)
        return log

    def _run(
        self,
        command: Sequence[str],
        source: str,
        folder: Path,
        limit_s: float,
        given: Sequence[Path],
        confined: bool,
    ) -> tuple[int, str]:
        """Run this compiler; confined, it may read its own files and those given: the flags', and
        last the folder of the rule, which it may write.
        """
        run = partial(
            run_bounded,
            command,
            source,
            folder=folder,
            limit_s=limit_s,
            readable=[*_installed(Path(self.command[0])), *given[:-1]] if confined else None,
        )
        if self.name != "zig":
            return run(writable=given[-1:])
        # zig builds its own libraries once, for all; what it keeps of each source is thrown away.
        # It runs for ever where it cannot write, so it is always told where it can.
        with tempfile.TemporaryDirectory(prefix=ZIG_SCRATCH) as scratch:
            libraries = user_folder("zig")
            settings = {
                "ZIG_GLOBAL_CACHE_DIR": str(libraries),
                "ZIG_LOCAL_CACHE_DIR": scratch,
            }
            return run(settings=settings, writable=[*given[-1:], libraries, Path(scratch)])


# What a flag may stand in front of, if it names a file or folder.
_NAMING = (
    *("-I", "-L", "-B", "-isystem", "-iquote", "-idirafter", "-include", "-imacros"),
    *("--sysroot=", "-isysroot", "-fprofile-use=", "-Wl,-rpath,", "-l:", ""),
)


def _named(flags: Sequence[str]) -> list[Path]:
    """The files and folders that flags name; a compiler runs elsewhere, so by absolute paths."""
    words = {flag.removeprefix(start) for flag in flags for start in _NAMING}
    return [Path(word) for word in sorted(words) if word.startswith("/")]


def _installed(compiler: Path) -> list[Path]:
    """Where a compiler's own files lie: beside it, and beside the folder that it is in; and what is
    on the search path.
    """
    out = [Path(folder) for folder in os.get_exec_path()]
    for place in {compiler, compiler.resolve()}:
        folder = place.parent
        out.append(folder)
        out += [folder.parent / name for name in ("lib", "lib64", "libexec", "include", "share")]
    return out


def _zig_words(flags: Sequence[str]) -> tuple[str, ...]:
    """Flags for zig, whose clang is a part of something that has its own ideas of machines.

    Raises:
        BuildError: for a flag that zig takes and does not honour.
    """
    machine, out = "baseline", list[str]()
    for flag in flags:
        name, _, value = flag.partition("=")
        if name == "-march":
            # zig's names of machines are identifiers; without one it compiles for this machine.
            machine = value.replace("-", "_")
        elif name == "-fopenmp":
            raise BuildError("-fopenmp: expected gcc or clang; zig has no OpenMP library")
        elif name == "-mtune":
            raise BuildError("-mtune: expected -march alone; zig would compile for that machine")
        else:
            out += _ZIG_LEVELS.get(flag, (flag,))
    return (f"-mcpu={machine}", *out)


def _refusal(status: int, flags: Sequence[str], log: str) -> str:
    """What a failed compiler's status means."""
    if "-fopenmp" in flags and ("-lomp" in log or "omp.h" in log):
        return "has no OpenMP library (libomp) on this machine"
    if status < 0:
        return f"was ended by signal {-status}"
    return f"refused the code (exit {status})"


def _command(name: str) -> tuple[str, ...] | None:
    if name != "zig":
        path = shutil.which(name)
        return (path,) if path else None
    # The package's ``python -m ziglang`` does nothing but start this program.
    package = find_spec("ziglang")
    places = package.submodule_search_locations if package else None
    program = Path(places[0]) / "zig" if places else None
    return (str(program), "cc") if program and program.is_file() else None


def find_toolchain(name: str | None = None) -> Toolchain:
    """A toolchain by name, or the first that is there.

    Raises:
        BuildError: if it is not installed; it lists what would do.
    """
    for candidate in TOOLCHAINS if name is None else (name,):
        command = _command(candidate)
        if command is not None:
            return Toolchain(candidate, command, _version(candidate, command))
    expected = name or "one of gcc, clang or the Python package ziglang"
    raise BuildError(f"expected {expected}, found no such compiler")


@lru_cache(maxsize=8)
def _version(name: str, command: tuple[str, ...]) -> str:
    """What a compiler calls itself; asked once a process."""
    asked = [command[0], "version" if name == "zig" else "--version"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]} cannot be run: {error}") from None
    lines = (done.stdout or done.stderr).splitlines()
    if done.returncode or not lines:
        raise BuildError(f"{command[0]} does not say its version (exit {done.returncode})")
    return f"zig {lines[0]}" if name == "zig" else lines[0]
