"""Toolchains: gcc, clang, or zig's clang, and what a campaign's flags mean to each.

Flags are written in gcc's words. Every toolchain gets them translated; what it cannot translate it
refuses, so that no flag is dropped in silence. Graphite's flags are refused everywhere: gcc 12
compiles correct loop nests to wrong code with them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

from kernelwright.env.compiler.errors import CompilerError

DEFAULT_FLAGS = ("-O3", "-march=native")
TOOLCHAINS = ("gcc", "clang", "zig")
# Whole numbers wrap as NumPy's do; nothing else of C's meaning is changed.
ALWAYS = ("-std=gnu11", "-shared", "-fPIC", "-fno-semantic-interposition", "-fwrapv")
_REFUSED = ("-fgraphite", "-floop-nest-optimize", "-floop-parallelize-all")
# gcc's words that clang spells otherwise.
_CLANG = {"-fno-tree-vectorize": "-fno-vectorize"}


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
            BuildError: for a flag that is known to compile correct code wrongly.
        """
        out = []
        for flag in flags:
            if flag.startswith(_REFUSED):
                raise BuildError(f"{flag}: expected no Graphite flag; it miscompiles correct loops")
            out.append(flag if self.name == "gcc" else _CLANG.get(flag, flag))
        return tuple(out)

    def compile(self, source: str, target: str, flags: Sequence[str], limit_s: float = 60.0) -> str:
        """Compile C text to a shared library at ``target`` and return the compiler's log.

        Raises:
            BuildError: with the log, if the compiler refuses or takes longer than ``limit_s``.
        """
        command = [*self.command, *ALWAYS, *self.translate(flags), "-x", "c", "-", "-o", target]
        try:
            done = subprocess.run(
                [*command, "-lm"],
                input=source,
                capture_output=True,
                text=True,
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BuildError(f"{self.name} took longer than {limit_s:g} s") from None
        log = done.stderr.strip()
        if done.returncode:
            raise BuildError(f"{self.name} refused the code (exit {done.returncode})", log)
        return log


def _command(name: str) -> tuple[str, ...] | None:
    if name == "zig":
        return (sys.executable, "-m", "ziglang", "cc") if find_spec("ziglang") else None
    path = shutil.which(name)
    return (path,) if path else None


@lru_cache(maxsize=8)
def find_toolchain(name: str | None = None) -> Toolchain:
    """A toolchain by name, or the first that is there.

    Raises:
        BuildError: if it is not installed; it lists what would do.
    """
    for candidate in TOOLCHAINS if name is None else (name,):
        command = _command(candidate)
        if command is not None:
            done = subprocess.run(
                [*command, "--version"], capture_output=True, text=True, check=False
            )
            version = (done.stdout or done.stderr).splitlines()[0]
            return Toolchain(candidate, command, version)
    expected = name or "one of gcc, clang or the Python package ziglang"
    raise BuildError(f"expected {expected}, found no such compiler")
