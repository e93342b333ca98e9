"""Directives: typed arguments, a legality check, a rewrite, and a docstring with before and after.

A schedule is a tuple of `Directive`s: it prints as Python, goes to JSON and back, replays and
hashes. `DIRECTIVES` lists all; a directive is a function from a procedure, the name of a loop and
further arguments to a procedure.
"""

from __future__ import annotations

DIRECTIVES: dict[str, str] = {
    "split": "kernelwright.env.compiler.schedule.split:split",
    "fuse": "kernelwright.env.compiler.schedule.split:fuse",
    "reorder": "kernelwright.env.compiler.schedule.order:reorder",
    "tile": "kernelwright.env.compiler.schedule.order:tile",
    "unroll": "kernelwright.env.compiler.schedule.kind:unroll",
    "vectorize": "kernelwright.env.compiler.schedule.kind:vectorize",
    "parallel": "kernelwright.env.compiler.schedule.kind:parallel",
    "compute_root": "kernelwright.env.compiler.schedule.place:compute_root",
    "compute_inline": "kernelwright.env.compiler.schedule.place:compute_inline",
    "compute_at": "kernelwright.env.compiler.schedule.place:compute_at",
    "reverse_compute_at": "kernelwright.env.compiler.schedule.reverse:reverse_compute_at",
    "store_root": "kernelwright.env.compiler.schedule.store:store_root",
    "store_at": "kernelwright.env.compiler.schedule.store:store_at",
    "fold_storage": "kernelwright.env.compiler.schedule.fold:fold_storage",
}
