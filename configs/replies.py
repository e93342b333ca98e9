"""What a run made of the faults that a simulated model injected."""

from __future__ import annotations

from typing import Any

from kernelwright.search.store import Store
from kernelwright.search.trial import MODEL_CALL


def simulated_in(*stores: Store) -> dict[str, Any] | None:
    """`agents.report.simulated` of the runs in these stores together, None if nothing was injected.

    Agents are imported only where a model was asked.
    """
    asked = [store for store in stores if _asked(store)]
    if not asked:
        return None
    from kernelwright.agents.report import simulated, together

    return together(simulated(store.events(), store.trials()) for store in asked)


def _asked(store: Store) -> bool:
    return any(event.kind == MODEL_CALL for event in store.events())
