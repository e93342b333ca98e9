"""Which files a compiler may touch: a text can name any file of this user (``#include``,
``.incbin``), and what a compiler reads ends up in a library or in its log.

Linux' Landlock holds for a thread and all that it starts from then on, so a thread that does
nothing else confines itself and starts the compiler. Where the kernel has no Landlock nothing is
confined, and `is_confining` says so.
"""

from __future__ import annotations

import os
import platform
import struct
import threading
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import cffi

T = TypeVar("T")

# System calls, the same on all architectures, and their words (linux/landlock.h).
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_SET_NO_NEW_PRIVILEGES = 38
# What the interface's versions 1, 2, 3 and 5 know of files, as the number of rights.
_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
_READ = 0b1101  # execute, read a file, list a folder
# Where systems keep compilers, headers, libraries and what these need at run time.
_SYSTEM = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix/store", "/gnu/store"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"),
    *("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"),
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/tty")


@cache
def _native() -> tuple[Any, Any]:
    ffi = cffi.FFI()
    ffi.cdef("long syscall(long number, ...); int prctl(int option, ...);")
    return ffi, ffi.dlopen(None)


@cache
def _version() -> int:
    """The version of Landlock's interface; 0 if there is none."""
    if platform.system() != "Linux":
        return 0
    ffi, c = _native()
    found = c.syscall(_CREATE, ffi.NULL, ffi.cast("size_t", 0), ffi.cast("unsigned int", _VERSION))
    return max(0, int(found))


def is_confining() -> bool:
    """Whether this system can confine a compiler."""
    return _version() > 0


def run_confined(
    function: Callable[[], T], readable: Iterable[Path], writable: Iterable[Path]
) -> T:
    """Call a function in a thread that may read and write only these files and folders and those
    of the system, with all that it starts; just call it where there is no Landlock.

    Args:
        function: is called; what it raises is raised.
        readable: files and folders beyond the system's; those that are not there are left out.
        writable: the same, to be written.

    Raises:
        OSError: if the confinement fails where the system offers it.
    """
    if not is_confining():
        return function()
    result: list[T] = []
    failure: list[BaseException] = []

    def confined() -> None:
        try:
            _confine([*map(Path, _SYSTEM), *readable], [*map(Path, _DEVICES), *writable])
            result.append(function())
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            failure.append(error)

    thread = threading.Thread(target=confined, name="confined")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


def _confine(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """Confine this thread.

    Raises:
        OSError: if the system refuses.
    """
    ffi, c = _native()
    newest = max(known for known in _RIGHTS if known <= _version())
    rights = (1 << _RIGHTS[newest]) - 1
    attributes = ffi.from_buffer(struct.pack("Q", rights))
    size, flags = ffi.cast("size_t", 8), ffi.cast("unsigned int", 0)
    rules = int(c.syscall(_CREATE, attributes, size, flags))
    if rules < 0:
        raise OSError(ffi.errno, "a compiler cannot be confined")
    try:
        for paths, access in ((readable, _READ), (writable, rights)):
            for path in paths:
                _allow(rules, path, access)
        one, zero = ffi.cast("unsigned long", 1), ffi.cast("unsigned long", 0)
        done = c.prctl(_SET_NO_NEW_PRIVILEGES, one, zero, zero, zero)
        done = done or c.syscall(_RESTRICT, ffi.cast("int", rules), flags)
        if done:
            raise OSError(ffi.errno, "a compiler cannot be confined")
    finally:
        os.close(rules)


# Rights that a file has, as opposed to a folder: execute, write, read, truncate, control a device.
_OF_FILES = 0b0111 | 1 << 14 | 1 << 15


def _allow(rules: int, path: Path, access: int) -> None:
    ffi, c = _native()
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not path.is_dir():
            access &= _OF_FILES
        rule = ffi.from_buffer(struct.pack("=Qi", access, place))
        number, none = ffi.cast("int", _PATH_BENEATH), ffi.cast("unsigned int", 0)
        if c.syscall(_ADD, ffi.cast("int", rules), number, rule, none):
            raise OSError(ffi.errno, f"{path}: a compiler cannot be allowed this")
    finally:
        os.close(place)
