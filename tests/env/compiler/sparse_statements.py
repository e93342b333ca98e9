"""Statements over tensors in formats, their meaning by dense arithmetic, and how each turns out."""

from __future__ import annotations

import numpy as np

from kernelwright.env.compiler.sparse import notation as n
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.parse import parse
from kernelwright.env.compiler.sparse.program import SparseError
from kernelwright.env.compiler.sparse.run import evaluate
from kernelwright.env.compiler.sparse.storage import SparseTensor, from_dense, pack


def monomials(node):
    """The expression multiplied out: a factor and the accesses of each product."""
    match node:
        case n.Literal(value):
            return [(value, ())]
        case n.Access():
            return [(1.0, (node,))]
        case n.Neg(inner):
            return [(-factor, found) for factor, found in monomials(inner)]
        case n.Add(left, right):
            return monomials(left) + monomials(right)
        case n.Sub(left, right):
            return monomials(left) + monomials(n.Neg(right))
        case n.Mul(left, right):
            return [
                (first * second, ours + theirs)
                for first, ours in monomials(left)
                for second, theirs in monomials(right)
            ]


def meaning(statement, arrays):
    """The target by dense arithmetic: each product summed over what the target lacks."""
    assignment = parse(statement) if isinstance(statement, str) else statement
    sizes = n.extents(assignment, {name: array.shape for name, array in arrays.items()})
    kept = assignment.target.indices
    letters = {variable: chr(97 + at) for at, variable in enumerate(sizes)}
    total = np.zeros([sizes[v] for v in kept])
    for factor, found in monomials(assignment.expression):
        own = {v for access in found for v in access.indices}
        left = [v for v in kept if v in own]
        terms = ",".join("".join(letters[v] for v in access.indices) for access in found)
        value = np.float64(1.0)
        if found:
            operands = [arrays[access.tensor].astype(float) for access in found]
            value = np.einsum(f"{terms}->{''.join(letters[v] for v in left)}", *operands)
        shape = [sizes[v] if v in own else 1 for v in kept]
        total = total + factor * np.reshape(value, shape)
    return total


def random_array(rng, shape, form, density=0.35, dtype=np.float64):
    """Whole numbers at random places, as many as the format holds; one row is empty."""
    out = np.where(rng.random(shape) < density, rng.integers(1, 9, shape), 0).astype(dtype)
    if len(shape) > 1 and shape[0] > 2:
        out[2] = 0
    if form is not None and form.startswith("nm("):
        most, size = map(int, form[3:-1].split(","))
        for row in out:
            for start in range(0, row.size, size):
                row[start + np.flatnonzero(row[start : start + size])[most:]] = 0
    return out


def stored(form, array, zeros=0, rng=None):
    """The array in a format by text (None or dense: as it is), with some zeros stored as well."""
    if form is None or form == "dense":
        return array
    made = parse_format(form, array.ndim)
    if not zeros or form.startswith("nm("):
        return from_dense(made, array)
    keep = array != 0
    for _ in range(zeros):
        if array.size:
            keep[tuple(rng.integers(0, size) for size in array.shape)] = True
    return pack(made, array.shape, np.array(np.nonzero(keep)), array[keep])


# The words by which a refusal is known, with what it is for.
REASONS = {
    "agree on an order of the loops": "orders",
    "to be stored in blocks of": "blocks and single coordinates",
    "expected blocks of one size": "blocks of two sizes",
    "expected the last index by which": "workspace over an outer index",
    "outside of what is gathered": "workspace inside another loop",
    "in order, but": "unordered into an ordered target",
    "ordered level at": "unordered merged",
    "expected a target of dense, compressed and singleton levels": "target kind",
    "expected elements of distinct coordinates": "duplicates",
    "next to one another": "places in slots",
    "one after the other": "terms in sequence",
    "could only be appended again": "appended in a summed loop",
    "found forall": "levels out of order",
    "but the order has": "order",
}


def reason(error):
    """The short name of a refusal."""
    text = str(error)
    for words, name in REASONS.items():
        if words in text:
            return name
    return text


def as_array(found):
    """A result as an array."""
    return found.to_dense() if isinstance(found, SparseTensor) else found


def outcome(statement, operands, arrays, target=None, **options):
    """``""`` if the statement is evaluated to what it means, else why it is refused; the result
    comes with it.
    """
    try:
        found = evaluate(statement, operands, target, **options)
    except SparseError as error:
        return reason(error), None
    got = as_array(found)
    want = meaning(statement, arrays)
    assert got.shape == want.shape, (got.shape, want.shape)
    assert np.array_equal(got, want), f"expected\n{want}\nfound\n{got}"
    return "", found
