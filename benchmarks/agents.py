"""The table of agents: what they promise about their record, about bad answers and cheats, and what
they gain and cost. Prints each row with its target and whether it is met.

    python benchmarks/agents.py [--only GROUP]…

All models are simulated. Times are CPU times, ratios within one run, or bounds.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import agent_costs
import agent_faults
import agent_gains
import agent_hybrid
import agent_novelty
import agent_records
from table import print_groups

MODULES = (agent_records, agent_faults, agent_gains, agent_hybrid, agent_novelty, agent_costs)
GROUPS = {name: group for module in MODULES for name, group in module.GROUPS.items()}

if __name__ == "__main__":
    print_groups(GROUPS, __doc__)
