"""LoopIR to C: one function after the calling convention, vectorized loops as GCC vector types.

A vectorized loop is emitted as operations on vectors of its lanes, never left to the compiler's own
vectoriser, which picks the wrong loop of a register tile and loses a factor of ten. What has no
vector form (a choice, a math function, a strided store) is executed lane by lane, in order. A guard
on the lanes (the tail of a split) is tested once for all of them, with the lanes one by one where
it does not hold. Unrolled loops are written out. Parallel loops carry an OpenMP pragma, which a
compiler without ``-fopenmp`` skips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import assert_never

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import (
    ARITHMETIC,
    Allocate,
    Binary,
    Block,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Select,
    Stmt,
    Store,
    Tensor,
    Unary,
    Var,
    map_statements,
    statements,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.runtime.call import C_TYPES, Argument, prototype

# Of all temporaries that live at one time; the rest is on the heap.
MAX_STACK_BYTES = 1 << 16
MAX_UNROLLED = 4096
_BYTES = {"float32": 4, "float64": 8, "int32": 4, "int64": 8, "bool": 1}
_INFIX = {
    "add": ("+", 12),
    "sub": ("-", 12),
    "mul": ("*", 13),
    "div": ("/", 13),
    "lt": ("<", 10),
    "le": ("<=", 10),
    "gt": (">", 10),
    "ge": (">=", 10),
    "eq": ("==", 9),
    "ne": ("!=", 9),
    "and": ("&&", 5),
    "or": ("||", 4),
}
# Binds tighter than any infix operator; 0 is a place where nothing needs brackets.
_TIGHT, _LOOSE = 15, 0
_VECTOR_OPS = ("add", "sub", "mul", "div")


class CodegenError(CompilerError):
    """A procedure that has no C form; it says which node and why."""


def arguments(procedure: Procedure) -> tuple[Argument, ...]:
    """The array arguments of a procedure's function.

    Raises:
        CodegenError: if a shape is neither a number nor an extent.
    """
    out = []
    for tensor in procedure.tensors:
        shape: list[str | int] = []
        for extent in tensor.shape:
            match extent:
                case Const(value, "int64"):
                    shape.append(int(value))
                case Var(name):
                    shape.append(name)
                case _:
                    raise CodegenError(
                        f"{tensor.name}: expected an extent or a number, found {extent}"
                    )
        out.append(Argument(tensor.name, tuple(shape), tensor.dtype, tensor.role == "input"))
    return tuple(out)


def generate(procedure: Procedure) -> str:
    """The C text of a procedure: headers, helpers and types that it uses, and the function.

    Raises:
        CodegenError: if a name is C's own, or unrolling would write out more than a few thousand
            statements.
    """
    _check_names(procedure)
    emitter = _Emitter(procedure)
    head = prototype(procedure.name, arguments(procedure), procedure.extents)
    emitter.line(f"{head} {{")
    with emitter.indented():
        emitter.statement(procedure.body)
    emitter.line("}")
    includes = ["#include <math.h>", "#include <stdint.h>", "#include <stdlib.h>", ""]
    return "\n".join([*includes, *emitter.preamble(), *emitter.lines]) + "\n"


def _check_names(procedure: Procedure) -> None:
    found = [procedure.name, *procedure.extents, *(t.name for t in procedure.tensors)]
    for node in statements(procedure.body):
        match node:
            case For(var, _, _, _):
                found.append(var)
            case Allocate(tensor, _):
                found.append(tensor.name)
    for name in found:
        if not names.is_free(name):
            raise CodegenError(f"expected a name that C leaves free, found {name!r}")


class _Lanes:
    """The vectorized loop being emitted."""

    def __init__(self, var: str, count: int) -> None:
        self.var, self.count = var, count


def depends_on(node: Expr, var: str) -> bool:
    """Whether an expression reads a variable."""
    return any(isinstance(part, Var) and part.name == var for part in walk(node))


def step_of(node: Expr, var: str) -> int | None:
    """By how much a whole-number expression grows when ``var`` grows by one; None if that is no
    constant.
    """
    match node:
        case Var(name):
            return 1 if name == var else 0
        case Binary("add", left, right):
            a, b = step_of(left, var), step_of(right, var)
            return None if a is None or b is None else a + b
        case Binary("sub", left, right):
            a, b = step_of(left, var), step_of(right, var)
            return None if a is None or b is None else a - b
        case Binary("mul", left, Const(factor, "int64")) | Binary(
            "mul", Const(factor, "int64"), left
        ):
            a = step_of(left, var)
            return None if a is None else a * int(factor)
    return None if depends_on(node, var) else 0


class _Emitter:
    """Writes lines; knows the tensors in scope and which helpers and types were used."""

    def __init__(self, procedure: Procedure) -> None:
        self.lines: list[str] = []
        self._tensors: dict[str, Tensor] = {t.name: t for t in procedure.tensors}
        self._level = 0
        self._helpers: set[str] = set()
        self._vectors: set[tuple[str, int]] = set()
        self._written = 0
        self._stack_bytes = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._level + text)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._level += 1
        yield
        self._level -= 1

    def preamble(self) -> list[str]:
        """Types and helpers, those that were used."""
        out = []
        for dtype, lanes in sorted(self._vectors):
            if not any(names.vector_type(dtype, lanes) in line for line in self.lines):
                continue  # asked for by a store that then had no vector form
            size, name = _BYTES[dtype] * lanes, names.vector_type(dtype, lanes)
            attributes = f"vector_size({size}), aligned({_BYTES[dtype]}), may_alias"
            out.append(f"typedef {C_TYPES[dtype]} {name} __attribute__(({attributes}));")
        return [*out, *sorted(self._helpers), ""] if out or self._helpers else []

    # Statements

    def statement(self, node: Stmt) -> None:
        """Emit a statement outside any vectorized loop."""
        match node:
            case Store(tensor, indices, value, reduce):
                self._count()
                self.line(
                    self._store(
                        self._element(tensor, indices), tensor, self.scalar(value, _LOOSE), reduce
                    )
                )
            case For(_, _, _, LoopKind.VECTORIZED):
                self._vectorized(node)
            case For(var, extent, body, LoopKind.UNROLLED):
                for copy in self._copies(var, extent, body):
                    self.statement(copy)
            case For(var, extent, body, kind):
                pragma = "#pragma omp parallel for schedule(static)"
                self._loop(
                    var,
                    extent,
                    lambda: self.statement(body),
                    pragma if kind is LoopKind.PARALLEL else None,
                )
            case If(condition, then):
                self.line(f"if ({self.scalar(condition, _LOOSE)}) {{")
                with self.indented():
                    self.statement(then)
                self.line("}")
            case Block(items):
                for item in items:
                    self.statement(item)
            case Allocate(tensor, body):
                with self._allocated(tensor):
                    self.statement(body)
            case _:
                assert_never(node)

    def _count(self) -> None:
        self._written += 1
        if self._written > MAX_UNROLLED:
            raise CodegenError(f"expected at most {MAX_UNROLLED} statements after unrolling")

    def _loop(
        self, var: str, extent: Expr, body: Callable[[], None], pragma: str | None = None
    ) -> None:
        limit = self.scalar(extent, 11)
        loaded = any(isinstance(node, Load) for node in walk(extent))
        if loaded:
            # The body may write what the extent was read from.
            self.line("{")
            self._level += 1
            self.line(f"const int64_t {names.extent(var)} = {self.scalar(extent, _LOOSE)};")
            limit = names.extent(var)
        if pragma is not None:
            self.line(pragma)
        self.line(f"for (int64_t {var} = 0; {var} < {limit}; {var}++) {{")
        with self.indented():
            body()
        self.line("}")
        if loaded:
            self._level -= 1
            self.line("}")

    def _copies(self, var: str, extent: Expr, body: Stmt) -> Iterator[Stmt]:
        count = simplify(extent)
        if not isinstance(count, Const):
            raise CodegenError(f"unrolled loop {var}: expected a constant extent, found {extent}")
        for i in range(int(count.value)):
            yield _replace(body, var, whole(i))

    @contextmanager
    def _allocated(self, tensor: Tensor) -> Iterator[None]:
        """A temporary: on the stack where it is small and of known size, else on the heap."""
        size = simplify(_product(tensor.shape))
        c_type = C_TYPES[tensor.dtype]
        self._tensors[tensor.name] = tensor
        self.line("{")
        with self.indented():
            count = int(size.value) if isinstance(size, Const) else MAX_STACK_BYTES
            taken = count * _BYTES[tensor.dtype]
            small = self._stack_bytes + taken <= MAX_STACK_BYTES
            self._stack_bytes += taken if small else 0
            if small:
                self.line(
                    f"{c_type} {tensor.name}[{self.scalar(size)}] __attribute__((aligned(64)));"
                )
            else:
                bytes_text = f"(({self.scalar(size)}) * sizeof({c_type}) + 63) / 64 * 64"
                self.line(f"{c_type} *restrict {tensor.name} = aligned_alloc(64, {bytes_text});")
                self.line(f"if (!{tensor.name}) abort();")
            yield
            self._stack_bytes -= taken if small else 0
            if not small:
                self.line(f"free({tensor.name});")
        self.line("}")
        del self._tensors[tensor.name]

    def _store(self, target: str, tensor: str, value: str, reduce: str | None) -> str:
        match reduce:
            case None:
                return f"{target} = {value};"
            case "add":
                return f"{target} += {value};"
            case "mul":
                return f"{target} *= {value};"
            case _:
                helper = self._extremum(reduce, self._tensors[tensor].dtype)
                return f"{target} = {helper}({target}, {value});"

    # Vectorized loops

    def _vectorized(self, loop: For) -> None:
        count = simplify(loop.extent)
        if not isinstance(count, Const) or int(count.value) < 1:
            raise CodegenError(f"vectorized loop {loop.var}: expected a constant number of lanes")
        lanes = _Lanes(loop.var, int(count.value))
        self._vector_statement(loop.body, lanes)

    def _vector_statement(self, node: Stmt, lanes: _Lanes) -> None:
        match node:
            case Store(tensor, indices, value, reduce):
                self._count()
                text = self._vector_store(tensor, indices, value, reduce, lanes)
                if text is None:
                    self._one_by_one(node, lanes)
                else:
                    self.line(text)
            case For(var, extent, body, LoopKind.UNROLLED) if not depends_on(extent, lanes.var):
                for copy in self._copies(var, extent, body):
                    self._vector_statement(copy, lanes)
            case For(var, extent, body, LoopKind.SERIAL) if not depends_on(extent, lanes.var):
                self._loop(var, extent, lambda: self._vector_statement(body, lanes))
            case If(condition, then) if not depends_on(condition, lanes.var):
                self.line(f"if ({self.scalar(condition, _LOOSE)}) {{")
                with self.indented():
                    self._vector_statement(then, lanes)
                self.line("}")
            case If(Binary("lt" | "le", left, right) as condition, then) if (
                step_of(left, lanes.var) or -1
            ) > 0 and not depends_on(right, lanes.var):
                last = simplify(substitute(condition, {lanes.var: whole(lanes.count - 1)}))
                self.line(f"if ({self.scalar(last, _LOOSE)}) {{")
                with self.indented():
                    self._vector_statement(then, lanes)
                self.line("} else {")
                with self.indented():
                    self._one_by_one(node, lanes)
                self.line("}")
            case Block(items):
                for item in items:
                    self._vector_statement(item, lanes)
            case _:
                self._one_by_one(node, lanes)

    def _one_by_one(self, node: Stmt, lanes: _Lanes) -> None:
        self._loop(lanes.var, whole(lanes.count), lambda: self.statement(node))

    def _vector_store(
        self, tensor: str, indices: tuple[Expr, ...], value: Expr, reduce: str | None, lanes: _Lanes
    ) -> str | None:
        """The store of all lanes as one statement, None if it has no such form."""
        dtype = self._tensors[tensor].dtype
        if not self._has_vectors(dtype, lanes) or reduce not in (None, "add", "mul"):
            return None
        if step_of(self._flat(tensor, indices), lanes.var) != 1:
            return None
        text = self._vector(value, lanes, dtype, _LOOSE)
        if text is None:
            return None
        target = self._vector_element(tensor, indices, lanes, const="")
        return self._store(target, tensor, text, reduce)

    def _has_vectors(self, dtype: str, lanes: _Lanes) -> bool:
        return dtype != "bool" and lanes.count in (2, 4, 8, 16, 32, 64)

    def _vector(self, node: Expr, lanes: _Lanes, dtype: str, outer: int = _TIGHT) -> str | None:
        """An expression for all lanes, None if it has no vector form."""
        kind = self._vector_name(dtype, lanes)
        if not depends_on(node, lanes.var):
            # x - 0 is x for every x, -0 included; x + 0 is not.
            return f"({self.scalar(node)} - ({kind}){{}})"
        match node:
            case Load(tensor, indices):
                if self._tensors[tensor].dtype != dtype:
                    return None
                if step_of(self._flat(tensor, indices), lanes.var) == 1:
                    return self._vector_element(tensor, indices, lanes, const="const ")
                parts = [self.scalar(_at(node, lanes.var, i), _LOOSE) for i in range(lanes.count)]
                return f"({kind}){{{', '.join(parts)}}}"
            case Binary(op, left, right) if op in _VECTOR_OPS:
                sign, level = _INFIX[op]
                a = self._operand(left, lanes, dtype, level)
                b = self._operand(right, lanes, dtype, level + 1)
                if a is None or b is None:
                    return None
                return f"({a} {sign} {b})" if level < outer else f"{a} {sign} {b}"
            case Unary("neg", operand):
                text = self._vector(operand, lanes, dtype)
                return None if text is None else f"(-{text})"
        return None

    def _operand(self, node: Expr, lanes: _Lanes, dtype: str, outer: int) -> str | None:
        """An operand of a vector operation; C broadcasts a scalar beside a vector."""
        if depends_on(node, lanes.var):
            return self._vector(node, lanes, dtype, outer)
        return self.scalar(node, outer)

    def _vector_name(self, dtype: str, lanes: _Lanes) -> str:
        self._vectors.add((dtype, lanes.count))
        return names.vector_type(dtype, lanes.count)

    def _vector_element(
        self, tensor: str, indices: tuple[Expr, ...], lanes: _Lanes, *, const: str
    ) -> str:
        first = simplify(substitute(self._flat(tensor, indices), {lanes.var: whole(0)}))
        kind = self._vector_name(self._tensors[tensor].dtype, lanes)
        return f"*({const}{kind} *)({tensor} + {self.scalar(first, 12)})"

    # Expressions

    def _flat(self, tensor: str, indices: tuple[Expr, ...]) -> Expr:
        """The row-major offset of an element."""
        offset: Expr = whole(0)
        for index, extent in zip(indices, self._tensors[tensor].shape, strict=True):
            offset = Binary("add", Binary("mul", offset, extent), index)
        return simplify(offset)

    def _element(self, tensor: str, indices: tuple[Expr, ...]) -> str:
        return f"{tensor}[{self.scalar(self._flat(tensor, indices), _LOOSE)}]"

    def _extremum(self, op: str, dtype: str) -> str:
        name = names.minimum(dtype) if op == "min" else names.maximum(dtype)
        c_type, sign = C_TYPES[dtype], "<" if op == "min" else ">"
        # NumPy's minimum and maximum: a NaN on either side is the result.
        nan = "a != a || " if dtype.startswith("float") else ""
        self._helpers.add(
            f"static inline {c_type} {name}({c_type} a, {c_type} b) "
            f"{{ return {nan}a {sign} b ? a : b; }}"
        )
        return name

    def _integer_helper(self, op: str, dtype: str) -> str:
        name = names.floor_division(dtype) if op == "floordiv" else names.modulo(dtype)
        # -1 apart: the least number divided by it traps.
        body = {
            "floordiv": "b == -1 ? -a : a / b - (a % b != 0 && (a % b < 0) != (b < 0))",
            "mod": "b == -1 ? 0 : a % b + (a % b != 0 && (a % b < 0) != (b < 0)) * b",
        }[op]
        c_type = C_TYPES[dtype]
        self._helpers.add(
            f"static inline {c_type} {name}({c_type} a, {c_type} b) {{ return {body}; }}"
        )
        return name

    def _dtype(self, node: Expr) -> str:
        match node:
            case Const(_, dtype) | Cast(dtype, _):
                return dtype
            case Var():
                return "int64"
            case Load(tensor, _):
                return self._tensors[tensor].dtype
            case Binary(op, left, _):
                return self._dtype(left) if op in ARITHMETIC else "bool"
            case Unary(_, operand):
                return self._dtype(operand)
            case Select(_, then, _):
                return self._dtype(then)
            case _:
                assert_never(node)

    def scalar(self, node: Expr, outer: int = _TIGHT) -> str:
        """An expression for one lane; ``outer`` is how tightly what surrounds it binds."""
        match node:
            case Const(value, dtype):
                return _literal(value, dtype)
            case Var(name):
                return name
            case Load(tensor, indices):
                return self._element(tensor, indices)
            case Binary("min" | "max" as op, left, right):
                helper = self._extremum(op, self._dtype(left))
                return f"{helper}({self.scalar(left, _LOOSE)}, {self.scalar(right, _LOOSE)})"
            case Binary("floordiv" | "mod" as op, left, right):
                helper = self._integer_helper(op, self._dtype(left))
                return f"{helper}({self.scalar(left, _LOOSE)}, {self.scalar(right, _LOOSE)})"
            case Binary(op, left, right):
                sign, level = _INFIX[op]
                first = _wide(left) + self.scalar(left, _TIGHT if _wide(left) else level)
                text = f"{first} {sign} {self.scalar(right, level + 1)}"
                return f"({text})" if level < outer else text
            case Unary(op, operand):
                return self._unary(op, operand)
            case Cast("bool", operand):
                return f"({self.scalar(operand, 10)} != 0)"
            case Cast(dtype, operand):
                return f"(({C_TYPES[dtype]}){self.scalar(operand)})"
            case Select(condition, then, other):
                parts = [self.scalar(part) for part in (condition, then, other)]
                return f"({parts[0]} ? {_wide(then)}{parts[1]} : {parts[2]})"
            case _:
                assert_never(node)

    def _unary(self, op: str, operand: Expr) -> str:
        dtype = self._dtype(operand)
        if op == "neg":
            return f"(-{_wide(operand)}{self.scalar(operand)})"
        if op == "not":
            return f"(!{self.scalar(operand)})"
        if op == "abs" and dtype.startswith("int"):
            text = self.scalar(operand)
            return f"({text} < 0 ? -{text} : {text})"
        function = {"abs": "fabs"}.get(op, op) + ("f" if dtype == "float32" else "")
        return f"{function}({self.scalar(operand, _LOOSE)})"


def _wide(node: Expr) -> str:
    """The cast that makes C compute a bare whole constant in 64 bits, where its own ``int`` is
    short.
    """
    is_bare = isinstance(node, Const) and node.dtype == "int64" and abs(int(node.value)) >= 1 << 15
    return "(int64_t)" if is_bare else ""


def _literal(value: float | int | bool, dtype: str) -> str:
    if dtype == "bool":
        return "1" if value else "0"
    if dtype.startswith("int"):
        if value == -(2 ** (31 if dtype == "int32" else 63)):
            return "INT32_MIN" if dtype == "int32" else "INT64_MIN"
        return str(value) if value >= 0 else f"({value})"
    number = float(value)
    if number != number:
        text = "NAN"
    elif number in (float("inf"), float("-inf")):
        text = "INFINITY" if number > 0 else "(-INFINITY)"
    else:
        # Hexadecimal is exact; decimal reads better where it is exact too.
        text = (
            repr(number)
            if float(repr(number)) == number and len(repr(number)) < 12
            else number.hex()
        )
    suffix = "f" if dtype == "float32" and text[0] not in "NI(" else ""
    return f"({text}{suffix})" if text.startswith("-") else f"{text}{suffix}"


def _product(shape: tuple[Expr, ...]) -> Expr:
    out: Expr = whole(1)
    for extent in shape:
        out = Binary("mul", out, extent)
    return out


def _replace(node: Stmt, var: str, value: Expr) -> Stmt:
    """A statement with a loop variable replaced, simplified."""
    return map_statements(node, lambda e: simplify(substitute(e, {var: value})))


def _at(node: Expr, var: str, value: int) -> Expr:
    return simplify(substitute(node, {var: whole(value)}))
