"""The Gymnasium face: kernel search as an environment, over the same judge as every campaign.

Importing this package registers its ids. Gymnasium 1.0 dropped the loading of plug-ins by entry
point, so a program says either ``import kernelwright.env.gym`` or
``gymnasium.make("kernelwright.env.gym:kernelwright/Knobs-v0")``.
"""

from __future__ import annotations

from kernelwright.env.gym.environment import SearchEnv
from kernelwright.env.gym.episode import EpisodeError, validate
from kernelwright.env.gym.knobs import KernelEnv
from kernelwright.env.gym.registration import (
    DIRECTIVES_ID,
    KNOBS_ID,
    SCHEDULE_ID,
    register_ids,
)
from kernelwright.env.gym.reward import RewardModel
from kernelwright.env.gym.schedule import ScheduleEnv
from kernelwright.env.gym.vector import VectorKernelEnv

__all__ = [
    "DIRECTIVES_ID",
    "KNOBS_ID",
    "SCHEDULE_ID",
    "EpisodeError",
    "KernelEnv",
    "RewardModel",
    "ScheduleEnv",
    "SearchEnv",
    "VectorKernelEnv",
    "register_ids",
    "validate",
]

register_ids()
