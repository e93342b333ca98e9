"""Machine models: device tables in YAML, rooflines, the GEMM model of a GPU, the loop-nest model of
a CPU, and the cache simulator.
"""
