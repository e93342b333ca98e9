"""What each compiler is told, and the bounds that its process keeps."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelwright.env.compiler.runtime import folders
from kernelwright.env.compiler.runtime.bounded import LOG_BYTES, TimeLimitError, run_bounded
from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.toolchain import (
    DEFAULT_FLAGS,
    TOOLCHAINS,
    BuildError,
    Toolchain,
    find_toolchain,
)
from kernelwright.evaluators.cpu.facts import facts_of

SHIFT = "int shift(int a, int b) { return a << b; }\n"
LOOP = "void scale(float *restrict y) { for (int i = 0; i < 1024; i++) y[i] *= 2.0f; }\n"


def toolchain(name):
    try:
        return find_toolchain(name)
    except BuildError:
        pytest.skip(f"no {name} on this machine")


def named(name):
    """A toolchain to ask for words; it need not be there."""
    return Toolchain(name, (name,), "")


@pytest.mark.cc
@pytest.mark.parametrize("name", TOOLCHAINS)
@pytest.mark.parametrize("level", ["-O0", "-Og", "-O1", "-O2", "-O3", "-Ofast", "-Os"])
def test_undefined_shifts_do_not_trap_at_any_level(name, level, tmp_path):
    toolchain(name).compile(SHIFT, str(tmp_path / "s.so"), (level,))
    # In a process of its own: a trap ends it.
    code = f"import ctypes; ctypes.CDLL({str(tmp_path / 's.so')!r}).shift(1, 40)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.cc
@pytest.mark.parametrize("name", TOOLCHAINS)
def test_the_default_flags_give_a_library_that_runs(name, tmp_path):
    toolchain(name).compile(LOOP, str(tmp_path / "l.so"), (*DEFAULT_FLAGS, "-funroll-loops"))
    values = (ctypes.c_float * 1024)(*range(1024))
    ctypes.CDLL(str(tmp_path / "l.so")).scale(values)
    assert list(values) == [2.0 * i for i in range(1024)]


@pytest.mark.cc
@pytest.mark.parametrize("name", TOOLCHAINS)
def test_flags_change_what_comes_out(name, tmp_path):
    outs = []
    for flags in (("-O3",), ("-O3", "-fno-tree-vectorize"), ("-O1",), ("-O0",)):
        target = tmp_path / "f.so"
        toolchain(name).compile(LOOP, str(target), flags)
        outs.append(target.read_bytes())
    assert len(set(outs)) == len(outs)


@pytest.mark.parametrize("name", ["clang", "zig"])
def test_gcc_s_words_are_translated(name):
    assert "-fno-vectorize" in named(name).translate(("-fno-tree-vectorize",))
    assert named("gcc").translate(("-fno-tree-vectorize",)) == ("-fno-tree-vectorize",)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("-O2",), ("-mcpu=baseline", "-O2")),
        (("-O2", "-march=native"), ("-mcpu=native", "-O2")),
        (("-march=x86-64-v3",), ("-mcpu=x86_64_v3",)),
        (("-O3",), ("-mcpu=baseline", "-O3", "-Xclang", "-O3")),
        (("-Ofast",), ("-mcpu=baseline", "-O3", "-Xclang", "-O3", "-ffast-math")),
    ],
)
def test_zig_compiles_for_the_machine_and_level_that_gcc_would(flags, words):
    assert named("zig").translate(flags) == words


@pytest.mark.parametrize("flag", ["-fopenmp", "-mtune=native"])
def test_zig_refuses_what_it_would_take_and_not_honour(flag):
    with pytest.raises(BuildError, match=f"{flag.partition('=')[0]}: expected"):
        named("zig").translate((flag,))


# Whether a compiler's flags reached it, as an export; and a sum that only fast mathematics turns.
FAST = """
#ifdef __FAST_MATH__
int fast;
#endif
float sum(const float *x) { float s = 0; for (int i = 0; i < 1024; i++) s += x[i]; return s; }
"""


@pytest.mark.cc
@pytest.mark.parametrize("name", TOOLCHAINS)
@pytest.mark.parametrize(
    "flags",
    [
        ("-O3", "-ffast-math"),
        ("-Ofast", "-march=native"),
        ("-O2", "-funsafe-math-optimizations"),
        ("-O3", "-ffast-math", "-s", "-Wl,-z,now", "-lm"),
        ("-Ofast", "-fno-fast-math"),
    ],
    ids=" ".join,
)
def test_fast_mathematics_is_for_the_code_and_not_for_the_process(name, flags, tmp_path):
    found = toolchain(name)
    found.compile(FAST, str(tmp_path / "f.so"), flags)
    found.compile(FAST, str(tmp_path / "plain.so"), ("-O2",))
    facts, plain = facts_of(tmp_path / "f.so"), facts_of(tmp_path / "plain.so")
    assert len(facts.constructors) == len(plain.constructors)
    assert facts.beyond(plain).constructors == ()
    whole = "-ffast-math" in flags or ("-Ofast" in flags and "-fno-fast-math" not in flags)
    assert ("fast" in facts.exported) == whole


@pytest.mark.parametrize("flag", ["-mpc32", "-mpc64", "-mpc80"])
def test_flags_for_the_mode_of_the_whole_process_are_refused(flag):
    with pytest.raises(BuildError, match=f"{flag}: expected no flag that sets"):
        named("gcc").translate(("-O2", flag))


# Whether the processor flushes subnormal numbers to zero once the library is loaded.
FLUSHES = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(5e-324 * float(sys.argv[2]) == 0)"


def flushes(library):
    command = [sys.executable, "-c", FLUSHES, str(library), "1.0"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


@pytest.mark.cc
@pytest.mark.parametrize("name", TOOLCHAINS)
@pytest.mark.parametrize("flag", ["-Ofast", "-ffast-math", "-funsafe-math-optimizations"])
def test_nothing_flushes_subnormal_numbers_when_a_library_is_loaded(name, flag, tmp_path):
    toolchain(name).compile(FAST, str(tmp_path / "f.so"), ("-O2", flag, "-s"))
    assert not flushes(tmp_path / "f.so")


@pytest.mark.cc
@pytest.mark.parametrize("flag", ["--fast-math", "--unsafe-math-optimizations", "--optimize=fast"])
def test_gcc_s_long_spellings_are_the_same_flags(flag, tmp_path):
    toolchain("gcc").compile(FAST, str(tmp_path / "f.so"), ("-O2", flag))
    assert facts_of(tmp_path / "f.so").constructors == ()
    assert not flushes(tmp_path / "f.so")


@pytest.mark.cc
@pytest.mark.skipif(platform.machine() != "x86_64", reason="gcc on x86 has crtfastmath.o")
def test_a_library_with_start_files_and_fast_mathematics_flushes(tmp_path):
    """What the tests above are about: without start files it does not, and both are seen."""
    gcc = toolchain("gcc")
    for bare in ((), ("-nostartfiles",)):
        words = [*gcc.command, "-shared", "-fPIC", "-Ofast", *bare, "-x", "c", "-", "-o", "f.so"]
        subprocess.run(words, input=FAST.encode(), cwd=tmp_path, check=True)
        assert flushes(tmp_path / "f.so") == (not bare)


@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_libraries_have_no_start_files_and_programs_do(name):
    found = named(name)
    assert found.words(("-O3",)).count("-nostartfiles") == 1
    assert "-nostartfiles" not in found.words(("-O3",), executable=True)
    assert "-nostartfiles" not in named("zig").words(("-O3",))


@pytest.mark.cc
@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_what_a_compiler_and_its_linker_say_is_kept(name, tmp_path):
    found, rule = toolchain(name), tmp_path / "f.d"
    warns = "int unused(void) { int x; return 0; }\n"
    flags = ("-Ofast", "-Wall")
    assert "unused variable" in found.compile(warns, str(tmp_path / "f.so"), flags, rule=str(rule))
    assert rule.read_text().startswith(f"{tmp_path / 'f.so'}:")
    with pytest.raises(BuildError, match="refused the code") as caught:
        found.compile("int f(void) { return x; }", str(tmp_path / "g.so"), flags)
    assert "undeclared" in caught.value.log
    with pytest.raises(BuildError, match="refused the code") as caught:
        found.compile(warns, str(tmp_path / "g.so"), (*flags, "-lkw_nowhere"))
    assert "kw_nowhere" in caught.value.log
    assert "unused variable" in caught.value.log
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.d", "f.so"]


@pytest.mark.cc
@pytest.mark.parametrize("name", ["clang", "zig"])
@pytest.mark.parametrize("level", ["-O2", "-Ofast"])
def test_clang_refuses_what_it_would_ignore(name, level, tmp_path):
    with pytest.raises(BuildError, match="not supported"):
        toolchain(name).compile(LOOP, str(tmp_path / "x.so"), (level, "-fpeel-loops"))


def test_clang_without_openmp_says_so(tmp_path):
    fake = tmp_path / "clang"
    fake.write_text("#!/bin/sh\necho 'ld: cannot find -lomp: No such file' >&2; exit 1\n")
    fake.chmod(0o755)
    clang = Toolchain("clang", (str(fake),), "")
    with pytest.raises(BuildError, match="no OpenMP library"):
        clang.compile(LOOP, str(tmp_path / "x.so"), ("-O2", "-fopenmp"))


@pytest.mark.cc
@pytest.mark.parametrize("name", TOOLCHAINS)
def test_a_place_that_cannot_be_written_is_no_reason_to_wait(name, tmp_path, monkeypatch):
    found = toolchain(name)
    monkeypatch.setenv("HOME", "/proc/1/nowhere")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(folders.tempfile, "tempdir", str(tmp_path))
    found.compile(LOOP, str(tmp_path / "x.so"), ("-O3", "-march=native"))
    assert cache_folder() == tmp_path / f"kernelwright-{os.getuid()}" / "builds"


def test_a_folder_that_others_can_write_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/proc/1/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/1/nowhere-else")
    monkeypatch.setattr(folders.tempfile, "tempdir", str(tmp_path))
    mine = tmp_path / f"kernelwright-{os.getuid()}"
    mine.mkdir()
    mine.chmod(0o777)
    with pytest.raises(PermissionError, match="only this user can write"):
        cache_folder()


def test_builds_are_kept_where_the_user_says(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "kernelwright" / "builds"
    assert cache_folder().is_dir()


def test_a_compiler_that_appears_or_goes_is_noticed(tmp_path, monkeypatch):
    fake = tmp_path / "gcc"
    fake.write_text("#!/bin/sh\necho fake 1.0\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert find_toolchain("gcc") == Toolchain("gcc", (str(fake),), "fake 1.0")
    fake.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="expected gcc, found no such compiler"):
        find_toolchain("gcc")


def shell(script, tmp_path, limit_s=20.0, text=""):
    return run_bounded(("/bin/sh", "-c", script), text, folder=tmp_path, limit_s=limit_s)


def test_a_compiler_that_hangs_is_killed_with_its_children(tmp_path):
    script = 'sleep 300 & echo $! > "$PWD/child"; wait'
    with pytest.raises(TimeLimitError):
        shell(script, tmp_path, limit_s=0.5)
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 20
    while is_alive(child):
        assert time.monotonic() < deadline, "the child outlived its compiler"
        time.sleep(0.01)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.cc
def test_code_that_compiles_for_ever_is_a_build_error(tmp_path):
    # 2^18 nested expansions: more than a second's work for any preprocessor.
    lines = ["#define A0 1 + 1"]
    lines += [f"#define A{n} A{n - 1} + A{n - 1}" for n in range(1, 26)]
    source = "\n".join([*lines, "int f(void) { return A25; }"])
    with pytest.raises(BuildError, match=r"took longer than 0\.3 s"):
        toolchain(None).compile(source, str(tmp_path / "x.so"), ("-O0",), limit_s=0.3)


def test_what_a_compiler_says_is_bounded(tmp_path):
    status, log = shell("head -c 5000000 /dev/zero | tr '\\0' x; exit 3", tmp_path)
    assert status == 3
    assert log == "x" * LOG_BYTES + "\n[the rest is cut off]"


def test_what_a_compiler_writes_is_bounded(tmp_path):
    status, _ = shell("head -c 1000000000 /dev/zero > big", tmp_path)
    assert status != 0
    assert (tmp_path / "big").stat().st_size <= 2**29


def test_a_compiler_sees_no_secrets_and_its_input(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    status, said = shell("cat; env", tmp_path, text="the text\n")
    assert (status, said.splitlines()[0]) == (0, "the text")
    names = {line.partition("=")[0] for line in said.splitlines()[1:]}
    assert {"PATH", "LANG"} <= names
    shells_own = {"PWD", "OLDPWD", "SHLVL", "_"}
    assert names - shells_own <= {"PATH", "LANG", "HOME", "TMPDIR", "CCACHE_DIR", "SCCACHE_DIR"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory")
def test_a_compiler_has_limited_memory_and_leaves_no_core(tmp_path):
    assert shell("ulimit -v; ulimit -c", tmp_path) == (0, f"{4 * 2**20}\n0")


@pytest.mark.cc
def test_a_build_does_not_depend_on_the_folder_it_is_started_in(tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    (here / "secret.h").write_text("#define N 1\n")
    monkeypatch.chdir(here)
    with pytest.raises(BuildError, match=r"secret\.h"):
        toolchain(None).compile('#include "secret.h"\n', str(tmp_path / "x.so"), ())


@pytest.mark.cc
def test_compilers_do_not_share_builds(tmp_path):
    cache = BuildCache(tmp_path)
    found = []
    for name in TOOLCHAINS:
        try:
            found.append(find_toolchain(name))
        except BuildError:
            continue
    libraries = {cache.build(LOOP, each, ("-O1",)).library for each in found}
    assert len(libraries) == len(found)
