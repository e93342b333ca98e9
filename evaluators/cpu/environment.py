"""The environment variables that a worker is started with: all that it sees of any."""

from __future__ import annotations

import os

# What glibc's malloc comes to in a process that has run for long: it raises the size from which an
# array gets pages of its own, and how much of what was freed it keeps, up to these, as such arrays
# are freed (mallopt(3), M_MMAP_THRESHOLD). A fresh process takes some calls to get there, in which
# every array that a kernel makes and frees costs a page fault a page: what is timed would depend on
# how many calls went before.
_MMAP_THRESHOLD = 4 * 1024 * 1024 * 8
_MALLOC = {
    "glibc.malloc.mmap_threshold": _MMAP_THRESHOLD,
    "glibc.malloc.trim_threshold": 2 * _MMAP_THRESHOLD,
}


def environment(threads: int) -> dict[str, str]:
    """What a kernel in C sees."""
    return {
        "LANG": "C.UTF-8",
        "GLIBC_TUNABLES": ":".join(f"{name}={value}" for name, value in _MALLOC.items()),
        "OMP_NUM_THREADS": str(threads),
        "OMP_DYNAMIC": "false",
        # Threads that wait sleep, so that the worker rests when its call is over.
        "OMP_WAIT_POLICY": "passive",
        "GOMP_SPINCOUNT": "0",
        "KMP_BLOCKTIME": "0",
    }


def library_environment(threads: int) -> dict[str, str]:
    """What a library for Python sees: how many threads it may use, and that they do not spin."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        "PATH": os.defpath,
        **environment(threads),
        **dict.fromkeys(names, str(threads)),
        "OPENBLAS_THREAD_TIMEOUT": "4",
    }
