"""Spaces: the candidates of one language. ``knobs`` exists; schedules, templates and sources come
with the compiler.
"""

from __future__ import annotations

SPACES: dict[str, str] = {"knobs": "kernelwright.env.spaces.knobs:KnobSpace"}
