"""The judge's secret: 256 bits from the system, drawn for a sitting, kept in this process's memory.

Everything that a candidate must not foresee is drawn from it: values, orders, counts, addresses,
canaries. Each draw has a stream of its own, keyed by what it is for; the streams are hashes of the
secret, so that whoever reconstructs the state of one from the values it gave knows no other. It has
nothing to do with a campaign's ``seed``, which candidates may know.
"""

from __future__ import annotations

import hashlib
import secrets

import numpy as np


class Secret:
    """A key, and random streams made from it.

    Args:
        key: 32 bytes; drawn from the system's randomness unless one that was disclosed is replayed.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(32) if key is None else key

    def stream(self, *purpose: str | int) -> np.random.Generator:
        """The random stream of a purpose; the same again for the same purpose."""
        digest = hashlib.blake2b(repr(purpose).encode(), key=self._key, digest_size=32).digest()
        return np.random.Generator(np.random.SFC64(int.from_bytes(digest, "big")))

    def disclosed(self) -> str:
        """The key in hexadecimal: for the record, when no more candidates will be judged by it."""
        return self._key.hex()

    def __repr__(self) -> str:
        return "Secret(...)"
