"""The judge's C: the worker, and the judge's half of a call, which runs outside Python's lock.

``protocol.h`` is what both sides share, ``serve.h`` and ``isolate.h`` are the worker's, ``judge.c``
is the judge's. They are compiled once by whatever C compiler there is and kept in the build cache.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import cffi

from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.toolchain import find_toolchain

_HERE = Path(__file__).parent
_FLAGS = ("-O2",)
_INCLUDE = re.compile(r'^#include "(\w+\.h)"$', re.MULTILINE)
_DECLARATIONS = """
struct kw_worker {
    void *control;
    int64_t pid, pidfd, blocking;
    uint32_t call;
    int64_t tasks;
    uint64_t switches, waited_ns;
    int64_t cpu_ns;
};
struct kw_shot {
    int64_t slot, batch, limit_ns, rest_ns;
    int64_t canaries;
    const uint64_t *places;
    const int64_t *sizes;
    uint64_t *seen;
    int64_t wake_ns, start_ns, end_ns;
    int64_t cpu_ns;
    int64_t late;
    int64_t tasks;
    int64_t turns;
    int64_t waited_ns;
};
struct kw_start {
    const char *path;
    char *const *words, *const *environment;
    const int64_t *descriptors;
    int64_t count;
    int64_t namespaces;
};
int kw_rest(struct kw_worker *w, int64_t bound_ns);
int kw_call(struct kw_worker *w, struct kw_shot *s);
int kw_visit(struct kw_worker *w, int64_t limit_ns);
int kw_await(struct kw_worker *w, int64_t stage, int64_t limit_ns);
void kw_go(struct kw_worker *w);
int64_t kw_adds(int64_t core, int64_t adds);
int64_t kw_spawn(const struct kw_start *start);
struct kw_output {
    int64_t first, start, end, last;
};
void kw_poison(unsigned char *file, const struct kw_output *outputs, int64_t count,
               uint64_t inside, uint64_t beside);
int64_t kw_damage(const unsigned char *file, const struct kw_output *outputs, int64_t count,
                  int64_t from, int64_t to, uint64_t inside, uint64_t beside);
int kw_prepare(const char *const *data, const int64_t *bytes, int64_t count, int64_t cold,
               int64_t core);
"""
OK, TIMED_OUT, DIED, RESTLESS = range(4)


def program(name: str) -> Path:
    """A C file of this folder, compiled: an executable for ``worker.c``, else a library.

    Raises:
        BuildError: if there is no compiler, or it refuses.
    """
    text = _inlined((_HERE / name).read_text(), set())
    cache_ = BuildCache(cache_folder())
    build = cache_.build(text, find_toolchain(), _FLAGS, executable=name == "worker.c")
    return build.library


def _inlined(text: str, seen: set[str]) -> str:
    """The text with this folder's headers in it, each once: what the cache's key must depend on."""

    def included(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        return _inlined((_HERE / name).read_text(), seen)

    return _INCLUDE.sub(included, text)


@cache
def judge() -> tuple[Any, Any]:
    """The cffi interface and the loaded ``judge.c``.

    Raises:
        BuildError: if there is no compiler, or it refuses.
    """
    ffi = cffi.FFI()
    ffi.cdef(_DECLARATIONS)
    return ffi, ffi.dlopen(str(program("judge.c")))
