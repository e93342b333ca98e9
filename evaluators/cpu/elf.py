"""A library's file as tables: segments, sections, what the dynamic linker reads, and symbols.

The words are those of the System V ABI (ELF, chapters 4 and 5) and of the processors' supplements.
Whoever wrote the text decides how long the tables are, so they are read as arrays; what must be
read one by one is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from io import BytesIO
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_D_TAG
from numpy.typing import NDArray

# The most of what is read one by one, far above what a kernel has.
_SECTIONS, _SEGMENTS, _TAGS, _SYMBOLS = 1024, 64, 1024, 1 << 14
_NAME_BYTES, _ENTRY_BYTES = 1024, 16
_SYMBOL = np.dtype(
    [
        ("name", "<u4"),
        ("info", "u1"),
        ("other", "u1"),
        ("section", "<u2"),
        ("value", "<u8"),
        ("size", "<u8"),
    ]
)
_RELA = np.dtype([("place", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
_REL = np.dtype([("place", "<u8"), ("kind", "<u4"), ("symbol", "<u4")])
# The relocation that calls a resolver to learn an address, by the machine.
_IRELATIVE = {"EM_X86_64": 37, "EM_AARCH64": 1032, "EM_RISCV": 58, "EM_PPC64": 248}
# Kinds of segments, and the kind of a section with symbols.
LOAD, DYNAMIC, TLS = "PT_LOAD", "PT_DYNAMIC", "PT_TLS"
STACK, RELRO = "PT_GNU_STACK", "PT_GNU_RELRO"
_SYMTAB = "SHT_SYMTAB"


# The fields of `Segment` and `Section` in the ABI's words.
_SEGMENT = ("p_type", "p_flags", "p_offset", "p_vaddr", "p_filesz", "p_memsz")
_SECTION = ("sh_name", "sh_type", "sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link")


class BinaryError(ValueError):
    """A file that is no library of this kind, or a damaged one."""


class Tag(IntEnum):
    """Entries of the dynamic table, by number."""

    NULL = 0
    NEEDED = 1
    PLTRELSZ = 2
    HASH = 4
    STRTAB = 5
    SYMTAB = 6
    RELA = 7
    RELASZ = 8
    STRSZ = 10
    INIT = 12
    FINI = 13
    RPATH = 15
    REL = 17
    RELSZ = 18
    PLTREL = 20
    TEXTREL = 22
    JMPREL = 23
    INIT_ARRAY = 25
    FINI_ARRAY = 26
    INIT_ARRAYSZ = 27
    FINI_ARRAYSZ = 28
    RUNPATH = 29
    FLAGS = 30
    PREINIT_ARRAY = 32
    PREINIT_ARRAYSZ = 33
    GNU_HASH = 0x6FFFFEF5
    DEPAUDIT = 0x6FFFFEFB
    AUDIT = 0x6FFFFEFC
    AUXILIARY = 0x7FFFFFFD
    FILTER = 0x7FFFFFFF


class Segment(NamedTuple):
    """What is loaded, where, and what may be done there."""

    kind: str | int
    flags: int
    offset: int
    address: int
    file_bytes: int
    memory_bytes: int

    @property
    def can_execute(self) -> bool:
        """Whether what lies there can be executed."""
        return self.flags & 1 != 0

    @property
    def can_write(self) -> bool:
        """Whether it can be written to once it is loaded."""
        return self.flags & 2 != 0

    @property
    def end(self) -> int:
        """The address after its last byte."""
        return self.address + self.memory_bytes


class Section(NamedTuple):
    """What tools know of a part of a file."""

    name: int
    kind: str | int
    flags: int
    address: int
    offset: int
    size: int
    link: int

    @property
    def is_writable(self) -> bool:
        """Whether it is memory of all threads that can be written to."""
        return self.flags & 0x403 == 3

    @property
    def is_code(self) -> bool:
        """Whether what lies there can be executed."""
        return self.flags & 4 != 0

    @property
    def end(self) -> int:
        """The address after its last byte."""
        return self.address + self.size


class Library:
    """The tables of a library for a 64-bit little-endian machine.

    Args:
        content: the file.

    Attributes:
        irelative: the kind of relocation that calls a function to learn an address.
        segments, sections: its headers.
        section_names: the string table with the sections' names.
        tags, value: the dynamic table in its order, and the last value of each entry.
        relocations: all of them: place, kind, symbol, addend.
        lazily_bound: how many of them bind functions.
        symbols, dynamic_names: the symbols that the dynamic linker sees, and their string table.
        static, static_names: the symbols that only tools see, if there are any; and theirs.

    Raises:
        BinaryError: if it is no such file, or has larger tables than any kernel.
        ELFError, ValueError, LookupError, OverflowError: if it is not what it says.
    """

    def __init__(self, content: bytes) -> None:
        if content[:4] != b"\x7fELF":
            raise BinaryError("another kind of file")
        elf = ELFFile(BytesIO(content))
        if (elf.elfclass, elf.little_endian) != (64, True):
            raise BinaryError("one of another word size or byte order")
        if elf["e_type"] != "ET_DYN":
            raise BinaryError(f"a file of type {elf['e_type']}")
        if elf["e_machine"] not in _IRELATIVE:
            raise BinaryError(f"one for the machine {elf['e_machine']}")
        self._content, self.irelative = content, _IRELATIVE[elf["e_machine"]]
        self._elf, names = elf, elf["e_shstrndx"]
        found = _read(elf.num_segments(), elf.get_segment, _SEGMENTS, "segments")
        self._dynamic = [segment for segment in found if isinstance(segment, DynamicSegment)]
        self.segments = [Segment(*(each[field] for field in _SEGMENT)) for each in found]
        if elf["e_shoff"] and not elf["e_shnum"]:
            # They are counted elsewhere where there are too many for this field.
            raise BinaryError(f"more than {_SECTIONS} sections")
        found = _read(elf["e_shnum"], elf.get_section, _SECTIONS, "sections")
        self.sections = [Section(*(each[field] for field in _SECTION)) for each in found]
        self.section_names = self._of_section(self.sections[names]) if names else b""
        self.tags = self._dynamic_table()
        self.value = dict(self.tags)
        self.relocations = self._all_relocations()
        self.dynamic_names = self._dynamic_strings()
        self.symbols = self._dynamic_symbols()
        self.static, self.static_names = self._static_symbols()

    # The file's own tables

    def _of_section(self, section: Section) -> bytes:
        return self._content[section.offset : section.offset + section.size]

    def _dynamic_table(self) -> list[tuple[int, int]]:
        """The entries of the dynamic table; the dynamic linker takes the last of each."""
        if len(self._dynamic) != 1:
            raise BinaryError(f"{len(self._dynamic)} dynamic tables")
        (table,) = self._dynamic
        check_count(table["p_filesz"] // _ENTRY_BYTES, _TAGS, "entries in the dynamic table")
        entries = list[tuple[int, int]]()
        for tag in islice(table.iter_tags(), _TAGS):
            kind = ENUM_D_TAG.get(tag.entry.d_tag, tag.entry.d_tag)
            if kind == Tag.NULL:
                return entries
            entries.append((int(kind), int(tag.entry.d_val)))
        raise BinaryError("a damaged file (a dynamic table without an end)")

    # Tables by address

    def _from(self, address: int) -> bytes:
        """What lies in memory from an address on, as far as it comes from one part of the file."""
        for segment in self.segments:
            into = address - segment.address
            if segment.kind == LOAD and 0 <= into < segment.file_bytes:
                return self._content[segment.offset + into : segment.offset + segment.file_bytes]
        return b""

    def _at(self, address: int, size: int) -> bytes:
        """What lies in memory at an address, where it comes from the file."""
        found = self._from(address)[:size]
        if len(found) != size:
            raise BinaryError(f"a damaged file ({size} bytes at {address:#x} are not in it)")
        return found

    def table(self, address: Tag, size: Tag, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The table that two entries of the dynamic table describe."""
        if address not in self.value:
            return np.empty(0, dtype)
        return np.frombuffer(self._at(self.value[address], self.value.get(size, 0)), dtype)

    def _all_relocations(self) -> NDArray[Any]:
        tables = [self.table(Tag.RELA, Tag.RELASZ, _RELA)]
        for address, size, dtype in (
            (Tag.REL, Tag.RELSZ, _REL),
            (Tag.JMPREL, Tag.PLTRELSZ, self._plt_dtype()),
        ):
            table = self.table(address, size, dtype)
            full = np.zeros(len(table), _RELA)
            for field in table.dtype.names or ():
                full[field] = table[field]
            tables.append(full)
        self.lazily_bound = len(tables[-1])
        return np.concatenate(tables)

    def _plt_dtype(self) -> np.dtype[Any]:
        return _REL if self.value.get(Tag.PLTREL) == Tag.REL else _RELA

    def _dynamic_strings(self) -> bytes:
        size = self.value.get(Tag.STRSZ, 0)
        return self._at(self.value[Tag.STRTAB], size) if size else b""

    def _dynamic_symbols(self) -> NDArray[Any]:
        """The dynamic symbols: those that a hash table counts, and those that are relocated."""
        used = int(self.relocations["symbol"].max(initial=0)) + 1
        count = max(self._hashed(), used)
        check_count(count, _SYMBOLS, "dynamic symbols")
        if Tag.SYMTAB not in self.value:
            return np.empty(0, _SYMBOL)
        return np.frombuffer(self._at(self.value[Tag.SYMTAB], count * _SYMBOL.itemsize), _SYMBOL)

    def _hashed(self) -> int:
        """How many dynamic symbols there are by the hash tables, those before them included."""
        counts = [0]
        if Tag.HASH in self.value:
            counts.append(int(np.frombuffer(self._at(self.value[Tag.HASH], 8), "<u4")[1]))
        if Tag.GNU_HASH in self.value:
            start = self.value[Tag.GNU_HASH]
            buckets, before, bloom, _ = np.frombuffer(self._at(start, 16), "<u4").tolist()
            start += 16 + 8 * bloom
            last = int(np.frombuffer(self._at(start, 4 * buckets), "<u4").max(initial=0))
            counts.append(before)
            if last >= before:
                # The highest chain goes on to the first entry with its lowest bit set.
                chain = self._from(start + 4 * (buckets + last - before))
                ends = np.frombuffer(chain[: len(chain) & ~3], "<u4") & 1
                if not ends.any():
                    raise BinaryError("a damaged file (a hash table without an end)")
                counts.append(last + int(ends.argmax()) + 1)
        return max(counts)

    def _static_symbols(self) -> tuple[NDArray[Any], bytes]:
        """The symbols that only tools look at, with their names; none in a stripped library."""
        for section in self.sections:
            if section.kind == _SYMTAB:
                table = np.frombuffer(self._of_section(section), _SYMBOL)
                return table, self._of_section(self.sections[section.link])
        return np.empty(0, _SYMBOL), b""

    def names_of(self, symbols: NDArray[Any]) -> list[str]:
        """The names of some of `symbols`."""
        return [string_at(self.dynamic_names, place) for place in symbols["name"].tolist()]


def _read(count: int, get: Callable[[int], Any], most: int, what: str) -> list[Any]:
    """The entries of a table that is short enough.

    Raises:
        BinaryError: if it is not.
    """
    check_count(count, most, what)
    return [get(number) for number in range(count)]


def check_count(count: int, most: int, what: str) -> None:
    """See that a table is short enough to be read entry by entry.

    Raises:
        BinaryError: if it is not.
    """
    if count > most:
        raise BinaryError(f"{count} {what}, more than {most}")


def string_at(table: bytes, place: int) -> str:
    """The string at a place of a string table.

    Raises:
        BinaryError: if there is none, or one longer than any name of a kernel's.
    """
    end = table.find(b"\0", place, place + _NAME_BYTES)
    if end < 0:
        if place + _NAME_BYTES < len(table):
            raise BinaryError(f"a name of more than {_NAME_BYTES} bytes")
        raise BinaryError(f"a damaged file (no string at {place} of {len(table)})")
    return table[place:end].decode("utf-8", "backslashreplace")
