"""Back ends: LoopIR to text. ``c`` emits C with GCC vector types; ``names`` mints every generated
identifier.
"""
