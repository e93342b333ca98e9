"""The calls of a run, as a table, and one of them with its question and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from kernelwright.display.tables import print_table
from kernelwright.evaluators.cpu.text import printable

# The most of a reason that a row shows.
_REASON = 60


def print_calls(console: Console, rows: Sequence[Mapping[str, Any]], folder: str) -> None:
    """A row a call, as `configs.calls.call_rows` gives them."""
    if not rows:
        console.print("no calls: no model was asked in this run")
        return
    headers = ("call", "place", "became", "model", "tokens", "USD")
    print_table(console, headers, [_row(row) for row in rows])
    console.print(f"one of them, whole: kernelwright show {folder} --prompt CALL")


def _row(row: Mapping[str, Any]) -> tuple[object, ...]:
    place = f"{row['ask']}.{row['slot']}"
    model = row["answered_by"] or row["model"]
    return row["call"], place, _became(row), printable(model), row["tokens"], row["usd"]


def _became(row: Mapping[str, Any]) -> str:
    if row["trial"] is not None:
        speedup = "" if row["speedup"] is None else f" {row['speedup']:.3f}x"
        return f"trial {row['trial']} {row['status']}{speedup}"
    if row["became"] == "candidate":
        return "candidate, not judged"
    reason = printable(row["reason"] or "").partition("\n")[0]
    cut = reason if len(reason) <= _REASON else f"{reason[:_REASON]}…"
    return f"{row['became']}: {cut}" if cut else str(row["became"])


def prompt_text(found: Mapping[str, Any]) -> str:
    """A call's question and its answer, as `configs.transcript.prompt_of` gives them; what an
    answer says is made fit for a terminal.
    """
    head = f"call {found['call']} of {found['of']}: ask {found['ask']}, slot {found['slot']}"
    lines = [f"{head}, {found['model']}, template {found['template'] or 'unknown'}"]
    for message in found["messages"]:
        lines += [f"\n[{message['role']}]", message["content"].rstrip()]
    answer, error = found["answer"], found["error"]
    if error is not None:
        lines += [f"\n[no answer: {error['kind']}]", error["message"]]
    else:
        told = f"{answer['prompt_tokens']} + {answer['completion_tokens']} tokens"
        lines += [f"\n[answer: {answer['finish_reason']}, {told}]"]
        lines += [str(answer["text"] if answer["refusal"] is None else answer["refusal"]).rstrip()]
    for each in found["events"]:
        rest = ", ".join(f"{name} {value}" for name, value in each.items() if name != "kind")
        lines += [f"\n[{each['kind']}] {rest}"]
    return printable("\n".join(lines)) + "\n"
