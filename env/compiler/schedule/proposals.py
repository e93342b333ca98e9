"""What one may try next: for every directive the ones that might follow a procedure, by its loops
and tensors alone; of a front end's directives what its statement proposes.

Nothing here is proved: a proposal is well formed and names what is there, and the directive itself
says whether it is legal. `PROPOSALS` has a row for every directive; searches that walk from
schedule to schedule, and audits that try whatever there is, draw from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

from kernelwright.env.compiler.ir.nodes import (
    BLOCK_KINDS,
    THREAD_KINDS,
    Allocate,
    Block,
    Const,
    For,
    If,
    Procedure,
    Stmt,
    Tensor,
    loops,
    statements,
)
from kernelwright.env.compiler.ir.path import next_inside
from kernelwright.env.compiler.ir.queries import loads, stores, temporaries, tensors_of
from kernelwright.env.compiler.schedule import FRONT_END_DIRECTIVES
from kernelwright.env.compiler.schedule.edit import constant_extent
from kernelwright.env.compiler.schedule.instructions import INSTRUCTIONS
from kernelwright.env.compiler.schedule.kind import LANES, MAX_UNROLL
from kernelwright.env.types import Directive, Scalar

SPLITS = (2, 3, 4, 5, 8, 16, 32, 64)
FEW = (2, 4)
SCOPES = ("auto", "stack", "heap", "register")
Proposals = Iterator[Directive]


def proposals(procedure: Procedure, op: str) -> Proposals:
    """The directives of one kind that might follow, in a fixed order.

    Raises:
        KeyError: if there is no such directive.
    """
    if op in FRONT_END_DIRECTIVES:
        offered = () if procedure.origin is None else procedure.origin.proposals()
        return iter([each for each in offered if each.op == op])
    return PROPOSALS[op](procedure)


def _tensors(procedure: Procedure, *roles: str) -> list[Tensor]:
    found = [t for t in procedure.tensors if t.role in roles]
    if "temporary" in roles:
        found += temporaries(procedure.body)
    return found


def _each_loop(op: str, *variants: tuple[Scalar, ...]) -> Callable[[Procedure], Proposals]:
    """A directive about one loop, with each of some further arguments."""

    def rows(procedure: Procedure) -> Proposals:
        for loop in loops(procedure):
            for arguments in variants or ((),):
                yield Directive(op, loop.var, arguments)

    return rows


def _each_temporary(op: str, *variants: tuple[Scalar, ...]) -> Callable[[Procedure], Proposals]:
    """A directive about one temporary, with each of some further arguments."""

    def rows(procedure: Procedure) -> Proposals:
        for tensor in temporaries(procedure.body):
            for arguments in variants or ((),):
                yield Directive(op, tensor.name, arguments)

    return rows


def _split(procedure: Procedure) -> Proposals:
    for loop in loops(procedure):
        extent = constant_extent(loop)
        for factor in SPLITS:
            if extent is None or factor < extent:
                yield Directive("split", loop.var, (factor,))
                for tail in ("shift_inwards", "round_up"):
                    yield Directive("split", loop.var, (factor, "", "", tail))


def _next_loop(op: str, *variants: tuple[Scalar, ...]) -> Callable[[Procedure], Proposals]:
    """A directive about a loop and the next one inside."""

    def rows(procedure: Procedure) -> Proposals:
        for loop in loops(procedure):
            inner = next_inside(loop)
            if inner is not None:
                for arguments in variants or ((),):
                    yield Directive(op, loop.var, (inner.var, *arguments))

    return rows


def _reorder(procedure: Procedure) -> Proposals:
    for loop in loops(procedure):
        chain = [loop]
        while len(chain) < 3 and (inner := next_inside(chain[-1])) is not None:
            chain.append(inner)
        names = [each.var for each in chain]
        for count in range(2, len(names) + 1):
            for order in permutations(names[:count]):
                if order[0] != names[0]:
                    yield Directive("reorder", order[0], order[1:])


def _unimodular(procedure: Procedure) -> Proposals:
    for loop in loops(procedure):
        inner = next_inside(loop)
        if inner is not None:
            for matrix in ((0, 1, 1, 0), (1, 0, 1, 1), (1, 1, 1, 0), (1, 0, 0, -1), (2, 1, 1, 1)):
                yield Directive("unimodular", loop.var, (inner.var, *matrix))


def _unroll(procedure: Procedure) -> Proposals:
    for loop in loops(procedure):
        if (constant_extent(loop) or MAX_UNROLL + 1) <= MAX_UNROLL:
            yield Directive("unroll", loop.var)
        for factor in FEW:
            yield Directive("unroll", loop.var, (factor,))


def _vectorize(procedure: Procedure) -> Proposals:
    for loop in loops(procedure):
        if constant_extent(loop) in LANES:
            yield Directive("vectorize", loop.var)
        for lanes in (4, 8, 16):
            yield Directive("vectorize", loop.var, (lanes,))


def _fission(procedure: Procedure) -> Proposals:
    for loop in loops(procedure):
        for place in range(1, _length(loop.body)):
            yield Directive("fission", loop.var, (place,))


def _length(body: Stmt) -> int:
    """How many statements a body has, below guards and allocations."""
    while isinstance(body, If | Allocate):
        body = body.then if isinstance(body, If) else body.body
    return len(body.body) if isinstance(body, Block) else 1


def _merge(procedure: Procedure) -> Proposals:
    for block in statements(procedure.body):
        if isinstance(block, Block):
            for first, second in zip(block.body, block.body[1:], strict=False):
                if isinstance(first, For) and isinstance(second, For):
                    yield Directive("merge", first.var, (second.var,))


def _specialize(procedure: Procedure) -> Proposals:
    for extent in procedure.extents:
        for condition in (f"{extent} % 8 == 0", f"{extent} == 64"):
            yield Directive("specialize", condition)
            for loop in loops(procedure):
                yield Directive("specialize", condition, (loop.var,))


def _rename(procedure: Procedure) -> Proposals:
    for loop in loops(procedure):
        yield Directive("rename", loop.var, (f"{loop.var}_again",))


def _add_unit_loop(procedure: Procedure) -> Proposals:
    for loop in loops(procedure):
        yield Directive("add_unit_loop", loop.var, (f"{loop.var}_unit",))


def _at_loops(op: str, *roles: str) -> Callable[[Procedure], Proposals]:
    """A directive that puts what it does to a tensor into a loop."""

    def rows(procedure: Procedure) -> Proposals:
        for tensor in _tensors(procedure, *roles):
            for loop in loops(procedure):
                yield Directive(op, tensor.name, (loop.var,))

    return rows


def _touched(loop: For) -> set[str]:
    """The tensors that a loop reads or writes."""
    return set().union(*(tensors_of(store) for store in stores(loop.body)))


def _cache(op: str, *roles: str) -> Callable[[Procedure], Proposals]:
    def rows(procedure: Procedure) -> Proposals:
        for tensor in _tensors(procedure, *roles):
            yield Directive(op, tensor.name)
            for loop in loops(procedure):
                if tensor.name in _touched(loop):
                    for scope in SCOPES:
                        yield Directive(op, tensor.name, (loop.var, scope))

    return rows


def _scalar_replacement(procedure: Procedure) -> Proposals:
    for tensor in _tensors(procedure, "input", "output", "temporary"):
        for loop in loops(procedure):
            if tensor.name in _touched(loop):
                yield Directive("scalar_replacement", tensor.name, (loop.var,))


def _prefetch(procedure: Procedure) -> Proposals:
    for tensor in _tensors(procedure, "input", "output", "temporary"):
        for loop in loops(procedure):
            if tensor.name in _touched(loop):
                for distance in (1, 4):
                    yield Directive("prefetch", tensor.name, (loop.var, distance))


def _pack(procedure: Procedure) -> Proposals:
    for tensor in _tensors(procedure, "input", "output", "temporary"):
        axes = [f"a{n}" for n in range(len(tensor.shape))]
        before = " ".join(axes)
        for width in (4, 16):
            for axis in axes:
                kept = " ".join(f"{each}/{width}" if each == axis else each for each in axes)
                yield Directive("pack", tensor.name, (f"{before} -> {kept} {axis}%{width}",))
        if len(axes) > 1:
            yield Directive("pack", tensor.name, (f"{before} -> {' '.join(reversed(axes))}",))


def _axes(op: str, *variants: tuple[Scalar, ...]) -> Callable[[Procedure], Proposals]:
    """A directive about an axis of a temporary."""

    def rows(procedure: Procedure) -> Proposals:
        for tensor in temporaries(procedure.body):
            for axis in range(len(tensor.shape)):
                for arguments in variants:
                    yield Directive(op, tensor.name, (axis, *arguments))

    return rows


def _fold_storage(procedure: Procedure) -> Proposals:
    """Of what is written and read in one loop; elements of nothing else make room in time."""
    shared = set()
    for loop in loops(procedure):
        written = {store.tensor for store in stores(loop.body)}
        shared |= written & _read(loop)
    for proposed in _axes("fold_storage", (), (4,))(procedure):
        if proposed.target in shared:
            yield proposed


def _read(loop: For) -> set[str]:
    """The tensors that a loop reads."""
    return {load.tensor for load in loads(loop.body)}


def _bound_storage(procedure: Procedure) -> Proposals:
    for tensor in temporaries(procedure.body):
        for axis, extent in enumerate(tensor.shape):
            if isinstance(extent, Const) and int(extent.value) > 1:
                for fewer in (1, int(extent.value) // 2):
                    wanted = int(extent.value) - fewer
                    yield Directive("bound_storage", tensor.name, (axis, wanted))


def _reorder_storage(procedure: Procedure) -> Proposals:
    for tensor in temporaries(procedure.body):
        for order in permutations(range(len(tensor.shape))):
            if list(order) != sorted(order):
                yield Directive("reorder_storage", tensor.name, order)


def _bind(procedure: Procedure) -> Proposals:
    for loop in loops(procedure):
        for kind in (*BLOCK_KINDS[:2], *THREAD_KINDS[:2]):
            yield Directive("bind", loop.var, (str(kind),))
        yield Directive("bind", loop.var, ("vthread",))


def _tensorize(procedure: Procedure) -> Proposals:
    for loop in loops(procedure):
        for instruction in INSTRUCTIONS:
            yield Directive("tensorize", loop.var, (instruction,))


def _rfactor(procedure: Procedure) -> Proposals:
    for loop in loops(procedure):
        yield Directive("rfactor", loop.var, ("", True))


def _decompose(procedure: Procedure) -> Proposals:
    for tensor in _tensors(procedure, "output", "temporary"):
        yield Directive("decompose_reduction", tensor.name)
        for loop in loops(procedure):
            yield Directive("decompose_reduction", tensor.name, (loop.var,))


def _reassociate(procedure: Procedure) -> Proposals:
    for tensor in _tensors(procedure, "output", "temporary"):
        yield Directive("reassociate", tensor.name)


def _stream_store(procedure: Procedure) -> Proposals:
    for tensor in _tensors(procedure, "output"):
        yield Directive("stream_store", tensor.name)


def _bound(procedure: Procedure) -> Proposals:
    for extent in procedure.extents:
        for loop in loops(procedure):
            for multiple in (4, 8):
                yield Directive("bound", loop.var, (extent, multiple))


PROPOSALS: dict[str, Callable[[Procedure], Proposals]] = {
    "add_unit_loop": _add_unit_loop,
    "affine": _each_loop("affine", (), (4,), (8, "smartfuse", True), (0, "nofuse")),
    "barrier": _each_loop("barrier", (), ("after",)),
    "bind": _bind,
    "bound": _bound,
    "bound_storage": _bound_storage,
    "cache_read": _cache("cache_read", "input", "temporary"),
    "cache_write": _cache("cache_write", "output", "temporary"),
    "compute_at": _at_loops("compute_at", "temporary"),
    "compute_inline": _each_temporary("compute_inline"),
    "compute_root": _each_temporary("compute_root"),
    "decompose_reduction": _decompose,
    "fission": _fission,
    "fold_storage": _fold_storage,
    "fuse": _next_loop("fuse"),
    "merge": _merge,
    "pack": _pack,
    "pad": _axes("pad", (4,), (16,)),
    "parallel": _each_loop("parallel"),
    "partition": _each_loop("partition"),
    "peel": _each_loop("peel", (1,), (0, 1), (2, 1)),
    "prefetch": _prefetch,
    "reassociate": _reassociate,
    "rename": _rename,
    "reorder": _reorder,
    "reorder_storage": _reorder_storage,
    "reverse": _each_loop("reverse"),
    "reverse_compute_at": _at_loops("reverse_compute_at", "output", "temporary"),
    "rfactor": _rfactor,
    "scalar_replacement": _scalar_replacement,
    "set_scope": _each_temporary("set_scope", ("stack",), ("heap",), ("register",)),
    "skew": _next_loop("skew", (1,), (2,), (-1,)),
    "software_pipeline": _each_loop("software_pipeline", (), (3,)),
    "specialize": _specialize,
    "split": _split,
    "storage_align": _axes("storage_align", (16,), (64, 8)),
    "store_at": _at_loops("store_at", "temporary"),
    "store_root": _each_temporary("store_root"),
    "stream_store": _stream_store,
    "tensorize": _tensorize,
    "tile": _next_loop("tile", (2, 4), (8, 16), (4, 8, "shift_inwards")),
    "unimodular": _unimodular,
    "unroll": _unroll,
    "unroll_and_jam": _each_loop("unroll_and_jam", (2,), (4,)),
    "vectorize": _vectorize,
    "wavefront": _next_loop("wavefront"),
}
