"""A compiler's process, bounded: in time with everything it starts, in what it says, writes and
takes of memory, in the files it may touch, and in what it sees of this process's environment.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from kernelwright.env.compiler.runtime.confine import is_confining, run_confined

LOG_BYTES = 64 * 1024
# Limits that a shell sets before it becomes the compiler: files of 256 MiB (in blocks of 512
# bytes), 4 GiB of memory (in KiB), no core. Forking a large Python process would cost more.
_LIMITS = "ulimit -f 524288; ulimit -v 4194304; ulimit -c 0"
_SHELL = ("/bin/sh", "-c", f'{{ {_LIMITS}; }} 2>/dev/null; exec "$@"', "sh")
# What a compiler needs to know; anything else here may be a secret.
_PASSED = (
    "PATH",
    "HOME",
    "TMPDIR",
    "CCACHE_DIR",
    "SCCACHE_DIR",
)


# Compilers' caches, which are written.
_CACHES = ("CCACHE_DIR", "SCCACHE_DIR")


class TimeLimitError(Exception):
    """A process that took longer than it may; it and its children are gone."""


def run_bounded(
    command: Sequence[str],
    text: str,
    *,
    folder: Path,
    limit_s: float,
    settings: Mapping[str, str] | None = None,
    readable: Iterable[Path] | None = None,
    writable: Iterable[Path] = (),
) -> tuple[int, str]:
    """Run a command in ``folder`` with ``text`` as its input; its exit status and what it said.

    Args:
        command: program and arguments.
        text: the standard input.
        folder: where it runs, so that nothing depends on where this process does.
        limit_s: seconds after which its whole process group is killed.
        settings: environment variables beyond the few that are passed on.
        readable: files and folders that it may read beyond the system's, and no others, where the
            system can keep it from them (`confine`); all that this user may, unless given.
        writable: those that it may write beyond ``folder``, which holds its temporary files too.

    Raises:
        OSError: if it cannot be started.
        TimeLimitError: if it takes too long.
    """
    deadline = time.monotonic() + limit_s
    with tempfile.TemporaryFile() as source:
        # A file, not a pipe: there is then only one pipe to wait for.
        source.write(text.encode())
        source.seek(0)
        confined = readable is not None and is_confining()
        temporary = {"TMPDIR": str(folder)} if confined else {}

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [*_SHELL, *command],
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**_passed(), **temporary, **(settings or {})},
                process_group=0,
            )

        if readable is None:
            process = start()
        else:
            caches = (Path(value) for name in _CACHES if (value := os.getenv(name)))
            process = run_confined(start, readable, [folder, *caches, *writable])
    try:
        log = _read(process, deadline)
        return process.wait(max(0.0, deadline - time.monotonic())), log
    except subprocess.TimeoutExpired:
        raise TimeLimitError from None
    finally:
        _end(process)


def _read(process: subprocess.Popen[bytes], deadline: float) -> str:
    """What a process says until it closes its output; what is beyond the limit is thrown away."""
    assert process.stdout is not None
    output, kept, lost = process.stdout.fileno(), bytearray(), False
    waiting = select.poll()  # select() would fail where many files are open
    waiting.register(output, select.POLLIN)
    while True:
        if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeLimitError
        piece = os.read(output, LOG_BYTES)
        if not piece:
            break
        room = LOG_BYTES - len(kept)
        lost |= len(piece) > room
        kept += piece[:room]
    return kept.decode(errors="replace").strip() + ("\n[the rest is cut off]" if lost else "")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what still runs, children included (gcc's work is done by one), and reap it."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _passed() -> dict[str, str]:
    values = {name: os.getenv(name) for name in _PASSED}
    return {"LANG": "C", **{name: value for name, value in values.items() if value is not None}}
