"""A campaign's own instructions and micro-kernels, which ``tensorize`` may put into schedules."""

from __future__ import annotations

from pathlib import Path

from kernelwright.configs.resolve import UnknownNameError, placed_name, plugin_files, resolve
from kernelwright.configs.tree import Document
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.schedule.instruction import Instruction, declare


def declare_instructions(
    document: Document, names: list[str], folder: Path, files: dict[str, str]
) -> None:
    """Make the instructions that a campaign names known to this process; the hashes of files that
    they stand on are added to ``files``.

    Raises:
        ConfigError: if a name is no instruction's, or another instruction is called so.
    """
    for place, name in enumerate(names):
        path = ("space", "instructions", str(place))
        try:
            found = resolve({}, name, folder)
        except UnknownNameError as error:
            expected = "an instruction: a dotted path or file.py:name"
            raise document.error(path, expected, error.found) from None
        if not isinstance(found, Instruction):
            raise document.error(path, "an Instruction", f"{name!r}, a {type(found).__name__}")
        try:
            declare(found)
        except CompilerError as error:
            raise document.error(path, "an instruction of its own name", str(error)) from None
        files |= plugin_files(placed_name(name, folder))
