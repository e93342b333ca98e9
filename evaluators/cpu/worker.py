"""Processes that run kernels, from the outside: start, call, time out, kill as a group, and say how
they died.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelwright.env.types import CacheState, Status
from kernelwright.evaluators.cpu.memory import PAGE, Arena

_HEADER = struct.Struct("6q")
_ARRAY = struct.Struct("6q")
_CALL = struct.Struct("2q")
_REPLY = struct.Struct("4q224s")
_READY, _DONE, _REFUSED, _SIGNALLED = 1, 2, 3, 4
_LIBRARY_MISSING, _ENTRY_MISSING = 1, 2
_STATES = {CacheState.COLD: 0, CacheState.WARM: 1}
# What a kernel may have beside its operands: address space, so stacks of threads count whole.
MEMORY_BYTES, THREAD_BYTES = 4 << 30, 64 << 20
_SIGNALS: dict[int, str] = {
    signal.SIGSEGV: "segmentation_fault",
    signal.SIGBUS: "bus_error",
    signal.SIGFPE: "floating_point_exception",
    signal.SIGILL: "illegal_instruction",
    signal.SIGABRT: "abort",
    signal.SIGTRAP: "trap",
    signal.SIGXFSZ: "file_too_large",
    signal.SIGKILL: "killed",
}


@dataclass
class WorkerError(Exception):
    """How a worker failed: the status, class code and evidence that its candidate gets."""

    status: Status
    code: str
    evidence: str


class Worker:
    """A process with one loaded kernel.

    Args:
        command: the worker program.
        library: what it loads: the path of a shared library, or a dotted path for a Python worker.
        arena: the memory it works on.
        environment: all that it has of an environment.
        threads: how many it may start, which have stacks.
        limit_s: how long starting may take.

    Raises:
        WorkerError: if the kernel cannot be loaded.
    """

    def __init__(
        self,
        command: Sequence[str],
        library: str,
        arena: Arena,
        environment: Mapping[str, str],
        threads: int,
        limit_s: float,
    ) -> None:
        self._arena = arena
        calls, self._calls = os.pipe()
        self._replies, replies = os.pipe()
        try:
            self._process = _spawn(
                command, (calls, arena.inputs_fd, arena.outputs_fd, replies), environment
            )
        except OSError as error:
            os.close(self._calls)
            os.close(self._replies)
            reason = f"the worker cannot be started: {error}"
            raise WorkerError(Status.BROKEN, "worker", reason) from None
        finally:
            os.close(calls)
            os.close(replies)
        self._pidfd = os.pidfd_open(self._process.pid)
        try:
            self._send(_setup(library, arena, threads))
            self._receive(limit_s, "loading")
        except BaseException:
            self.close()
            raise

    def call(self, number: int, state: CacheState, limit_s: float) -> float:
        """Run the kernel once on a set of inputs; the time in ns by the worker's clock.

        Raises:
            WorkerError: if it does not come back, or dies.
        """
        self._send(_CALL.pack(number, _STATES[state]))
        return float(max(1, self._receive(limit_s, "a call")))

    def close(self) -> None:
        """Kill the process and everything it started, and wait for it."""
        for descriptor in (self._calls, self._replies, self._pidfd):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        # The group first: its leader's number stays taken until it is waited for.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, message: bytes) -> None:
        try:
            while message:
                message = message[os.write(self._calls, message) :]
        except BrokenPipeError:
            raise self._death() from None

    def _receive(self, limit_s: float, what: str) -> int:
        deadline, message = time.monotonic() + limit_s, b""
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        # A child that a kernel leaves behind may hold the pipe open: the process's own end counts.
        poll.register(self._pidfd, select.POLLIN)
        while len(message) < _REPLY.size:
            left = deadline - time.monotonic()
            ready = poll.poll(left * 1000) if left > 0 else []
            if not ready:
                evidence = f"{what} took longer than {limit_s:.3g} s"
                raise WorkerError(Status.TIMEOUT, "timeout", evidence)
            if all(descriptor == self._pidfd for descriptor, _ in ready):
                raise self._death()
            part = os.read(self._replies, _REPLY.size - len(message))
            if not part:
                raise self._death()
            message += part
        kind, a, b, c, text = _REPLY.unpack(message)
        if kind == _REFUSED:
            raise _refusal(a, text.rstrip(b"\0").decode(errors="replace"))
        if kind == _SIGNALLED:
            raise self._signalled(a, b, c)
        if kind not in (_READY, _DONE):
            raise WorkerError(Status.CRASHED, "protocol", f"the worker answered {kind}")
        return int(a)

    def _signalled(self, number: int, where: int, inside: int) -> WorkerError:
        name = _name(number)
        code = _SIGNALS.get(number, "signal")
        if not 0 < where <= len(self._arena.slots):
            return WorkerError(Status.CRASHED, code, f"stopped by {name}")
        slot = self._arena.slots[where - 1]
        if inside and slot.is_input:
            evidence = f"wrote to input {slot.name}, which is read-only ({name})"
            return WorkerError(Status.WRONG, "input_written", evidence)
        evidence = f"touched memory beside {slot.name} ({name})"
        return WorkerError(Status.CRASHED, "out_of_bounds", evidence)

    def _death(self) -> WorkerError:
        """Why the worker closed its end."""
        try:
            code = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return WorkerError(Status.CRASHED, "protocol", "the worker closed its descriptors")
        if code < 0:
            known = _SIGNALS.get(-code, "signal")
            return WorkerError(Status.CRASHED, known, f"stopped by {_name(-code)}")
        return WorkerError(
            Status.CRASHED, "exit", f"the process ended by itself (exit code {code})"
        )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _refusal(why: int, text: str) -> WorkerError:
    if why == _LIBRARY_MISSING:
        # The loader opens with the library's path, which is nobody's business.
        reason = text.partition(".so: ")[2] or text
        return WorkerError(Status.BUILD_ERROR, "link_error", reason)
    if why == _ENTRY_MISSING:
        return WorkerError(Status.BUILD_ERROR, "missing_entry", text)
    return WorkerError(Status.BROKEN, "worker", f"the worker could not be set up: {text}")


def _setup(library: str, arena: Arena, threads: int) -> bytes:
    path = library.encode() + b"\0"
    memory = MEMORY_BYTES + threads * THREAD_BYTES
    memory += sum((s.map_bytes + 2 * PAGE) * arena.sets for s in arena.slots)
    head = (len(arena.slots), len(arena.extents), arena.sets, PAGE, len(path), memory)
    parts = [_HEADER.pack(*head)]
    for slot in arena.slots:
        fields = (
            slot.is_input,
            slot.offset,
            slot.set_stride,
            slot.map_bytes,
            slot.lead,
            slot.data_bytes,
        )
        parts.append(_ARRAY.pack(*fields))
    parts.append(struct.pack(f"{len(arena.extents)}q", *arena.extents.values()))
    return b"".join([*parts, path])


def _spawn(
    command: Sequence[str], descriptors: tuple[int, int, int, int], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a worker in a session of its own; it is told the numbers of its descriptors."""
    calls, *others = descriptors
    return subprocess.Popen(
        [*command, *map(str, others)],
        stdin=calls,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=others,
        env=dict(environment),
        cwd="/",
        start_new_session=True,
    )
