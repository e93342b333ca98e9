"""Landscapes: whole knob spaces measured once and recorded, so that searches can be replayed on
them.

`FORMATS` lists the readers by the ending of a file's name; ``data/`` holds the shipped recordings,
opened by name.
"""

from __future__ import annotations

FORMATS: dict[str, str] = {
    ".jsonl": "kernelwright.env.landscape.jsonl:read_jsonl",
    ".jsonl.gz": "kernelwright.env.landscape.jsonl:read_jsonl",
}
