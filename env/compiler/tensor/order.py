"""The tensors of a pipeline in program order, and the names of extents and loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelwright.env.compiler.ir.nodes import Expr
from kernelwright.env.compiler.poly.demand import Box
from kernelwright.env.compiler.tensor.domain import Extent, free_extents
from kernelwright.env.compiler.tensor.expression import TensorError
from kernelwright.env.compiler.tensor.func import Func, Realization
from kernelwright.env.compiler.tensor.stage import Indexed, Placeholder, Stage

Computed = Stage | Func
Output = Stage | Realization


def in_order(name: str, outputs: Sequence[Output]) -> list[Indexed]:
    """Every tensor after those that it reads, each once.

    Raises:
        TensorError: if an output is none, or given twice, or a tensor reads itself through others.
    """
    roots: list[Indexed] = []
    for output in outputs:
        if isinstance(output, Func):
            found = f"{output!r}; give it a region, as in {output.name}.realize(64, 64)"
            raise TensorError(f"expected computed outputs, found {found}")
        if not isinstance(output, Output):
            raise TensorError(f"expected computed outputs, found {output!r:.80}")
        root = output if isinstance(output, Stage) else output.func
        if any(root is other for other in roots):
            raise TensorError(f"{name}: expected each output once, found {root.name} twice")
        roots.append(root)
    if not roots:
        raise TensorError("expected at least one output")
    done: dict[int, Indexed] = {}
    open_tensors: dict[int, Indexed] = {}
    waiting: list[tuple[Indexed | None, Iterator[Indexed]]] = [(None, iter(roots))]
    # Written out, as pipelines may be deeper than Python's stack.
    while waiting:
        tensor, below = waiting[-1]
        following = next(below, None)
        if following is None:
            waiting.pop()
            if tensor is not None:
                done[id(tensor)] = tensor
                del open_tensors[id(tensor)]
        elif id(following) in open_tensors:
            chain = [t.name for t in open_tensors.values()]
            chain = [*chain[chain.index(following.name) :], following.name]
            found = " reads ".join(chain)
            raise TensorError(f"{name}: expected no tensor that reads itself, found {found}")
        elif id(following) not in done:
            open_tensors[id(following)] = following
            waiting.append((following, iter(_read(following))))
    return list(done.values())


def _read(tensor: Indexed) -> list[Indexed]:
    if isinstance(tensor, Func) and not tensor.definitions:
        raise TensorError(f"{tensor.name}: expected a definition, found none")
    sources = tensor.sources if isinstance(tensor, Computed) else ()
    return [source for source in sources if isinstance(source, Indexed)]


def check_names(name: str, tensors: Sequence[Indexed]) -> None:
    """See that tensors have distinct names.

    Raises:
        TensorError: if two have one.
    """
    seen: set[str] = set()
    for tensor in tensors:
        if tensor.name in seen:
            raise TensorError(f"{name}: expected distinct names, found two tensors {tensor.name!r}")
        seen.add(tensor.name)


def extents_of(tensors: Sequence[Indexed], given: dict[int, Box]) -> tuple[str, ...]:
    """The extents by name: first those of shapes, in their order, then those of domains and
    expressions.
    """
    found: dict[str, None] = {}

    def add(*sizes: Expr) -> None:
        found.update(dict.fromkeys(n for size in sizes for n in free_extents(size)))

    for tensor in tensors:
        if isinstance(tensor, Placeholder | Stage):
            add(*tensor.shape, *tensor.low)
        elif id(tensor) in given:
            add(*given[id(tensor)].extent, *given[id(tensor)].low)
    for tensor in tensors:
        if isinstance(tensor, Computed):
            for definition in tensor.definitions:
                add(*(size for axis in definition.axes for size in (axis.extent, axis.low)))
            found.update(dict.fromkeys(s.name for s in tensor.sources if isinstance(s, Extent)))
    return tuple(found)


LoopNames = dict[tuple[int, int], dict[str, str]]


def loop_names(
    tensors: Sequence[Indexed], computed: Sequence[Computed], extents: tuple[str, ...]
) -> LoopNames:
    """A name of its own for every loop, by tensor and number of definition: the variable's, with
    the tensor's in front where it is taken.

    Raises:
        TensorError: if a variable has the name of an extent, or of another of its definition.
    """
    taken = {*extents, *(tensor.name for tensor in tensors)}

    def fresh(wanted: str, stage: str) -> str:
        name = wanted if wanted not in taken else f"{stage}_{wanted}"
        number = 2
        while name in taken:
            name, number = f"{stage}_{wanted}{number}", number + 1
        taken.add(name)
        return name

    found: LoopNames = {}
    for tensor in computed:
        numbered = sorted(enumerate(tensor.definitions), key=lambda each: each[1].suffix != "")
        for number, definition in numbered:
            variables = (*definition.pure, *(axis.name for axis in definition.axes))
            _check_variables(tensor, variables)
            own = {axis.name for axis in definition.axes if axis.own_name}
            names = {
                v: fresh(v if v in own else v + definition.suffix, tensor.name) for v in variables
            }
            found[id(tensor), number] = names
    return found


def _check_variables(tensor: Computed, variables: tuple[str, ...]) -> None:
    known = {source.name for source in tensor.sources if isinstance(source, Extent)}
    for number, variable in enumerate(variables):
        if variable in known or variable in variables[:number]:
            what = "an extent" if variable in known else "another"
            raise TensorError(
                f"{tensor.name}: expected a variable with a name of its own, found {variable!r} "
                f"beside {what} of that name"
            )
