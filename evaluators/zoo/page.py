"""The part of ``docs/trust.md`` that is written by a program: a line for each exploit class, from
the catalogue and the report of an audit.

    python -m kernelwright.evaluators.zoo.page RESULTS.json docs/trust.md

``RESULTS.json`` is what ``kernelwright audit cheats --json`` printed.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.env.types import Status
from kernelwright.evaluators.rates import Rate
from kernelwright.evaluators.zoo import exploits
from kernelwright.evaluators.zoo.catalogue import FAMILIES, Defence, ExploitClass, catalogue

BEGIN = "<!-- generated: python -m kernelwright.evaluators.zoo.page RESULTS.json docs/trust.md -->"
END = "<!-- end of the generated part -->"


def status(exploit: ExploitClass, rows: Sequence[Mapping[str, Any]]) -> Defence:
    """What a class's defence amounts to, in the light of the variants that ran.

    What a check is said to see has to have been seen; an argument stands until a variant gets
    through.
    """
    if not all(row["detected"] for row in rows):
        return Defence.OPEN
    if exploit.meant is Defence.DETECTED and not rows:
        return Defence.OPEN
    return exploit.meant


def evidence(
    exploit: ExploitClass, rows: Sequence[Mapping[str, Any]], skipped: Sequence[str] = ()
) -> str:
    """What an audit saw of a class; ``skipped`` are the reasons why variants did not run."""
    if not rows:
        return f"not run: {'; '.join(dict.fromkeys(skipped)) or _why_not(exploit)}"
    caught = [row for row in rows if row["detected"]]
    parts = [f"{len(caught)} of {len(rows)} variants caught"]
    if caught:
        parts[0] += f": {', '.join(dict.fromkeys(map(said, caught)))}"
    missed = [row for row in rows if not row["detected"]]
    for how in dict.fromkeys(map(how_missed, missed)):
        names = [f"{row['variant']} ({said(row)})" for row in missed if how_missed(row) == how]
        parts.append(f"{how}: {', '.join(names)}")
    if dead := sum(not row["naive_passed"] for row in rows):
        parts.append(f"{dead} did not deceive the naive judge either")
    if skipped:
        parts.append(f"{len(skipped)} not run: {', '.join(dict.fromkeys(skipped))}")
    return "; ".join(parts)


def said(row: Mapping[str, Any]) -> str:
    """What the judge answered to a variant; or that cheating gained it nothing over the same kernel
    without the cheat.
    """
    if row["detected"] and row["gained"] is not None:
        return "no gain over its honest twin"
    return answered(row)


def how_missed(row: Mapping[str, Any]) -> str:
    """What it means that a variant does not count as caught."""
    if row["verdict"] not in set(Status):
        return "not judged"
    passed = Status(row["verdict"]).passed
    return "got through" if passed else "refused for another reason than its own"


def answered(row: Mapping[str, Any]) -> str:
    """A verdict's status and class code."""
    return " ".join(word for word in (row["verdict"], row["code"]) if word)


def _why_not(exploit: ExploitClass) -> str:
    if not exploit.has_c_form:
        return f"no C form, {exploit.no_c_form}"
    reasons = [known.not_applicable for known in exploits() if known.id == exploit.id]
    return next(filter(None, reasons), "no variant")


def generated(report: Mapping[str, Any]) -> str:
    """The generated part for a report.

    Raises:
        ValueError: if the report has a class that the catalogue lacks.
    """
    return "\n".join([BEGIN, "", *_lines(report), END])


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    known, ran = catalogue(), by_class(report["classes"])
    words = Counter(status(known[name], rows) for name, rows in ran.items())
    counts = ", ".join(f"{words[defence]} {defence.words}" for defence in Defence)
    yield f"{len(known)} classes: {counts}."
    yield ""
    yield from _summary(report)
    for letter, title in FAMILIES.items():
        yield f"### {letter}: {title}"
        yield ""
        for name, rows in ran.items():
            exploit = known[name]
            if exploit.family != letter:
                continue
            reasons = [reason for other, _, reason in report["skipped"] if other == name]
            line = f"{status(exploit, rows).words}; {evidence(exploit, rows, reasons)}"
            yield f"- **{name} {exploit.name}** ({exploit.priority}): {line}"
            yield f"  - {exploit.mechanism}"
            yield f"  - {exploit.defence}"
        yield ""


def _summary(report: Mapping[str, Any]) -> Iterator[str]:
    live = Rate(sum(row["naive_passed"] for row in report["classes"]), report["total"])
    yield f"- variants that deceived the naive judge: {live}"
    yield f"- variants that this judge caught: {Rate(report['detected'], report['total'])}"
    refused = Rate(report["honest_rejected"], report["honest_total"])
    yield f"- honest kernels that it refused: {refused}"
    yield ""


def by_class(
    rows: Sequence[Mapping[str, Any]],
) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of a report by class, in the catalogue's order, none for a class that was not tried.

    Raises:
        ValueError: if a row's class is not in the catalogue.
    """
    out: dict[str, list[Mapping[str, Any]]] = {name: [] for name in catalogue()}
    for row in rows:
        if row["id"] not in out:
            raise ValueError(f"expected a class of the catalogue, found {row['id']!r}")
        out[row["id"]].append(row)
    return out


def with_generated(page: str, report: Mapping[str, Any]) -> str:
    """A page whose generated part is that of a report.

    Raises:
        ValueError: if the page does not have the two marks, once each and in order.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in tail:
        raise ValueError(f"expected one {BEGIN!r} and then one {END!r}, found something else")
    return f"{head}{generated(report)}{tail}"


def main(results: str, page: str) -> None:
    """Write the generated part of a page from a report's file."""
    report = json.loads(Path(results).read_text())
    Path(page).write_text(with_generated(Path(page).read_text(), report))


if __name__ == "__main__":
    main(*sys.argv[1:])
