"""Copies of the templates that a run asked by, in its folder and by their version, so that its
questions can be written again when templates have changed.
"""

from __future__ import annotations

from pathlib import Path

from kernelwright.agents.context.prompter import template_version
from kernelwright.prompts import render as prompts

FOLDER = "prompts"


def keep_templates(folder: Path, prompt: str) -> None:
    """Copy a prompt's template and all that it may include or extend, unless it is there.

    Args:
        folder: of the run.
        prompt: the template's name, or the path of one's own.
    """
    kept = folder / FOLDER / template_version(prompt)
    for name, text in prompts.sources(prompt).items():
        place = kept / name
        if not place.is_file() or place.read_text(encoding="utf-8") != text:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")


def kept_template(folder: Path, prompt: str, version: str) -> Path | None:
    """The copy of a prompt's template in a version, None if there is none."""
    place = folder / FOLDER / version / prompts.file_name(prompt)
    return place if place.is_file() else None
