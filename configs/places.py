"""Where files are written that a user names."""

from __future__ import annotations

from pathlib import Path

from kernelwright.configs.errors import ConfigError


def to_write(name: str | Path) -> Path:
    """A file that is about to be written; its folder is made if there is none.

    Raises:
        ConfigError: if it is a folder, or none can be made for it.
    """
    path = Path(name)
    if path.is_dir():
        raise ConfigError(str(name), None, "--out", "a file to write", "a folder")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(str(name), None, "--out", "a place to write to", str(error)) from None
    return path
