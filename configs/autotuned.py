"""A function on NumPy arrays that dispatches by shape to tuned kernels: what
`kernelwright.autotune` makes.

A call's extents are rounded up to a bucket; the bucket's choice comes from a table that was given
or from the tuning cache; where there is none, a campaign of a bounded budget finds one and keeps
it, so that no later call and no later process tunes again. The plain function answers wherever a
kernel cannot: nothing chosen, no compiler, a kernel that was slower, a kernel that disagrees. The
first call of each shape that is executed is compared with the problem's reference.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from kernelwright.configs.binding import Array, bound, extents_in, inputs_of
from kernelwright.configs.buckets import Buckets, Rule, paddable
from kernelwright.configs.choices import is_worth_using
from kernelwright.configs.dispatch import DisagreementError, Executed, UncheckedError, built_for
from kernelwright.configs.errors import ConfigError, nearest
from kernelwright.configs.tuner import Tuner
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.runtime.call import CallError
from kernelwright.env.types import Problem
from kernelwright.search.campaign import DriverError, JudgeError, Progress
from kernelwright.search.tuning.rows import Row, table

OnMiss = Literal["tune", "baseline", "error"]
Function = Callable[..., Any]


class TuningWarning(RuntimeWarning):
    """Why a plain function answers although a tuned kernel was asked for."""


class NotTunedError(LookupError):
    """A shape without a choice, where a miss is an error."""


class Autotuned:
    """A function on NumPy arrays; made by `autotune`, which says what it is called with.

    It is called with the inputs in declared order, or by name, and returns the output, or a tuple
    of the outputs in declared order. Any number of threads may call it; of those that miss the same
    bucket one tunes and the others wait.
    """

    def __init__(
        self,
        campaign: Mapping[str, Any],
        key: Sequence[str],
        buckets: Rule | Mapping[str, Rule],
        on_miss: OnMiss,
        *,
        function: Function | None = None,
        rows: Sequence[Row] = (),
        frozen: bool = False,
        observe: Callable[[Progress], None] | None = None,
    ) -> None:
        self._campaign, self._key, self._on_miss = dict(campaign), tuple(key), on_miss
        self._given, self._function = (buckets, rows, frozen, observe), function
        self._tuner = Tuner(campaign, key, rows, frozen=frozen, observe=observe)
        self._make = self._tuner.problem
        self._problem: Problem = self._make()
        _check_key(self._problem, self._key, campaign["problem"])
        self._buckets = Buckets(self._key, buckets)
        self._lock = threading.RLock()
        self._names = tuple(spec.name for spec in inputs_of(self._problem))
        self._shapes: dict[tuple[Any, ...], dict[str, int]] = {}
        self._rows: dict[tuple[int, ...], Row | None] = {}
        self._executed: dict[tuple[int, ...], Executed | None] = {}
        self._kernels: dict[tuple[int, ...], Executed] = {}
        self._warned: set[str] = set()
        self._paddable: frozenset[str] | None = None
        if function is not None:
            functools.update_wrapper(self, function)

    # What it says

    @property
    def problem(self) -> Problem:
        """What it computes; its extents are those of a call."""
        return self._problem

    def bucket(self, **extents: int) -> dict[str, int] | None:
        """The bucket of these extents; None beyond the largest that is listed."""
        return self._buckets.of(self._whole(extents))

    def tuned(self, **extents: int) -> Row | None:
        """The choice for the bucket of these extents, None if there is none; nothing is tuned."""
        bucket = self.bucket(**extents)
        return None if bucket is None else self._tuner.found(bucket)

    def choices(self) -> list[Row]:
        """All choices for this problem on this device, one a shape, in the order of shapes."""
        return table(self._tuner.all())

    def tune(self, **extents: int) -> Row | None:
        """Search once more for the bucket of these extents, and use the best that is known then.
        What was judged before is served from the cache.

        Raises:
            ConfigError: if the bucket cannot be tuned, or choices are frozen.
        """
        bucket = self.bucket(**extents)
        if bucket is None or self._tuner.frozen:
            expected = "extents of a bucket" if bucket is None else "choices that are not frozen"
            raise ConfigError("autotune", None, "tune", expected, repr(extents))
        row = self._tuner.searched(bucket, again=True)
        with self._lock:
            self._rows[tuple(bucket.values())] = row
            self._executed.clear()
            self._kernels.clear()
        return row

    def __repr__(self) -> str:
        return f"Autotuned({self._problem.identity}, key={self._key})"

    # Calling

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Compute the outputs; given a function alone, a decorator: the same with that function as
        the plain one.

        Raises:
            CallError: if an input is missing, unknown or does not fit the problem.
            NotTunedError: if nothing is chosen for its shape and ``on_miss`` is ``error``.
        """
        if self._function is None and len(inputs) == 1 and not named and callable(inputs[0]):
            buckets, rows, frozen, observe = self._given
            return Autotuned(
                self._campaign,
                self._key,
                buckets,
                self._on_miss,
                function=inputs[0],
                rows=rows,
                frozen=frozen,
                observe=observe,
            )
        arrays, extents = self._read(inputs, named)
        executed = self._for(extents)
        if executed is None:
            return self._plain(arrays)
        try:
            return executed(arrays, extents, self._function)
        except UncheckedError:
            return self._plain(arrays)
        except DisagreementError as error:
            self._warn(f"{self._problem.name} {_sizes(extents)}: {error}")
            with self._lock:
                for sizes, other in list(self._executed.items()):
                    if other is executed:
                        self._executed[sizes] = None
                self._kernels = {k: v for k, v in self._kernels.items() if v is not executed}
            return self._plain(arrays)

    def _read(
        self, inputs: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[dict[str, Array], dict[str, int]]:
        """The inputs by name, and their extents; what arrays of the same shapes and types said
        before is remembered, since reading shapes takes longer than a small kernel.
        """
        kinds = None
        if not named and all(type(array) is np.ndarray for array in inputs):
            kinds = tuple((array.shape, array.dtype) for array in inputs)
            known = self._shapes.get(kinds)
            if known is not None:
                return dict(zip(self._names, inputs, strict=True)), known
        arrays = bound(self._problem, inputs, named)
        extents = extents_in(self._problem, arrays)
        self._see_that_it_is_fixed(extents)
        if kinds is not None:
            self._shapes[kinds] = extents
        return arrays, extents

    def _plain(self, arrays: Mapping[str, Array]) -> Any:
        given = [arrays[spec.name] for spec in inputs_of(self._problem)]
        if self._function is not None:
            return self._function(*given)
        problem = self._problem
        found = problem.reference(dict(arrays))
        outputs = tuple(
            found[t.name].astype(t.dtype) for t in problem.tensors if t.role == "output"
        )
        return outputs[0] if len(outputs) == 1 else outputs

    def _for(self, extents: dict[str, int]) -> Executed | None:
        """What computes at these extents; None for the plain function."""
        sizes = tuple(extents.values())
        try:
            return self._executed[sizes]
        except KeyError:
            pass
        if not all(sizes):
            return None  # There is nothing to compute, so nothing is searched or checked for it.
        bucket = self._buckets.of(extents)
        row = None if bucket is None else self._chosen(bucket)
        found = None
        if bucket is None or row is None:
            self._missed(extents)
        elif is_worth_using(row):
            with self._lock:
                found = self._built(row, extents, bucket)
        with self._lock:
            # Unless `tune` has chosen anew meanwhile; then the next call looks again.
            if bucket is None or self._rows.get(tuple(bucket.values())) is row:
                self._executed[sizes] = found
        return found

    def _missed(self, extents: dict[str, int]) -> None:
        if self._on_miss == "error":
            known = "; ".join(str(row["extents"]) for row in self.choices()) or "nothing"
            what = f"expected a choice for {_sizes(extents)}, found choices for {known}"
            raise NotTunedError(f"{self._problem.name}: {what}")

    def _built(self, row: Row, extents: dict[str, int], bucket: dict[str, int]) -> Executed | None:
        """A kernel for the bucket where inputs may be padded, else for the extents as they are."""
        if self._paddable is None:
            padding = [name for name in self._key if name in extents]
            self._paddable = paddable(self._make, padding)
        sizes = {n: bucket[n] if n in self._paddable else size for n, size in extents.items()}
        place = tuple(sizes.values())
        if place not in self._kernels:
            try:
                self._kernels[place] = built_for(self._make, row, sizes)
            except (CompilerError, OSError, ValueError) as error:
                self._warn(f"{self._problem.name} {_sizes(sizes)}: no kernel: {error}")
                return None
        return self._kernels[place]

    # Choosing

    def _chosen(self, bucket: dict[str, int]) -> Row | None:
        sizes = tuple(bucket.values())
        if sizes in self._rows:
            return self._rows[sizes]
        row = None
        try:
            missing = self._tuner.place(bucket).missing
            if missing:
                self._warn(f"{self._problem.name} is not tuned without {', '.join(missing)}")
            else:
                row = self._tuner.found(bucket)
                if row is None and self._on_miss == "tune":
                    row = self._tuner.searched(bucket)
        except (ConfigError, CompilerError, DriverError, JudgeError, OSError) as error:
            self._warn(f"{self._problem.name} {_sizes(bucket)} is not tuned: {error}")
        if row is not None or self._on_miss != "error":
            self._rows[sizes] = row
        return row

    # What is refused

    def _whole(self, extents: Mapping[str, int]) -> dict[str, int]:
        """Extents in declared order, those outside the key as the problem has them."""
        out: dict[str, int] = {}
        for name, own in self._problem.workloads[0].extents:
            size = extents.get(name) if name in self._key else own
            # A NumPy integer, as shapes and lengths often are, is as good.
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
                break
            out[name] = int(size)
        if len(out) < len(self._problem.workloads[0].extents) or not set(extents) <= set(out):
            found = _sizes(extents) or "none"
            expected = f"extents {', '.join(self._key)} of at least 1"
            raise CallError(f"{self._problem.name}: expected {expected}, found {found}")
        return out

    def _see_that_it_is_fixed(self, extents: Mapping[str, int]) -> None:
        for name, size in self._problem.workloads[0].extents:
            if name not in self._key and extents[name] != size:
                what = f"expected {name}={size}, which is not in the key, found {extents[name]}"
                raise CallError(f"{self._problem.name}: {what}")

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(f"{message}; the plain function answers", TuningWarning, stacklevel=4)


def _check_key(problem: Problem, key: Sequence[str], options: Mapping[str, Any]) -> None:
    names = [name for name, _ in problem.workloads[0].extents]
    for name in key:
        if name not in names:
            expected = f"extents of {problem.name} ({', '.join(names)})"
            raise ConfigError("autotune", None, "key", expected, repr(name), nearest(name, names))
    loose = [name for name in names if name not in key and name not in options]
    if loose:
        expected = f"every extent of {problem.name} in the key or among the problem's options"
        raise ConfigError("autotune", None, "key", expected, f"{', '.join(loose)} in neither")


def _sizes(extents: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in extents.items())
