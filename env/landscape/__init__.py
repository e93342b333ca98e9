"""Landscapes: whole knob spaces measured once and recorded, so that searches can be replayed on
them.

`FORMATS` lists the readers by format, which is recognised by a file's content; `WRITERS` lists
what can be written. ``data/`` holds the shipped recordings, opened by name.
"""

from __future__ import annotations

FORMATS: dict[str, str] = {
    "jsonl": "kernelwright.env.landscape.jsonl:from_jsonl",
    "kernel_tuner": "kernelwright.env.landscape.kernel_tuner:from_kernel_tuner",
    "t4": "kernelwright.env.landscape.t4:from_t4",
    "t1": "kernelwright.env.landscape.t1:from_t1",
    "ktt": "kernelwright.env.landscape.ktt:from_ktt",
    "triton": "kernelwright.env.landscape.triton:from_triton",
    "helion": "kernelwright.env.landscape.helion:from_helion",
    "autotvm": "kernelwright.env.landscape.autotvm:from_autotvm",
}

WRITERS: dict[str, str] = {
    "jsonl": "kernelwright.env.landscape.jsonl:to_jsonl",
    "kernel_tuner": "kernelwright.env.landscape.kernel_tuner:to_kernel_tuner",
    "t4": "kernelwright.env.landscape.t4:to_t4",
    "t1": "kernelwright.env.landscape.t1:to_t1",
    "triton": "kernelwright.env.landscape.triton:to_triton",
    "helion": "kernelwright.env.landscape.helion:to_helion",
}

ENDINGS: tuple[str, ...] = (
    *(".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz", ".log", ".log.gz"),
)
"""Endings of files that may hold a landscape; the content decides which format it is."""
