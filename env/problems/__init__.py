"""Problems by name. A problem is a function of keyword arguments (its shape, its dtype) that
returns a `Problem`.
"""

from __future__ import annotations

PROBLEMS: dict[str, str] = {
    "attention_gpu": "kernelwright.env.problems.attention_gpu:attention_gpu",
    "batched_matmul": "kernelwright.env.problems.batched_matmul:batched_matmul",
    "block_scores": "kernelwright.env.problems.sparse.block_scores:block_scores",
    "blur": "kernelwright.env.problems.blur:blur",
    "box4": "kernelwright.env.problems.box4:box4",
    "column_sum": "kernelwright.env.problems.column_sum:column_sum",
    "conv2d_nchw": "kernelwright.env.problems.conv2d:conv2d_nchw",
    "conv2d_nhwc": "kernelwright.env.problems.conv2d:conv2d_nhwc",
    "conv3x3": "kernelwright.env.problems.conv3x3:conv3x3",
    "depthwise": "kernelwright.env.problems.conv2d:depthwise",
    "gauss_seidel": "kernelwright.env.problems.gauss_seidel:gauss_seidel",
    "gelu": "kernelwright.env.problems.gelu:gelu",
    "gemm_gpu": "kernelwright.env.problems.gemm_gpu:gemm_gpu",
    "histogram": "kernelwright.env.problems.histogram:histogram",
    "jacobi1d": "kernelwright.env.problems.jacobi1d:jacobi1d",
    "jacobi2d": "kernelwright.env.problems.jacobi2d:jacobi2d",
    "layer_norm": "kernelwright.env.problems.layer_norm:layer_norm",
    "matmul": "kernelwright.env.problems.matmul:matmul",
    "moe_matmul": "kernelwright.env.problems.sparse.moe_matmul:moe_matmul",
    "mttkrp": "kernelwright.env.problems.sparse.mttkrp:mttkrp",
    "paged_scores": "kernelwright.env.problems.sparse.paged_scores:paged_scores",
    "prefix_sum": "kernelwright.env.problems.prefix_sum:prefix_sum",
    "pyramid": "kernelwright.env.problems.pyramid:pyramid",
    "recorded_kernel": "kernelwright.env.problems.recorded_kernel:recorded_kernel",
    "row_sum": "kernelwright.env.problems.row_sum:row_sum",
    "sddmm": "kernelwright.env.problems.sparse.sddmm:sddmm",
    "softmax": "kernelwright.env.problems.softmax:softmax",
    "spadd": "kernelwright.env.problems.sparse.spadd:spadd",
    "sparse_mul": "kernelwright.env.problems.sparse.sparse_mul:sparse_mul",
    "spgemm": "kernelwright.env.problems.sparse.spgemm:spgemm",
    "spmm": "kernelwright.env.problems.sparse.spmm:spmm",
    "spmv": "kernelwright.env.problems.spmv:spmv",
    "spmv_formats": "kernelwright.env.problems.sparse.spmv:spmv_formats",
    "transpose": "kernelwright.env.problems.transpose:transpose",
    "ttv": "kernelwright.env.problems.sparse.ttv:ttv",
    "unsharp": "kernelwright.env.problems.unsharp:unsharp",
}
