"""Where this user's builds and compilers' own caches are kept.

What lies there is executed, so a folder that someone else could have filled is not used.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def user_folder(name: str) -> Path:
    """A folder of that name under ``XDG_CACHE_HOME/kernelwright``, or ``~/.cache/kernelwright``;
    where neither can be written, under the system's folder for temporary files.

    Raises:
        OSError: if nothing can be written, or what is there belongs to someone else.
    """
    base = os.getenv("XDG_CACHE_HOME")
    parent = Path(base) if base and Path(base).is_absolute() else _home() / ".cache"
    folder = parent / "kernelwright" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    except OSError:
        pass
    mine = Path(tempfile.gettempdir()) / f"kernelwright-{os.getuid()}"
    mine.mkdir(mode=0o700, exist_ok=True)
    about = mine.lstat()
    if mine.is_symlink() or about.st_uid != os.getuid() or about.st_mode & 0o022:
        raise PermissionError(f"{mine}: expected a folder that only this user can write")
    (mine / name).mkdir(exist_ok=True)
    return mine / name


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # no HOME, and no entry in the table of users
        return Path("/nonexistent")
