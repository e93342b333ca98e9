"""What is read of a library from its file; nothing here is ever loaded."""

from __future__ import annotations

import platform
import random
import shutil
import subprocess
import sys
import time

import pytest

from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import (
    TOOLCHAINS,
    BuildError,
    find_toolchain,
)
from kernelwright.evaluators.cpu.elf import BinaryError
from kernelwright.evaluators.cpu.facts import (
    NAMED,
    UNNAMED,
    BinaryFacts,
    facts_of,
    own_facts,
)

pytestmark = pytest.mark.cc
KERNEL = (
    "void f(const float *a, float *b, int n) { for (int i = 0; i < n; i++) b[i] = 2 * a[i]; }\n"
)
EACH_LEVEL = [
    ("-O0",),
    ("-O1", "-g"),
    ("-O2", "-s"),
    ("-O3", "-march=native"),
    ("-O3", "-ffast-math"),
    ("-Ofast", "-g", "-march=native"),
]
# Every way in which C may have code run when it is loaded, and what it is called.
CONSTRUCTORS = {
    "plain": ("__attribute__((constructor)) static void early(void) { n = 1; }", "early"),
    "first": ("__attribute__((constructor(101))) static void early(void) { n = 1; }", "early"),
    "exported": ("__attribute__((constructor)) void early(void) { n = 1; }", "early"),
    "disguised": ("__attribute__((constructor)) static void frame_dummy(void) { n = 1; }", None),
    "array": (
        "static void early(void) { n = 1; }\n"
        '__attribute__((section(".init_array"), used)) static void (*const at)(void) = early;',
        "early",
    ),
    "assembler": (
        "void early(void) { n = 1; }\n"
        '__asm__(".section .init_array,\\"aw\\"\\n.quad early\\n.text");',
        "early",
    ),
}
DESTRUCTORS = {
    "plain": ("__attribute__((destructor)) static void late(void) { n = 1; }", "late"),
    "disguised": (
        "__attribute__((destructor)) static void __do_global_dtors_aux(void) { n = 1; }",
        None,
    ),
}
# Functions whose addresses the linker puts into DT_INIT and DT_FINI by their names.
LINKED = {
    "exported": "void {}(void) {{ n = 1; }}",
    "hidden": '__attribute__((visibility("hidden"))) void {}(void) {{ n = 1; }}',
    "weak": "__attribute__((weak)) void {}(void) {{ n = 1; }}",
    "assembler": '__asm__(".globl {0}\\n{0}: ret");',
}
# What start files call if somebody defines it: the function and its arguments.
HOOKS = {
    "__gmon_start__": "void",
    "_ITM_registerTMCloneTable": "void *table, unsigned long size",
}


class Builds:
    """Builds of one toolchain."""

    def __init__(self, name, folder):
        self.toolchain, self.cache = find_toolchain(name), BuildCache(folder)

    def library(self, text, flags=("-O2",)):
        return self.cache.build(text, self.toolchain, flags).library

    def all_of(self, text, flags=("-O2",)):
        return facts_of(self.library(text, flags))

    def beyond(self, text, flags=("-O2",)):
        return self.all_of(text, flags).beyond(own_facts(self.cache, self.toolchain, flags))


def builds(name, tmp_path_factory):
    try:
        return Builds(name, tmp_path_factory.mktemp(name))
    except BuildError:
        pytest.skip(f"no {name} on this machine")


