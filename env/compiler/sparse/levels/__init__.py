"""Level kinds, one file each: how the coordinates of one dimension are stored."""

from __future__ import annotations

LEVELS: dict[str, str] = {
    "dense": "kernelwright.env.compiler.sparse.levels.dense:Dense",
    "compressed": "kernelwright.env.compiler.sparse.levels.compressed:Compressed",
    "singleton": "kernelwright.env.compiler.sparse.levels.singleton:Singleton",
    "padded": "kernelwright.env.compiler.sparse.levels.padded:Padded",
    "hashed": "kernelwright.env.compiler.sparse.levels.hashed:Hashed",
    "offset": "kernelwright.env.compiler.sparse.levels.offset:Offset",
}
