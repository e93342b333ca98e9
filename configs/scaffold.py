"""``kernelwright init``: a folder with a C template, a NumPy reference and a campaign that runs."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

from kernelwright.configs.errors import ConfigError
from kernelwright.env.compiler.codegen.names import is_free_function

# The shipped example, whose name is replaced.
EXAMPLE = Path(__file__).parent / "mykernel"
_ENDINGS = (".c", ".py", ".yaml")
# A C function, a Python module and a campaign all have this name. A module must not hide what its
# own imports need.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_TAKEN = sys.stdlib_module_names | {"numpy", "kernelwright", *keyword.kwlist}


def scaffold(name: str, parent: Path | None = None) -> list[Path]:
    """Make the folder ``name`` in ``parent`` (here, unless given); the files that are in it.

    Raises:
        ConfigError: if the name cannot be a function's, or there is such a folder or file.
    """
    if not _NAME.fullmatch(name) or name in _TAKEN or not is_free_function(name):
        expected = "a name that C and Python leave free (letters, digits and _, a letter first)"
        raise ConfigError("init", None, "NAME", expected, repr(name))
    folder = (parent or Path()) / name
    try:
        folder.mkdir()
    except FileExistsError:
        expected = "a name that nothing here has yet"
        raise ConfigError("init", None, "NAME", expected, f"{str(folder)!r}") from None
    made = []
    for ending in _ENDINGS:
        text = (EXAMPLE / f"{EXAMPLE.name}{ending}").read_text(encoding="utf-8")
        path = folder / f"{name}{ending}"
        path.write_text(re.sub(rf"\b{EXAMPLE.name}\b", name, text), encoding="utf-8")
        made.append(path)
    return made
