"""Schedules of sparse kernels: sums in eight lanes, rows of results in registers, factors taken out
of inner sums, and what rows need next fetched ahead.
"""

SPMV_LANES = """
cache_write("y", "i", "register")
split("j", 8, "", "", "partition")
rfactor("ji", "P", True)
set_scope("P", "register")
vectorize("ji")
vectorize("ji_start")
unroll("ji_final")
"""
SPMM_ROWS = """
cache_write("C", "i", "register")
vectorize("j", 8)
unroll("jo")
vectorize("jz", 8)
unroll("jzo")
vectorize("C_write_out1", 8)
unroll("C_write_out1o")
"""
SDDMM_LANES = """
precompute("j", "X(i,k) * Y(j,k)")
{ahead}
split("k", 8)
rfactor("ki", "P", True)
set_scope("P", "register")
set_scope("w", "register")
unroll("ko")
vectorize("ki")
vectorize("ki_start")
unroll("ki_final")
"""
# What short rows read next is in other rows.
AHEAD_SHORT = """prefetch("Y", "i", 2)
unroll("k_ahead")
prefetch("X", "i", 2)
unroll("k_ahead2")"""
AHEAD_LONG = """prefetch("Y", "j", 8)
unroll("k_ahead")"""
MTTKRP_FACTORED = """
precompute("j", "T(i,j,k) * D(k,r)", "r")
set_scope("w", "register")
vectorize("r", 8)
unroll("ro")
vectorize("rz2", 8)
unroll("rz2o")
vectorize("r2", 8)
unroll("r2o")
"""
