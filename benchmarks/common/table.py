"""Printing a table of figures: a row each, with its target and whether it is met."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date

import numpy as np

# What, the target, what was measured, and whether it is met (None: nothing was to be met).
Row = tuple[str, str, str, bool | None]


def print_groups(groups: Mapping[str, Callable[[], Iterator[Row]]], about: str) -> None:
    """Run groups of rows as the command line asks, print each row as it comes, and exit with 1 if
    one fell short.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--only", action="append", choices=groups)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows: list[Row] = []
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    print(f"{date.today()}, {platform.machine()}, {os.cpu_count()} cores, {versions}")
    for name in arguments.only or groups:
        for row in groups[name]():
            rows.append(row)
            mark = {True: "pass", False: "FAIL", None: "-"}[row[3]]
            print(f"| {row[0]} | {row[1]} | {row[2]} | {mark} |", flush=True)
    if arguments.json:
        print(json.dumps(rows))
    sys.exit(any(row[3] is False for row in rows))
