"""How fast knob values may be: what the listed programs say of others, by how near they are, over
what the device and the profile let expect.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.agents.programmer.knobadvice import expected
from kernelwright.agents.programmer.knobtext import Choices, Levels, levels_of
from kernelwright.agents.programmer.reading import Sheet

Floats = NDArray[np.float64]
# How much a failure counts as slower than the parent, in log2 of speed.
DREAD = 1.0
# How far a result speaks for others, in shares of a knob's range; how little it is believed, and
# how much less a result of which nothing is believed.
REACH, DOUBT, HEARSAY = 0.9, 0.02, 0.5
# What the unknown counts for, in log2 of speed.
CURIOUS = 0.3


def promises(sheet: Sheet, choices: Choices, parent: Levels, offered: list[Levels]) -> list[float]:
    """How fast programs may be, in log2 (a Gaussian process), and a part of what is not known."""
    known = _lessons(sheet, choices, parent)
    scale = np.array([max(len(values) - 1, 1) for values in choices.values()])
    told = np.array(list(known)) / scale
    heights = np.array([height for height, _ in known.values()])
    doubts = np.array([doubt for _, doubt in known.values()])
    asked = np.array(offered, dtype=float).reshape(len(offered), len(scale)) / scale
    advised = expected(sheet, choices, parent, [*known, *offered])
    surprises = heights - advised[: len(known)]
    own = np.linalg.inv(_alike(told, told) + np.diag(doubts))
    near = _alike(asked, told)
    middle = np.average(surprises, weights=DOUBT / doubts)
    means = middle + near @ own @ (surprises - middle) + advised[len(known) :]
    unknown = np.sqrt(np.clip(1.0 - np.einsum("ij,jk,ik->i", near, own, near), 0.0, 1.0))
    # Rounded, so that no machine's last bits choose.
    return [round(float(promise), 9) for promise in means + CURIOUS * unknown]


def _alike(left: Floats, right: Floats) -> Floats:
    """How much programs have to say of each other, by their levels as shares of their ranges."""
    squares = ((left[:, None, :] - right[None, :, :]) ** 2).sum(axis=-1)
    alike: Floats = np.exp(-squares / (2 * REACH**2))
    return alike


def _lessons(sheet: Sheet, choices: Choices, parent: Levels) -> dict[Levels, tuple[float, float]]:
    """The programs that the prompt shows, with their heights and how little those are believed; one
    that failed counts as slower than the parent. What was tried here counts before what others say.
    """
    height = sheet.height or 0.0
    dread, around = height - DREAD, sheet.around
    told = [
        (winner.text, winner.height * winner.trust, DOUBT + HEARSAY * (1.0 - winner.trust))
        for winner in sorted(around.winners, key=lambda winner: winner.trust)
    ]
    tried = [*around.others, *sheet.results]
    told += [(r.text, dread if r.height is None else r.height, DOUBT) for r in tried]
    told += [(text, dread, DOUBT) for text, _ in sheet.failures]
    read = ((levels_of(text, choices), got, doubt) for text, got, doubt in told)
    known = {levels: (got, doubt) for levels, got, doubt in read if levels is not None}
    own = {levels_of(r.text, choices) for r in tried}
    if parent not in own:
        known[parent] = (height, DOUBT)
    return known
