"""What a prompt says beside the search's own results: the sizes of the problem, the machine, the
profile of the parent, other good programs, and what was retrieved. All of it as text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_FENCE = re.compile(r"^ {0,3}(`{3,})")
_SPEEDUP = re.compile(r"speedup (\S+)x\.$")
_CAPTION = re.compile(r"^`(.*)` \((\w+)\):$")
_WINNER = re.compile(r"^(\w+) (knobs|schedule|source) (.*): (\S+)x on (.*)$")
_TASK = re.compile(r"^Make `(\w+)` fast\.$", re.MULTILINE)
_WORKLOAD = re.compile(r"^- workload (\w+=.*?)(?::|$)", re.MULTILINE)
_BITS = r"- output `\w+`: \w*?(\d+)\["
_FACT = re.compile(r"^- (\w+): (-?[0-9.e+]+)(%?)", re.MULTILINE)
_BOUND = re.compile(r"\bbound by (\w+)")
# What a machine is thought to be where the prompt does not say: vectors of 64 bytes, 32 of them.
LANES, REGISTERS, CHAINS = 16, 32, 8
# How far away another machine is, and a problem of other dimensions: as sizes of four times.
FAR = 2.0


@dataclass(frozen=True, slots=True)
class Result:
    """A tried program as the prompt lists it; ``height`` is log2 of the speedup, None if it
    failed.
    """

    text: str
    height: float | None


@dataclass(frozen=True, slots=True)
class Winner:
    """What another search found; ``apart`` is how far its problem and its machine are away, in log2
    of sizes.
    """

    text: str
    height: float
    apart: float

    @property
    def trust(self) -> float:
        """How much of it is believed: all where it is the same problem on the same machine."""
        return float(2.0**-self.apart)


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine as a programmer sees it: SMs (0 of a CPU), values in a vector, vector registers,
    and vectors under way that keep the pipes busy.
    """

    sms: int = 0
    lanes: int = LANES
    registers: int = REGISTERS
    chains: int = CHAINS

    def hope(self, held: int, lanes: int) -> float:
        """What a register tile of so many vectors promises, in log2 of speed."""
        usable = 0.75 * self.registers  # operands need the others
        crowded = max(0.0, held / usable - 1.0)
        wide = 0.7 * math.log2(min(lanes, self.lanes) / 4)
        beyond = 0.4 * math.log2(max(lanes / self.lanes, 1.0))
        return wide - beyond + 0.5 * math.sqrt(min(held, 2 * self.chains)) - 2.0 * crowded


@dataclass(frozen=True, slots=True)
class Background:
    """``extents`` by name, in order; ``machine`` is None where nothing is told.

    ``facts`` are of the parent's profile, shares of a time as such; ``bound`` is what limits it,
    ``log`` what a compiler said of it; ``others`` are good programs of this search, ``winners`` of
    others, and ``advice`` the words of other passages.
    """

    extents: tuple[tuple[str, int], ...] = ()
    machine: Machine | None = None
    facts: tuple[tuple[str, float], ...] = ()
    bound: str = ""
    log: str = ""
    others: tuple[Result, ...] = ()
    winners: tuple[Winner, ...] = ()
    advice: str = ""

    def fact(self, name: str) -> float | None:
        """A fact of the profile, None if it is not told."""
        return dict(self.facts).get(name)


NOTHING = Background()


def read_background(parts: Mapping[str, str]) -> Background:
    """What the sections of a prompt say of all this."""
    task, profile = parts.get("Task", ""), parts.get("Profile", "")
    device, named = parts.get("Device", ""), _TASK.search(task)
    extents = _extents(task)
    bound = _BOUND.search(profile)
    passages = [
        (*found.groups(), text)
        for caption, text in captioned(parts.get("Known", ""))
        if (found := _CAPTION.match(caption))
    ]
    read = [
        (_winner(title, text, named[1] if named else "", extents, device), source, text)
        for title, source, text in passages
    ]
    good = (captioned(parts.get(name, "")) for name in ("Inspirations", "Second parent"))
    return Background(
        extents=extents,
        machine=_machine(device, task),
        facts=tuple(
            (name, float(value) / (100 if share else 1))
            for name, value, share in _FACT.findall(profile)
        ),
        bound=bound[1] if bound else "",
        log="\n".join(text for _, text in captioned(profile)),
        others=tuple(_result(*pair) for pairs in good for pair in pairs),
        winners=tuple(winner for winner, _, _ in read if winner),
        advice="\n".join(text for _, source, text in read if source == "page"),
    )


def lines_of(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a text, each with whether it stands outside of fenced blocks."""
    fence = ""
    for line in text.split("\n"):
        mark, run = _FENCE.match(line), line.strip()
        if mark and not fence:
            fence = mark[1]
            yield line, False
        elif mark and len(mark[1]) >= len(fence) and not run.strip("`"):
            fence = ""
            yield line, False
        else:
            yield line, not fence


def captioned(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a section, each with the last line of words before it."""
    out, caption, block = list[tuple[str, str]](), "", list[str]()
    for line, is_outside in lines_of(f"{text}\n"):
        if not is_outside:
            block.append(line)
        elif block:
            out.append((caption, "".join(f"{inside}\n" for inside in block[1:-1])))
            block = []
        if is_outside and line.strip():
            caption = line.strip()
    return out


def _extents(task: str) -> tuple[tuple[str, int], ...]:
    """The extents of the first workload; none where they are ranges."""
    found = _WORKLOAD.search(task)
    pairs = re.findall(r"(\w+)=(\d+)(?![\d.])", found[1]) if found else []
    return tuple((name, int(extent)) for name, extent in pairs)


def _machine(device: str, task: str) -> Machine | None:
    if not device.strip():
        return None

    def figure(pattern: str, text: str, otherwise: int) -> int:
        found = re.search(pattern, text)
        return int(float(found[1])) if found else otherwise

    bits = figure(_BITS, task, 32)
    width = figure(r"vectors of (\d+) bytes", device, LANES * 4)
    return Machine(
        sms=figure(r"\b(\d+) SMs\b", device, 0),
        lanes=figure(r"bytes \((\d+) values\)", device, max(1, 8 * width // bits)),
        registers=figure(r"(\d+) vector registers\b", device, REGISTERS),
        chains=figure(r"at least ([\d.]+) independent", device, CHAINS),
    )


def _result(caption: str, text: str) -> Result:
    speed = _SPEEDUP.search(caption)
    return Result(text, math.log2(max(float(speed[1]), 1e-9)) if speed else None)


def _winner(
    title: str, text: str, problem: str, extents: tuple[tuple[str, int], ...], device: str
) -> Winner | None:
    """A passage that is a program for the problem, with how far that was from this one."""
    found = _WINNER.match(title)
    if found is None or found[1] != problem:
        return None
    shape, speed, machine = found[3], found[4], found[5]
    sizes = [int(x) for x in re.findall(r"=(\d+)" if "=" in shape else r"\d+", shape)]
    own = [extent for _, extent in extents]
    if len(sizes) == len(own) and own and min(sizes) > 0:
        steps = [math.log2(a / b) for a, b in zip(sizes, own, strict=True)]
        apart = math.sqrt(sum(step * step for step in steps) / len(steps))
    else:
        apart = FAR
    words = re.findall(r"[a-z0-9]+", machine.lower())
    is_elsewhere = not all(re.search(rf"\b{word}\b", device.lower()) for word in words)
    try:
        height = math.log2(max(float(speed), 1e-9))
    except ValueError:
        return None
    return Winner(text, height, apart + FAR * (is_elsewhere and bool(device)))
