"""Schedules as a search space: traces of directives over one procedure. Start reading at
``space``.
"""

from __future__ import annotations

from kernelwright.env.spaces.schedule.space import ScheduleSpace

__all__ = ["ScheduleSpace"]
