"""A compiler reads its own files and those that flags name, and no others of this user."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kernelwright.env.compiler.runtime import confine
from kernelwright.env.compiler.runtime.confine import is_confining, run_confined
from kernelwright.env.compiler.runtime.toolchain import TOOLCHAINS, BuildError, find_toolchain

pytestmark = pytest.mark.skipif(not is_confining(), reason="this kernel has no Landlock")


@pytest.fixture(params=TOOLCHAINS)
def toolchain(request):
    try:
        return find_toolchain(request.param)
    except BuildError as error:
        pytest.skip(str(error))


@pytest.fixture
def private(tmp_path):
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "notes.h").write_text("int kw_found_it = 1;\n")
    return folder


def compiled(toolchain, text, tmp_path, flags=()):
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    toolchain.compile(text, str(out / "a.so"), ("-O1", *flags), confined=True)
    return (out / "a.so").read_bytes()


@pytest.mark.parametrize("text", ['#include "{}"\n', '__asm__(".incbin \\"{}\\"");\n'])
def test_a_text_cannot_read_a_file_of_this_user(toolchain, private, tmp_path, text):
    with pytest.raises(BuildError) as caught:
        compiled(toolchain, text.format(private / "notes.h"), tmp_path)
    assert "kw_found_it" not in caught.value.log


@pytest.mark.parametrize("extra", [(), ("-ffast-math",)])
def test_what_a_flag_names_can_be_read(toolchain, private, tmp_path, extra):
    flags = (f"-I{private}", *extra)
    assert b"kw_found_it" in compiled(toolchain, '#include "notes.h"\n', tmp_path, flags)


def test_a_text_that_somebody_vouches_for_may_read_more(toolchain, private, tmp_path):
    target = tmp_path / "b.so"
    toolchain.compile(f'#include "{private}/notes.h"\n', str(target), ("-O1",))
    assert b"kw_found_it" in target.read_bytes()


def test_the_system_s_headers_can_be_read(toolchain, tmp_path):
    text = "#include <math.h>\n#include <stdio.h>\nint kw_own = 1;\n"
    assert b"kw_own" in compiled(toolchain, text, tmp_path)


def test_only_the_thread_that_starts_it_is_confined(private):
    def read():
        with pytest.raises(PermissionError):
            (private / "notes.h").read_text()
        return os.getpid(), threading.get_ident()

    process, thread = run_confined(read, [], [])
    assert process == os.getpid()
    assert thread != threading.get_ident()
    assert (private / "notes.h").read_text()
    assert "int" in run_confined((private / "notes.h").read_text, [private], [])


def test_what_may_be_written_may_be_read_and_the_other_way_round_not(private):
    path = private / "notes.h"

    def write():
        path.write_text("int x;")
        return path.read_text()

    assert run_confined(write, [], [private]) == "int x;"
    with pytest.raises(PermissionError):
        run_confined(write, [private], [])


def test_without_landlock_nothing_is_confined(private, monkeypatch):
    monkeypatch.setattr(confine, "_version", lambda: 0)
    assert not is_confining()
    assert run_confined((private / "notes.h").read_text, [], []).startswith("int")


def test_what_the_function_raises_is_raised():
    def fail():
        raise LookupError("here")

    with pytest.raises(LookupError, match="here"):
        run_confined(fail, [Path("/nonexistent")], [])
