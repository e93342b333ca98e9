"""The ids of the environments, registered with strings that Gymnasium resolves when one is made.

The entry points name functions in ``configs``, because an environment needs a judge and judges sit
above this room.
"""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

KNOBS_ID = "kernelwright/Knobs-v0"
SCHEDULE_ID = "kernelwright/Schedule-v0"
DIRECTIVES_ID = "kernelwright/Directives-v0"
BUDGET = 64
_FACTORIES = "kernelwright.configs.environment"


def register_ids() -> None:
    """Register every id once; calling it again changes nothing."""
    # The environments check their own calls, and truncate themselves, so that `make` returns them
    # bare: `env.save` and other methods of theirs are then there without `unwrapped`.
    if KNOBS_ID not in registry:
        register(
            id=KNOBS_ID,
            entry_point=f"{_FACTORIES}:make_knobs",
            vector_entry_point=f"{_FACTORIES}:make_knobs_vector",
            order_enforce=False,
            disable_env_checker=True,
            kwargs={"budget": BUDGET},
        )
    if SCHEDULE_ID not in registry:
        register(
            id=SCHEDULE_ID,
            entry_point=f"{_FACTORIES}:make_schedule",
            order_enforce=False,
            disable_env_checker=True,
            kwargs={"budget": BUDGET},
        )
    if DIRECTIVES_ID not in registry:
        register(
            id=DIRECTIVES_ID,
            entry_point=f"{_FACTORIES}:make_schedule",
            order_enforce=False,
            disable_env_checker=True,
            kwargs={"budget": BUDGET, "actions": "all"},
        )
