"""Kernels through C beside the interpreter, and test files under the sanitizers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.toolchain import (
    DEFAULT_FLAGS,
    BuildError,
    find_toolchain,
)

try:
    TOOLCHAIN = find_toolchain()
except BuildError:
    TOOLCHAIN = None
needs_cc = pytest.mark.skipif(TOOLCHAIN is None, reason="needs a C compiler: gcc, clang or ziglang")


def in_c(cache, flags=DEFAULT_FLAGS):
    """A runner through C that compares every array with the interpreter's."""

    def run(procedure, arguments, extents):
        expected = interpret(procedure, arguments, extents)
        kernel = compile_procedure(procedure, cache=cache, flags=flags)
        found = kernel(arguments, extents)
        assert set(found) == set(expected)
        for name, array in expected.items():
            assert found[name].tobytes() == array.tobytes(), name
        return found

    return run


def sanitizer():
    """The address sanitizer's library of gcc, which has to be loaded before all others."""
    found = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    )
    path = Path(found.stdout.strip())
    return path.resolve() if path.is_absolute() and path.exists() else None


SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def under_sanitizers(file, *arguments):
    """A test file as a program under the sanitizers, which end it at the first fault."""
    if TOOLCHAIN.name != "gcc" or (library := sanitizer()) is None:
        pytest.skip("needs gcc and its address sanitizer")
    return subprocess.run(
        [sys.executable, file, *map(str, arguments)],
        env={
            **os.environ,
            "LD_PRELOAD": str(library),
            "ASAN_OPTIONS": "detect_leaks=0",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
