"""What recordings of some shapes say of another one: a model of features that carry over.

A configuration's knobs mean other things at another shape: a tile of 128 x 128 is a thousand blocks
there and four here. So beside the coordinates of the knobs a row has what they make of the extents:
how many blocks there are, how much of them is padding, how many steps K takes. A Gaussian process
learns log2 time over each recording's own best from the fastest of every recording and an even
choice of the rest. After Steiner et al., Value learning for throughput optimization of deep
learning workloads, MLSys 2021, section 3 (features of loop nests instead of knobs), for the knobs
of a tiled matrix product, which are the only ones here whose meaning is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.types import Knob
from kernelwright.search.models.coordinates import coordinates
from kernelwright.search.models.gaussian import Array, Gaussian, Table

TILES = {"bm": "m", "bn": "n", "bk": "k"}
# Rows of each recording that are learned: its fastest, and an even choice of the rest; and how far
# behind the best one is told apart, log2.
FASTEST, REST, SLOWEST = 150, 150, 5.0
FIT_ROWS = 300  # of them decide the length scales
AT_ONCE = 8192  # rows predicted at a time
# A scale of octaves for each feature, so that they are about as wide as the knobs' own.
BLOCKS, PADDING, STEPS = 12.0, 4.0, 10.0


def shape_coordinates(
    knobs: Sequence[Knob], levels: NDArray[np.integer], extents: Mapping[str, int]
) -> Table | None:
    """Coordinates of configurations at a shape, shape (configurations, coordinates), given their
    levels, shape (configurations, knobs); None for what is no tiled matrix product.
    """
    names = [knob.name for knob in knobs]
    if set(TILES) - set(names) or set(TILES.values()) - set(extents):
        return None
    blocks, padding = np.zeros(len(levels)), np.zeros(len(levels))
    steps = blocks
    for tile, name in TILES.items():
        place = names.index(tile)
        sizes = np.array([float(value) for value in knobs[place].values])[levels[:, place]]
        count = np.ceil(extents[name] / sizes)
        padding = padding + np.log2(count * sizes / extents[name])
        if tile == "bk":
            steps = np.log2(count)
        else:
            blocks = blocks + np.log2(count)
    own = np.stack([blocks / BLOCKS, padding / PADDING, steps / STEPS], axis=1)
    rows: Table = np.concatenate([coordinates(tuple(knobs), levels), own], axis=1).astype(
        np.float32
    )
    return rows


def carried(recordings: Sequence[tuple[Table, Array]], table: Table) -> Array:
    """What to expect of the rows of a table, log2 time up to a constant.

    Args:
        recordings: the rows of each with their costs, log2 time, infinite where it is not known.
        table: rows of the shape that is asked for.
    """
    known = []
    for rows, cost in recordings:
        ran = np.isfinite(cost)
        known.append((rows[ran], np.minimum(cost[ran] - cost[ran].min(), SLOWEST)))
    return predicted(known, table)


def predicted(known: Sequence[tuple[Table, Array]], table: Table) -> Array:
    """A Gaussian process on the fastest of each of some sets of rows with costs, and an even choice
    of the rest.
    """
    rows, costs = [], []
    for own, cost in known:
        order = np.argsort(cost, kind="stable")
        rest = order[FASTEST:]
        even = rest[np.linspace(0, len(rest) - 1, min(REST, len(rest))).astype(int)]
        chosen = np.concatenate([order[:FASTEST], even])
        rows.append(own[chosen])
        costs.append(cost[chosen])
    values = np.concatenate(costs)
    level, scale = float(values.mean()), float(values.std()) or 1.0
    standard = (values - level) / scale
    model = Gaussian(table.shape[1])
    model.agree(np.concatenate(rows))
    model.fit(standard, most=FIT_ROWS)
    out = np.empty(len(table))
    for start in range(0, len(table), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        model.look_at(table[part])
        out[part] = level + scale * model.mean(standard)[0]
    return out
