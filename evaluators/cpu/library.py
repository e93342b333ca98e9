"""A worker for library kernels, in Python: the protocol of ``worker.c``, for a function on NumPy
arrays.

Run as ``python -m kernelwright.evaluators.cpu.library FLUSH INPUTS OUTPUTS REPLIES``, where FLUSH
is the compiled ``flush.c``. In place of a library's path the setup has JSON: the function's dotted
path, and name, dtype and shape of every array.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import mmap
import os
import struct
import sys
import time
from collections.abc import Sequence
from typing import Any

from kernelwright.evaluators.cpu.memory import Slot, view

HEADER, ARRAY, CALL, REPLY = (struct.Struct(s) for s in ("6q", "6q", "2q", "4q224s"))
READY, DONE, REFUSED = 1, 2, 3
LIBRARY_MISSING = 1


def described(function: str, slots: Sequence[Slot]) -> str:
    """What a setup says to this worker in place of a path."""
    arrays = [{"name": s.name, "dtype": s.dtype, "shape": s.shape} for s in slots]
    return json.dumps({"function": function, "arrays": arrays})


def main() -> None:
    """Serve calls until standard input ends."""
    flush, (inputs_fd, outputs_fd, replies) = sys.argv[1], map(int, sys.argv[2:5])
    count, extents, sets, _, path_bytes, _ = HEADER.unpack(_read(HEADER.size))
    layout = [ARRAY.unpack(_read(ARRAY.size)) for _ in range(count)]
    _read(8 * extents)
    about = json.loads(_read(path_bytes).rstrip(b"\0"))
    slots = [
        Slot(a["name"], a["dtype"], tuple(a["shape"]), bool(role), offset, size, lead, data, stride)
        for a, (role, offset, stride, size, lead, data) in zip(about["arrays"], layout, strict=True)
    ]
    try:
        module, _, name = about["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        prepare = ctypes.CDLL(flush).kw_prepare
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an import may raise anything
        _reply(replies, REFUSED, LIBRARY_MISSING, f"{type(error).__name__}: {error}")
        return
    given = mmap.mmap(inputs_fd, 0, prot=mmap.PROT_READ)
    written = mmap.mmap(outputs_fd, 0)
    inputs = [{s.name: view(given, s, n) for s in slots if s.is_input} for n in range(sets)]
    outputs = {s.name: view(written, s, 0) for s in slots if not s.is_input}
    flushed = [_pointers([*arrays.values(), *outputs.values()]) for arrays in inputs]
    _reply(replies, READY, 0)
    while True:
        number, warm = CALL.unpack(_read(CALL.size))
        prepare(*flushed[number], count, not warm)
        start = time.perf_counter_ns()
        function(inputs[number], outputs)
        _reply(replies, DONE, time.perf_counter_ns() - start)


def _pointers(arrays: list[Any]) -> tuple[Any, Any]:
    addresses = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    return addresses, (ctypes.c_size_t * len(arrays))(*(a.nbytes for a in arrays))


def _read(size: int) -> bytes:
    message = b""
    while len(message) < size:
        part = os.read(0, size - len(message))
        if not part:
            os._exit(0)  # the judge is done
        message += part
    return message


def _reply(descriptor: int, kind: int, value: int, text: str = "") -> None:
    encoded = text.encode(errors="replace")[:223]
    os.write(descriptor, REPLY.pack(kind, value, 0, 0, encoded))


if __name__ == "__main__":
    main()
