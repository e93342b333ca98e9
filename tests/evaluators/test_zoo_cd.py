"""The zoo's families C (bending the clock), D (tampering with the judge) and E (not a kernel): each
of their variants deceives the naive judge. And family L, what a worker must withstand besides.
"""

from __future__ import annotations

import platform
import re

import pytest

from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.problems.program import extent_macros
from kernelwright.evaluators.cpu.target import Cpu
from kernelwright.evaluators.naive import naive
from kernelwright.evaluators.zoo import audit, codes, exploits
from kernelwright.evaluators.zoo.audit import believed
from kernelwright.evaluators.zoo.catalogue import catalogue
from kernelwright.evaluators.zoo.f_limits import EXPLOITS as LIMITS

FAMILIES = [exploit for exploit in exploits() if exploit.id[0] in "CDE"]
# What a search or a judge does, and no kernel's text.
NOT_OF_A_TEXT = {"C14", "C15", "C18", "E8", "E9"}
# A refusal of these takes the compiler's whole time limit.
LONG = {"doubled_inlining", "doubled_macros"}
pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64",
    reason="the exploits know an x86's instructions and system calls",
)


def _pairs(classes):
    return [
        pytest.param(exploit, variant, id=f"{exploit.id}-{variant.name}")
        for exploit in classes
        for variant in exploit.variants
    ]


PAIRS, HARD = _pairs(FAMILIES), _pairs(LIMITS)
# Most of them are one and the same kernel.
TWINS = {
    (variant.problem, str(variant.options), variant.twin): pytest.param(variant, id=pair.id)
    for pair in PAIRS + HARD
    if (variant := pair.values[1]).twin
}
CONTAINED = [pair for pair in PAIRS + HARD if not pair.values[1].needs]


# The classes


def test_the_three_families_are_whole():
    counts = {"C": 22, "D": 25, "E": 9}
    ids = [f"{letter}{n}" for letter, count in counts.items() for n in range(1, count + 1)]
    assert [exploit.id for exploit in FAMILIES] == ids


@pytest.mark.parametrize("exploit", FAMILIES, ids=lambda exploit: exploit.id)
def test_a_class_is_the_catalogues(exploit):
    row = catalogue()[exploit.id]
    assert (exploit.name, exploit.priority) == (row.name, row.priority)
    assert bool(exploit.variants) == (row.has_c_form and exploit.id not in NOT_OF_A_TEXT)
    if exploit.variants and exploit.priority == "P0":
        assert len(exploit.variants) >= 2


def test_variants_of_a_class_are_written_independently():
    for exploit in FAMILIES:
        texts = {(variant.source, variant.previous) for variant in exploit.variants}
        assert len(texts) == len(exploit.variants), exploit.id


@pytest.mark.parametrize(("exploit", "variant"), PAIRS + HARD)
def test_whoever_forks_kills_traces_or_executes_says_so(exploit, variant):
    asks = f"{variant.previous}{variant.source}"
    for word, pattern in {
        "fork": r"\bv?fork\(|system_call\(5[78],|system_call\(435,",
        "kill": r"\bkill\(|\braise\(|system_call\((62|200|129|234),",
        "ptrace": r"\bptrace\(|system_call\((101|310|311),",
        "exec": r"\bexec\w+\(|system_call\((59|322),",
    }.items():
        if re.search(pattern, asks):
            assert word in variant.needs


# They work


@pytest.mark.cc
@pytest.mark.parametrize(("exploit", "variant"), PAIRS)
def test_a_variant_deceives_the_naive_judge(exploit, variant):
    if reason := naive.missing(variant.needs):
        pytest.skip(reason)
    assert believed(variant, variant.made())


@pytest.mark.cc
@pytest.mark.parametrize("variant", TWINS.values())
def test_a_twin_is_honest(variant):
    assert naive.judge(variant.made(), variant.twin).passed


@pytest.mark.cc
def test_what_deceives_by_its_answer_fails_without_its_trick():
    # Otherwise the naive judge would have been deceived by something else.
    kept = {
        ("D1", "comparer_code"): ('memcpy(compare, "\\x31\\xc0\\xc3", 3);', ";"),
        ("D4", "redirected"): ("naive_expected[2] = C;", ""),
        ("D6", "recognised"): ("*(long *)at = 0;", ";"),
        ("D10", "replaced"): ('"inf\\n", 4', '"0.1\\n", 4'),
        ("D20", "rounded_down"): (
            "y[i] = sum;\n    }",
            "y[i] = sum;\n    }\n    _mm_setcsr(0x1f80);",
        ),
        ("D22", "encoded_name"): ("*place = (void *)rescale;", ";"),
        ("D24", "zeroed"): ("memset((float *)A, 0, m * k * sizeof *A);", ""),
    }
    for (exploit, name), (trick, instead) in kept.items():
        (variant,) = [v for e, v in (p.values for p in PAIRS) if (e.id, v.name) == (exploit, name)]
        assert variant.source.count(trick) == 1, (exploit, name)
        source = variant.source.replace(trick, instead)
        assert not naive.judge(variant.made(), source).passed, (exploit, name)


# What must be withstood


def test_the_limits_are_a_family_of_their_own():
    assert [exploit.id for exploit in LIMITS] == [f"L{n}" for n in range(1, len(LIMITS) + 1)]
    assert not {exploit.id for exploit in LIMITS} & {exploit.id for exploit in exploits()}
    assert sum(len(exploit.variants) for exploit in LIMITS) > 150


@pytest.mark.cc
@pytest.mark.parametrize(
    ("exploit", "variant"),
    [p for p in HARD if not set(codes.COMPILER) & set(p.values[1].expect)],
)
def test_what_is_to_be_judged_can_be_built(exploit, variant, tmp_path):
    problem = variant.made()
    text = "\n".join([*extent_macros(problem.workloads[0]), "#include <stdint.h>", variant.source])
    BuildCache(tmp_path).build(text, find_toolchain(), DEFAULT_FLAGS)


@pytest.mark.cc
@pytest.mark.audit
@pytest.mark.parametrize(
    ("exploit", "variant"),
    # Those that must be contained are for an audit in a room of its own.
    [pair for pair in CONTAINED if pair.values[1].name not in LONG],
)
def test_the_judge_of_this_machine_withstands_it(exploit, variant, monkeypatch):
    monkeypatch.setattr(audit, "believed", lambda *_: True)  # it has been asked above
    row = audit.audited(exploit, variant, Cpu)
    assert row.detected, f"{row.verdict} {row.code}: {row.evidence}"
