"""Problems on sparse tensors whose format is a knob: an operand is there in several formats, and a
schedule says which of them is read.

    copies    one tensor in several formats: arrays of fixed sizes, packed and padded
    operand   a sparse operand: where its elements are, drawn until all copies have room
    build     what the problems share: options, definitions, counts
    library   SciPy's kernels for them
"""
