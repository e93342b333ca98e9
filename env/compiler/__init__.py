"""The compiler. Its first room is ``machine``: analytic models of the hardware that kernels run
on.
"""
