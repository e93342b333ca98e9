"""Judges: build, check, time, and say what was found. One module a target; a judge does not know
where candidates come from.

A target is a class called with a problem, ``seed=`` and its own keyword options; it offers what
`Target` in ``target.py`` says.
"""

from __future__ import annotations

TARGETS: dict[str, str] = {
    "gpu-model": "kernelwright.evaluators.gpu_model:GpuModel",
    "cpu": "kernelwright.evaluators.cpu.target:Cpu",
    "cpu-model": "kernelwright.evaluators.cpu_model:CpuModel",
    "recorded": "kernelwright.evaluators.recorded:Recorded",
}

# Targets of the plan that no module serves yet, so that a campaign file gets the reason and not a
# spelling hint.
PLANNED: dict[str, str] = {
    "tile-cpu": "the tile language on the CPU",
    "triton": "a real GPU through Triton",
}

# What stands in for a target in a campaign of ``profile: naive``.
NAIVE_TARGETS: dict[str, str] = {"cpu": "kernelwright.evaluators.naive.judge:NaiveCpu"}
