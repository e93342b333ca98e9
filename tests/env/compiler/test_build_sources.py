"""A build is reused only while everything that it was made from is as it was."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess

import pytest

from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.sources import ABSENT, UNKNOWN, made_from, unchanged
from kernelwright.env.compiler.runtime.toolchain import (
    TOOLCHAINS,
    BuildError,
    Toolchain,
    find_toolchain,
)

pytestmark = pytest.mark.cc
PLAIN = "int f(void) { return 1; }\n"


def toolchain(name=None):
    try:
        return find_toolchain(name)
    except BuildError:
        pytest.skip(f"no {name} on this machine")


def including(path):
    return f'#include "{path}"\nint f(void) {{ return N; }}\n'


def answer(build, tmp_path):
    """What the library's function returns; each is loaded from a place of its own."""
    place = tmp_path / f"loaded-{len(list(tmp_path.iterdir()))}.so"
    shutil.copy(build.library, place)
    return ctypes.CDLL(str(place)).f()


@pytest.fixture
def cache(tmp_path):
    return BuildCache(tmp_path / "cache")


@pytest.mark.parametrize("compiler", TOOLCHAINS)
@pytest.mark.parametrize("name", ["part.h", "a b#$.h", "über.h", "a:b.h"])
def test_a_header_that_changed_is_read_again(cache, tmp_path, compiler, name):
    found, header = toolchain(compiler), tmp_path / name
    header.write_text("#define N 1\n")
    text = including(header)
    assert not cache.build(text, found, ()).cached
    assert cache.build(text, found, ()).cached
    header.write_text("#define N 2\n")
    again = cache.build(text, found, ())
    assert (again.cached, answer(again, tmp_path)) == (False, 2)
    assert cache.build(text, found, ()).cached


@pytest.mark.parametrize("compiler", TOOLCHAINS)
def test_a_header_s_own_headers_count_whatever_they_say_they_are(cache, tmp_path, compiler):
    found = toolchain(compiler)
    (tmp_path / "a.h").write_text('#pragma GCC system_header\n#include "b.h"\n')
    (tmp_path / "b.h").write_text("#define N 1\n")
    text = including(tmp_path / "a.h")
    assert answer(cache.build(text, found, ()), tmp_path) == 1
    (tmp_path / "b.h").write_text("#define N 2\n")
    assert answer(cache.build(text, found, ()), tmp_path) == 2


def test_a_way_through_the_system_s_folders_leads_out_of_them(cache, tmp_path):
    header = tmp_path / "part.h"
    header.write_text("#define N 1\n")
    text = including(f"/usr/include/../..{header}")
    assert answer(cache.build(text, toolchain(), ()), tmp_path) == 1
    header.write_text("#define N 2\n")
    assert answer(cache.build(text, toolchain(), ()), tmp_path) == 2


def test_a_header_that_is_gone_is_a_refusal(cache, tmp_path):
    header = tmp_path / "part.h"
    header.write_text("#define N 1\n")
    cache.build(including(header), toolchain(), ())
    header.unlink()
    with pytest.raises(BuildError, match=r"part\.h"):
        cache.build(including(header), toolchain(), ())


@pytest.mark.parametrize("compiler", TOOLCHAINS)
@pytest.mark.parametrize("way", ["-include", "-imacros", "-I", "-isystem", "-I+"])
def test_headers_that_flags_name_count(cache, tmp_path, compiler, way):
    found, folder = toolchain(compiler), tmp_path / "inc"
    folder.mkdir()
    header = folder / "part.h"
    header.write_text("#define N 1\n")
    text, flags = {
        "-include": ("int f(void) { return N; }\n", ("-include", str(header))),
        "-imacros": ("int f(void) { return N; }\n", ("-imacros", str(header))),
        "-I": (including("part.h"), ("-I", str(folder))),
        "-I+": (including("part.h"), (f"-I{folder}",)),
        "-isystem": (including("part.h"), ("-isystem", str(folder))),
    }[way]
    assert answer(cache.build(text, found, flags), tmp_path) == 1
    assert cache.build(text, found, flags).cached
    header.write_text("#define N 2\n")
    assert answer(cache.build(text, found, flags), tmp_path) == 2