@pytest.fixture(scope="module", params=TOOLCHAINS)
def each(request, tmp_path_factory):
    return builds(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def gcc(tmp_path_factory):
    return builds("gcc", tmp_path_factory)


@pytest.mark.parametrize("flags", EACH_LEVEL, ids=" ".join)
def test_a_plain_kernel_adds_nothing_to_what_the_toolchain_has(each, flags):
    facts = each.beyond(KERNEL, flags)
    assert (facts.constructors, facts.destructors, facts.ifuncs) == ((), (), ())
    assert (facts.static_bytes, facts.tls_bytes, facts.objects) == (0, 0, ())
    assert (facts.init_bytes, facts.fini_bytes) == (0, 0)
    assert facts.exported == ("f",)
    assert not facts.executable_stack
    assert not facts.text_relocations
    assert (facts.writable_code, facts.search_paths) == ((), ())


def test_the_toolchain_s_own_is_there_without_it(each):
    own = own_facts(each.cache, each.toolchain, ("-O2",))
    assert own.beyond(own).constructors == own.beyond(own).destructors == ()
    facts = each.all_of(KERNEL)
    assert facts.constructors == own.constructors
    assert facts.destructors == own.destructors
    assert (facts.init_bytes, facts.fini_bytes) == (own.init_bytes, own.fini_bytes)


def test_gcc_and_clang_have_nothing_of_their_own_run(each):
    if each.toolchain.name == "zig":
        pytest.skip("zig links its start files whatever it is told")
    for flags in (("-O2",), ("-Ofast",), ("-O3", "-ffast-math", "-flto"), ("-O0", "-g", "-s")):
        own = own_facts(each.cache, each.toolchain, flags)
        assert (own.constructors, own.destructors, own.undefined) == ((), (), ())
        assert (own.init_bytes, own.fini_bytes, own.static_bytes) == (0, 0, 0)


def test_what_is_called_and_what_is_needed(each):
    text = """
    #include <math.h>
    #include <string.h>
    extern char **environ; extern int sched_yield(void) __attribute__((weak));
    extern float renamed(float) __asm__("expm1f");
    float kept; static float hidden(float x) { return x; }
    float g(const float *a, float *b) {
        memcpy(b, a, 1 << environ[0][0]);
        if (sched_yield) sched_yield();
        return expf(renamed(a[0])) + hidden(kept);
    }
    """
    facts = each.beyond(text)
    assert {"memcpy", "expf", "expm1f", "environ", "sched_yield"} <= set(facts.undefined)
    assert facts.exported == ("g", "kept")
    assert any(name.startswith("libm.so") for name in facts.needed)


@pytest.mark.parametrize("how", CONSTRUCTORS)
@pytest.mark.parametrize("flags", [("-O2",), ("-O3", "-s")], ids=" ".join)
def test_what_runs_at_loading_is_found(each, how, flags):
    text, name = CONSTRUCTORS[how]
    found = each.beyond(f"volatile int n;\n{text}\n{KERNEL}", flags)
    assert len(found.constructors) == 1
    assert found.destructors == ()
    if (name and "-s" not in flags) or how == "exported":
        assert found.constructors == (name,)


@pytest.mark.parametrize("how", DESTRUCTORS)
def test_what_runs_at_unloading_is_found(each, how):
    text, name = DESTRUCTORS[how]
    found = each.beyond(f"volatile int n;\n{text}\n{KERNEL}")
    assert len(found.destructors) == 1
    assert found.constructors == ()
    assert name is None or found.destructors == (name,)


@pytest.mark.parametrize("how", LINKED)
@pytest.mark.parametrize("flags", [("-O2",), ("-O3", "-s")], ids=" ".join)
@pytest.mark.parametrize("name", ["_init", "_fini"])
def test_functions_that_the_linker_has_run_are_found(each, how, flags, name):
    text = f"volatile int n;\n{LINKED[how].format(name)}\n{KERNEL}"
    if each.toolchain.name == "zig" and how != "weak":
        with pytest.raises(BuildError, match="refused the code") as caught:
            each.beyond(text, flags)
        assert f"duplicate symbol: {name}" in caught.value.log
        return
    found = each.beyond(text, flags)
    if each.toolchain.name == "zig":
        # Its start files have functions of these names, before which weak ones give way.
        assert (found.constructors, found.destructors) == ((), ())
        return
    wanted = ((name,), ()) if name == "_init" else ((), (name,))
    assert (found.constructors, found.destructors) == wanted
    assert (found.init_bytes > 0, found.fini_bytes > 0) == (name == "_init", name == "_fini")


# Whether it is so in a process of its own: what runs when a library is loaded runs there.
LOADS = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).ran())"
RAN = "static volatile int n; int ran(void) { return n; }\n"


