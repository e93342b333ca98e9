"""Problems by name. A problem is a function of keyword arguments (its shape, its dtype) that
returns a `Problem`.
"""

from __future__ import annotations

PROBLEMS: dict[str, str] = {"gemm_gpu": "kernelwright.env.problems.gemm_gpu:gemm_gpu"}
