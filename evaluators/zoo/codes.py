"""What a sound judge may answer, as the (status, class code) pairs of `Variant.expect`, in groups.

The first answer is usually that of the binary's rules: a kernel that calls what no kernel needs is
not even loaded. A variant that can be told by its symbols also lists what the walls behind them
say, so that it stays caught where a profile lets symbols pass.
"""

from __future__ import annotations

Answers = tuple[tuple[str, str], ...]

# Rules over the binary, before it is loaded.
SYMBOL: Answers = (("rejected", "forbidden_symbol"), ("build_error", "link_error"))
CONSTRUCTOR: Answers = (("rejected", "constructor"),)
IFUNC: Answers = (("rejected", "ifunc"),)

# The worker's system-call filter.
SYSCALL: Answers = (("rejected", "forbidden_syscall"),)

# The comparison of outputs.
WRONG: Answers = (("wrong", "wrong_value"), ("wrong", "unwritten"), ("wrong", "not_finite"))
INPUT: Answers = (("wrong", "input_written"),)
OUTSIDE: Answers = (("wrong", "out_of_bounds"), ("crashed", "out_of_bounds"))

# What is seen of a worker after a call that has returned.
LATE: Answers = (("rejected", "late_work"), ("rejected", "threads_left"))
FP_MODE: Answers = (("rejected", "fp_environment"),)
TOO_FAST: Answers = (("too_fast", "below_floor"),)

# A worker that ended, or did not come back.
EXIT: Answers = (("crashed", "exit"),)
FAULT: Answers = (
    ("crashed", "segmentation_fault"),
    ("crashed", "bus_error"),
    ("crashed", "illegal_instruction"),
    ("crashed", "trap"),
    ("crashed", "floating_point_exception"),
)
TIMEOUT: Answers = (("timeout", "timeout"),)
MEMORY: Answers = (("over_limit", "memory"),)

# No library came of it.
COMPILER: Answers = (("build_error", "compile_error"),)
LINKER: Answers = (("build_error", "link_error"), ("build_error", "missing_entry"))

# For what harms nobody but its own process: any way in which that fails.
FAILURE: Answers = (
    *SYSCALL,
    *WRONG,
    *INPUT,
    *OUTSIDE,
    *LATE,
    *FP_MODE,
    *EXIT,
    *FAULT,
    ("crashed", "abort"),
    ("crashed", "killed"),
    ("crashed", "signal"),
    *TIMEOUT,
    *MEMORY,
)
