"""Processes that run kernels, from the outside: start, let them isolate themselves, load, call,
time out, kill as a group, and say how they died.

What a worker writes about itself is only ever used as evidence of a failure. Times, states of tasks
and outputs come from elsewhere (``native/judge.c``).
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import signal
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.types import Status
from kernelwright.evaluators.cpu.isolation import Parts, is_root, missing
from kernelwright.evaluators.cpu.memory import PAGE, Arena
from kernelwright.evaluators.cpu.native import DIED, OK, RESTLESS, TIMED_OUT, judge
from kernelwright.evaluators.cpu.placement import Placement
from kernelwright.evaluators.cpu.syscalls import system_call
from kernelwright.evaluators.cpu.text import printable

_SETUP, _PLACE = struct.Struct("12q"), struct.Struct("5q")
# What ``struct kw_control`` holds, by offset.
_STAGE, _WHY, _PARTS, _SIGNAL, _CALL, _ADDRESS = 256, 260, 264, 268, 272, 280
_MXCSR, _X87, _TEXT, _TEXT_BYTES = 288, 292, 296, 256
_ISOLATED, _LOADED, _REFUSED, _SIGNALLED = 2, 3, 4, 5
_LIBRARY_MISSING, _ENTRY_MISSING = 1, 2
# What a kernel may have beside its operands: address space, so stacks of threads count whole.
MEMORY_BYTES, THREAD_BYTES = 4 << 30, 64 << 20
# How long a worker may take to come to rest after a call.
REST_S = 0.25
# Users of whom no machine has one; each worker is somebody else.
_USERS = range(64_100, 65_100)
_TAKEN: set[int] = set()
_NAMESPACES = {Parts.PID_NAMESPACE: 0x2000_0000, Parts.IPC_NAMESPACE: 0x0800_0000}
_NEW_USER = 0x1000_0000
# The most first.
_NAMESPACES_TRIED = (Parts.PID_NAMESPACE | Parts.IPC_NAMESPACE, Parts.IPC_NAMESPACE, Parts(0))
# What `kw_spawn` sees to: a session, nothing open that is not handed over, a given environment.
_GIVEN = Parts.SESSION | Parts.CLOSED | Parts.SCRUBBED
_EVERY_PART = Parts((1 << 10) - 1)
# The state that x86 starts every process in; the low bits of mxcsr are flags that any sum may set.
_MXCSR_DEFAULT, _MXCSR_FLAGS, _X87_DEFAULT = 0x1F80, 0x3F, 0x37F
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

    def __str__(self) -> str:
        return f"{self.status} ({self.code}): {self.evidence}"


@dataclass(frozen=True, slots=True)
class Program:
    """What a worker process is: a program with its words, and the library that it loads, if it is
    to be kept from everything else (a C kernel) and not trusted code (a library for Python).
    """

    path: str
    words: tuple[str, ...]
    library: int | None = None
    is_trusted: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """A call, by the judge's clock, in ns: its time, the time from wake-up to bell, and the CPU
    time that the worker used outside the call, before the bell or after it; how many elements
    changed after it; how often it was taken off its core meanwhile, and how long it then waited
    for it, waking up included.
    """

    time_ns: float
    gap_ns: float
    outside_ns: float
    late_elements: int
    interruptions: int
    waited_ns: float

    @property
    def undisturbed(self) -> bool:
        """Whether nothing else ran on the worker's core meanwhile."""
        return not self.interruptions


