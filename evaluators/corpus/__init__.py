"""The correctness corpus: C kernels that a sound judge must pass, and some that it must refuse.

``honest`` reads kernels as people and models write them; ``mutants`` are wrong ones, made by
textual operators (`mutation`) or by hand (``wrong/``); ``impostors`` are outputs that need no
computing, none of which a problem may let pass. ``witness`` runs a kernel without any judge, on the
inputs of ``draws``; ``proof`` shows so that honest kernels are right and mutants wrong. ``audit``
asks a judge about all of them and counts.
"""