def runs_at_loading(library):
    status = subprocess.run([sys.executable, "-c", LOADS, library], check=False).returncode
    assert status in (0, 1)
    return bool(status)


def test_what_would_be_seen_to_run(each):
    text = RAN + "__attribute__((constructor)) static void early(void) { n = 1; }\n"
    assert runs_at_loading(each.library(text))
    assert not runs_at_loading(each.library(RAN))


@pytest.mark.parametrize("section", [".init", ".fini"])
def test_code_in_the_section_of_init_runs_only_where_there_are_start_files(each, section):
    text = RAN + f'__asm__(".section {section},\\"ax\\"\\nmovl $1, n(%rip)\\n.text");\n'
    if platform.machine() != "x86_64":
        pytest.skip("the text is x86-64's")
    facts = each.beyond(text)
    found = (*facts.constructors, *facts.destructors)
    if each.toolchain.name == "zig":
        assert found == ({".init": "_init", ".fini": "_fini"}[section],)
    else:
        assert found == ()
        assert not runs_at_loading(each.library(text))


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("kind", ["hidden", "exported"])
@pytest.mark.parametrize("flags", [("-O2",), ("-O2", "-s")], ids=" ".join)
def test_functions_that_start_files_call_do_not_run_or_are_found(each, name, kind, flags):
    hidden = '__attribute__((visibility("hidden"))) ' if kind == "hidden" else ""
    text = (
        f"{RAN}{hidden}void {name}({HOOKS[name]}) {{ n = 1; }}\n"
        "static void *const entry[2]\n"
        '__attribute__((section(".tm_clone_table"), used)) = {0, 0};\n'
    )
    found = each.beyond(text, flags).constructors
    if each.toolchain.name == "zig":
        assert found == (name,)
    else:
        assert found == ()
        assert not runs_at_loading(each.library(text, flags))


def test_a_function_that_start_files_call_is_found_beside_one_that_is_wanted():
    """Two of one name, the wanted one with a version, so that the library still wants it."""
    own = BinaryFacts(undefined=("__gmon_start__",))
    assert BinaryFacts(undefined=("__gmon_start__",)).beyond(own).constructors == ()
    both = BinaryFacts(undefined=("__gmon_start__",), hooks=("__gmon_start__",))
    assert both.beyond(own).constructors == ("__gmon_start__",)
    assert both.beyond(BinaryFacts()).constructors == ()


def test_what_start_files_would_call_is_read_of_a_library(gcc):
    text = '__attribute__((visibility("hidden"))) void __gmon_start__(void) {}\n' + KERNEL
    assert gcc.all_of(text).hooks == ("__gmon_start__",)
    assert gcc.all_of(text.replace("__gmon", "x__gmon")).hooks == ()
    assert gcc.all_of("void __cxa_finalize(void *h) {}\n", ("-O2", "-s")).hooks != ()


def test_what_start_files_call_at_the_end_is_found(each):
    text = KERNEL + '__attribute__((visibility("hidden"))) void __cxa_finalize(void *h) {}\n'
    found = each.beyond(text).destructors
    assert found == (("__cxa_finalize",) if each.toolchain.name == "zig" else ())


def test_every_one_of_many_is_counted(each):
    text = "volatile int n;\n" + "\n".join(
        f"__attribute__((constructor({500 - k}))) static void early{k}(void) {{ n += {k}; }}"
        for k in range(1, 6)
    )
    assert set(each.beyond(text).constructors) == {f"early{k}" for k in range(1, 6)}
    assert len(each.beyond(text, ("-O2", "-s")).constructors) == 5


