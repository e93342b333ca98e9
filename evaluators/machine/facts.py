"""What is known of this machine: measured once, kept, and verified on read.

An entry is a JSON file named by a hash of all that a measurement depends on. It appears in one
rename. One process measures at a time, because two would disturb each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import tempfile
from contextlib import suppress
from pathlib import Path

from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.folders import user_folder
from kernelwright.env.compiler.runtime.toolchain import BuildError, Toolchain, find_toolchain
from kernelwright.env.records import dumps, loads
from kernelwright.evaluators.machine.measured import Machine
from kernelwright.evaluators.machine.probe import (
    FLAGS,
    SOURCE,
    MachineError,
    measure,
    memory_bytes,
    rounds,
    words_of,
)
from kernelwright.evaluators.machine.topology import Topology, read_topology, usable_cpus


def machine_facts(*, refresh: bool = False) -> Machine:
    """This machine, measured if that was not done before.

    It is about the CPUs that the calling thread may use, so it is to be asked before a judge pins
    this process to one of them, and while nothing else is being timed.

    Args:
        refresh: measure again; of the old figures and the new ones the greatest are kept, because
            what was measured under load is too low.

    Raises:
        MachineError: if there is no C compiler, or measuring fails.
        OSError: if there is no place to keep the figures.
    """
    try:
        toolchain = find_toolchain()
    except BuildError as error:
        raise MachineError(
            f"the machine cannot be measured without a C compiler: {error}"
        ) from None
    topology = read_topology(usable_cpus())
    fingerprint = fingerprint_of(topology, toolchain)
    folder = user_folder("machine")
    entry = folder / f"{hashlib.sha256(fingerprint.encode()).hexdigest()}.json"
    known = None if refresh else read_entry(entry, fingerprint)
    if known is not None:
        return known
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another process may have measured while this one waited.
        known = read_entry(entry, fingerprint)
        if known is not None and not refresh:
            return known
        fresh = measure(topology, toolchain, BuildCache(cache_folder()))
        machine = fresh if known is None else known.merged(fresh)
        write_entry(entry, fingerprint, machine)
        return machine


def fingerprint_of(topology: Topology, toolchain: Toolchain) -> str:
    """All that a measurement depends on, as JSON: CPUs, kernel, compiler, program and what the
    program is told.
    """
    told = [words_of(topology, cpus, memory_bytes()) for cpus in rounds(topology)]
    parts = {
        "cpu": topology.facts,
        "cpus": len(topology.cpus),
        "of": os.cpu_count(),
        "caches": [(c.level, c.size_bytes, len(c.sharing)) for c in topology.caches],
        "kernel": platform.release(),
        "compiler": [toolchain.version, *toolchain.words(FLAGS, executable=True)],
        "program": hashlib.sha256(SOURCE.read_bytes()).hexdigest(),
        "told": told,
    }
    return json.dumps(parts, sort_keys=True)


def read_entry(entry: Path, fingerprint: str) -> Machine | None:
    """The machine in an entry; None if there is none, it is damaged, or about another machine."""
    try:
        about = json.loads(entry.read_text())
        record = str(about["machine"])
        whole = about["fingerprint"] == fingerprint and about["sha256"] == _sha256(record)
        return loads(Machine, record) if whole else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def write_entry(entry: Path, fingerprint: str, machine: Machine) -> None:
    """Put an entry in its place, whole.

    Raises:
        OSError: if it cannot be written.
    """
    record = dumps(machine)
    about = {"fingerprint": fingerprint, "sha256": _sha256(record), "machine": record}
    handle, name = tempfile.mkstemp(dir=entry.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(about, file, indent=1)
        Path(name).replace(entry)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
