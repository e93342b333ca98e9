"""What is said of a trial, word by word."""

from __future__ import annotations

import pytest

from kernelwright.env.types import (
    Arm,
    CacheState,
    Evidence,
    Measurement,
    ProcessPair,
    Role,
    Stage,
    Status,
    Terms,
    Unpaired,
    Verdict,
    knob_candidate,
)
from kernelwright.search.claims import Names, claim_of, in_figures, in_words
from kernelwright.search.trial import Trial

NARROW = [0.99, 1.0, 1.01, 0.995, 1.005]


def pairs(ratio, spread):
    return tuple(ProcessPair(Arm.CANDIDATE, tuple(Arm), ((1.0, ratio * s),)) for s in spread)


def against(samples, role=Role.BASELINE, key="k"):
    return Measurement("w", role, key, samples, "c", CacheState.COLD, Evidence.MEASURED, "m")


def trial(*confirmed, status=Status.WIN, terms=None, late=None):
    first = Verdict(Status.OK, measurements=(against(pairs(2.1, [1.0])),))
    verdicts = [(Stage.SCREEN, first)]
    if confirmed:
        verdicts.append((Stage.CONFIRM, Verdict(status, measurements=confirmed, terms=terms)))
    if late is not None:
        verdicts.append((Stage.CONFIRM, late))
    return Trial(0, knob_candidate({"a": 1}), tuple(verdicts), 1.0704, "me", (), 0, 1)


SAID = {
    "win: 1.31x, between 1.30 and 1.32 at 95%, against the unscheduled baseline; "
    "against OpenBLAS 0.710x, between 0.703 and 0.717": trial(
        against(pairs(1.31, NARROW)), against(pairs(0.71, NARROW), Role.LIBRARY, "l")
    ),
    "tie: no difference that could be claimed, 0.99x, between 0.81 and 1.21 at 95%, against "
    "the unscheduled baseline": trial(
        against(pairs(1, [0.8, 0.9, 1.0, 1.1, 1.2])), status=Status.TIE
    ),
    "loss: slower, 0.710x, between 0.703 and 0.717 at 95%, against the unscheduled baseline": trial(
        against(pairs(0.71, NARROW)), status=Status.LOSS
    ),
    # The limits at 95% lie above 1; those at the level of the claim do not.
    "tie: a difference that may not be claimed, 1.013x, between 1.003 and 1.023 at 95%, against "
    "the unscheduled baseline, which is not enough for a claim at 99.5%": trial(
        against(pairs(1.013, NARROW)), status=Status.TIE, terms=Terms(0.0025)
    ),
    "tie: a difference that may not be claimed, 1.02x, between 1.01 and 1.03 at 95%, against the "
    "unscheduled baseline, which is not beyond the 5% that identical kernels differ by on this "
    "host": trial(against(pairs(1.02, NARROW)), status=Status.TIE, terms=Terms(0.025, 0.05)),
    "tie: a difference that may not be claimed, 1.02x, between 1.01 and 1.03 at 95%, against the "
    "unscheduled baseline, which was not enough for a claim": trial(
        against(pairs(1.02, NARROW)), status=Status.TIE
    ),
    "tie: no difference that could be claimed, 3.00x, of unknown limits (too few samples), "
    "against the unscheduled baseline; against OpenBLAS 2.00x, of unknown limits (too few "
    "samples)": trial(
        against(pairs(3, [1.0])),
        against(pairs(2, [1.0]), Role.LIBRARY, "l"),
        status=Status.TIE,
    ),
    "win: 3.00x, without spread, against the unscheduled baseline": trial(
        against(pairs(3, [1.0] * 4))
    ),
    "ok: 2.10x in a screen against the unscheduled baseline, which is no claim": trial(),
}
NAMES = Names("unscheduled", "OpenBLAS")


@pytest.mark.parametrize("said", SAID, ids=[f"{n}" for n in range(len(SAID))])
def test_the_sentence(said):
    assert claim_of(SAID[said], NAMES) == said


def test_a_noisy_host_leaves_what_was_seen_in_a_screen():
    noisy = trial(late=Verdict(Status.UNSTABLE, "noisy_host", "too much noise"))
    assert claim_of(noisy, NAMES) == (
        "unstable: nothing can be claimed: too much noise; "
        "2.10x in a screen against the unscheduled baseline, which is no claim"
    )
    bare = Verdict(Status.UNSTABLE, "noisy_host")
    assert in_words(bare, NAMES) == "unstable: nothing can be claimed: noisy_host"


def test_a_failure_has_no_speedup():
    late = trial(late=Verdict(Status.WRONG, "wrong_value", "y[3]: expected 1, found 2"))
    assert claim_of(late, NAMES) == "wrong (wrong_value): y[3]: expected 1, found 2"
    assert in_words(Verdict(Status.TIMEOUT, "no_answer"), NAMES) == "timeout (no_answer)"


def test_a_screen_against_an_incumbent_is_no_speedup_of_its_own():
    screen = Verdict(Status.OK, measurements=(against(pairs(2, [1.0]), Role.INCUMBENT),))
    assert in_words(screen, NAMES) == "ok"


def test_names_are_short_and_what_is_unknown_is_called_by_its_role():
    given = trial(against(pairs(2, NARROW)), against(pairs(1, NARROW), Role.LIBRARY, "l"))
    assert "against the kernel.c baseline; " in claim_of(given, Names("far/kernel.c"))
    assert "against the baseline; against the library 1" in claim_of(given, Names())
    assert Names.stored({"baseline": '{"name": "default"}', "library": "NumPy"}) == Names(
        "default", "NumPy"
    )
    assert Names.stored({}) == Names()


def test_a_library_that_is_the_baseline_is_named_once():
    given = trial(against(pairs(2, NARROW)), against(pairs(2, NARROW), Role.LIBRARY))
    said = claim_of(given, Names("library", "cuBLAS"))
    assert said.endswith("against the cuBLAS baseline")


def test_an_unpaired_single_sample_has_no_limits():
    assert "of unknown limits" in claim_of(trial(against(Unpaired((1.0,), (9.0,)))), NAMES)


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ((1.31, 1.28, 1.34), "1.31x, between 1.28 and 1.34"),
        ((1.002, 1.0004, 1.004), "1.0020x, between 1.0004 and 1.0040"),
        ((0.99, 0.98, 0.9996), "0.9900x, between 0.9800 and 0.9996"),
        ((12.188, 11.458, 12.998), "12.2x, between 11.5 and 13.0"),
        ((1234.5, 1200.0, 1270.0), "1234x, between 1200 and 1270"),
        ((0.0712, 0.070, 0.0725), "0.071x, between 0.070 and 0.072"),
        ((1.5, 1 + 1e-9, 2.0), "1.500000x, between 1.000000 and 2.000000"),
        ((1.0, 1.0, 1.0), "1.00x, without spread"),
        ((2.0, None, None), "2.00x, of unknown limits"),
        ((2.0, 1.9, None), "2.00x, of unknown limits"),
        ((2.0,), "2.00x"),
    ],
)
def test_limits_are_not_rounded_across_1(figures, said):
    assert in_figures(*figures) == said
