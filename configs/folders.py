"""Where a campaign's tuning cache lies."""

from __future__ import annotations

import os
from pathlib import Path

from kernelwright.configs.schema import CacheSection
from kernelwright.configs.tree import Document
from kernelwright.env.compiler.runtime.folders import user_folder


def tuning_folder() -> Path:
    """Where this user's tuning cache lies, beside the builds.

    Raises:
        OSError: if there is no such place that can be written.
    """
    return user_folder("tuning")


def cache_folder_of(section: CacheSection, beside: Path) -> Path:
    """The folder of a campaign's cache: its own, relative to the campaign's, else the user's."""
    return tuning_folder() if section.folder is None else (beside / section.folder).resolve()


def check_cache(document: Document, section: CacheSection | None, beside: Path) -> None:
    """Refuse a folder that cannot be used now, not after hours of search.

    Raises:
        ConfigError: naming the key.
    """
    if section is None:
        return
    found = None
    try:
        folder = cache_folder_of(section, beside)
        nearest = next(place for place in (folder, *folder.parents) if place.exists())
        if not nearest.is_dir():
            found = f"{folder}, where {nearest} is a file"
        elif section.write and not os.access(nearest, os.W_OK | os.X_OK):
            found = f"{folder}, which cannot be written"
    except (OSError, ValueError) as error:
        found = f"{section.folder!r:.200} ({error})"
    if found is not None:
        expected = "a folder that can be written (write: false only reads)"
        raise document.error(("cache", "folder"), expected, found)
