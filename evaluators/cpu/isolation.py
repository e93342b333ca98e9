"""What a worker gives up before a candidate is loaded, part by part.

``native/isolate.h`` does it, and the worker says which parts are in force before it has loaded
anything that it could not be trusted with. A required part that is missing refuses the candidate
(status ``rejected``, code ``isolation``), unless the profile trusts the code; a missing optional
one is named in the verdict's facts.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import IntFlag


class Parts(IntFlag):
    """Parts of the isolation, with the bits of ``native/protocol.h``."""

    SESSION = 1
    LIMITS = 2
    NO_NEW_PRIVILEGES = 4
    OTHER_USER = 8
    CLOSED = 16
    SCRUBBED = 32
    SECCOMP = 64
    LANDLOCK = 128
    PID_NAMESPACE = 256
    IPC_NAMESPACE = 512


@dataclass(frozen=True, slots=True)
class Part:
    """A part, what it keeps a candidate from, and whether ``strict`` insists on it."""

    bit: Parts
    name: str
    about: str
    required: bool


PARTS: tuple[Part, ...] = (
    Part(Parts.SESSION, "session", "killed by descriptor and as a group", True),
    Part(Parts.LIMITS, "limits", "memory, files, core dumps, locked memory", True),
    Part(Parts.NO_NEW_PRIVILEGES, "no_new_privileges", "no program gives it more rights", True),
    Part(Parts.OTHER_USER, "other_user", "root's judge runs it as somebody else", True),
    Part(Parts.CLOSED, "closed", "no open descriptor when it is called", True),
    Part(Parts.SCRUBBED, "scrubbed", "an environment of a few fixed words", True),
    Part(Parts.SECCOMP, "seccomp", "no process, file, socket, timer or signal", True),
    Part(Parts.LANDLOCK, "landlock", "only libraries can be read while it loads", False),
    Part(Parts.PID_NAMESPACE, "pid_namespace", "sees no process but itself", False),
    Part(Parts.IPC_NAMESPACE, "ipc_namespace", "shared memory of its own", False),
)


def is_root() -> bool:
    """Whether this process may become anybody."""
    return os.geteuid() == 0


def required() -> tuple[Part, ...]:
    """The parts without which ``strict`` and ``standard`` refuse; an ordinary user's worker cannot
    become somebody else.
    """
    return tuple(p for p in PARTS if p.required and (is_root() or p.bit != Parts.OTHER_USER))


def missing(found: Parts) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """The required and the optional parts that are not in force."""
    needed = required()
    lacking = [part for part in PARTS if not part.bit & found]
    optional = tuple(part for part in lacking if not part.required)
    return tuple(part for part in lacking if part in needed), optional


def numbers(found: Parts) -> tuple[tuple[str, float], ...]:
    """The optional parts for a verdict's facts: 1 in force, 0 missing."""
    optional = [part for part in PARTS if not part.required]
    return tuple((f"isolation.{part.name}", float(bool(part.bit & found))) for part in optional)
