"""LoopIR: loop nests over typed buffers. Every front end lowers to it, every back end reads it.

``nodes`` are the nouns; each other module is one verb: ``printer`` shows, ``verify`` checks,
``interpret`` runs (and is the meaning), ``simplify`` rewrites expressions, ``build`` makes
procedures with less typing.
"""
