"""The table of the compiler: what its schedules mean, what it refuses, what it costs, and how fast
the code of named schedules is. Prints each row with its target and whether it is met.

    python benchmarks/compiler.py [--only GROUP]…

Times of code are medians of interleaved pairs on one thread, as ratios within one run.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import compiler_evidence
import compiler_facts
import compiler_named
import compiler_orders
import compiler_random
import compiler_times
from table import print_groups

MODULES = (
    compiler_facts,
    compiler_orders,
    compiler_evidence,
    compiler_random,
    compiler_times,
    compiler_named,
)
GROUPS = {name: group for module in MODULES for name, group in module.GROUPS.items()}

if __name__ == "__main__":
    print_groups(GROUPS, __doc__)
