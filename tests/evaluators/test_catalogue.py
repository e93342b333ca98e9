"""The catalogue of exploit classes, and the part of docs/trust.md that is made from it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kernelwright.evaluators.zoo import exploits
from kernelwright.evaluators.zoo import page as page_module
from kernelwright.evaluators.zoo.catalogue import (
    FAMILIES,
    Defence,
    ExploitClass,
    Priority,
    catalogue,
)
from kernelwright.evaluators.zoo.exploit import Exploit
from kernelwright.evaluators.zoo.page import BEGIN, END, evidence, generated, status, with_generated

PAGE = Path(__file__).resolve().parents[2] / "docs" / "trust.md"
LINE = re.compile(r"- \*\*([A-E]\d+) (.+)\*\* \((P\d)\): ([^;]+); (.+)")
WORDS = {"impossible by construction", "detected", "policy", "open"}


def row(
    name,
    variant,
    *,
    detected=True,
    naive_passed=True,
    verdict="wrong",
    code="wrong_value",
    gained=None,
):
    return {
        "id": name,
        "variant": variant,
        "priority": catalogue()[name].priority.value,
        "naive_passed": naive_passed,
        "verdict": verdict,
        "code": code,
        "detected": detected,
        "gained": gained,
    }


def report(*rows, skipped=()):
    caught = sum(r["detected"] for r in rows)
    counts = {"detected": caught, "total": len(rows), "honest_total": 40, "honest_rejected": 0}
    return {"classes": list(rows), "skipped": list(skipped), **counts}


def status_lines(page):
    part = page.partition(BEGIN)[2].partition(END)[0]
    return [m.groups() for m in map(LINE.fullmatch, part.splitlines()) if m]


# The catalogue


def test_it_has_the_83_classes_in_order():
    ids = [f"{letter}{n}" for letter, count in COUNTS.items() for n in range(1, count + 1)]
    assert list(catalogue()) == ids
    assert len(ids) == 83
    assert set(COUNTS) == set(FAMILIES)


COUNTS = {"A": 16, "B": 11, "C": 22, "D": 25, "E": 9}


def test_its_priorities_and_c_forms_are_counted():
    classes = catalogue().values()
    assert Counter(c.priority for c in classes) == {"P0": 61, "P1": 15, "P2": 7}
    assert sum(c.has_c_form for c in classes) == 68
    hardest = [c for c in classes if c.priority is Priority.P0 and c.family in "ABCD"]
    assert sum(c.has_c_form for c in hardest) == 49


def test_every_row_says_its_own_in_one_sentence():
    classes = catalogue().values()
    for text in ("name", "mechanism"):
        assert len({getattr(c, text) for c in classes}) == len(classes)
    for c in classes:
        for sentence in (c.mechanism, c.defence):
            assert sentence[0].isupper(), c.id
            assert re.fullmatch(r"[^.]+(\.[^. ][^.]*)*\.", sentence), f"{c.id}: {sentence}"
        assert not c.no_c_form.endswith("."), c.id
        assert c.name[0].islower(), c.id


def test_what_has_no_c_form_is_not_called_detected():
    # A check that no C kernel can be caught by has not been shown to work.
    for c in catalogue().values():
        assert c.has_c_form or c.meant is Defence.CONSTRUCTION, c.id


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "F1"}, "family"),
        ({"id": "A"}, "number"),
        ({"name": ""}, "name"),
        ({"defence": None}, "defence"),
    ],
)
def test_a_row_that_lacks_something_is_refused(change, said):
    given = {"id": "A1", "name": "n", "mechanism": "M.", "defence": "D."}
    with pytest.raises(ValueError, match=said):
        ExploitClass(**given | change, priority=Priority.P0, meant=Defence.DETECTED)


def test_the_zoo_has_the_catalogues_classes():
    zoo = {exploit.id: exploit for exploit in exploits()}
    assert list(zoo) == list(catalogue())
    for name, exploit in zoo.items():
        row = catalogue()[name]
        assert exploit.priority == row.priority, name
        # What has a C form and no variant says why.
        assert row.has_c_form or not exploit.variants, name


# What an audit says of a class


@pytest.mark.parametrize(
    ("name", "rows", "wanted", "said"),
    [
        (
            "D14",
            [row("D14", "fork", verdict="rejected", code="forbidden_syscall")] * 2,
            "impossible by construction",
            "2 of 2 variants caught: rejected forbidden_syscall",
        ),
        (
            "A7",
            [row("A7", "tail"), row("A7", "tile", verdict="ok", code="", detected=False)],
            "open",
            "1 of 2 variants caught: wrong wrong_value; got through: tile (ok)",
        ),
        (
            "D1",
            [row("D1", "write", verdict="ok", code="", detected=False)],
            "open",
            "0 of 1 variants caught; got through: write (ok)",
        ),
        (
            "A2",
            [row("A2", "zeros", naive_passed=False)],
            "detected",
            "1 of 1 variants caught: wrong wrong_value; 1 did not deceive the naive judge either",
        ),
        (
            "B2",
            [row("B2", "pointer", verdict="ok", code="", gained=1.01)],
            "impossible by construction",
            "1 of 1 variants caught: no gain over its honest twin",
        ),
        (
            "B2",
            [row("B2", "pointer", verdict="ok", code="", gained=1.5, detected=False)],
            "open",
            "0 of 1 variants caught; got through: pointer (ok)",
        ),
        (
            "C5",
            [row("C5", "alarm", verdict="error", code=None, detected=False)],
            "open",
            "0 of 1 variants caught; not judged: alarm (error)",
        ),
        (
            "C17",
            [row("C17", "slow", code="out_of_bounds", detected=False)],
            "open",
            "0 of 1 variants caught; refused for another reason than its own: slow "
            "(wrong out_of_bounds)",
        ),
        ("A2", [], "open", "not run: no variant"),
        ("D1", [], "impossible by construction", "not run: no variant"),
        ("E9", [], "policy", "not run: no reason"),
        (
            "C1",
            [],
            "impossible by construction",
            "not run: no C form, a CPU has no streams; a thread is class C2",
        ),
    ],
)
def test_status_and_evidence(name, rows, wanted, said, monkeypatch):
    known = (Exploit("E9", "flood", "P2", "about", not_applicable="no reason"),)
    monkeypatch.setattr(page_module, "exploits", lambda: known)
    assert status(catalogue()[name], rows).words == wanted
    assert evidence(catalogue()[name], rows) == said


def test_the_summary_counts_variants_and_honest_kernels():
    text = generated(report(row("A7", "tail"), row("A7", "tile", detected=False)))
    assert "- variants that this judge caught: 1 of 2 (50.0%, 95% interval 9.5% to 90.5%)" in text
    assert "- variants that deceived the naive judge: 2 of 2 (100%," in text
    assert "- honest kernels that it refused: 0 of 40 (0.0%, 95% interval 0.0% to 8.8%)" in text


def test_a_variant_that_could_not_run_is_named_with_the_reason():
    skipped = [("D14", "daemon", "no user namespaces"), ("D15", "kill", "no user namespaces")]
    text = generated(report(row("D14", "fork"), skipped=skipped))
    assert "wrong wrong_value; 1 not run: no user namespaces" in text
    assert "impossible by construction; not run: no user namespaces" in text


def test_a_class_that_is_not_in_the_catalogue_is_refused():
    with pytest.raises(ValueError, match="found 'A99'"):
        generated(report(row("A1", "x") | {"id": "A99"}))


@pytest.mark.parametrize("page", ["", BEGIN, END, f"{END}{BEGIN}", f"{BEGIN}{END}{END}"])
def test_a_page_without_its_marks_is_refused(page):
    with pytest.raises(ValueError, match="expected one"):
        with_generated(page, report())


def test_the_command_replaces_the_part_and_keeps_the_rest(tmp_path):
    page, results = tmp_path / "page.md", tmp_path / "results.json"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    results.write_text(json.dumps(report(row("A7", "tail"))))
    command = [sys.executable, "-P", "-m", "kernelwright.evaluators.zoo.page", results, page]
    for _ in range(2):
        subprocess.run(command, check=True)
        head, tail = page.read_text().split(generated(report(row("A7", "tail"))))
        assert (head, tail) == ("before\n", "\nafter\n")


# The page


def test_the_page_is_up_to_date_with_the_catalogue():
    found = status_lines(PAGE.read_text())
    wanted = [(c.id, c.name, c.priority.value) for c in catalogue().values()]
    assert [line[:3] for line in found] == wanted
    for name, _, _, word, seen in found:
        assert word in WORDS, name
        exploit = catalogue()[name]
        assert word in (exploit.meant.words, "open"), name
        if not exploit.has_c_form:
            assert seen == f"not run: no C form, {exploit.no_c_form}"
    text = PAGE.read_text()
    for c in catalogue().values():
        assert f"\n  - {c.mechanism}\n  - {c.defence}\n" in text, c.id


def test_the_page_claims_nothing_that_got_through():
    for name, _, _, word, seen in status_lines(PAGE.read_text()):
        caught = re.match(r"(\d+) of (\d+) variants caught", seen)
        if caught and caught[1] != caught[2]:
            assert word == "open", name
