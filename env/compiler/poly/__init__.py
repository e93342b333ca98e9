"""Polyhedral analysis over isl: what depends on what, and whether another order of execution keeps
it.

``model`` turns a procedure into iteration domains, accesses and an order; ``dependence`` compares
orders and finds what a loop carries.
"""
