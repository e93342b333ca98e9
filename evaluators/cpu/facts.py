"""What a built library would do to the process that loads it, read from its file: what it calls and
needs, what runs before its kernel is called, and what it keeps.

Nothing is loaded and nothing is executed. What the dynamic linker goes by decides (segments, the
dynamic table, relocations); sections and the static symbol table only give sizes and names.
Of tables that a text can make as long as it likes only as many entries are named as a sentence
lists; the others are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError

from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import Toolchain
from kernelwright.evaluators.cpu.elf import (
    LOAD,
    RELRO,
    STACK,
    TLS,
    BinaryError,
    Library,
    Tag,
    check_count,
    string_at,
)

# A translation unit that holds nothing, and that no warning is about.
EMPTY = "typedef int kw_nothing;\n"
# How many of what may be counted in thousands get a name, and what stands for each of the others.
NAMED = 8
UNNAMED = "..."
_ADDRESS = 8
_FUNCTION, _IFUNC = 2, 10
_UNDEFINED, _LOCAL = 0, 0
# The most static objects that are named one by one, far above what a kernel has.
_OBJECTS = 1 << 14
# The global offset table of lazy binding starts with three words of the dynamic linker's.
_GOT_WORDS = 3
# What a linker exports of every library.
_LINKERS_OWN = frozenset(("_init", "_fini", "_end", "_edata", "__bss_start"))
# What start files call when a library is loaded or unloaded if somebody defines it: crti.o's _init
# and crtbeginS.o's frame_dummy; crtbeginS.o's __do_global_dtors_aux.
_FIRST_HOOKS = frozenset(("__gmon_start__", "_ITM_registerTMCloneTable"))
_LAST_HOOKS = frozenset(("_ITM_deregisterTMCloneTable", "__cxa_finalize"))
_HOOKS = re.compile("|".join(f"{name}\\0" for name in sorted(_FIRST_HOOKS | _LAST_HOOKS)).encode())
# What pyelftools and NumPy stumble over where a file is not what it says.
_STUMBLES = (
    *(ELFError, ConstructError, ValueError, LookupError, TypeError, OverflowError),
    *(AssertionError, AttributeError, MemoryError),
)
# What makes the dynamic linker load a further library.
_NEEDS = (Tag.NEEDED, Tag.FILTER, Tag.AUXILIARY, Tag.AUDIT, Tag.DEPAUDIT)


@dataclass(frozen=True, slots=True)
class BinaryFacts:
    """What is known of a library from its file.

    Args:
        undefined: the symbols that it wants from others, functions and data.
        exported: the symbols that others can find in it.
        needed: the libraries that are loaded with it.
        search_paths: where it has them looked for (RPATH, RUNPATH).
        constructors: what runs when it is loaded, by name where there is one, else by address;
            after the first `NAMED` each is `UNNAMED`.
        destructors: what runs when it is unloaded or the process ends; likewise.
        hooks: what start files would call then, if the library has them, and is defined in it.
        init_bytes: the code of ``_init``, which runs before the constructors.
        fini_bytes: the code of ``_fini``, which runs after the destructors.
        ifuncs: symbols whose address a function of the library's chooses when it is loaded;
            likewise.
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
    hooks: tuple[str, ...] = ()
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
        called. Start files that call a function if somebody defines it have code of the library's
        run without an entry; what defines it is named as if it had one.

        Args:
            own: the facts of an empty library of the same toolchain and flags (`own_facts`).
        """
        objects = tuple((Counter(self.objects) - Counter(own.objects)).elements())
        # What the empty library wants and this one does not is defined here, whatever the symbols
        # say that only tools look at.
        missing = set(own.undefined) - (set(self.undefined) - set(self.hooks))
        static = max(self.static_bytes - own.static_bytes, sum(size for _, size in objects))
        return replace(
            self,
            constructors=(
                *_without(self.constructors, own.constructors),
                *(("_init",) if self.init_bytes != own.init_bytes else ()),
                *sorted(missing & _FIRST_HOOKS),
            ),
            destructors=(
                *_without(self.destructors, own.destructors),
                *(("_fini",) if self.fini_bytes != own.fini_bytes else ()),
                *sorted(missing & _LAST_HOOKS),
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
        BinaryError: if the file is no 64-bit little-endian ELF library, a damaged one, or has more
            symbols, sections or static objects than any kernel.
        OSError: if it cannot be read.
    """
    content = library.read_bytes()
    try:
        return _Reader(content).facts()
    except BinaryError as error:
        raise BinaryError(f"{library}: expected an ELF library, found {error}") from None
    except _STUMBLES as error:
        found = f"a damaged file ({type(error).__name__}: {error})"
        raise BinaryError(f"{library}: expected an ELF library, found {found:.200}") from None


