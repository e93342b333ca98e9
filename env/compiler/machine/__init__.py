"""Analytic machine models: device tables in YAML, rooflines, and the GEMM model of a GPU."""
