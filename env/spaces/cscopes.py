"""How far the declarations of a C function reach, and which of them a name means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_TYPES = "void char short int long float double signed unsigned _Bool bool __auto_type _Complex"
_QUALIFIERS = (
    "const volatile restrict __restrict __restrict__ static register inline __inline __inline__ "
    "auto _Atomic _Noreturn _Thread_local __thread"
)
_OTHERS = (
    "break case continue default do else enum extern for goto if return sizeof struct switch "
    "typedef union while _Alignas _Alignof _Generic _Static_assert typeof __typeof__ __alignof__ "
    "__extension__ alignas alignof asm __asm __asm__ __attribute__"
)
TYPES = frozenset(_TYPES.split())
QUALIFIERS = frozenset(_QUALIFIERS.split())
WORDS = TYPES | QUALIFIERS | frozenset(_OTHERS.split())


class GiveUpError(Exception):
    """A function that is not read for certain."""


class Scopes:
    """The declarations in reach, innermost last.

    ``found`` has the places of names that mean a local, with the number of its declaration;
    ``kept`` are names that mean something else as well.
    """

    def __init__(self, types: frozenset[str]) -> None:
        self._types = types
        self._open: list[dict[str, int]] = [{}]
        self._count = 0
        self.found: list[tuple[int, int]] = []
        self.kept: set[str] = set()

    @contextmanager
    def inner(self) -> Iterator[None]:
        """A scope in the present one."""
        self._open.append({})
        yield
        self._open.pop()

    def is_type(self, name: str) -> bool:
        """Whether a name is one of a type."""
        return name in self._types

    def declare(self, name: str, at: int) -> None:
        """A name is declared at a place.

        Raises:
            GiveUpError: if it is the name of a type, which it would hide, or stands in this scope
                already, which is no C.
        """
        if name in self._types or name in WORDS or name in self._open[-1]:
            raise GiveUpError(name)
        self._open[-1][name] = self._count
        self.found.append((at, self._count))
        self._count += 1

    def use(self, name: str, at: int) -> None:
        """A name stands at a place."""
        if name in WORDS:
            return
        for scope in reversed(self._open):
            if name in scope:
                self.found.append((at, scope[name]))
                return
        self.kept.add(name)
