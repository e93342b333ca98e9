"""The ids of the environments, registered with strings that Gymnasium resolves when one is made.

The entry points name functions in ``configs``, because an environment needs a judge and judges sit
above this room.
"""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

KNOBS_ID = "kernelwright/Knobs-v0"
BUDGET = 64


def register_ids() -> None:
    """Register every id once; calling it again changes nothing."""
    if KNOBS_ID in registry:
        return
    # The environment checks its own calls, and truncates itself, so that `make` returns it bare:
    # `env.save` and other methods of
    # `KernelEnv` are then there without `unwrapped`.
    register(
        id=KNOBS_ID,
        entry_point="kernelwright.configs.environment:make_knobs",
        vector_entry_point="kernelwright.configs.environment:make_knobs_vector",
        order_enforce=False,
        disable_env_checker=True,
        kwargs={"budget": BUDGET},
    )
