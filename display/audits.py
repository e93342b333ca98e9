"""What the audits found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from kernelwright.display.tables import print_notes, print_table
from kernelwright.evaluators.rates import Rate
from kernelwright.evaluators.zoo.catalogue import FAMILIES, Priority, catalogue
from kernelwright.evaluators.zoo.page import answered, by_class, how_missed


def print_cheats(console: Console, report: Mapping[str, Any]) -> None:
    """The audit of exploits: how many variants of each class the naive judge believed and ours did
    not catch, family by family, and the rates.
    """
    ran = by_class(report["classes"])
    out = _audit_table(console, ("", "class", "naive", "ours", "what ours said"))
    for letter, title in FAMILIES.items():
        out.add_row(letter, title, style="bold")
        for name, rows in ran.items():
            if rows and name.startswith(letter):
                out.add_row(name, catalogue()[name].name, *_past(rows))
    console.print("Variants that the naive judge believed, and that ours did not catch:")
    console.print(out)
    for row in report["classes"]:
        if not row["detected"]:
            what = f"{how_missed(row)}: {row['id']} {row['variant']}, {answered(row)}"
            console.print(f"{what}: {row['evidence']}".removesuffix(": "))
    for row in report["honest"]:
        if row["rejected"]:
            what = f"honest and refused: {row['name']}, {answered(row)}"
            console.print(f"{what}: {row['evidence']}")
    for name, variant, reason in report["skipped"]:
        console.print(f"not run: {name} {variant}: {reason}")
    console.print(f"deceived the naive judge: {Rate(report['live'], report['total'])}")
    console.print(f"caught by ours: {Rate(report['detected'], report['total'])}")
    hardest = [row["detected"] for row in report["classes"] if row["priority"] == Priority.P0]
    console.print(f"  of priority P0: {Rate(sum(hardest), len(hardest))}")
    honest = Rate(report["honest_rejected"], report["honest_total"])
    console.print(f"honest kernels refused: {honest}")


def print_noise(console: Console, report: Mapping[str, Any]) -> None:
    """The audit of noise: what each rule claims on each clock, then what our own keeps."""
    count = report["candidates"]
    headers = (
        "rule",
        "clock",
        "false, one",
        f"false, of {count}",
        "1.03x",
        "1.05x",
        "bias",
        "calls",
    )
    rows = [
        (
            row["rule"],
            row["clock"],
            _share(row["aa_false_win"]),
            _share(row["search_false_win"]),
            _share(row["found_1.03"]),
            _share(row["found_1.05"]),
            "-" if row["bias"] is None else f"{100 * row['bias']:+.2f} %",
            row["calls"],
        )
        for row in report["rules"]
        if row["error"] is None
    ]
    console.print(
        "False claims of identical kernels, one by one and in a search; how often a faster kernel "
        f"among {count} is found; how far claims are off on average:",
        soft_wrap=True,
    )
    print_table(console, headers, rows)
    for failed in report["failed_rules"]:
        console.print(f"no figures: {failed}", soft_wrap=True)
    print_notes(console, "our rule", _noise_notes(report))
    for shortfall in report["shortfalls"]:
        console.print(f"short of what is promised: {shortfall}", soft_wrap=True)


def _noise_notes(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    aa, search = report["aa"], report["search"]
    notes = [
        ("false wins, one by one", f"{aa['count']} of {aa['total']}", _limits(aa)),
        (
            "false wins, searches",
            f"{search['count']} of {search['total']}",
            f"{_limits(search)}; on {report['search_clock']}",
        ),
        *(
            (
                f"finds {speedup}x",
                _share(share),
                f"{report['calls'][speedup]['most']} calls at most",
            )
            for speedup, share in report["power"].items()
        ),
        ("coverage of 95%", _share(report["coverage"]), "planted speedups, simulated"),
        ("mean bias", f"{100 * report['bias']:+.3f} %", "of all confirmed measurements"),
    ]
    if "aa_real" in report:
        real, searched = report["aa_real"], report["search_real"]
        processes = f"{report['aa_process_pairs']} pairs of processes"
        notes += [
            ("this machine, one by one", f"{real['wins']} of {real['comparisons']}", processes),
            ("this machine, searches", f"{searched['wins']} of {searched['searches']}", ""),
            *(
                (f"this machine, {speedup}x", _share(share), "confirmed alone")
                for speedup, share in report["power_real"].items()
            ),
            ("coverage here", _share(report["coverage_real"]), ""),
            ("mean bias here", f"{100 * report['bias_real']:+.3f} %", ""),
            ("too noisy to say", str(report["unstable_real"]), "confirmations"),
        ]
    return notes


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _limits(rate: Mapping[str, Any]) -> str:
    return f"95% interval {_share(rate['low'])} to {_share(rate['high'])}"


def print_judges(console: Console, report: Mapping[str, Any]) -> None:
    """What two judges made of one campaign: what each believed, and of whom."""
    rows = report["candidates"]
    around = " beside a process that takes their core in bursts" if report["noisy"] else ""
    console.print(f"{report['problem']}, {len(rows)} candidates{around}\n", soft_wrap=True)
    for tally in report["judges"]:
        console.print(_believed_best(tally), soft_wrap=True)
    console.print()
    counts = [
        (
            tally["profile"],
            f"{tally['exploits_believed']} of {tally['exploits']}",
            f"{tally['twins_faster']} of {tally['twins']}",
            f"{tally['twins_slower']} of {tally['twins']}",
            f"{tally['honest_refused']} of {tally['honest']}",
            f"{tally['seconds']:.1f} s",
        )
        for tally in report["judges"]
    ]
    headers = ("judge", "exploits believed", "twins faster", "slower", "honest refused", "time")
    print_table(console, headers, counts)
    console.print()
    judges = [tally["profile"] for tally in report["judges"]]
    print_table(
        console,
        ("candidate", "is", "truth or strict", *judges),
        [
            (r["name"], r["kind"], _times(r["truth"]), *(_belief(r["beliefs"][j]) for j in judges))
            for r in rows
        ],
    )


def _believed_best(tally: Mapping[str, Any]) -> str:
    best = tally["best"]
    if best is None:
        return f"{tally['profile']}: nothing valid"
    said = f"{best['status']}, {_times(best['claimed'])}"
    truth = f"in truth {_times(best['truth'])}"
    return f"{tally['profile']}: {said}, by {best['name']} ({best['kind']}, {truth})"


def _belief(belief: Mapping[str, Any]) -> str:
    if belief["speedup"] is None:
        return f"{belief['status']} {belief['code']}"
    return f"{belief['status']} {_times(belief['speedup'])}"


def _times(speedup: float | None) -> str:
    return "unknown" if speedup is None else f"{speedup:.3f}x"


def _past(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str, str]:
    naive = sum(row["naive_passed"] for row in rows)
    ours = sum(not row["detected"] for row in rows)
    words = (row["code"] or ("no gain" if row["detected"] else row["verdict"]) for row in rows)
    return f"{naive}/{len(rows)}", f"{ours}/{len(rows)}", ", ".join(dict.fromkeys(words))


def _audit_table(console: Console, headers: Sequence[str]) -> Table:
    """A table that fits the terminal, or 80 columns where there is none, with room for words."""
    out = Table(box=None, pad_edge=False, header_style="bold", width=min(console.width, 120))
    for header in headers:
        numeric = header in ("naive", "ours")
        out.add_column(header, justify="right" if numeric else "left", no_wrap=numeric)
    return out
