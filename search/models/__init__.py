"""Cost models that learn log time from features, for drivers that rank before they measure.

`MODELS` is a table of dotted paths; any dotted path of one's own works too. A model is called with
the space, and with those of ``seed``, ``problem`` and ``penalty`` that it names; ``model.py`` says
what it has to offer.
"""

from __future__ import annotations

MODELS: dict[str, str] = {
    "ridge": "kernelwright.search.models.ridge:ridge",
    "trees": "kernelwright.search.models.trees:Trees",
    "prior": "kernelwright.search.models.prior:Prior",
}
