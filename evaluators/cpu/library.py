"""A worker for library kernels, in Python: a function on NumPy arrays behind the same call as C.

Run as ``python -m kernelwright.evaluators.cpu.library SERVE ABOUT BYTES``: the compiled
``native/library.c``, a JSON text with the function's dotted path and name, dtype and shape of every
array, and the size of the control file. Libraries are trusted code: they are not isolated.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelwright.evaluators.cpu.memory import Field


class _Place(ctypes.Structure):
    """``struct kw_place`` of ``native/protocol.h``."""

    _fields_ = [(n, ctypes.c_int64) for n in ("address", "offset", "map_bytes", "lead", "is_input")]


def described(function: str, fields: Sequence[Field], slots: int) -> str:
    """What this worker is told about its kernel."""
    arrays = [{"name": f.name, "dtype": f.dtype, "shape": f.shape} for f in fields]
    return json.dumps({"function": function, "arrays": arrays, "slots": slots})


def main() -> None:
    """Serve calls until the judge kills this process."""
    serve, about, size = ctypes.CDLL(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
    serve.kw_library_start.restype = ctypes.POINTER(_Place)
    places = serve.kw_library_start(ctypes.c_int64(size))
    try:
        module, _, name = about["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an import may raise anything
        serve.kw_library_refuse(f"{type(error).__name__}: {error}".encode())
        return
    arrays = about["arrays"]
    given, written = [], []
    for slot in range(about["slots"]):
        inputs: dict[str, Any] = {}
        outputs: dict[str, Any] = {}
        for number, array in enumerate(arrays):
            place = places[slot * len(arrays) + number]
            chosen = inputs if place.is_input else outputs
            chosen[array["name"]] = _array(place, array["dtype"], tuple(array["shape"]))
        given.append(inputs)
        written.append(outputs)

    def run(slot: int) -> None:
        function(given[slot], written[slot])

    serve.kw_library_serve(ctypes.CFUNCTYPE(None, ctypes.c_uint32)(run))


def _array(place: _Place, dtype: str, shape: tuple[int, ...]) -> Any:
    kind = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    data = (ctypes.c_char * (count * kind.itemsize)).from_address(place.address + place.lead)
    array = np.frombuffer(memoryview(data), kind, count).reshape(shape)
    array.flags.writeable = not place.is_input
    return array


if __name__ == "__main__":
    main()
