"""What a well-formed procedure is: names are known and distinct, dtypes agree, indices are whole
numbers in number of the shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from kernelwright.env.compiler.errors import VerifyError
from kernelwright.env.compiler.ir.dtypes import DTYPES, FLOATS, INTEGERS, fits
from kernelwright.env.compiler.ir.levels import is_launch
from kernelwright.env.compiler.ir.names import is_identifier
from kernelwright.env.compiler.ir.nodes import (
    ARITHMETIC,
    COMPARISONS,
    FACTS,
    LOGIC,
    MATH,
    MEMORY_SCOPES,
    REDUCTIONS,
    UNARY,
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Prefetch,
    Procedure,
    Select,
    Stmt,
    Store,
    Tensor,
    Unary,
    Var,
    While,
)
from kernelwright.env.compiler.ir.queries import has_loads


@dataclass(frozen=True, slots=True)
class Scope:
    """What is visible: variables (the extents among them), and tensors by name.

    ``where`` is the path of nodes from the top.
    """

    variables: frozenset[str]
    extents: frozenset[str]
    tensors: tuple[tuple[str, Tensor], ...]
    where: str

    def tensor(self, name: str) -> Tensor:
        """A visible tensor.

        Raises:
            VerifyError: if there is none; it lists the visible ones.
        """
        for known, found in self.tensors:
            if known == name:
                return found
        listed = ", ".join(n for n, _ in self.tensors) or "none"
        raise VerifyError(self.where, f"one of the tensors {listed}", repr(name))

    def under(self, step: str) -> Scope:
        """The same scope one step further down."""
        # Written out: every statement of every step of a schedule comes by.
        return Scope(self.variables, self.extents, self.tensors, f"{self.where} > {step}")


def verify(procedure: Procedure) -> Procedure:
    """The procedure itself, if it is well formed.

    Raises:
        VerifyError: at the first fault, with the path of nodes that leads to it.
    """
    names = (procedure.name, *procedure.extents)
    if not all(is_identifier(name) for name in names):
        raise VerifyError(procedure.name, "names (ASCII identifiers)", str(names))
    extents = frozenset(procedure.extents)
    scope = Scope(extents, extents, (), procedure.name)
    if len(set(procedure.extents)) != len(procedure.extents):
        raise VerifyError(procedure.name, "distinct extents", str(procedure.extents))
    for tensor in procedure.tensors:
        if tensor.role not in ("input", "output"):
            raise VerifyError(procedure.name, "an input or output", f"{tensor.role} {tensor.name}")
        scope = _declare(tensor, scope)
    taken = {procedure.name, *procedure.extents, *(t.name for t in procedure.tensors)}
    _statement(procedure.body, scope, taken)
    return procedure


def _declare(tensor: Tensor, scope: Scope) -> Scope:
    if tensor.dtype not in DTYPES:
        raise VerifyError(
            scope.where, f"one of {', '.join(DTYPES)}", f"{tensor.name}: {tensor.dtype}"
        )
    if tensor.scope not in MEMORY_SCOPES or (tensor.role, tensor.scope) not in (
        ("input", "auto"),
        ("output", "auto"),
        ("temporary", tensor.scope),
    ):
        expected = f"one of {', '.join(MEMORY_SCOPES)} for a temporary, auto for an argument"
        raise VerifyError(scope.where, expected, f"{tensor.role} {tensor.name}: {tensor.scope}")
    for fact in tensor.facts:
        found = f"{tensor.role} {tensor.name}: {tensor.dtype}, {len(tensor.shape)}-D"
        if fact not in FACTS or tensor.facts.count(fact) > 1:
            raise VerifyError(scope.where, f"facts among {', '.join(FACTS)}, once", repr(fact))
        if tensor.role != "input" or len(tensor.shape) != 1 or tensor.dtype not in INTEGERS:
            raise VerifyError(scope.where, f"a 1-D input of whole numbers to be {fact}", found)
    known = {name for name, _ in scope.tensors} | scope.variables
    if tensor.name in known or not is_identifier(tensor.name):
        raise VerifyError(scope.where, "a new name", f"tensor {tensor.name!r}")
    for extent in tensor.shape:
        here = scope.under(f"shape of {tensor.name}")
        # Known where the kernel is called, so that an element's place never changes.
        _whole(extent, Scope(scope.extents, scope.extents, scope.tensors, here.where))
        if has_loads(extent):
            raise VerifyError(here.where, "a shape known without reading memory", "a load")
    tensors = (*scope.tensors, (tensor.name, tensor))
    return Scope(scope.variables, scope.extents, tensors, scope.where)


def _statement(node: Stmt, scope: Scope, taken: set[str]) -> None:
    match node:
        case Store(tensor, indices, value, reduce, _, reassociable):
            here = scope.under(f"store {tensor}")
            if reassociable and reduce is None:
                raise VerifyError(here.where, "a reduction that may be regrouped", "a plain store")
            target = scope.tensor(tensor)
            if target.role == "input":
                raise VerifyError(here.where, "an output or a temporary", f"input {tensor}")
            _indices(target, indices, here)
            found = type_of(value, here)
            if found != target.dtype:
                raise VerifyError(here.where, f"a value of {target.dtype}", found)
            if reduce is not None and (reduce not in REDUCTIONS or target.dtype == "bool"):
                listed = ", ".join(REDUCTIONS)
                raise VerifyError(here.where, f"a reduction of numbers ({listed})", repr(reduce))
        case For(var, extent, body, kind):
            here = scope.under(f"for {var}")
            if var in taken or not is_identifier(var):
                raise VerifyError(here.where, "a loop variable of its own", repr(var))
            taken.add(var)
            _whole(extent, here)
            if kind is LoopKind.VECTORIZED and not isinstance(extent, Const):
                raise VerifyError(here.where, "a constant number of lanes", str(extent))
            inside = Scope(scope.variables | {var}, scope.extents, scope.tensors, here.where)
            _statement(body, inside, taken)
        case If(condition, then):
            here = scope.under("if")
            if type_of(condition, here) != "bool":
                raise VerifyError(here.where, "a condition", type_of(condition, here))
            _statement(then, here, taken)
        case While(condition, body):
            here = scope.under("while")
            if type_of(condition, here) != "bool":
                raise VerifyError(here.where, "a condition", type_of(condition, here))
            if is_launch(body):
                raise VerifyError(here.where, "no block or thread loops in a while", "one")
            _statement(body, here, taken)
        case Block(body):
            for i, item in enumerate(body):
                _statement(item, scope.under(str(i)) if len(body) > 1 else scope, taken)
        case Allocate(tensor, body):
            if tensor.name in taken:
                raise VerifyError(scope.where, "a new name", f"tensor {tensor.name!r}")
            taken.add(tensor.name)
            _statement(body, _declare(tensor, scope), taken)
        case Prefetch(tensor, indices, _, locality):
            here = scope.under(f"prefetch {tensor}")
            _indices(scope.tensor(tensor), indices, here)
            if locality not in range(4):
                raise VerifyError(here.where, "a locality from 0 to 3", str(locality))
        case Call(instruction, body):
            if not is_identifier(instruction):
                raise VerifyError(scope.where, "the name of an instruction", repr(instruction))
            _statement(body, scope.under(f"call {instruction}"), taken)
        case Barrier():
            pass
        case _:
            assert_never(node)


def _indices(tensor: Tensor, indices: tuple[Expr, ...], scope: Scope) -> None:
    if len(indices) != len(tensor.shape):
        expected = f"{len(tensor.shape)} indices of {tensor.name}"
        raise VerifyError(scope.where, expected, str(len(indices)))
    for index in indices:
        _whole(index, scope)


def _whole(node: Expr, scope: Scope) -> None:
    found = type_of(node, scope)
    if found != "int64":
        raise VerifyError(scope.where, "a whole number (int64)", found)


def type_of(node: Expr, scope: Scope) -> str:
    """The dtype of an expression.

    Raises:
        VerifyError: if it has none.
    """
    match node:
        case Const(value, dtype):
            if dtype not in DTYPES or (dtype == "bool") != isinstance(value, bool):
                raise VerifyError(scope.where, "a constant of its dtype", f"{dtype}({value!r})")
            if dtype in INTEGERS and not isinstance(value, int):
                raise VerifyError(scope.where, "a whole constant", f"{dtype}({value!r})")
            if dtype in INTEGERS and not fits(value, dtype):
                raise VerifyError(scope.where, f"a constant that {dtype} holds", str(value))
            return dtype
        case Var(name):
            if name not in scope.variables:
                known = ", ".join(sorted(scope.variables)) or "none"
                raise VerifyError(scope.where, f"one of the variables {known}", repr(name))
            return "int64"
        case Load(tensor, indices):
            source = scope.tensor(tensor)
            _indices(source, indices, scope)
            return source.dtype
        case Binary(op, left, right):
            return _binary(op, type_of(left, scope), type_of(right, scope), scope)
        case Unary(op, operand):
            return _unary(op, type_of(operand, scope), scope)
        case Cast(dtype, operand):
            type_of(operand, scope)
            if dtype not in DTYPES:
                raise VerifyError(scope.where, f"one of {', '.join(DTYPES)}", dtype)
            return dtype
        case Select(condition, then, other):
            kinds = [type_of(part, scope) for part in (condition, then, other)]
            if kinds[0] != "bool" or kinds[1] != kinds[2]:
                expected = "select(bool, T, T)"
                raise VerifyError(scope.where, expected, f"select({', '.join(kinds)})")
            return kinds[1]
        case _:
            assert_never(node)


def _binary(op: str, left: str, right: str, scope: Scope) -> str:
    if left != right:
        raise VerifyError(scope.where, f"two operands of one dtype for {op}", f"{left} and {right}")
    if op in LOGIC:
        if left != "bool":
            raise VerifyError(scope.where, f"conditions for {op}", left)
        return "bool"
    if op in COMPARISONS:
        return "bool"
    if op not in ARITHMETIC or left == "bool":
        raise VerifyError(scope.where, "an operation on numbers", f"{op} on {left}")
    if (op in ("div", "pow")) != (left in FLOATS) and op in ("div", "pow", "floordiv", "mod"):
        raise VerifyError(
            scope.where, "div and pow on floats, floordiv and mod on integers", f"{op} on {left}"
        )
    return left


def _unary(op: str, operand: str, scope: Scope) -> str:
    wrong = (
        op not in UNARY
        or (op == "not") != (operand == "bool")
        or (op in MATH and operand not in FLOATS)
    )
    if wrong:
        raise VerifyError(scope.where, "an operation that exists", f"{op} on {operand}")
    return operand
