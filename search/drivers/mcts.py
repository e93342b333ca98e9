"""Monte Carlo tree search over schedules: a tree of partial traces, grown where it pays.

A node is a trace and a candidate too. From the root the search goes to the child with the best
upper confidence bound (Kocsis and Szepesvári, UCT, 2006) while a node has as many children as its
visits allow: ``widening`` · visits^½ (progressive widening, Coulom 2007), since hundreds of
directives may follow and most are never worth a try. There it adds a child by a legal directive
drawn at random, and from the child goes on: mostly by what follows in the best trace through the
node above, as far as that stays legal, else at random for up to ``rollout`` directives. The end is
what is measured.

The value of a node is midway between the mean and the best of what was measured below it, between
the least and the greatest seen; a failure counts as the least. A trace that is the best so far
joins the tree with all its prefixes, so that the search goes on from there; so do the ``initial``
samples of the space that the search begins with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from pydantic import Field

from kernelwright.env.protocols import Space
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.traces import Traces, schedules
from kernelwright.search.trial import Trial

FOLLOW = 0.75  # share of rollouts that follow the best trace
TRIES = 8  # descents for one trace that was not visited


@dataclass(slots=True)
class Node:
    """A trace in the tree: its children by handle, how often it was passed through, and what was
    measured below it (count, sum, best, and whose that was).
    """

    handle: int
    children: dict[int, Node] = field(default_factory=dict)
    visits: int = 0
    told: int = 0
    total: float = 0.0
    best: float = -math.inf
    leader: int | None = None


class Mcts:
    """UCT with progressive widening and random rollouts."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        initial: Annotated[
            int, Field(ge=0, description="samples of the space that the tree begins with")
        ] = 12,
        explore: Annotated[
            float, Field(ge=0, description="weight of the bound's second term, on values 0 to 1")
        ] = 0.1,
        widening: Annotated[
            float, Field(gt=0, description="children allowed a square root of visits")
        ] = 1.0,
        rollout: Annotated[
            int, Field(ge=0, le=128, description="random directives after a new node, at most")
        ] = 4,
    ) -> None:
        del batch
        self._initial, self._proposed = initial, 0
        self._traces = Traces(schedules(space), np.random.default_rng(seed))
        self._pool = self._traces.pool
        self._explore, self._widening, self._rollout = explore, widening, rollout
        self.root = Node(self._traces.root)
        self._paths: dict[int, list[Node]] = {}
        self._low, self._high = math.inf, -math.inf
        self._known: set[int] = set()

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._pool.stopped

    def ask(self, n: int) -> list[Proposal]:
        """The empty trace, then what descents through the tree end in."""
        out: list[Proposal] = []
        while len(out) < n:
            sampled = 0 < self._proposed <= self._initial
            path, handle = ([], None) if sampled else self._descent()
            if handle is None:
                path, handle = [], self._pool.draw()
            if handle is None:
                break
            self._pool.remove(handle)
            self._proposed += 1
            for node in path:
                node.visits += 1
            self._paths[handle] = path
            known = [node.handle for node in path if node.handle in self._known]
            parents = tuple(self._pool.candidate(h).key for h in known[-1:] if h != handle)
            out.append(Proposal(self._pool.candidate(handle), "mcts", parents))
        return out

    def _descent(self) -> tuple[list[Node], int | None]:
        """A path through the tree to a new node, and an unvisited trace from there."""
        if self.root.handle in self._pool:
            return [self.root], self.root.handle
        for _ in range(TRIES):
            path = [self.root]
            while (child := self._next(path[-1])) is not None:
                path.append(child)
                if not child.visits:
                    break
            handle = self._unvisited(path)
            if handle is not None:
                return path, handle
        return [], None

    def _next(self, node: Node) -> Node | None:
        """A new child where there is room for one, else the child with the best bound."""
        if len(node.children) < max(1.0, self._widening * math.sqrt(node.visits)):
            handle = self._traces.extend(node.handle)
            if handle is not None and handle not in node.children:
                child = node.children[handle] = Node(handle)
                return child
        if not node.children:
            return None
        log = math.log(1 + node.visits)
        return max(
            node.children.values(),
            key=lambda c: self._value(c) + self._explore * math.sqrt(log / (1 + c.visits)),
        )

    def _value(self, node: Node) -> float:
        """Between 0 and 1; what was asked and not told counts as the least."""
        if not node.told or self._high <= self._low:
            return 0.5
        extent = self._high - self._low
        mean = (node.total - node.told * self._low) / extent / max(node.visits, node.told)
        best = max(0.0, node.best - self._low) / extent
        return (mean + best) / 2

    def _unvisited(self, path: Sequence[Node]) -> int | None:
        """An unvisited trace that goes on from the end of a path: mostly by what follows in the
        best trace through the node above, then at random; the longest one that was not visited.
        """
        handle = path[-1].handle
        leader = path[-2].leader if len(path) > 1 else None
        if leader is not None and self._pool.uniform() < FOLLOW:
            above = len(self._traces.trace(path[-2].handle))
            handle = self._traces.follow(handle, self._traces.trace(leader)[above:])
            length = int(self._pool.uniform() * 2)
        else:
            length = int(self._pool.uniform() * (self._rollout + 1))
        found = handle if handle in self._pool else None
        for _ in range(max(length, found is None)):
            longer = self._traces.extend(handle)
            if longer is None:
                break
            handle = longer
            found = handle if handle in self._pool else found
        return found

    def _graft(self, handle: int) -> None:
        """Put a trace into the tree with all its prefixes."""
        node, trace = self.root, self._traces.trace(handle)
        path = [node]
        for length in range(1, len(trace) + 1):
            part = self._traces.prefix(handle, length)
            node = node.children.setdefault(part, Node(part))
            path.append(node)
        held = {id(each) for each in self._paths.get(handle, [])}
        for each in path:
            each.visits += id(each) not in held
        self._paths[handle] = path

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn what every trace on the way to a trial leads to."""
        for trial in trials:
            handle = self._pool.handle(trial.candidate)
            self._pool.remove(handle)
            self._known.add(handle)
            value = trial.objective
            if value is not None:
                # Samples have no path; what somebody else tried has none either.
                if value > self._high or not self._paths.get(handle):
                    self._graft(handle)
                self._low, self._high = min(self._low, value), max(self._high, value)
            least = self._low if math.isfinite(self._low) else 0.0
            for node in self._paths.pop(handle, []):
                node.told += 1
                node.total += least if value is None else value
                if value is not None and value > node.best:
                    node.best, node.leader = value, handle
