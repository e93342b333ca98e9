"""What is read from a compiler's assembly and remarks."""

from __future__ import annotations

import pytest

from kernelwright.env.compiler.schedule.trace import parse_trace
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.softmax import softmax
from kernelwright.env.types import Candidate, Language
from kernelwright.evaluators.cpu.listing import MOST_REMARKS, Counts, read_listing, remarks
from kernelwright.evaluators.cpu.target import Cpu

ASSEMBLY = """
\t.file\t"kernel.c"
\t.loc 1 3 5
f:
.LFB0:
\tpushq\t%rbp
.L2:
\t.loc 1 4 9
\tleaq\t8(%rax), %rcx
.L3:
\t.loc 1 5 13 is_stmt 1
\tvmovups\t(%rdi,%rax), %zmm1
\tvmovaps\t%zmm3, -64(%rsp)
\tvfmadd231ps\t(%rsi,%rax), %zmm1, %zmm0
\tvaddps\t%ymm1, %ymm2, %ymm2 # a comment
\tvmovups\t%zmm0, (%rdx)
\tprefetcht0\t64(%rdi)
\tjne\t.L3
\tvaddss\t4(%rax), %xmm0, %xmm0
\tcall\texpf@PLT
\tjmp\t.L2
.L5:
\tvpaddd\t%ymm0, %ymm1, %ymm1
\tvmulsd\t%xmm0, %xmm1, %xmm1
\tjg\t.L5
.L6:
\taddq\t$8, %rax
\tjne\t.L6
\tjmp\t*%rax
\tret
"""


def test_innermost_loops_and_the_whole_are_counted():
    found = read_listing(ASSEMBLY)
    first, second = found.loops  # the loop that computes nothing is not told
    assert (first.line, second.line) == (5, 5)
    assert first.counts == Counts(7, vector=2, fma=1, loads=2, stores=2, spills=1, bits=512)
    assert second.counts == Counts(3, vector=1, scalar=1, bits=256)
    assert dict(found.facts()) == {
        "vector_bits": 512,
        "vector_share": 3 / 5,
        "fma": 1,
        "spills": 1,
        "calls": 1,
    }
    assert found.whole.calls == ("expf",)
    assert found.text().splitlines()[0] == (
        "loop at line 5: 7 instructions; 2 on vectors of up to 512 bits; 1 multiply-adds among "
        "them; 2 loads, 2 stores; 1 spills"
    )


@pytest.mark.parametrize("text", ["", "garbage \x00\n\t\t(((", ".L1:\n", "\tjmp\t.L1\n" * 3])
def test_other_texts_are_read_as_far_as_they_go(text):
    found = read_listing(text)
    assert found.loops == ()
    assert dict(found.facts())["vector_share"] == 0


def test_remarks_are_told_once_with_their_lines_and_reasons():
    log = "\n".join(
        [
            "k.c:5:27: missed: couldn't vectorize loop",
            "k.c:5:27: missed: not vectorized: control flow in loop.",
            "k.c:5:27: missed: not vectorized: control flow in loop.",
            "k.c:9:3: missed: statement clobbers memory: f ();",
            "k.c:15:31: optimized: loop vectorized using 32 byte vectors",
            "k.c:7:1: remark: loop not vectorized: call instruction [-Rpass-analysis]",
            "kw_call.c:2:1: missed: statement clobbers memory: kernel ();",
            "k.c:3:3: warning: unused variable",
        ]
    )
    assert remarks(log).splitlines() == [
        "line 5: not vectorized: control flow in loop.",
        "line 9: missed: statement clobbers memory: f ();",
        "line 15: loop vectorized using 32 byte vectors",
        "line 7: loop not vectorized: call instruction [-Rpass-analysis]",
    ]
    many = "\n".join(f"k.c:{n}:1: optimized: loop vectorized" for n in range(40))
    assert remarks(many).splitlines()[MOST_REMARKS:] == [f"and {40 - MOST_REMARKS} more remarks"]


REGISTER_TILE = """
split('i', 4)
split('j', 16)
reorder('jo', 'io', 'p', 'ii', 'ji')
unroll('ii')
vectorize('ji')
"""


@pytest.mark.cc
def test_a_compiled_kernel_is_read():
    problem = softmax(rows=16, cols=64)
    target = Cpu(problem)
    text, log = target.listing(Candidate(Language.SOURCE, problem.plain_c))
    found = read_listing(text)
    assert found.whole.instructions > 20
    assert "expf" in " ".join(found.whole.calls)
    (summing,) = [loop for loop in found.loops if "expf" in loop.counts.calls]
    # Some compilers give the line of the loop, others that of its first statement.
    lines = problem.plain_c.splitlines()[summing.line - 1 : summing.line + 1]
    assert "expf" in "".join(lines)
    assert "kw_call.c" in log
    assert "kw_" not in remarks(log)
    assert target.listing(Candidate(Language.SOURCE, "no C")) is None
    small = matmul(m=32, n=32, k=32)
    listing = Cpu(small).listing(Candidate(Language.SCHEDULE, parse_trace(REGISTER_TILE)))
    loops = read_listing(listing[0]).loops
    assert max(loop.counts.vector for loop in loops) >= 4
