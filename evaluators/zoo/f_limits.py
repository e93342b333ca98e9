"""Family L: what a worker, and what builds for it, must withstand besides cheating.

These are no classes of the catalogue, because most of them gain nothing: they end, block, flood or
confuse whatever runs them. A judge must answer each of them and go on.
"""

from __future__ import annotations

from kernelwright.evaluators.zoo import (
    f1_processes,
    f2_time_and_memory,
    f3_files,
    f4_harness,
    f5_processor_state,
    f6_binary,
    f7_compile_time,
    f8_mappings,
)

EXPLOITS = (
    f1_processes.EXPLOIT,
    f2_time_and_memory.EXPLOIT,
    f3_files.EXPLOIT,
    f4_harness.EXPLOIT,
    f5_processor_state.EXPLOIT,
    f6_binary.EXPLOIT,
    f7_compile_time.EXPLOIT,
    f8_mappings.EXPLOIT,
)
