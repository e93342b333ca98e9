"""Reference figures: what the lectures quote, recomputed from this project's own machinery.

One module a section of the list: ``gemm_space`` (A), ``autotuning`` (B), ``polyhedral`` (C but
its cache misses, and H4), ``time_tiling`` (C2 and C3), ``halide`` (D), ``te_schedules`` (F),
``sparse_storage`` (G and H5), ``padding`` (H3).
`SECTIONS` names the functions that compute them.
"""

from __future__ import annotations

SECTIONS: tuple[str, ...] = (
    "kernelwright.search.figures.gemm_space:gemm_space",
    "kernelwright.search.figures.autotuning:autotuning",
    "kernelwright.search.figures.polyhedral:polyhedral",
    "kernelwright.search.figures.time_tiling:time_tiling",
    "kernelwright.search.figures.halide:halide",
    "kernelwright.search.figures.te_schedules:te_schedules",
    "kernelwright.search.figures.sparse_storage:sparse_storage",
    "kernelwright.search.figures.padding:padding",
)