class _Reader(Library):
    """A library's tables while its facts are read."""

    def facts(self) -> BinaryFacts:
        """Everything that is asked of it."""
        symbols = self.symbols
        others = (symbols["info"] >> 4) != _LOCAL
        defined = symbols["section"] != _UNDEFINED
        undefined = self.names_of(symbols[~defined & others])
        exported = self.names_of(symbols[defined & others])
        stack = [s for s in self.segments if s.kind == STACK]
        static_bytes, objects = self._static_state()
        first = (Tag.PREINIT_ARRAY, Tag.PREINIT_ARRAYSZ), (Tag.INIT_ARRAY, Tag.INIT_ARRAYSZ)
        return BinaryFacts(
            undefined=tuple(sorted(filter(None, undefined))),
            exported=tuple(sorted({name for name in exported if name} - _LINKERS_OWN)),
            needed=self._strings(_NEEDS),
            search_paths=self._strings((Tag.RPATH, Tag.RUNPATH)),
            constructors=tuple(name for tags in first for name in self._called(*tags)),
            destructors=self._called(Tag.FINI_ARRAY, Tag.FINI_ARRAYSZ),
            hooks=self._hooks(exported),
            init_bytes=self._code_bytes(Tag.INIT),
            fini_bytes=self._code_bytes(Tag.FINI),
            ifuncs=self._ifuncs(),
            tls_bytes=sum(s.memory_bytes for s in self.segments if s.kind == TLS),
            static_bytes=static_bytes,
            objects=objects,
            # Without this segment the stack is executable (glibc on x86-64).
            executable_stack=not stack or any(s.can_execute for s in stack),
            writable_code=tuple(
                hex(s.address)
                for s in self.segments
                if s.kind == LOAD and s.can_write and s.can_execute
            ),
            text_relocations=self._has_text_relocations(),
        )

    # Names

    def _strings(self, tags: Collection[int]) -> tuple[str, ...]:
        wanted = [value for tag, value in self.tags if tag in tags]
        return tuple(string_at(self.dynamic_names, value) for value in wanted)

    def _name_at(self, address: int) -> str:
        """The name of the function at an address, or the address. What is chosen by a function
        shares its address, and is the one that is called by name.
        """
        at = self.static[self.static["value"] == address]
        for kind in (_IFUNC, _FUNCTION):
            for place in at["name"][(at["info"] & 15) == kind][:1].tolist():
                return string_at(self.static_names, place)
        return hex(address)

    # What runs when it is loaded and unloaded

    def _called(self, tag: Tag, size: Tag) -> tuple[str, ...]:
        """The functions in an array of them; what relocations put there, else what is there."""
        slots = self.table(tag, size, np.dtype("<u8"))
        start, names = self.value.get(tag, 0), []
        for place, value in enumerate(slots[:NAMED].tolist()):
            put = self.relocations[self.relocations["place"] == start + _ADDRESS * place]
            if len(put) and put[-1]["symbol"]:
                number = int(put[-1]["symbol"])
                names += self.names_of(self.symbols[number : number + 1])
            else:
                # The addend of a table without addends is what lies in the slot.
                names.append(self._name_at(int(put[-1]["addend"] if len(put) else 0) or value))
        return (*names, *(UNNAMED,) * (len(slots) - len(names)))

    def _hooks(self, exported: Sequence[str]) -> tuple[str, ...]:
        """The functions that it defines, for others or for itself, of those that start files call
        if somebody does.
        """
        places = {found.start() for found in _HOOKS.finditer(self.static_names)}
        defined = self.static[self.static["section"] != _UNDEFINED]["name"]
        inside = np.unique(defined[np.isin(defined, sorted(places))]).tolist()
        names = {string_at(self.static_names, place) for place in inside}
        return tuple(sorted((names | set(exported)) & (_FIRST_HOOKS | _LAST_HOOKS)))

    def _code_bytes(self, tag: Tag) -> int:
        """How much code there is from a function to the end of its section."""
        address = self.value.get(tag, 0)
        if not address:
            return 0
        for section in self.sections:
            if section.is_code and section.address <= address < section.end:
                return section.end - address
        raise BinaryError(f"a damaged file (no code at {tag.name}, {address:#x})")

    def _ifuncs(self) -> tuple[str, ...]:
        resolved = self.relocations[self.relocations["kind"] == self.irelative]
        resolvers = np.unique(resolved["addend"]).tolist()
        found = {self._name_at(address) for address in resolvers[:NAMED]}
        defined = self.symbols["section"] != _UNDEFINED
        ours = self.symbols[((self.symbols["info"] & 15) == _IFUNC) & defined]
        names = sorted(found | set(self.names_of(ours)))
        return (*names, *(UNNAMED,) * max(0, len(resolvers) - len(names)))

    def _has_text_relocations(self) -> bool:
        flags = self.value.get(Tag.FLAGS, 0)
        if Tag.TEXTREL in self.value or flags & 4:  # DF_TEXTREL
            return True
        places = self.relocations["place"]
        for segment in self.segments:
            inside = (places >= segment.address) & (places < segment.end)
            if segment.kind == LOAD and not segment.can_write and inside.any():
                return True
        return False

    # What lasts from call to call

    def _static_state(self) -> tuple[int, tuple[tuple[str, int], ...]]:
        """The bytes that stay writable once the library is loaded, and what is known to lie there.

        Thread-local memory is not among them, nor is what is read-only after relocation (RELRO).
        """
        relro = [(s.address, s.end) for s in self.segments if s.kind == RELRO]
        total, numbers = 0, []
        for number, section in enumerate(self.sections):
            sealed = any(low <= section.address and section.end <= high for low, high in relro)
            if not section.is_writable or sealed:
                continue
            numbers.append(number)
            size = section.size
            name = string_at(self.section_names, section.name)
            if name in (".got.plt", ".plt.got", ".got"):
                # A word for each function that is bound, and the dynamic linker's own.
                size = max(0, size - _ADDRESS * (_GOT_WORDS + self.lazily_bound))
            total += size
        kind = self.static["info"] & 15
        there = np.isin(self.static["section"], numbers) & (kind != _FUNCTION)
        named = self.static[there & (self.static["size"] > 0)]
        check_count(len(named), _OBJECTS, "static objects")
        objects = zip(named["name"].tolist(), named["size"].tolist(), strict=True)
        found = [(string_at(self.static_names, place), size) for place, size in objects]
        return total, tuple(sorted(found, key=lambda each: (-each[1], each[0])))


def _without(found: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    """What is found without as many as are the toolchain's own: the ones of the same names, and
    where names are missing the first.
    """
    left = list((Counter(found) - Counter(own)).elements())
    return tuple(left[max(0, len(left) - max(0, len(found) - len(own))) :])