# Texts that make a table as long as they like, and what comes of them.
FLOODS = {
    "constructors": ('.section .init_array,"aw"; .rept 400000; .quad f; .endr; .text', None),
    "empty_constructors": ('.section .init_array,"aw"; .fill 3000000, 8, 0; .text', None),
    "ifuncs": (
        ".altmacro; .macro one n; .type g\\\\n, @gnu_indirect_function; .set g\\\\n, f + \\\\n; "
        ".quad g\\\\n; .endm; .data; .set i, 0; .rept 20000; one %i; .set i, i + 1; .endr; .text",
        None,
    ),
    "exports": (
        ".altmacro; .macro one n; .globl a\\\\n; a\\\\n:; .endm; .text; .set i, 0; "
        ".rept 50000; one %i; .set i, i + 1; .endr",
        r"dynamic symbols, more than 16384",
    ),
    "objects": (
        ".altmacro; .macro one n; a\\\\n: .byte 1; .size a\\\\n, 1; .type a\\\\n, @object; .endm; "
        ".data; .set i, 0; .rept 50000; one %i; .set i, i + 1; .endr; .text",
        r"50000 static objects, more than 16384",
    ),
    "sections": (
        '.altmacro; .macro one n; .section .s\\\\n, "a"; .quad \\\\n; .endm; .set i, 0; '
        ".rept 2000; one %i; .set i, i + 1; .endr; .text",
        r"sections, more than 1024",
    ),
    "relocations": (".data; .rept 1000000; .quad f; .endr; .text", None),
}


@pytest.mark.parametrize("how", FLOODS)
def test_no_text_makes_its_library_long_to_read(gcc, how):
    text, refusal = FLOODS[how]
    if platform.machine() != "x86_64":
        pytest.skip("the texts are x86-64's")
    quoted = text.replace('"', '\\"')
    library = gcc.library(f'{KERNEL}__asm__("{quoted}");\n')
    began = time.process_time()
    if refusal is None:
        facts = facts_of(library).beyond(BinaryFacts())
        if how == "constructors":
            assert facts.constructors == (*("f",) * NAMED, *(UNNAMED,) * (400_000 - NAMED))
        if how == "empty_constructors":
            assert len(facts.constructors) == 3_000_000
        if how == "ifuncs":
            assert len(facts.ifuncs) == 20_000
            assert facts.ifuncs.count(UNNAMED) == 20_000 - NAMED
    else:
        with pytest.raises(BinaryError, match=refusal):
            facts_of(library)
    assert time.process_time() - began < 1.0


def test_a_name_longer_than_any_kernel_s_is_refused(gcc):
    with pytest.raises(BinaryError, match="a name of more than 1024 bytes"):
        gcc.all_of(f"int {'a' * 2000};\n")
    assert gcc.all_of(f"int {'a' * 1000};\n").exported == ("a" * 1000,)


def test_a_dynamic_symbol_is_counted_by_either_hash_table(gcc):
    text = "\n".join(f"int g{k}(void) {{ return {k}; }}" for k in range(20))
    for style in ("gnu", "sysv", "both"):
        facts = gcc.all_of(text, ("-O1", f"-Wl,--hash-style={style}"))
        assert len(facts.exported) == 20


def test_packed_relocations_hide_no_constructor(gcc):
    text, _ = CONSTRUCTORS["plain"]
    flags = ("-O2", "-Wl,-z,pack-relative-relocs")
    assert gcc.beyond(f"volatile int n;\n{text}", flags).constructors == ("early",)


def test_a_constructor_of_libgcc_s_is_one(gcc):
    text = 'int f(void) { return __builtin_cpu_supports("avx2"); }\n'
    assert gcc.beyond(text).constructors == ("__cpu_indicator_init",)


