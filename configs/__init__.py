"""Campaign files: their schema, the shipped ones, and the one place that turns names into objects.

``tree.py`` reads YAML with line numbers, ``schema.py`` says what is legal, ``resolve.py`` finds
what a name stands for, ``build.py`` joins it all into a plan, ``api.py`` runs it.
"""
