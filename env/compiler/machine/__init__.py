"""Analytic machine models: device tables in YAML, rooflines, the GEMM model of a GPU, and the
loop-nest model of a CPU.
"""
