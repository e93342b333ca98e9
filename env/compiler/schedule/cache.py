"""Directives that put a temporary in front of a tensor: cache_read, cache_write,
scalar_replacement.
"""

from __future__ import annotations

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Const,
    Procedure,
    Tensor,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import writes
from kernelwright.env.compiler.poly.definedness import is_defined
from kernelwright.env.compiler.poly.region import Region
from kernelwright.env.compiler.schedule.access import (
    check_scope,
    find_tensor,
    fitting_lanes,
    new_tensor_name,
    no_instructions,
)
from kernelwright.env.compiler.schedule.buffer import (
    Buffer,
    allocated,
    checked,
    never_negative,
    no_barriers,
    whole_box,
)
from kernelwright.env.compiler.schedule.chosen import region_at
from kernelwright.env.compiler.schedule.edit import taken_names
from kernelwright.env.compiler.schedule.layout import Layout, row_major
from kernelwright.env.compiler.schedule.site import (
    Site,
    after_writes,
    check_visible,
    loop_body,
    whole_life,
    whole_loop,
)

PADDINGS = ("undefined", "zero")
ROOT = ""


def cache_read(
    procedure: Procedure,
    tensor: str,
    loop: str = ROOT,
    scope: str = "auto",
    name: str = "",
) -> Procedure:
    """Copy what each iteration of a loop reads of a tensor into a temporary, and read it there (TVM
    ``cache_read``; Exo ``stage_mem``).

    Before::

        for io in n // 8:
          for ii in 8:
            y[io * 8 + ii] = x[io * 8 + ii] + x[io * 8 + ii + 1]

    After ``cache_read("x", "io", "stack")``::

        for io in n // 8:
          allocate x_read: float32[9] @stack
          for x_read_in0 in 9:
            x_read[x_read_in0] = x[io * 8 + x_read_in0]
          for ii in 8:
            y[io * 8 + ii] = x_read[ii] + x_read[ii + 1]

    The box is the least around what the iteration reads; an empty ``loop`` means all of the tensor,
    once: at the start for an input, else after the last nest that writes it. The temporary is named
    ``tensor_read``, the loops of the copy after it.

    Raises:
        ScheduleError: if there is no such tensor, loop or scope, the iteration does not read the
            tensor or writes it too, or the copy would read an element that nothing wrote before;
            then it has the iteration.
    """
    found = find_tensor("cache_read", procedure, tensor)
    layout = row_major(len(found.shape))
    return read_through("cache_read", procedure, found, loop, scope, name, layout)


def read_through(
    op: str,
    procedure: Procedure,
    tensor: Tensor,
    loop: str,
    scope: str,
    name: str,
    layout: Layout,
    padding: str = "undefined",
    usual: str = "read",
) -> Procedure:
    """A copy of a tensor in some layout, read in its place.

    Raises:
        ScheduleError: as `cache_read` does.
    """
    check_scope(op, scope)
    new = new_tensor_name(op, procedure, name, f"{tensor.name}_{usual}")
    site = after_writes(op, procedure, tensor) if loop == ROOT else loop_body(op, procedure, loop)
    check_visible(op, site, tensor)
    if writes(site.statement, tensor.name):
        reason = f"an iteration of {loop} writes {tensor.name} too, and would read an old copy"
        raise ScheduleError(op, f"{reason}; cache_write copies back what it writes")
    box = region_at(site, tensor, procedure, writes=False)
    if box is None:
        raise ScheduleError(op, f"expected reads of {tensor.name} in {_where(loop)}, found none")
    box = whole_box(tensor) if loop == ROOT else box
    buffer = _buffer(op, procedure, site, tensor, box, new, scope, layout)
    fill = [buffer.zeroed()] if padding == "zero" else []
    copy = buffer.copied("in", inward=True)
    body = allocated(buffer, [*fill, copy, buffer.redirected(site.statement)])
    return checked(op, site.put(body), buffer)


def cache_write(
    procedure: Procedure,
    tensor: str,
    loop: str = ROOT,
    scope: str = "auto",
    name: str = "",
) -> Procedure:
    """Write what each iteration of a loop writes of a tensor into a temporary, and copy it back at
    the end of the iteration (TVM ``cache_write``; Exo ``stage_mem``).

    Before::

        for i in n:
          for k in m:
            y[i] += x[i, k]

    After ``cache_write("y", "i", "register")``; what is there already is copied in first, if the
    iteration reads it before it writes it::

        for i in n:
          allocate y_write: float32[1] @register
          for y_write_in0 in 1:
            y_write[y_write_in0] = y[i + y_write_in0]
          for k in m:
            y_write[0] += x[i, k]
          for y_write_out0 in 1:
            y[i + y_write_out0] = y_write[y_write_out0]

    The box is the least around what the iteration reads and writes; an empty ``loop`` means all of
    the tensor, once. All elements of the box are copied back, so each must be written by the
    iteration, or have been written before (then it is copied in). Where numbers choose the box that
    are read from memory and that the iteration leaves alone (``y[crd[i]]``), it is copied under the
    condition that it is touched, or that there is such a place.

    Raises:
        ScheduleError: if there is no such tensor, loop or scope, the iteration does not write the
            tensor, a copy would read an element that nothing wrote before (then it has the
            iteration), or a loop whose iterations had no order now writes one element twice.
    """
    op = "cache_write"
    found = find_tensor(op, procedure, tensor)
    check_scope(op, scope)
    new = new_tensor_name(op, procedure, name, f"{tensor}_write")
    site = whole_life(op, procedure, found) if loop == ROOT else loop_body(op, procedure, loop)
    box = _written_box(op, procedure, site, found, loop)
    box = whole_box(found) if loop == ROOT else box
    buffer = _buffer(op, procedure, site, found, box, new, scope, row_major(len(found.shape)))
    return _written_through(op, site, buffer, None)


