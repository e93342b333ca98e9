"""The compiler: an hourglass around one loop IR. Start reading at ``pipeline.py``.

``ir`` (LoopIR: nodes, printer, verifier, interpreter, simplifier), ``poly`` (dependences and
legality over isl), ``schedule`` (directives), ``codegen`` (LoopIR to C), ``runtime`` (C to a
callable), ``machine`` (analytic models of the hardware). Front ends that lower to LoopIR are to
come; until then a procedure is built from its nodes.
"""
