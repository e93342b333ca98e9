"""The compiler: an hourglass around one loop IR. Start reading at ``pipeline.py``.

``tensor`` (the front end), ``ir`` (LoopIR: nodes, printer, verifier, interpreter, simplifier),
``poly`` (dependences and legality over isl), ``schedule`` (directives), ``codegen`` (LoopIR to C),
``runtime`` (C to a callable), ``machine`` (analytic models of the hardware).
"""
