"""Snippets in the documentation run, and console blocks print what they show (seconds aside)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kernelwright.cli import app
from kernelwright.configs import api

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language):
    out = []
    for page in PAGES:
        found = re.findall(
            rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
        )
        out += [pytest.param(text, id=f"{page.name}-{i}") for i, text in enumerate(found)]
    return out


@pytest.mark.parametrize("text", blocks("python"))
def test_python_runs(text, tmp_path):
    command = [sys.executable, "-P", "-W", "error", "-c", text]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("text", blocks("yaml"))
def test_campaigns_are_valid(text):
    assert api.check(yaml.safe_load(text))["missing"] == []


def plain(text):
    return re.sub(r"\d+\.\d+( s\b|, confirmation|\))", r"N\1", text).strip()


@pytest.mark.parametrize("text", blocks("console"))
def test_console_shows_what_is_printed(text, tmp_path):
    first, _, wanted = text.partition("\n")
    command = first.removeprefix("$ ").replace(
        "kernelwright", f"{sys.executable} -P -m kernelwright"
    )
    result = subprocess.run(
        command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in result.stderr
    if wanted.strip():
        assert plain(result.stdout + result.stderr) == plain(wanted)


def test_pages_name_files_that_exist():
    for page in PAGES:
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|md|json))`", page.read_text()):
            assert (ROOT / name).is_file(), f"{page.name}: {name}"


def test_pages_name_commands_that_exist():
    known = {c.name or c.callback.__name__ for c in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    assert {"run", "show", "mcp", "list", "audit"} <= known
    for page in PAGES:
        named = re.findall(r"(?:`|^\$ )kernelwright ([a-z][a-z-]*)", page.read_text(), re.M)
        assert set(named) <= known, page.name
