"""JSON for every record: ``loads(cls, dumps(record)) == record``. Reading runs the same
constructors, so nothing impossible gets in.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


@lru_cache(maxsize=64)
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def dumps(record: object) -> str:
    """The record as compact JSON."""
    cls: Any = type(record)
    return _adapter(cls).dump_json(record).decode()


def loads(cls: type[T], text: str) -> T:
    """The record of class ``cls`` in ``text``.

    Raises:
        pydantic.ValidationError: (a `ValueError`) if the text does not hold such a record; it
            names the field and what was found.
    """
    wanted: Any = cls
    record: T = _adapter(wanted).validate_json(text)
    return record
