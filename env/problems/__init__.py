"""Problems by name. A problem is a function of keyword arguments (its shape, its dtype) that
returns a `Problem`.
"""

from __future__ import annotations

PROBLEMS: dict[str, str] = {
    "attention_gpu": "kernelwright.env.problems.attention_gpu:attention_gpu",
    "blur": "kernelwright.env.problems.blur:blur",
    "conv3x3": "kernelwright.env.problems.conv3x3:conv3x3",
    "gelu": "kernelwright.env.problems.gelu:gelu",
    "gemm_gpu": "kernelwright.env.problems.gemm_gpu:gemm_gpu",
    "histogram": "kernelwright.env.problems.histogram:histogram",
    "jacobi1d": "kernelwright.env.problems.jacobi1d:jacobi1d",
    "layer_norm": "kernelwright.env.problems.layer_norm:layer_norm",
    "matmul": "kernelwright.env.problems.matmul:matmul",
    "prefix_sum": "kernelwright.env.problems.prefix_sum:prefix_sum",
    "recorded_kernel": "kernelwright.env.problems.recorded_kernel:recorded_kernel",
    "row_sum": "kernelwright.env.problems.row_sum:row_sum",
    "softmax": "kernelwright.env.problems.softmax:softmax",
    "spmv": "kernelwright.env.problems.spmv:spmv",
    "transpose": "kernelwright.env.problems.transpose:transpose",
}
