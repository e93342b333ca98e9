"""Programs over the formats of a sparse operand and the loops that follow from each: the format is
a categorical decision, and what may be decided then is what fits it.

`spmv` is for a sparse matrix times a vector, y(i) = A(i,j) * x(j):

    csr, dcsr, ell    a row's sum in a register, or in the lanes of one
    bcsr              the sums of a row of blocks in vectors, all blocks written out
    ellslots          neighbouring rows in lanes, whose places are neighbours in memory
    dia               neighbouring rows of a diagonal in lanes, several vectors together
    the others        as they are
"""

from __future__ import annotations

from kernelwright.env.compiler.sparse.named import format_text
from kernelwright.env.compiler.sparse.program import Program
from kernelwright.env.spaces.schedule.builder import InfeasibleError, TraceBuilder, plain_text

PLAIN, REGISTER, LANES = "plain", "register", "lanes"
WAYS = {
    "csr": (PLAIN, REGISTER, LANES),
    "dcsr": (PLAIN, REGISTER, LANES),
    "ell": (PLAIN, REGISTER, LANES),
    "ellslots": (PLAIN, LANES),
    "bcsr": (PLAIN, LANES),
    "dia": (PLAIN, LANES),
}
SUMS, ROWS, TOGETHER = (4, 8, 16), (4, 8, 16), (1, 2, 4)


def spmv(s: TraceBuilder) -> None:
    """Draw the format of A, then how its loops run.

    Raises:
        InfeasibleError: if A is no operand of a sparse statement with a choice of formats, or what
            was drawn is refused.
    """
    form = stored(s, "A")
    name = plain_text(form).partition("(")[0]
    outermost = {"csr": "i", "ell": "i", "bcsr": "io", "ellslots": "i"}.get(name)
    way = s.sample_categorical(WAYS.get(name, (PLAIN,)), name="loops")
    match name, way:
        case (("csr" | "dcsr" | "ell"), "register" | "lanes"):
            s.cache_write("y", "i", "register")
            if way == LANES:
                _in_lanes(s)
        case "bcsr", "lanes":
            s.rfactor("ji", "P", True)
            s.set_scope("P", "register")
            s.vectorize("ji")
            s.vectorize("ji_start")
            for loop in ("ji_final", "ii", "ii_start", "ii_final"):
                s.unroll(loop)
        case "ellslots", "lanes":
            s.vectorize("i", s.sample_categorical(ROWS, name="rows"))
            s.cache_write("y", "io", "register")
            s.vectorize("y_write_out0")
            outermost = "io"
        case "dia", "lanes":
            lanes = s.sample_categorical(ROWS, name="rows")
            together = s.sample_categorical(TOGETHER, name="together")
            s.split("i", lanes * together, "", "", "partition")
            s.vectorize("ii", lanes)
            if together > 1:
                s.unroll("iio")
    if s.threads > 1 and outermost is not None and s.legal("parallel", outermost):
        s.parallel(outermost)


def stored(s: TraceBuilder, tensor: str) -> str:
    """Draw the format in which an operand is read; the format as text.

    Raises:
        InfeasibleError: if there is no choice of formats.
    """
    origin = s.procedure.origin
    offered = dict(origin.choices).get(tensor, ()) if isinstance(origin, Program) else ()
    if not offered:
        raise InfeasibleError(f"expected formats of {tensor} to choose from, found none")
    texts = [format_text(form) for form, _ in offered]
    form: str = s.sample_categorical(texts, name=f"format_{tensor}")
    s.storage(tensor, form)
    return form


def _in_lanes(s: TraceBuilder) -> None:
    """As many sums of a row as there are lanes, added up at its end; what is left of a row beyond
    whole vectors goes by itself.
    """
    s.split("j", s.sample_categorical(SUMS, name="lanes"), "", "", "partition")
    s.rfactor("ji", "P", True)
    s.set_scope("P", "register")
    s.vectorize("ji")
    s.vectorize("ji_start")
    s.unroll("ji_final")
