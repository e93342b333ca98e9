"""System calls by number, for evidence."""

from __future__ import annotations

import platform

# Those that a program would most likely be caught at; others go by their numbers.
_X86_64: dict[int, str] = {
    0: "read",
    1: "write (as printf does)",
    2: "open",
    3: "close",
    5: "fstat (as printf does)",
    7: "poll",
    9: "mmap",
    10: "mprotect",
    13: "rt_sigaction",
    15: "rt_sigreturn",
    20: "writev",
    22: "pipe",
    23: "select",
    28: "madvise",
    29: "shmget",
    34: "pause",
    35: "nanosleep",
    37: "alarm",
    38: "setitimer",
    39: "getpid",
    41: "socket",
    56: "clone",
    57: "fork",
    58: "vfork",
    59: "execve",
    61: "wait4",
    62: "kill",
    101: "ptrace",
    109: "setpgid",
    112: "setsid",
    157: "prctl",
    158: "arch_prctl",
    200: "tkill",
    202: "futex with a time limit",
    203: "sched_setaffinity",
    222: "timer_create",
    230: "clock_nanosleep",
    234: "tgkill",
    257: "openat",
    262: "newfstatat (as printf does)",
    298: "perf_event_open",
    310: "process_vm_readv",
    317: "seccomp",
    319: "memfd_create",
    321: "bpf",
    323: "userfaultfd",
    425: "io_uring_setup",
    435: "clone3",
    436: "close_range",
}


def system_call(number: int) -> str:
    """What a refused system call is called on this machine, with its number."""
    known = _X86_64 if platform.machine() == "x86_64" else {}
    return f"{known.get(number, 'system call')} ({number})"
