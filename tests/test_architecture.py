"""The shape of the house: packages, imports at the top of the command line, lazy root."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kernelwright

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = ("agents", "configs", "display", "env", "evaluators", "prompts", "search")


def test_the_package_list_is_what_is_on_disk():
    found = {"kernelwright"}
    for room in ROOMS:
        for init in (ROOT / room).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT).parts
            found.add(".".join(("kernelwright", *parts)))
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == found


def test_every_folder_with_code_is_a_package():
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            assert (path.parent / "__init__.py").is_file(), path


def test_every_data_file_is_package_data():
    data = PROJECT["tool"]["setuptools"]["package-data"]
    for room in ROOMS:
        for path in (ROOT / room).rglob("*"):
            if path.is_file() and path.suffix not in (".py", ".pyc"):
                package = path.parent
                while not (package / "__init__.py").is_file():
                    package = package.parent
                name = ".".join(("kernelwright", *package.relative_to(ROOT).parts))
                patterns = data.get(name, [])
                inside = path.relative_to(package)
                assert any(inside.match(pattern) for pattern in patterns), path


def test_gitignore_does_not_hide_a_room():
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert not {f"{room}/" for room in ROOMS} & set(ignored)


def test_the_command_line_imports_only_its_own_library_at_the_top():
    tree = ast.parse((ROOT / "cli.py").read_text())
    modules = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module)
    assert {name.partition(".")[0] for name in modules} - {"typer"} <= set(sys.stdlib_module_names)


def run_python(code):
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


HELP = """
import re
import sys
import kernelwright.cli
try:
    kernelwright.cli.app(["--help"], standalone_mode=False)
except SystemExit:
    pass
heavy = {"numpy", "pydantic", "gymnasium", "openai", "yaml", "rich", "islpy", "jinja2", "cffi"}
print(sorted(heavy & set(sys.modules)))
"""
LAZY = """
import re
import sys
import kernelwright
print([name for name in sys.modules if name.startswith("kernelwright.")], "numpy" in sys.modules)
print(kernelwright.run.__name__)
"""


def test_help_does_not_load_the_heavy_libraries():
    # This is what makes `kernelwright --help` take well under 0.3 s of CPU; the benchmark times it.
    assert run_python(HELP).splitlines()[-1] == "[]"


def test_the_root_is_lazy():
    assert run_python(LAZY).splitlines() == ["[] False", "run"]
    with pytest.raises(AttributeError, match="no attribute 'walk'"):
        _ = kernelwright.walk
    assert kernelwright.__version__


def test_only_the_command_line_prints():
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
            assert not any(isinstance(c.func, ast.Name) and c.func.id == "print" for c in calls), (
                path
            )


def test_only_configs_and_agents_read_the_environment():
    for room in set(ROOMS) - {"configs", "agents"}:
        for path in (ROOT / room).rglob("*.py"):
            reads = re.search(r"\bos\.(environ|getenv)\b", path.read_text())
            # The one place that says what a compiler is told, and where its caches lie.
            assert not reads or path.parent.name == "runtime", path


def test_every_table_row_resolves():
    from kernelwright.agents import BACKENDS
    from kernelwright.configs.resolve import resolve
    from kernelwright.env.landscape import FORMATS, WRITERS
    from kernelwright.env.problems import PROBLEMS
    from kernelwright.env.spaces import SPACES
    from kernelwright.evaluators import TARGETS
    from kernelwright.search.drivers import DRIVERS, FED_DRIVERS

    for table in (PROBLEMS, SPACES, TARGETS, DRIVERS, FED_DRIVERS, BACKENDS, FORMATS, WRITERS):
        for name in table:
            assert callable(resolve(table, name))
