"""The noise laboratory: what rules claim where the truth is known.

Kernels are simulated (on noise models, or on recorded traces of identical kernels on this machine)
or real, and their true speedups are planted. A rule, ours or anyone's, gets kernels to time and
says which is faster; the laboratory counts what it got wrong.
"""
