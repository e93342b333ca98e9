"""What a built library would do to the process that loads it, read from its file: what it calls and
needs, what runs before its kernel is called, and what it keeps.

The words are those of the System V ABI (ELF, chapters 4 and 5) and of the processors' supplements.
Nothing is loaded and nothing is executed. What the dynamic linker goes by decides (segments, the
dynamic table, relocations); sections and the static symbol table only give sizes and names.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.constants import P_FLAGS, SH_FLAGS
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import Toolchain

# A translation unit that holds nothing, and that no warning is about.
EMPTY = "typedef int kw_nothing;\n"
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
_ADDRESS = 8
# The relocation that calls a resolver to learn an address, by machine.
_IRELATIVE = {"EM_X86_64": 37, "EM_AARCH64": 1032, "EM_RISCV": 58, "EM_PPC64": 248}
_FUNCTION, _IFUNC = 2, 10
_UNDEFINED, _LOCAL = 0, 0
# The global offset table of lazy binding starts with three words of the dynamic linker's.
_GOT_WORDS = 3
# What makes the dynamic linker load a further library.
_NEEDS = ("DT_NEEDED", "DT_FILTER", "DT_AUXILIARY", "DT_AUDIT", "DT_DEPAUDIT")
# What a linker exports of every library.
_LINKERS_OWN = frozenset(("_init", "_fini", "_end", "_edata", "__bss_start"))
# What pyelftools and NumPy stumble over where a file is not what it says.
_STUMBLES = (
    ELFError,
    ConstructError,
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    OverflowError,
)


class BinaryError(ValueError):
    """A file that is no library of this kind, or a damaged one."""


@dataclass(frozen=True, slots=True)
class BinaryFacts:
    """What is known of a library from its file.

    Args:
        undefined: the symbols that it wants from others, functions and data.
        exported: the symbols that others can find in it.
        needed: the libraries that are loaded with it.
        search_paths: where it has them looked for (RPATH, RUNPATH).
        constructors: what runs when it is loaded, by name where there is one, else by address.
        destructors: what runs when it is unloaded or the process ends.
        init_bytes: the code of ``_init``, which runs before the constructors.
        fini_bytes: the code of ``_fini``, which runs after the destructors.
        ifuncs: symbols whose address a function of the library's chooses when it is loaded.
        tls_bytes: thread-local memory of a thread.
        static_bytes: memory that lasts from call to call and can be written.
        objects: the named ones that lie there, with their bytes, largest first.
        executable_stack: whether it asks for a stack that can be executed.
        writable_code: the segments that can be both written and executed, by address.
        text_relocations: whether its code is written to when it is loaded.
    """

    undefined: tuple[str, ...] = ()
    exported: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    search_paths: tuple[str, ...] = ()
    constructors: tuple[str, ...] = ()
    destructors: tuple[str, ...] = ()
    init_bytes: int = 0
    fini_bytes: int = 0
    ifuncs: tuple[str, ...] = ()
    tls_bytes: int = 0
    static_bytes: int = 0
    objects: tuple[tuple[str, int], ...] = ()
    executable_stack: bool = False
    writable_code: tuple[str, ...] = ()
    text_relocations: bool = False

    def beyond(self, own: BinaryFacts) -> BinaryFacts:
        """These facts without what the toolchain puts into every library.

        What is the toolchain's own is known by number, not by name: its parts are linked into
        every library, so one entry more than in an empty one is somebody else's whatever it is
        called.

        Args:
            own: the facts of an empty library of the same toolchain and flags (`own_facts`).
        """
        objects = tuple((Counter(self.objects) - Counter(own.objects)).elements())
        static = max(self.static_bytes - own.static_bytes, sum(size for _, size in objects))
        return replace(
            self,
            constructors=(
                *_without(self.constructors, own.constructors),
                *(("_init",) if self.init_bytes != own.init_bytes else ()),
            ),
            destructors=(
                *_without(self.destructors, own.destructors),
                *(("_fini",) if self.fini_bytes != own.fini_bytes else ()),
            ),
            init_bytes=self.init_bytes - own.init_bytes,
            fini_bytes=self.fini_bytes - own.fini_bytes,
            static_bytes=max(static, 0),
            objects=objects,
        )


def own_facts(cache: BuildCache, toolchain: Toolchain, flags: Sequence[str]) -> BinaryFacts:
    """The facts of an empty library: what this toolchain with these flags puts into every one.

    Raises:
        BuildError: if the compiler refuses to compile nothing.
        BinaryError: if it does not make libraries of the kind that `facts_of` reads.
        OSError: if the cache cannot be written.
    """
    return facts_of(cache.build(EMPTY, toolchain, flags).library)


def facts_of(library: Path) -> BinaryFacts:
    """Read the facts of a library, those that every library of its toolchain shares included.

    Raises:
        BinaryError: if the file is no 64-bit little-endian ELF library, or a damaged one.
        OSError: if it cannot be read.
    """
    content = library.read_bytes()
    try:
        return _Library(content).facts()
    except BinaryError as error:
        raise BinaryError(f"{library}: expected an ELF library, found {error}") from None
    except _STUMBLES as error:
        found = f"a damaged file ({type(error).__name__}: {error})"
        raise BinaryError(f"{library}: expected an ELF library, found {found:.200}") from None


class _Library:
    """A library's tables while its facts are read."""

    def __init__(self, content: bytes) -> None:
        elf = ELFFile(BytesIO(content))
        kind, machine = elf["e_type"], elf["e_machine"]
        if elf.elfclass != 64 or not elf.little_endian:
            raise BinaryError("one of another word size or byte order")
        if kind != "ET_DYN":
            raise BinaryError(f"a file of type {kind}")
        if machine not in _IRELATIVE:
            raise BinaryError(f"one for the machine {machine}")
        self._content, self._irelative = content, _IRELATIVE[machine]
        self._segments = list(elf.iter_segments())
        self._sections = list(elf.iter_sections())
        dynamic = [s for s in self._segments if isinstance(s, DynamicSegment)]
        if len(dynamic) != 1:
            raise BinaryError(f"{len(dynamic)} dynamic tables")
        self._tags = list(dynamic[0].iter_tags())
        self._value = {tag.entry.d_tag: int(tag.entry.d_val) for tag in self._tags}
        self._relocations = self._all_relocations()
        self._dynamic_names = self._dynamic_strings()
        self._symbols = self._dynamic_symbols(dynamic[0].num_symbols())
        self._static, self._static_names = self._static_symbols()

    def facts(self) -> BinaryFacts:
        """Everything that is asked of it."""
        symbols = self._symbols
        local = (symbols["info"] >> 4) == _LOCAL
        defined = symbols["section"] != _UNDEFINED
        undefined = [self._dynamic_name(s) for s in symbols[~defined & ~local]]
        exported = [self._dynamic_name(s) for s in symbols[defined & ~local]]
        stack = [s["p_flags"] for s in self._segments if s["p_type"] == "PT_GNU_STACK"]
        static_bytes, objects = self._static_state()
        return BinaryFacts(
            undefined=tuple(sorted(filter(None, undefined))),
            exported=tuple(sorted({name for name in exported if name} - _LINKERS_OWN)),
            needed=self._strings(_NEEDS),
            search_paths=self._strings(("DT_RPATH", "DT_RUNPATH")),
            constructors=(*self._called("DT_PREINIT_ARRAY"), *self._called("DT_INIT_ARRAY")),
            destructors=self._called("DT_FINI_ARRAY"),
            init_bytes=self._code_bytes("DT_INIT"),
            fini_bytes=self._code_bytes("DT_FINI"),
            ifuncs=self._ifuncs(),
            tls_bytes=sum(s["p_memsz"] for s in self._segments if s["p_type"] == "PT_TLS"),
            static_bytes=static_bytes,
            objects=objects,
            # Without this segment the stack is executable (glibc on x86-64).
            executable_stack=not stack or any(flags & P_FLAGS.PF_X for flags in stack),
            writable_code=tuple(
                hex(s["p_vaddr"])
                for s in self._segments
                if s["p_type"] == "PT_LOAD"
                and s["p_flags"] & P_FLAGS.PF_W
                and s["p_flags"] & P_FLAGS.PF_X
            ),
            text_relocations=self._has_text_relocations(),
        )

    # Tables by address

    def _at(self, address: int, size: int) -> bytes:
        """What lies in memory at an address, where it comes from the file."""
        for segment in self._segments:
            start = segment["p_vaddr"]
            inside = start <= address and address + size <= start + segment["p_filesz"]
            if segment["p_type"] == "PT_LOAD" and inside:
                place = segment["p_offset"] + address - start
                found = self._content[place : place + size]
                if len(found) == size:
                    return found
        raise BinaryError(f"a damaged file ({size} bytes at {address:#x} are not in it)")

    def _table(self, address: str, size: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The table that two entries of the dynamic table describe."""
        if address not in self._value:
            return np.empty(0, dtype)
        return np.frombuffer(self._at(self._value[address], self._value.get(size, 0)), dtype)

    def _all_relocations(self) -> NDArray[Any]:
        tables = [self._table("DT_RELA", "DT_RELASZ", _RELA)]
        for address, size, dtype in (
            ("DT_REL", "DT_RELSZ", _REL),
            ("DT_JMPREL", "DT_PLTRELSZ", self._plt_dtype()),
        ):
            table = self._table(address, size, dtype)
            full = np.zeros(len(table), _RELA)
            for field in table.dtype.names or ():
                full[field] = table[field]
            tables.append(full)
        self._bound = len(tables[-1])
        return np.concatenate(tables)

    def _plt_dtype(self) -> np.dtype[Any]:
        return _REL if self._value.get("DT_PLTREL") == 17 else _RELA  # DT_REL

    def _dynamic_strings(self) -> bytes:
        size = self._value.get("DT_STRSZ", 0)
        return self._at(self._value["DT_STRTAB"], size) if size else b""

    def _dynamic_symbols(self, hashed: int) -> NDArray[Any]:
        """The dynamic symbols: those that the hash table counts, and those that are relocated."""
        used = int(self._relocations["symbol"].max(initial=0)) + 1
        count = max(hashed, used)
        if "DT_SYMTAB" not in self._value:
            return np.empty(0, _SYMBOL)
        return np.frombuffer(self._at(self._value["DT_SYMTAB"], count * _SYMBOL.itemsize), _SYMBOL)

    def _static_symbols(self) -> tuple[NDArray[Any], bytes]:
        """The symbols that only tools look at, with their names; none in a stripped library."""
        for section in self._sections:
            if section["sh_type"] == "SHT_SYMTAB":
                names = self._sections[section["sh_link"]]
                table = np.frombuffer(self._of_section(section), _SYMBOL)
                return table, self._of_section(names)
        return np.empty(0, _SYMBOL), b""

    def _of_section(self, section: Any) -> bytes:
        return self._content[section["sh_offset"] : section["sh_offset"] + section["sh_size"]]

    # Names

    def _dynamic_name(self, symbol: Any) -> str:
        return _string(self._dynamic_names, int(symbol["name"]))

    def _strings(self, tags: Iterable[str]) -> tuple[str, ...]:
        wanted = [t.entry for t in self._tags if t.entry.d_tag in tags]
        return tuple(_string(self._dynamic_names, int(entry.d_val)) for entry in wanted)

    def _name_at(self, address: int) -> str:
        """The name of the function at an address, or the address. What is chosen by a function
        shares its address, and is the one that is called by name.
        """
        at = self._static[self._static["value"] == address]
        for kind in (_IFUNC, _FUNCTION):
            for symbol in at[(at["info"] & 15) == kind]:
                if name := _string(self._static_names, int(symbol["name"])):
                    return name
        return hex(address)

    # What runs when it is loaded and unloaded

    def _called(self, tag: str) -> tuple[str, ...]:
        """The functions in an array of them; what relocations put there, else what is there."""
        slots = self._table(tag, f"{tag}SZ", np.dtype("<u8"))
        start, names = self._value.get(tag, 0), []
        for place, value in enumerate(slots.tolist()):
            put = self._relocations[self._relocations["place"] == start + _ADDRESS * place]
            if len(put) and put[-1]["symbol"]:
                names.append(self._dynamic_name(self._symbols[put[-1]["symbol"]]))
            else:
                # The addend of a table without addends is what lies in the slot.
                names.append(self._name_at(int(put[-1]["addend"] if len(put) else 0) or value))
        return tuple(names)

    def _code_bytes(self, tag: str) -> int:
        """How much code there is from a function to the end of its section."""
        address = self._value.get(tag, 0)
        if not address:
            return 0
        for section in self._sections:
            start, size = section["sh_addr"], section["sh_size"]
            if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR and start <= address < start + size:
                return int(start + size - address)
        raise BinaryError(f"a damaged file (no code at {tag}, {address:#x})")

    def _ifuncs(self) -> tuple[str, ...]:
        resolved = self._relocations[self._relocations["kind"] == self._irelative]
        found = {self._name_at(int(each["addend"])) for each in resolved}
        defined = self._symbols["section"] != _UNDEFINED
        ours = self._symbols[((self._symbols["info"] & 15) == _IFUNC) & defined]
        return tuple(sorted(found | {self._dynamic_name(symbol) for symbol in ours}))

    def _has_text_relocations(self) -> bool:
        flags = self._value.get("DT_FLAGS", 0)
        if "DT_TEXTREL" in self._value or flags & 4:  # DF_TEXTREL
            return True
        places = self._relocations["place"]
        for segment in self._segments:
            if segment["p_type"] == "PT_LOAD" and not segment["p_flags"] & P_FLAGS.PF_W:
                start, end = segment["p_vaddr"], segment["p_vaddr"] + segment["p_memsz"]
                if ((places >= start) & (places < end)).any():
                    return True
        return False

    # What lasts from call to call

    def _static_state(self) -> tuple[int, tuple[tuple[str, int], ...]]:
        """The bytes that stay writable once the library is loaded, and what is known to lie there.

        Thread-local memory is not among them, nor is what is read-only after relocation (RELRO).
        """
        relro = [
            (s["p_vaddr"], s["p_vaddr"] + s["p_memsz"])
            for s in self._segments
            if s["p_type"] == "PT_GNU_RELRO"
        ]
        total, numbers = 0, []
        for number, section in enumerate(self._sections):
            flags, start, size = section["sh_flags"], section["sh_addr"], section["sh_size"]
            writable = flags & SH_FLAGS.SHF_WRITE and flags & SH_FLAGS.SHF_ALLOC
            sealed = any(low <= start and start + size <= high for low, high in relro)
            if not writable or flags & SH_FLAGS.SHF_TLS or sealed:
                continue
            numbers.append(number)
            if section.name in (".got.plt", ".plt.got", ".got"):
                # A word for each function that is bound, and the dynamic linker's own.
                size = max(0, size - _ADDRESS * (_GOT_WORDS + self._bound))
            total += size
        kind = self._static["info"] & 15
        there = np.isin(self._static["section"], numbers) & (kind != _FUNCTION)
        named = self._static[there & (self._static["size"] > 0)]
        objects = [(_string(self._static_names, int(s["name"])), int(s["size"])) for s in named]
        return total, tuple(sorted(objects, key=lambda each: (-each[1], each[0])))


def _string(table: bytes, place: int) -> str:
    """The string at a place of a string table."""
    end = table.find(b"\0", place)
    if place > len(table) or end < 0:
        raise BinaryError(f"a damaged file (no string at {place} of {len(table)})")
    return table[place:end].decode("utf-8", "backslashreplace")


def _without(found: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    """What is found without as many as are the toolchain's own: the ones of the same names, and
    where names are missing the first.
    """
    left = list((Counter(found) - Counter(own)).elements())
    return tuple(left[max(0, len(left) - max(0, len(found) - len(own))) :])