def test_a_header_that_gets_in_front_of_another_counts(cache, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    second.mkdir()
    (second / "part.h").write_text("#define N 1\n")
    flags = (f"-I{first}", f"-I{second}")
    assert answer(cache.build(including("part.h"), toolchain(), flags), tmp_path) == 1
    assert cache.build(including("part.h"), toolchain(), flags).cached
    first.mkdir()
    assert not cache.build(including("part.h"), toolchain(), flags).cached
    (first / "part.h").write_text("#define N 2\n")
    assert answer(cache.build(including("part.h"), toolchain(), flags), tmp_path) == 2


@pytest.mark.parametrize("joined", ["{}", "-Wl,{}", "@{}"])
def test_files_that_are_linked_in_count(cache, tmp_path, joined):
    found, part = toolchain(), tmp_path / "part.o"
    words = tmp_path / "words"
    words.write_text(str(part))

    def compile_part(number):
        text = f"int part(void) {{ return {number}; }}"
        command = [*found.command, "-fPIC", "-c", "-x", "c", "-", "-o", str(part)]
        subprocess.run(command, input=text, text=True, check=True)

    flags = (joined.format(words if joined.startswith("@") else part), "-fPIC")
    text = "int part(void);\nint f(void) { return part(); }\n"
    # The text comes first, so the linker looks for what it needs in what follows.
    flags = ("-x", "none", flags[0], "-x", "c") if joined == "{}" else flags[:1]
    compile_part(1)
    assert answer(cache.build(text, found, flags), tmp_path) == 1
    assert cache.build(text, found, flags).cached
    if joined.startswith("@"):
        words.write_text(f"{part} -DUNUSED")
    else:
        compile_part(2)
    assert not cache.build(text, found, flags).cached


def test_a_static_library_in_a_named_folder_counts(cache, tmp_path):
    folder = tmp_path / "lib"
    folder.mkdir()
    (folder / "libpart.a").write_bytes(b"!<arch>\n")
    flags = (f"-L{folder}",)
    cache.build(PLAIN, toolchain(), flags)
    assert cache.build(PLAIN, toolchain(), flags).cached
    (folder / "libpart.a").write_bytes(b"!<arch>\n\n")
    assert not cache.build(PLAIN, toolchain(), flags).cached


@pytest.mark.parametrize("compiler", TOOLCHAINS)
def test_the_system_s_headers_go_with_the_compiler(cache, compiler):
    text = "#include <math.h>\n#include <stdint.h>\n#include <stdlib.h>\n" + PLAIN
    build = cache.build(text, toolchain(compiler), ("-O1",))
    assert json.loads((build.library.parent / "entry.json").read_text())["made_from"] == {}
    assert cache.build(text, toolchain(compiler), ("-O1",)).cached


@pytest.mark.parametrize(
    "text",
    [
        '#if __has_include("/nowhere/part.h")\n#define N 2\n#endif\n' + PLAIN,
        'asm(".pushsection .rodata\\n.incbin \\"/etc/passwd\\"\\n.popsection");\n' + PLAIN,
        '#include "/dev/null"\n' + PLAIN,
    ],
)
def test_what_cannot_be_followed_is_built_every_time(cache, text):
    assert not cache.build(text, toolchain(), ()).cached
    assert not cache.build(text, toolchain(), ()).cached


def test_looking_for_a_system_header_is_no_reason_to_build_again(cache):
    text = "#if __has_include(<immintrin.h>)\n#include <stdint.h>\n#endif\n" + PLAIN
    cache.build(text, toolchain(), ())
    assert cache.build(text, toolchain(), ()).cached


def wrapper(tmp_path, script):
    """The compiler with something before or after it."""
    path = tmp_path / "wrapped"
    path.write_text(f"#!/bin/sh\n{script.format(cc=find_toolchain('gcc').command[0])}\n")
    path.chmod(0o755)
    return Toolchain("gcc", (str(path),), "wrapped")


def test_a_header_that_changes_while_it_is_read_is_not_trusted(cache, tmp_path):
    toolchain("gcc")
    header = tmp_path / "part.h"
    header.write_text("#define N 1\n")
    late = wrapper(tmp_path, f'{{cc}} "$@" && sleep 0.1 && echo "#define M 1" >> "{header}"')
    cache.build(including(header), late, ())
    assert not cache.build(including(header), late, ()).cached


def test_a_compiler_that_does_not_say_what_it_read_is_asked_again(cache, tmp_path):
    toolchain("gcc")
    silent = wrapper(tmp_path, '{cc} "$@" && rm "$(dirname "$PWD")/kernel.d"')
    assert not cache.build(PLAIN, silent, ()).cached
    assert not cache.build(PLAIN, silent, ()).cached


def test_macros_are_no_paths(cache, tmp_path):
    flags = (f"-DROOT={tmp_path}", "-UR/x")
    cache.build(PLAIN, toolchain(), flags)
    (tmp_path / "new").touch()
    assert cache.build(PLAIN, toolchain(), flags).cached


def test_a_record_without_sources_is_no_record(cache):
    build = cache.build(PLAIN, toolchain(), ())
    record = build.library.parent / "entry.json"
    about = json.loads(record.read_text())
    for sources in (None, [], ["x"], {"/nowhere": UNKNOWN}, {"/etc/passwd": "0"}):
        record.write_text(json.dumps(about | {"made_from": sources}))
        assert not cache.build(PLAIN, toolchain(), ()).cached
        assert cache.build(PLAIN, toolchain(), ()).cached
    record.write_text(json.dumps({k: v for k, v in about.items() if k != "made_from"}))
    assert not cache.build(PLAIN, toolchain(), ()).cached


def test_rules_are_read_as_compilers_write_them(tmp_path):
    rule, folder = tmp_path / "kernel.d", tmp_path / "x"
    folder.mkdir()
    names = ["a b.h", "c#d.h", "e$f.h", "g:h.h", "last.h"]
    for name in names:
        (folder / name).touch()
    rule.write_text(
        f"{tmp_path}/a\\ b.so: /usr/include/math.h \\\n {folder}/a\\ b.h {folder}/c\\#d.h \\\n"
        f"  {folder}/e$$f.h {folder}/g:h.h\n\n{folder}/last.h:\nother: {folder}/last.h relative.h\n"
    )
    now = folder.stat().st_ctime_ns + 10**12
    found = made_from("", rule, Toolchain("gcc", ("gcc",), ""), (), now)
    assert set(found) == {str(folder / name) for name in names} | {"relative.h"}
    assert found.pop("relative.h") == UNKNOWN
    assert unchanged(found)
    (folder / "last.h").unlink()
    assert not unchanged(found)
    gone = made_from("", rule, Toolchain("gcc", ("gcc",), ""), (f"-I{folder}/no",), now)
    assert gone[str(folder / "last.h")] == UNKNOWN
    assert gone[f"{folder}/no"] == ABSENT


def test_a_folder_that_was_removed_is_made_again(cache):
    first = cache.build(PLAIN, toolchain(), ())
    shutil.rmtree(cache.folder)
    again = cache.build(PLAIN, toolchain(), ())
    assert not again.cached
    assert again.library == first.library
    assert again.library.is_file()
    shutil.rmtree(first.library.parent)
    assert not cache.build(PLAIN, toolchain(), ()).cached
    assert first.library.is_file()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_folder_that_is_removed_meanwhile_is_no_fault_of_the_text(cache, tmp_path, when):
    toolchain("gcc")
    once = tmp_path / "once"
    remove = f'if mkdir "{once}" 2>/dev/null; then rm -rf "{cache.folder}"; fi'
    script = {"before": f'{remove}\n{{cc}} "$@"', "after": f'{{cc}} "$@"\n{remove}'}[when]
    build = cache.build(PLAIN, wrapper(tmp_path, script), ())
    assert once.is_dir()
    assert answer(build, tmp_path) == 1


def test_a_folder_that_cannot_be_is_not_tried_for_ever(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        BuildCache(tmp_path / "file" / "cache").build(PLAIN, toolchain(), ())


def test_a_refusal_is_a_refusal_the_first_time(cache, tmp_path):
    toolchain("gcc")
    counted = wrapper(tmp_path, f'echo x >> "{tmp_path}/calls"; {{cc}} "$@"')
    with pytest.raises(BuildError, match="refused the code"):
        cache.build("int f(", counted, ())
    assert (tmp_path / "calls").read_text() == "x\n"
    assert not list(cache.folder.iterdir())


def shadow_cases(folder):
    """A text, its flags, the header that is read, and one that would be read before it."""
    for part in ("a/sub", "b/sub"):
        (folder / part).mkdir(parents=True)
    below = f"-I{folder}/b"
    yield '#include "sub/k.h"\n', (f"-I{folder}/a", below), "b/sub/k.h", "a/sub/k.h"
    (folder / "b/sub/w.h").write_text('#include "z.h"\n')
    yield '#include "sub/w.h"\n', (below,), "b/z.h", "b/sub/z.h"
    (folder / "a/m.h").write_text('#include "n.h"\n')
    yield f'#include "{folder}/a/m.h"\n', (below,), "b/n.h", "a/n.h"


@pytest.mark.parametrize("compiler", TOOLCHAINS)
@pytest.mark.parametrize("case", range(3))
def test_a_header_that_gets_in_front_of_another_is_read(cache, tmp_path, compiler, case):
    found = toolchain(compiler)
    head, flags, read, before = list(shadow_cases(tmp_path / "src"))[case]
    (tmp_path / "src" / read).write_text("#define N 1\n")
    text = f"{head}int f(void) {{ return N; }}\n"
    assert not cache.build(text, found, flags).cached
    assert cache.build(text, found, flags).cached
    (tmp_path / "src" / before).write_text("#define N 2\n")
    again = cache.build(text, found, flags)
    assert (again.cached, answer(again, tmp_path)) == (False, 2)