class Worker:
    """A process with one loaded kernel.

    Args:
        program: what runs.
        arena: the memory it works on.
        environment: all that it has of an environment.
        threads: how many it may have.
        where: on which cores.
        limit_s: how long loading may take.
        insist: whether a required part of the isolation that is missing refuses.

    Raises:
        WorkerError: if the kernel cannot be loaded.
    """

    def __init__(
        self,
        program: Program,
        arena: Arena,
        environment: Mapping[str, str],
        *,
        threads: int,
        where: Placement,
        limit_s: float,
        insist: bool = True,
    ) -> None:
        self._arena, self._threads, self._program = arena, threads, program
        self.is_trusted = program.is_trusted
        # Whether what the worker says is its own word, no candidate being there.
        self._is_alone, self._is_loaded = True, False
        self._ffi, self._native = judge()
        self.parts = Parts(0)
        self._user = _somebody() if is_root() and not program.is_trusted else 0
        setup = _setup(program, arena, threads, where, self._user)
        self._control = _Control(setup)
        self._pid = self._pidfd = -1
        self._status: int | None = None
        try:
            self._spawn(program, environment, len(setup))
            self._state = self._ffi.new("struct kw_worker *")
            self._state.control = self._ffi.cast("void *", self._control.address)
            self._state.pid, self._state.pidfd = self._pid, self._pidfd
            self._state.blocking = where.blocking
            self._shot = self._ffi.new("struct kw_shot *")
            self._load(limit_s, insist=insist)
        except BaseException:
            self.close()
            raise

    def _spawn(self, program: Program, environment: Mapping[str, str], setup_bytes: int) -> None:
        ffi = self._ffi
        words = (program.path, *program.words, str(PAGE + setup_bytes))
        keep = [ffi.new("char[]", os.fsencode(word)) for word in words]
        settings = [ffi.new("char[]", os.fsencode(f"{k}={v}")) for k, v in environment.items()]
        start = ffi.new("struct kw_start *")
        argv = ffi.new("char *[]", [*keep, ffi.NULL])
        envp = ffi.new("char *[]", [*settings, ffi.NULL])
        start.path, start.words, start.environment = keep[0], argv, envp
        with Path(os.devnull).open("rb+", buffering=0) as nothing:
            null = nothing.fileno()
            library = null if program.library is None else program.library
            files = [null, null, null, self._control.fd]
            files += [self._arena.inputs_fd, self._arena.outputs_fd, library]
            descriptors = ffi.new("int64_t[]", files)
            start.descriptors, start.count = descriptors, len(files)
            found = -1
            for parts in (Parts(0),) if program.is_trusted else _NAMESPACES_TRIED:
                self._control.give(parts | _GIVEN)
                start.namespaces = _flags(parts)
                found = int(self._native.kw_spawn(start))
                if found > 0:
                    break
        if found < 0:
            reason = f"the worker cannot be started: {os.strerror(-found)}"
            raise WorkerError(Status.BROKEN, "worker", reason)
        self._pid = found
        self._pidfd = os.pidfd_open(found)

    def _load(self, limit_s: float, *, insist: bool) -> None:
        self._await(_ISOLATED, limit_s if self._program.is_trusted else 20.0, "starting")
        if not self._program.is_trusted:
            # Nothing that could lie has run yet.
            self.parts = Parts(self._control.word(_PARTS)) & _EVERY_PART
            lacking = missing(self.parts)[0]
            if lacking and insist:
                names = ", ".join(part.name for part in lacking)
                what = f"this machine does not offer what strict isolation needs: {names}"
                raise WorkerError(Status.REJECTED, "isolation", what)
        self._is_alone = self._program.is_trusted
        self._native.kw_go(self._state)
        self._await(_LOADED, limit_s, "loading")
        self._is_loaded = True
        if self._native.kw_rest(self._state, int(limit_s * 1e9)) != OK:
            raise self._ended("loading", limit_s)
        if not self._program.is_trusted:
            self._see_that_it_is_shut()
            self._count_tasks()

    def _see_that_it_is_shut(self) -> None:
        """Both filters are in force, by the system's word: what ran while it loaded cannot have
        kept the second away.
        """
        if not self.parts & Parts.SECCOMP:
            return
        status = Path(f"/proc/{self._pid}/status").read_text()
        found = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        if found.get("Seccomp") != "2" or int(found.get("Seccomp_filters", 2)) != 2:
            what = "the system-call filter was not in force after loading, or not alone"
            raise WorkerError(Status.REJECTED, "isolation", what)
        with contextlib.suppress(PermissionError):
            kept = [path.name for path in Path(f"/proc/{self._pid}/fd").iterdir()]
            if kept:
                what = f"{len(kept)} descriptors were open after loading"
                raise WorkerError(Status.REJECTED, "isolation", what)
            maps = Path(f"/proc/{self._pid}/maps").read_text().splitlines()
            if any("wx" in line.split()[1] for line in maps):
                what = "memory that can be written and run was there after loading"
                raise WorkerError(Status.REJECTED, "isolation", what)

    def _count_tasks(self) -> None:
        tasks = int(self._state.tasks)
        if tasks > self._threads:
            what = f"{tasks} threads at rest, {self._threads} allowed (target.threads)"
            raise WorkerError(Status.REJECTED, "threads_left", what)

    def call(
        self,
        slot: int,
        batch: int,
        limit_s: float,
        canaries: tuple[NDArray[np.uint64], NDArray[np.int64]],
    ) -> Called:
        """Run the kernel on the slots ``slot .. slot + batch``, from rest to rest.

        Args:
            slot: the first.
            batch: how many, one after the other.
            limit_s: how long it may take.
            canaries: addresses (in this process) and sizes of output elements that are read as soon
                as the call is over.

        Raises:
            WorkerError: if it does not come back, dies, does not rest, or leaves threads or another
                floating-point environment behind.
        """
        places, sizes = canaries
        seen = np.empty(len(places), np.uint64)
        shot, cast = self._shot, self._ffi.cast
        shot.slot, shot.batch = slot, batch
        shot.limit_ns, shot.rest_ns = int(limit_s * 1e9), int(REST_S * 1e9)
        shot.canaries = len(places)
        shot.places = cast("uint64_t *", places.ctypes.data)
        shot.sizes = cast("int64_t *", sizes.ctypes.data)
        shot.seen = cast("uint64_t *", seen.ctypes.data)
        end = self._native.kw_call(self._state, shot)
        if end != OK:
            raise self._ended("a call", limit_s, end)
        if not self._program.is_trusted:
            self._count_tasks()
            self._compare_environment()
        inside, gap = shot.end_ns - shot.start_ns, shot.start_ns - shot.wake_ns
        outside = shot.cpu_ns - inside * self._threads
        if self._threads > 1:
            # What other threads leave unused is no allowance for work before the bell.
            outside = max(0, outside) + gap
        return Called(
            max(1.0, float(inside)) / batch,
            float(gap),
            float(outside),
            int(shot.late),
            max(0, int(shot.turns) - int(shot.tasks)),
            float(shot.waited_ns),
        )

    def visit(self, limit_s: float) -> None:
        """Have it look at its pages, so that a call does not start with what a core forgets while
        it is idle. What it does meanwhile is not charged: let there be no values to see.

        Raises:
            WorkerError: if it does not come back, dies or does not rest.
        """
        end = self._native.kw_visit(self._state, int(limit_s * 1e9))
        if end != OK:
            raise self._ended("a look at its pages", limit_s, end)

    def _compare_environment(self) -> None:
        mxcsr, x87 = self._control.word(_MXCSR), self._control.word(_X87)
        if mxcsr == x87 == 0:  # another processor than x86
            return
        if mxcsr & ~_MXCSR_FLAGS != _MXCSR_DEFAULT or x87 != _X87_DEFAULT:
            what = (
                f"{_changed(mxcsr, x87)} and not put back: mxcsr {mxcsr:#x}, x87 control word "
                f"{x87:#x} after the call, {_MXCSR_DEFAULT:#x} and {_X87_DEFAULT:#x} before it"
            )
            raise WorkerError(Status.REJECTED, "fp_environment", what)

    def close(self) -> None:
        """Kill the process and everything it started, and wait for it."""
        if self._pid > 0:
            self._kill()
            if self._status is None:
                with contextlib.suppress(ChildProcessError):
                    self._status = os.waitpid(self._pid, 0)[1]
            os.close(self._pidfd)
            self._pid = -1
        self._control.close()
        _TAKEN.discard(self._user)

    def _kill(self) -> None:
        # The group first: its leader's number stays taken until it is waited for.
        if self._status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _await(self, stage: int, limit_s: float, what: str) -> None:
        end = self._native.kw_await(self._state, stage, int(limit_s * 1e9))
        if end != OK or self._control.word(_STAGE) != stage:
            raise self._ended(what, limit_s, end)

    def _ended(self, what: str, limit_s: float, how: int = DIED) -> WorkerError:
        """Why the worker did not do what it was asked."""
        if how == TIMED_OUT:
            evidence = f"{what} took longer than {limit_s:.3g} s (target.limit_s, or where that is "
            evidence += "less 100 times the reference, and 1 s at least)"
            return WorkerError(Status.TIMEOUT, "timeout", evidence)
        stage = self._control.word(_STAGE)
        if stage == _REFUSED and not self._is_loaded:
            return _refusal(self._control.word(_WHY), self._control.text(), ours=self._is_alone)
        if stage == _SIGNALLED:
            return self._signalled()
        if how == RESTLESS:
            state = self._task_state()
            seen = {"R": "it runs on", "T": "it is stopped", "D": "it waits in the system"}
            evidence = f"{seen.get(state, 'it does not sleep')} {REST_S * 1e3:.0f} ms after {what}"
            return WorkerError(Status.REJECTED, "late_work", evidence)
        return self._death()

    def _task_state(self) -> str:
        try:
            return Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return ""

    def _signalled(self) -> WorkerError:
        number = self._control.word(_SIGNAL)
        name, code = _name(number), _SIGNALS.get(number, "signal")
        if number == signal.SIGSYS:
            called = system_call(self._control.word(_CALL))
            evidence = f"asked the system for {called}, which no kernel needs and no key allows"
            return WorkerError(Status.REJECTED, "forbidden_syscall", evidence)
        found = None
        if number in (signal.SIGSEGV, signal.SIGBUS):
            found = self._arena.owner(self._control.wide(_ADDRESS))
        if found is None:
            return WorkerError(Status.CRASHED, code, f"stopped by {name}")
        field, where = found
        if where == "in" and field.is_input:
            evidence = f"wrote to input {field.name}, which is read-only ({name})"
            return WorkerError(Status.WRONG, "input_written", evidence)
        evidence = f"touched memory {where} {field.name} ({name})"
        return WorkerError(Status.CRASHED, "out_of_bounds", evidence)

    def _death(self) -> WorkerError:
        """Why the process ended."""
        deadline = time.monotonic() + 1.0
        while self._status is None:
            found, status = os.waitpid(self._pid, os.WNOHANG)
            if found:
                self._status = status
            elif time.monotonic() > deadline:
                return WorkerError(Status.CRASHED, "protocol", "the worker fell silent")
        code = os.waitstatus_to_exitcode(self._status)
        if self._is_alone:
            reason = f"the worker ended by itself while it was set up (exit code {code})"
            return WorkerError(Status.BROKEN, "worker", reason)
        if code == -signal.SIGSYS:
            what = "asked the system for what no kernel needs and no key allows"
            return WorkerError(Status.REJECTED, "forbidden_syscall", what)
        if code < 0:
            known = _SIGNALS.get(-code, "signal")
            return WorkerError(Status.CRASHED, known, f"stopped by {_name(-code)}")
        return WorkerError(
            Status.CRASHED, "exit", f"the process ended by itself (exit code {code})"
        )


