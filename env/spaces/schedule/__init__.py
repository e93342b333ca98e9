"""Schedules as a search space: traces of directives over one procedure. Start reading at
``space``; ``program_space`` is the space of what a program of one's own, a knob template or a list
of rules writes.
"""

from __future__ import annotations

from kernelwright.env.spaces.schedule.program_space import ProgramSpace
from kernelwright.env.spaces.schedule.space import ScheduleSpace

__all__ = ["ProgramSpace", "ScheduleSpace"]