def _written_through(op: str, site: Site, buffer: Buffer, lanes: int | None) -> Procedure:
    """A site that accesses a temporary, copied in if it must be and copied out."""
    body = buffer.redirected(site.statement)
    out = buffer.copied("out", lanes=lanes, inward=False)
    alone = site.put(allocated(buffer, [body, out]))
    if is_defined(alone, buffer.tensor.name):
        return checked(op, alone, buffer)
    into = buffer.copied("in", lanes=lanes, inward=True)
    return checked(op, site.put(allocated(buffer, [into, body, out])), buffer)


def scalar_replacement(procedure: Procedure, tensor: str, loop: str) -> Procedure:
    """Keep the elements of a tensor that a loop uses again and again in registers: they are loaded
    before the loop and stored after it (scalar replacement; Callahan, Carr and Kennedy, PLDI 1990).

    Before::

        for i in n:
          for k in m:
            y[i] += x[i, k]

    After ``scalar_replacement("y", "k")``::

        for i in n:
          allocate y_register: float32[1] @register
          for y_register_in0 in 1:  # unrolled
            y_register[y_register_in0] = y[i + y_register_in0]
          for k in m:
            y_register[0] += x[i, k]
          for y_register_out0 in 1:  # unrolled
            y[i + y_register_out0] = y_register[y_register_out0]

    The copies are unrolled, and in vectors where the loop's accesses are; where memory chooses the
    elements they are under a condition, as those of `cache_write`. The indices of the
    accesses must be numbers once inner loops are unrolled; the generated C is refused otherwise.

    Raises:
        ScheduleError: if there is no such tensor or loop, the elements are not of a number known
            here or more than `MAX_REGISTERS`, or as `cache_read` and `cache_write` do.
    """
    op = "scalar_replacement"
    found = find_tensor(op, procedure, tensor)
    site = whole_loop(op, procedure, loop)
    new = new_tensor_name(op, procedure, "", f"{tensor}_register")
    written = writes(site.statement, tensor)
    if written:
        box = _written_box(op, procedure, site, found, loop)
    else:
        check_visible(op, site, found)
        read = region_at(site, found, procedure, writes=False)
        if read is None:
            raise ScheduleError(op, f"expected accesses of {tensor} in loop {loop}, found none")
        box = read
    layout = row_major(len(found.shape))
    buffer = _buffer(op, procedure, site, found, box, new, "register", layout)
    lanes = _lanes(op, site, buffer)
    if written:
        return _written_through(op, site, buffer, lanes)
    parts = [buffer.copied("in", lanes=lanes, inward=True), buffer.redirected(site.statement)]
    return checked(op, site.put(allocated(buffer, parts)), buffer)


# More elements than any machine has registers for: 32 of 64 bytes each, with bytes in them.
MAX_REGISTERS = 2048


def _lanes(op: str, site: Site, buffer: Buffer) -> int:
    """In what vectors the copies of a register tile run: those of the accesses."""
    count = 1
    for size in buffer.tensor.shape:
        if not isinstance(size, Const):
            reason = f"expected a number of elements, found {print_expr(size)}"
            raise ScheduleError(op, f"{reason} of {buffer.source}")
        count *= int(size.value)
    if count > MAX_REGISTERS:
        reason = f"expected at most {MAX_REGISTERS} elements in registers"
        raise ScheduleError(op, f"{reason}, found {count} of {buffer.source}")
    return fitting_lanes(site.statement, buffer.source, buffer.tensor.shape)


def _where(loop: str) -> str:
    return f"loop {loop}" if loop != ROOT else "the procedure"


def _buffer(
    op: str,
    procedure: Procedure,
    site: Site,
    tensor: Tensor,
    box: Region,
    name: str,
    scope: str,
    layout: Layout,
) -> Buffer:
    no_instructions(op, site.statement, tensor.name)
    shape = layout.shape([never_negative(axis.most) for axis in box.axes])
    temporary = Tensor(name, shape, tensor.dtype, scope=scope)
    taken = frozenset(taken_names(procedure))
    return Buffer(temporary, tensor.name, box, layout, site.around.loops, taken)


def _written_box(op: str, procedure: Procedure, site: Site, tensor: Tensor, loop: str) -> Region:
    if tensor.role == "input" or not writes(site.statement, tensor.name):
        raise ScheduleError(op, f"expected writes of {tensor.name} in {_where(loop)}, found none")
    check_visible(op, site, tensor)
    no_barriers(op, site.statement, tensor.name)
    box = region_at(site, tensor, procedure)
    if box is None:
        raise ScheduleError(op, f"no write of {tensor.name} in {_where(loop)} ever runs")
    return box
