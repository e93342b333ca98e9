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
    "prefetch": "kernelwright.env.compiler.schedule.memory:prefetch",
    "stream_store": "kernelwright.env.compiler.schedule.memory:stream_store",
    "unroll": "kernelwright.env.compiler.schedule.kind:unroll",
    "vectorize": "kernelwright.env.compiler.schedule.kind:vectorize",
    "parallel": "kernelwright.env.compiler.schedule.kind:parallel",
}
