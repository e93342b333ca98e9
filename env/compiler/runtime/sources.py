"""What a build was made from beside its text and flags, and whether all of that is as it was.

A compiler writes a make rule of the files it read. Those of the system and of the compiler itself
go with its version and are left out; the others, and what the flags name, are known by their
hashes. A build that may have been made from more than that is never used again.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from kernelwright.env.compiler.runtime.toolchain import ZIG_SCRATCH, Toolchain

UNKNOWN, ABSENT = "unknown", "absent"
_SYSTEM = ("/usr/include/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/")
# What is read, or looked for outside the folders that flags name, without a word in the rule.
_SILENT = re.compile(rb"\b__has_(?:include(?:_next)?|embed)\s*\((?!\s*<)|\.incbin\b|\.include\b")
# What a compiler may take from a folder that a flag names without saying so.
_LINKED = (".a", ".o", ".gcda", ".profdata")
_MACROS = ("-D", "-U")
_CONTINUED = re.compile(r"\\\r?\n")
_TARGET = re.compile(r"(?:\\.|[^\\:]|:(?!\s|$))*:(?=\s|$)")
_WORD = re.compile(r"(?:\\[ #:]|\S)+")
_ESCAPED = re.compile(r"\\([ #:])|\$(\$)")


def made_from(
    text: str, rule: Path, toolchain: Toolchain, flags: Sequence[str], started_ns: int
) -> dict[str, str]:
    """The files and folders that a build depends on, with their hashes.

    Args:
        text: what was compiled.
        rule: the make rule that the compiler wrote.
        toolchain: the compiler.
        flags: what it was told.
        started_ns: when it started, by the clock of the file system; the hash of what was changed
            since is `UNKNOWN`, because nobody knows what the compiler read.
    """
    try:
        read = _prerequisites(os.fsdecode(rule.read_bytes()))
    except OSError:
        return {"the compiler's rule": UNKNOWN}
    left_out = _left_out(toolchain)
    kept = [path for path in read if not os.path.normpath(path).startswith(left_out)]
    named = {path for flag in flags for path in _named(flag)}
    found = {path: _hash(path, started_ns) for path in named | _shadows(kept, named)} | {
        # What was read and is gone was removed meanwhile.
        path: _hash(path, started_ns).replace(ABSENT, UNKNOWN)
        for path in kept
    }
    if _SILENT.search(text.encode()):
        found["what the text asks for"] = UNKNOWN
    return found


def unchanged(sources: Mapping[str, str]) -> bool:
    """Whether everything that a build was made from is there and as it was."""
    return all(known != UNKNOWN and _hash(path) == known for path, known in sources.items())


def _shadows(read: Sequence[str], named: Set[str]) -> set[str]:
    """Where a header that was read might be found instead, were there such a file: under the same
    name beside every file that was read, and below every folder that a flag names.
    """
    files = [Path(os.path.normpath(path)) for path in read if Path(path).is_absolute()]
    folders = {file.parent for file in files}
    folders |= {Path(os.path.normpath(path)) for path in named if Path(path).is_dir()}
    names = {file.relative_to(f) for file in files for f in folders if file.is_relative_to(f)}
    return {str(folder / name) for folder in folders for name in names} - set(map(str, files))


def _left_out(toolchain: Toolchain) -> tuple[str, ...]:
    """How the paths begin of what a build depends on through its compiler alone."""
    if toolchain.name != "zig":
        return _SYSTEM
    own = Path(toolchain.command[0]).parent / "lib"
    return (*_SYSTEM, f"{own}/", str(Path(tempfile.gettempdir()) / ZIG_SCRATCH))


def _prerequisites(rules: str) -> list[str]:
    """What the rules of a make file depend on."""
    found: list[str] = []
    for line in _CONTINUED.sub(" ", rules).splitlines():
        target = _TARGET.match(line)
        words = _WORD.findall(line[target.end() :] if target else line)
        found += [_ESCAPED.sub(lambda m: m[1] or m[2], word) for word in words]
    return found


def _named(flag: str) -> Iterator[str]:
    """The absolute paths that a flag may name; others begin where no file of the user's is."""
    for piece in {flag, *re.split("[,=]", flag)}:
        if "/" in piece and not flag.startswith(_MACROS):
            yield piece[piece.index("/") :]


def _hash(path: str, started_ns: int | None = None) -> str:
    """The hash of a file, or of what is in a folder; what is nowhere is `ABSENT`."""
    place = Path(path)
    if not place.is_absolute():
        return UNKNOWN  # it begins where the compiler ran, which is gone
    try:
        about = place.stat()
        if started_ns is not None and about.st_ctime_ns > started_ns:
            return UNKNOWN
        if stat.S_ISDIR(about.st_mode):
            with os.scandir(place) as entries:
                content = os.fsencode("\n".join(sorted(map(_entry, entries))))
        elif stat.S_ISREG(about.st_mode):
            content = place.read_bytes()
        else:
            return UNKNOWN
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError:
        return UNKNOWN
    return UNKNOWN if _SILENT.search(content) else hashlib.sha256(content).hexdigest()


def _entry(entry: os.DirEntry[str]) -> str:
    if not entry.name.endswith(_LINKED):
        return entry.name
    about = entry.stat()
    return f"{entry.name} {about.st_size} {about.st_mtime_ns}"
