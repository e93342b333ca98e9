"""Directives about one loop that change neither how often nor in which order anything runs: rename
and add_unit_loop.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.ir.nodes import For, Procedure, Stmt, Var
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.schedule.edit import (
    find_loop,
    finish,
    new_names,
    replace_loop,
    replace_variables,
)


def rename(procedure: Procedure, loop: str, name: str) -> Procedure:
    """Give a loop another name (Halide ``rename``). Always legal.

    Before::

        for i in n:
          S(i)

    After ``rename("i", "row")``::

        for row in n:
          S(row)

    Raises:
        ScheduleError: if there is no such loop, or the name is not free.
    """
    find_loop("rename", procedure, loop)
    new_names("rename", procedure, name)

    def rewrite(node: For) -> Stmt:
        return replace(node, var=name, body=replace_variables(node.body, {loop: Var(name)}))

    return finish("rename", replace_loop(procedure, loop, rewrite))


def add_unit_loop(procedure: Procedure, loop: str, name: str) -> Procedure:
    """Put a loop of one iteration around a loop (TVM ``add_unit_loop``), for a later directive to
    bind or to place something at. Always legal.

    Before::

        for i in n:
          S(i)

    After ``add_unit_loop("i", "once")``::

        for once in 1:
          for i in n:
            S(i)

    Raises:
        ScheduleError: if there is no such loop, or the name is not free.
    """
    find_loop("add_unit_loop", procedure, loop)
    new_names("add_unit_loop", procedure, name)
    return finish("add_unit_loop", replace_loop(procedure, loop, lambda n: For(name, whole(1), n)))
