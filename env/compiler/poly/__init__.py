"""Polyhedral analysis over isl: what depends on what, whether another order of execution keeps it,
and the loops of that order.

``model`` turns a procedure into iteration domains, accesses and an order; ``dependence`` compares
orders and finds what a loop carries; ``region`` finds the box of a tensor that a statement touches;
``affine`` writes isl's expressions as LoopIR. Those are fast and cover what is not affine; they
serve the directives.

``exact`` finds the dependences of affine nests by kind; ``nest`` makes distances of them, ``bands``
says what these allow, ``legality`` which pair an order breaks. ``affine_map`` and ``unimodular``
hold the orders, ``scheduler`` finds one, ``generate`` writes its loops, with ``linear`` for their
expressions. ``points``, ``picture`` and ``forced`` look at iterations one by one.
"""
