"""Directives: typed arguments, a legality check, a rewrite, and a docstring with before and after.

A schedule is a tuple of `Directive`s: it prints as Python, goes to JSON and back, replays and
hashes. `DIRECTIVES` lists those on loops: a directive is a function from a procedure, the name of a
loop and further arguments to a procedure. `FRONT_END_DIRECTIVES` are about the statement that the
procedure was just lowered from, its origin, which they take in the place of the procedure; so they
come before those on loops.
"""

from __future__ import annotations

DIRECTIVES: dict[str, str] = {
    "split": "kernelwright.env.compiler.schedule.split:split",
    "fuse": "kernelwright.env.compiler.schedule.split:fuse",
    "reorder": "kernelwright.env.compiler.schedule.order:reorder",
    "tile": "kernelwright.env.compiler.schedule.order:tile",
    "affine": "kernelwright.env.compiler.schedule.affine:affine",
    "skew": "kernelwright.env.compiler.schedule.skew:skew",
    "unimodular": "kernelwright.env.compiler.schedule.unimodular:unimodular",
    "wavefront": "kernelwright.env.compiler.schedule.unimodular:wavefront",
    "reverse": "kernelwright.env.compiler.schedule.order:reverse",
    "fission": "kernelwright.env.compiler.schedule.distribute:fission",
    "merge": "kernelwright.env.compiler.schedule.distribute:merge",
    "peel": "kernelwright.env.compiler.schedule.partition:peel",
    "partition": "kernelwright.env.compiler.schedule.partition:partition",
    "specialize": "kernelwright.env.compiler.schedule.specialize:specialize",
    "unroll_and_jam": "kernelwright.env.compiler.schedule.jam:unroll_and_jam",
    "software_pipeline": "kernelwright.env.compiler.schedule.pipelined:software_pipeline",
    "rename": "kernelwright.env.compiler.schedule.single:rename",
    "add_unit_loop": "kernelwright.env.compiler.schedule.single:add_unit_loop",
    "prefetch": "kernelwright.env.compiler.schedule.prefetch:prefetch",
    "stream_store": "kernelwright.env.compiler.schedule.stream_store:stream_store",
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
    "bind": "kernelwright.env.compiler.schedule.bind:bind",
    "barrier": "kernelwright.env.compiler.schedule.bind:barrier",
    "tensorize": "kernelwright.env.compiler.schedule.tensorize:tensorize",
    "reassociate": "kernelwright.env.compiler.schedule.reassociate:reassociate",
    "rfactor": "kernelwright.env.compiler.schedule.rfactor:rfactor",
    "decompose_reduction": "kernelwright.env.compiler.schedule.decompose:decompose_reduction",
    "cache_read": "kernelwright.env.compiler.schedule.cache:cache_read",
    "cache_write": "kernelwright.env.compiler.schedule.cache:cache_write",
    "scalar_replacement": "kernelwright.env.compiler.schedule.cache:scalar_replacement",
    "pack": "kernelwright.env.compiler.schedule.storage:pack",
    "reorder_storage": "kernelwright.env.compiler.schedule.storage:reorder_storage",
    "storage_align": "kernelwright.env.compiler.schedule.storage:storage_align",
    "set_scope": "kernelwright.env.compiler.schedule.storage:set_scope",
    "bound_storage": "kernelwright.env.compiler.schedule.storage:bound_storage",
    "pad": "kernelwright.env.compiler.schedule.pad:pad",
    "bound": "kernelwright.env.compiler.schedule.bound:bound",
}

# From a procedure's origin, a name in it and further arguments to the procedure of another origin.
FRONT_END_DIRECTIVES: dict[str, str] = {
    name: f"kernelwright.env.compiler.sparse.directives:{name}"
    for name in (
        "storage",
        "order",
        "workspace",
        "precompute",
        "split_coordinates",
        "split_nonzeros",
    )
}


def known_directives() -> dict[str, str]:
    """Every directive with the place of its function, those of front ends last."""
    return {**DIRECTIVES, **FRONT_END_DIRECTIVES}


# What those on loops are for; every directive is in one group.
GROUPS: dict[str, tuple[str, ...]] = {
    "order of loops": (
        "split",
        "fuse",
        "reorder",
        "tile",
        "skew",
        "unimodular",
        "wavefront",
        "affine",
        "reverse",
        "fission",
        "merge",
        "rename",
        "add_unit_loop",
    ),
    "how iterations run": ("unroll", "vectorize", "parallel", "bind", "barrier"),
    "code of a loop": (
        "unroll_and_jam",
        "software_pipeline",
        "peel",
        "partition",
        "specialize",
        "bound",
        "tensorize",
    ),
    "where stages are computed and kept": (
        "compute_root",
        "compute_inline",
        "compute_at",
        "reverse_compute_at",
        "store_root",
        "store_at",
        "fold_storage",
    ),
    "copies and traffic": (
        "cache_read",
        "cache_write",
        "scalar_replacement",
        "prefetch",
        "stream_store",
    ),
    "layout of memory": (
        "pack",
        "reorder_storage",
        "storage_align",
        "pad",
        "bound_storage",
        "set_scope",
    ),
    "reductions": ("reassociate", "rfactor", "decompose_reduction"),
}
