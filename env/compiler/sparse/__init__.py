"""The sparse front end: index notation and a format for each tensor in, LoopIR out (Kjolstad,
Kamil, Chou, Lugato and Amarasinghe, The Tensor Algebra Compiler, OOPSLA 2017).

    notation     what is computed: y(i) = A(i,j) * x(j), from text (`parse`) or Python operators
    levels       how one dimension is stored; a kind a file
    format       a level kind for each dimension
    named        formats as text, by name or in words
    storage      a tensor in its format: arrays packed, listed and checked; NumPy
    scipy_matrices  matrices of scipy.sparse in and out
    concrete     foralls in an order, where and sequence: what directives rewrite
    lattice      which operands a loop merges, and what is left where some have ended
    lower        concrete notation into loops: statements; `iterate` (levels at a variable), `loops`
                 (of one iterator), `merge` (of several), `values`, `writes`
    assemble     a sparse target while it is written; `gather`, workspaces with lists; `shared`, the
                 structure of an operand
    run          a statement on tensors
    convert      a tensor in another format by generated loops; `stored`, loops over its elements,
                 `sorting`, the sorts between two orders
    directives   formats, loop order, workspaces, loops over positions, each checked
"""