RESOLVER = """
static int one(void) { return 1; }
__attribute__((used)) static int (*choose(void))(void) { return one; }
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (RESOLVER + 'int g(void) __attribute__((ifunc("choose")));', "g"),
        (
            RESOLVER + 'static int g(void) __attribute__((ifunc("choose")));\n'
            "int h(void) { return g(); }",
            "g",
        ),
        (
            RESOLVER + '__asm__(".globl late\\n.set late, choose\\n"\n'
            '".type late, %gnu_indirect_function");\n'
            "int late(void); int h(void) { return late(); }",
            "late",
        ),
    ],
    ids=["exported", "static", "assembler"],
)
def test_indirect_functions_are_found(each, text, name):
    assert name in each.beyond(text).ifuncs
    stripped = each.beyond(text, ("-O2", "-s")).ifuncs
    assert len(stripped) == 1


def test_clones_for_other_machines_are_indirect_functions(gcc):
    text = '__attribute__((target_clones("avx2", "default"))) int g(int a) { return a + 1; }'
    assert gcc.beyond(text).ifuncs != ()


def test_thread_local_memory_is_measured(each):
    text = "_Thread_local int a[10]; static __thread int b = 3; int g(void) { return b++ + a[1]; }"
    facts = each.beyond(text)
    assert 44 <= facts.tls_bytes <= 64  # with alignment
    assert facts.static_bytes == 0


def test_static_memory_is_measured_and_named(each):
    text = """
    static int zeros[1000]; static double ones[10] = {1}; static char count;
    static const int constants[500] = {1}; const char *const names[] = {"a", "b"};
    int g(int i) { zeros[i]++; ones[i]++; return count++ + zeros[i + 1] + constants[i]; }
    const char *h(int i) { return names[i]; }
    """
    facts = each.beyond(text, ("-O1",))
    assert facts.objects == (("zeros", 4000), ("ones", 80), ("count", 1))
    assert 4081 <= facts.static_bytes <= 4081 + 128  # what lies between is alignment
    stripped = each.beyond(text, ("-O1", "-s"))
    assert stripped.objects == ()
    assert 4081 <= stripped.static_bytes <= 4081 + 128


def test_a_counter_that_fits_into_a_gap_is_not_lost(each):
    facts = each.beyond("static volatile int completed; int g(void) { return completed++; }")
    assert facts.static_bytes >= 4
    assert facts.objects == (("completed", 4),)


def test_functions_that_are_bound_late_are_no_memory_of_the_kernel_s(each):
    names = ("expf", "sinf", "cosf", "tanf", "logf", "atanf")
    text = "#include <math.h>\n" + "\n".join(
        f"float g_{name}(float x) {{ return {name}(x) + 1; }}" for name in names
    )
    for flags in (("-O2",), ("-O2", "-Wl,-z,now"), ("-O2", "-Wl,-z,lazy")):
        assert each.beyond(text, flags).static_bytes == 0


def test_memory_disguised_as_a_table_of_addresses_counts(gcc):
    text = """
    __attribute__((section(".got.plt"))) static volatile int hidden[25] = {1};
    int g(void) { return hidden[3]++; }
    """
    facts = gcc.beyond(text)
    assert facts.static_bytes >= 100
    assert facts.objects == (("hidden", 100),)


def test_stacks_that_can_be_executed(gcc):
    nested = """
    void call(int (*)(int));
    int g(int n) { int add(int x) { return x + n; } call(add); return 0; }
    """
    assert gcc.beyond(nested, ("-O0",)).executable_stack
    assembler = '__asm__(".section .note.GNU-stack,\\"x\\",@progbits\\n.text");\n'
    assert gcc.beyond(assembler + KERNEL).executable_stack
    assert gcc.beyond(KERNEL, ("-O2", "-Wl,-z,execstack")).executable_stack


def test_segments_that_can_be_written_and_executed(each):
    text = """
    __asm__(".section .both,\\"awx\\",@progbits\\n.hidden both\\n.globl both\\n"
            "both: .quad 1\\n.text");
    extern __attribute__((visibility("hidden"))) long both;
    long g(void) { return both; }
    """
    assert len(each.beyond(text).writable_code) == 1


def test_text_relocations(gcc):
    text = '__asm__(".text\\n.quad f\\n");\n'
    assert gcc.beyond(text + KERNEL).text_relocations


def test_search_paths_and_libraries(gcc, tmp_path):
    shutil.copy(gcc.library("int other(void) { return 1; }"), tmp_path / "libother.so")
    flags = ("-O2", f"-L{tmp_path}", "-Wl,--no-as-needed", "-lother")
    facts = gcc.beyond(KERNEL, flags)
    assert "libother.so" in facts.needed
    assert facts.search_paths == ()
    for old in ("--disable-new-dtags", "--enable-new-dtags"):
        found = gcc.beyond(KERNEL, (*flags, f"-Wl,{old},-rpath,/somewhere:/else"))
        assert found.search_paths == ("/somewhere:/else",)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64", "powerpc64le"])
def test_libraries_for_other_machines(machine, tmp_path):
    try:
        zig = find_toolchain("zig")
    except BuildError:
        pytest.skip("no zig on this machine")
    text = f"volatile int n;\n{CONSTRUCTORS['plain'][0]}\n{RESOLVER}"
    text += 'static int g(void) __attribute__((ifunc("choose")));\nint h(void) { return g(); }\n'
    command = (*zig.command, "-target", f"{machine}-linux-gnu", "-O2", "-shared", "-fPIC")
    subprocess.run(
        [*command, "-nostdlib", "-x", "c", "-", "-o", "x.so"],
        input=text.encode(),
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    facts = facts_of(tmp_path / "x.so")
    assert (facts.constructors, facts.ifuncs) == (("early",), ("g",))


def test_a_library_of_another_word_size_is_refused(tmp_path):
    try:
        zig = find_toolchain("zig")
    except BuildError:
        pytest.skip("no zig on this machine")
    command = [*zig.command, "-target", "x86-linux-gnu", "-shared", "-nostdlib", "-x", "c", "-"]
    text = b"int n;\n"
    subprocess.run([*command, "-o", "x.so"], input=text, cwd=tmp_path, check=True)
    with pytest.raises(BinaryError, match="another word size or byte order"):
        facts_of(tmp_path / "x.so")


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"hello", b"#!/bin/sh\n", b"\0" * 4096])
def test_what_is_no_library_is_refused(content, tmp_path):
    (tmp_path / "x.so").write_bytes(content)
    with pytest.raises(BinaryError, match=r"x\.so: expected an ELF library, found"):
        facts_of(tmp_path / "x.so")


def test_an_object_file_is_refused(gcc, tmp_path):
    gcc.toolchain.compile(KERNEL, str(tmp_path / "x.o"), ("-c",))
    with pytest.raises(BinaryError, match="a file of type ET_REL"):
        facts_of(tmp_path / "x.o")


def test_a_file_that_is_not_there_is_no_damaged_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        facts_of(tmp_path / "none.so")


def test_damage_is_an_error_and_never_a_traceback(each, tmp_path):
    text = f"volatile int n;\n{CONSTRUCTORS['plain'][0]}\nstatic int m[9];\n{KERNEL}"
    whole = each.library(text, ("-O1", "-g")).read_bytes()
    rng, path, refused = random.Random(7), tmp_path / "damaged.so", list[str]()
    for number in range(200):
        content = bytearray(whole)
        if number % 4 == 0:
            content = content[: rng.randrange(len(whole))]
        else:
            for _ in range(rng.choice((1, 2, 8))):
                # Most of the damage to headers and tables, where it is not harmless.
                place = rng.choice((rng.randrange(1024), rng.randrange(len(whole) - 8)))
                value = rng.choice((0, 1, 2**31, 2**63, 2**64 - 1, rng.randrange(2**64)))
                content[place : place + 8] = value.to_bytes(8, "little")
        path.write_bytes(content)
        try:
            assert isinstance(facts_of(path), BinaryFacts)
        except BinaryError as error:
            refused.append(str(error))
    assert len(refused) > 50
    assert all(said.startswith(f"{path}: expected an ELF library, found ") for said in refused)


def test_a_library_with_many_symbols_is_read_whole(gcc):
    count = 3000
    text = "\n".join(f"int g{k}(int a) {{ return a + {k}; }}" for k in range(count))
    text += "\nint (*const all[])(int) = {" + ", ".join(f"g{k}" for k in range(count)) + "};\n"
    facts = gcc.beyond(text, ("-O0",))
    assert len(facts.exported) == count + 1
    assert facts.static_bytes == 0


def test_an_empty_library_does_not_depend_on_warnings(each):
    own = own_facts(each.cache, each.toolchain, ("-O2", "-Wall", "-Wextra", "-pedantic", "-Werror"))
    assert own.exported == ()