class _Control:
    """The control file, as the judge maps it."""

    def __init__(self, setup: bytes) -> None:
        self.fd = os.memfd_create("kernelwright", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, PAGE + len(setup))
        self._map = mmap.mmap(self.fd, PAGE + len(setup))
        self._map[PAGE:] = setup
        self._bytes = np.frombuffer(self._map, np.uint8)
        self.address = self._bytes.ctypes.data

    def give(self, parts: Parts) -> None:
        """Say which parts the judge has put in force itself."""
        self._map[PAGE + 88 : PAGE + 96] = struct.pack("q", parts)

    def word(self, offset: int) -> int:
        """A word of 32 bits."""
        return int(struct.unpack_from("I", self._map, offset)[0])

    def wide(self, offset: int) -> int:
        """A word of 64 bits."""
        return int(struct.unpack_from("Q", self._map, offset)[0])

    def text(self) -> str:
        """What the worker said."""
        raw = self._map[_TEXT : _TEXT + _TEXT_BYTES]
        return raw.partition(b"\0")[0].decode(errors="replace")

    def close(self) -> None:
        """Give the file back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _flags(parts: Parts) -> int:
    """The flags of clone that make these namespaces; an ordinary user needs one of users first."""
    flags = sum(_NAMESPACES[part] for part in parts)
    return flags if is_root() or not flags else flags | _NEW_USER


def _somebody() -> int:
    """A user that no other worker of this process is. Drawn, for by a rule a kernel could tell from
    its own number which arm it is.
    """
    user = secrets.choice([user for user in _USERS if user not in _TAKEN])
    _TAKEN.add(user)
    return user


def _setup(program: Program, arena: Arena, threads: int, where: Placement, user: int) -> bytes:
    """``struct kw_setup`` and what follows it."""
    memory = MEMORY_BYTES + threads * THREAD_BYTES + arena.reserve_bytes
    # A user's processes are counted where it has no others.
    processes = threads if user else 0
    head = (
        len(arena.fields),
        len(arena.extents),
        arena.slots,
        len(where.workers),
        threads,
        int(where.blocking),
        arena.base,
        arena.reserve_bytes,
        user,
        memory,
        processes,
        0,
    )
    parts = [_SETUP.pack(*head)]
    parts.append(struct.pack(f"{len(where.workers)}q", *where.workers))
    parts.append(struct.pack(f"{len(arena.extents)}q", *arena.extents.values()))
    for slot, row in enumerate(arena.addresses):
        for field, address in zip(arena.fields, row, strict=True):
            offset = arena.file_offset(slot, field)
            parts.append(_PLACE.pack(address, offset, field.map_bytes, field.lead, field.is_input))
    return b"".join(parts)


def _changed(mxcsr: int, x87: int) -> str:
    """What a changed floating-point environment does, in words."""
    words = [
        (mxcsr & 0x8000, "subnormal results were set to be flushed to zero"),
        (mxcsr & 0x40, "subnormal operands were set to be taken for zero"),
        (mxcsr & 0x6000, "the rounding mode was changed"),
        (~mxcsr & 0x1F80, "floating-point exceptions were unmasked"),
        (x87 != _X87_DEFAULT, "the x87 unit's precision, rounding or exceptions were changed"),
    ]
    return " and ".join(what for is_so, what in words if is_so) or "the mode was changed"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "a signal" if number > 64 else f"signal {number}"


def _refusal(why: int, text: str, *, ours: bool) -> WorkerError:
    text = printable(text)
    if why == _LIBRARY_MISSING:
        # The loader opens with the library's path, which is nobody's business.
        reason = text.removeprefix("/proc/self/fd/6: ")
        return WorkerError(Status.BUILD_ERROR, "link_error", reason)
    if why == _ENTRY_MISSING:
        return WorkerError(
            Status.BUILD_ERROR, "missing_entry", text.removeprefix("/proc/self/fd/6: ")
        )
    if not ours:
        return WorkerError(Status.CRASHED, "protocol", "the worker said what it had no reason to")
    return WorkerError(Status.BROKEN, "worker", f"the worker could not be set up: {text}")
