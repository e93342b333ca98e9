"""Polyhedral analysis over isl: what depends on what, and whether another order of execution keeps
it.

``model`` turns a procedure into iteration domains, accesses and an order; ``dependence`` compares
orders and finds what a loop carries; ``region`` finds the box of a tensor that a statement touches;
``affine`` writes isl's expressions as LoopIR.
"""
