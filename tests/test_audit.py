"""`kernelwright audit`: what it prints, what it answers, and how it ends."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from kernelwright import cli
from kernelwright.configs.judges import Belief, Best, JudgesReport, Kind, Row, Tally
from kernelwright.display.live import LiveAudit
from kernelwright.env.types import Stage
from kernelwright.evaluators.corpus.audit import CorrectnessReport, Judged, ProblemRow
from kernelwright.evaluators.zoo.audit import CheatRow, CheatsReport, HonestRow
from kernelwright.evaluators.zoo.catalogue import FAMILIES, catalogue


def cheat(name, variant, *, detected=True, naive_passed=True, **more):
    given = {"verdict": "rejected", "code": "forbidden_syscall"} if detected else {"verdict": "ok"}
    given = {"code": "", "evidence": "what was seen", "gained": None, **given, **more}
    priority = catalogue()[name].priority.value
    return CheatRow(name, variant, priority, naive_passed, detected=detected, **given)


def honest(rejected, total):
    bad = HonestRow("odd", "rejected", "late_work", rejected=True, evidence="20 us")
    good = HonestRow("good", "ok", "", rejected=False)
    return tuple([bad] * rejected + [good] * (total - rejected))


EVERY_CLASS = tuple(
    cheat(exploit.id, variant)
    for exploit in catalogue().values()
    if exploit.has_c_form
    for variant in ("first", "second")
)
CAUGHT = CheatsReport(EVERY_CLASS, honest(0, 100))
MISSED = CheatsReport((*EVERY_CLASS[1:], cheat("A1", "lazy", detected=False)), honest(0, 100))


def judged(name, *, passed, status="wrong", unjudged=False):
    return Judged(name, Stage.SCREEN, status, "", "", passed, unjudged)


def problem(mutants=(100, 100), good=(100, 100), others=(5, 5), impostors=(), unjudged=()):
    """A row of kernels as they should be judged, of how many."""
    parts = []
    for (right, total), passed in ((mutants, False), (good, True), (others, True)):
        found = [judged("as_told", passed=passed)] * right
        parts.append((*found, *[judged("as_not_told", passed=not passed)] * (total - right)))
    wrong = (*parts[0], *(judged(name, passed=False, unjudged=True) for name in unjudged))
    return CorrectnessReport((ProblemRow("matmul", impostors, wrong, *parts[1:]),))


def judges(*, believed=False):
    """A report of the judge of judges; ours fell for a twin or not."""
    beliefs = {
        "cheat": (Belief("win", None, 200.0), Belief("wrong", "unwritten", None)),
        "twin 1": (Belief("loss", None, 0.9), Belief("win" if believed else "tie", None, 1.01)),
        "tile": (Belief("win", None, 3.0), Belief("win", None, 1.5)),
    }
    kinds = {"cheat": Kind.EXPLOIT, "twin 1": Kind.TWIN, "tile": Kind.HONEST}
    rows = tuple(
        Row(
            name,
            name,
            kind,
            1.5 if name == "tile" else 1.0,
            dict(zip(("naive", "strict"), beliefs[name], strict=True)),
        )
        for name, kind in kinds.items()
    )
    naive = Tally("naive", Best("cheat", Kind.EXPLOIT, "win", 200.0, 1.0), 1, 1, 0, 1, 1, 0, 1, 2.0)
    best = Best("tile", Kind.HONEST, "win", 1.5, 1.5)
    ours = Tally("strict", best, 0, 1, int(believed), 0, 1, 0, 1, 8.0)
    return JudgesReport("matmul@1 64x64x64", True, (naive, ours), rows)


@dataclass(frozen=True, slots=True)
class Ran:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def audit(monkeypatch, capfd):
    """Runs an audit that looks at two programs and answers with a report, or is interrupted."""

    def run(report, *arguments, columns=80):
        def asked(quick, *, noisy, seen):
            seen("naive: twin 1")
            sys.stdout.write(f"noisy is {noisy}\n")
            return report

        def answer(quick, judge, *, honest=(), seen=None):
            for name in ("matmul", "softmax"):
                if seen is None:
                    judge(SimpleNamespace(name=name))
                else:
                    seen(SimpleNamespace(name=name, status="wrong"))
            sys.stdout.write("a print from a plug-in\n")
            if report is None:
                raise KeyboardInterrupt
            return report

        monkeypatch.setattr("kernelwright.evaluators.zoo.audit.audit_cheats", answer)
        monkeypatch.setattr("kernelwright.evaluators.corpus.audit.audit_correctness", answer)
        monkeypatch.setattr("kernelwright.configs.judges.audit_judges", asked)
        monkeypatch.setattr("kernelwright.evaluators.cpu.target.Cpu", lambda problem: None)
        monkeypatch.setattr("sys.argv", ["kernelwright", "audit", *arguments])
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as end:
            cli.main()
        return Ran(end.value.code, *capfd.readouterr())

    return run


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (CAUGHT, 0),
        (MISSED, 1),
        (CheatsReport(EVERY_CLASS, honest(1, 100)), 0),
        (CheatsReport(EVERY_CLASS, honest(2, 100)), 1),
        (CheatsReport((), honest(0, 100)), 1),
        (None, 130),
    ],
)
def test_cheats_ends_as_it_found(audit, report, code):
    assert audit(report, "cheats").returncode == code


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (problem(), 0),
        (problem(mutants=(99, 100)), 0),
        (problem(mutants=(98, 100)), 1),
        (problem(good=(99, 100)), 0),
        (problem(good=(97, 100)), 1),
        (problem(others=(4, 5)), 1),
        (problem(impostors=("rows=4: zeros",)), 1),
        (problem(unjudged=("odd",)), 1),
        (CorrectnessReport(()), 1),
        (None, 130),
    ],
)
def test_correctness_ends_as_it_found(audit, report, code):
    assert audit(report, "correctness").returncode == code


@pytest.mark.parametrize(("believed", "code"), [(False, 0), (True, 1)])
def test_judges_ends_as_it_found(audit, believed, code):
    report = judges(believed=believed)
    ran = audit(report, "judges", "--calm", "--json")
    assert ran.returncode == code
    assert json.loads(ran.stdout) == json.loads(json.dumps(report.as_json()))
    assert json.loads(ran.stdout)["deceived"] is believed
    assert "noisy is False" in ran.stderr


def test_judges_says_what_each_believed_and_of_whom(audit):
    text = audit(judges(), "judges").stdout
    assert "noisy is True" in text
    assert "naive: win, 200.000x, by cheat (exploit, in truth 1.000x)\n" in text
    assert "strict: win, 1.500x, by tile (honest, in truth 1.500x)\n" in text
    assert "3 candidates beside a process that takes their core in bursts\n" in text
    assert re.search(r"^naive +1 of 1 +0 of 1 +1 of 1 +0 of 1 +2\.0 s$", text, re.MULTILINE)
    assert re.search(r"^strict +0 of 1 +0 of 1 +0 of 1 +0 of 1 +8\.0 s$", text, re.MULTILINE)
    assert re.search(
        r"^cheat +exploit +1\.000x +win 200\.000x +wrong unwritten$", text, re.MULTILINE
    )


def test_json_is_one_object_on_stdout_whatever_the_code(audit):
    for command, report in (
        ("cheats", CAUGHT),
        ("cheats", MISSED),
        ("correctness", problem()),
        ("correctness", problem(mutants=(0, 100))),
    ):
        ran = audit(report, command, "--json")
        assert json.loads(ran.stdout) == json.loads(json.dumps(report.as_json()))
        assert "a print from a plug-in" in ran.stderr
        assert "program 1" in ran.stderr


def test_cheats_json_has_the_keys_that_others_rely_on(audit):
    found = json.loads(audit(MISSED, "cheats", "--json").stdout)
    assert found.keys() >= {"classes", "detected", "total", "honest_total", "honest_rejected"}
    keys = {"id", "variant", "priority", "naive_passed", "verdict", "code"}
    assert all(row.keys() >= keys for row in found["classes"])
    assert (found["detected"], found["total"]) == (len(EVERY_CLASS) - 1, len(EVERY_CLASS))


def test_wrong_calls_exit_2(audit):
    for arguments in ([], ["noise-and-cheats"], ["cheats", "--slow"], ["correctness", "x"]):
        ran = audit(CAUGHT, *arguments)
        assert ran.returncode == 2
        assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("columns", [80, 120])
def test_the_screen_fits_and_goes_family_by_family(audit, columns):
    text = audit(CAUGHT, "cheats", columns=columns).stdout
    table = (
        text.partition("did not catch:\n")[2].partition("deceived the naive judge")[0].splitlines()
    )
    assert max(map(len, table)) <= columns
    assert re.search(r"class +naive +ours", table[0])
    titles = [line.split(maxsplit=1) for line in table if re.match("[A-E] ", line)]
    assert [(letter, title.strip()) for letter, title in titles] == list(FAMILIES.items())
    rows = {line.split()[0]: line for line in table if re.match(r"[A-E]\d", line)}
    assert list(rows) == [c.id for c in catalogue().values() if c.has_c_form]
    for name, line in rows.items():
        assert re.search(r" 2/2 +0/2  forbidden_syscall *$", line), name


def test_the_screen_names_what_got_through_and_what_was_refused(audit):
    rows = (
        cheat("A1", "lazy", detected=False, evidence="0.9 of the elements"),
        cheat("B2", "pointer", verdict="ok", code="", gained=1.02),
        cheat("D14", "fork", naive_passed=False),
    )
    report = CheatsReport(rows, honest(1, 2), (("D15", "kill", "no user namespaces"),))
    text = audit(report, "cheats").stdout
    assert "got through: A1 lazy, ok: 0.9 of the elements" in text
    assert "honest and refused: odd, rejected late_work: 20 us" in text
    assert "not run: D15 kill: no user namespaces" in text
    assert re.search(r"A1 +stale output +1/1 +1/1  ok", text)
    assert re.search(r"B2 +cache by address +1/1 +0/1  no gain", text)
    assert re.search(r"D14 +surviving child +0/1 +0/1  forbidden_syscall", text)
    assert "deceived the naive judge: 2 of 3 (66.7%, 95% interval 20.8% to 93.9%)" in text
    assert "caught by ours: 2 of 3 (66.7%," in text
    assert "of priority P0: 2 of 3 (66.7%," in text
    assert "honest kernels refused: 1 of 2 (50.0%," in text


def test_correctness_has_a_row_a_problem(audit):
    text = audit(problem(mutants=(9, 10), impostors=("rows=4: zeros",)), "correctness").stdout
    assert re.search(r"^matmul +9/10 +100/100 +5/5$", text, re.MULTILINE)
    assert "mutants killed       9 of 10 (90.0%, 95% interval 59.6% to 98.2%)" in text
    assert re.search(r"^impostor passes: .*rows=4: zeros$", text, re.MULTILINE)
    table = text.partition("\n\n")[0].splitlines()
    assert max(map(len, table)) <= 80


def test_progress_is_plain_lines_where_it_is_piped(audit):
    text = audit(CAUGHT, "cheats").stdout
    assert "\x1b" not in text
    assert re.match(r"program 1 of \d+, matmul, \d+\.\d s\nprogram 2 of \d+, softmax", text)
    quick = audit(problem(), "correctness", "--quick").stdout
    assert re.match(r"program 1, matmul: wrong, \d+\.\d s\n", quick)


def test_progress_is_a_panel_on_a_terminal():
    console = Console(file=StringIO(), force_terminal=True, width=80)
    with LiveAudit(console, 3) as live:
        for name in ("matmul", "softmax"):
            live.step(name)
    assert re.search(r"program 2 of 3, softmax, \d+\.\d s", console.file.getvalue())
    assert "\x1b[" in console.file.getvalue()
