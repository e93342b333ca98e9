"""Rows of the table of agents: runs that are killed while they ask a server, and go on."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from agent_runs import KNOBS, Config, agents, tables
from asked_server import Endpoint, endpoint, of_agent
from table import Row

from kernelwright.configs import api
from kernelwright.search.store import DATABASE, SqliteStore
from kernelwright.search.trial import MODEL_CALL
from kernelwright.search.underway import unanswered

# Long enough that many kills find a call on its way.
DELAY_S = 0.01
SEED, CALLS = 20261130, 16
# How often campaigns are killed before they may end, in turn, until an agent has had its share.
KILLS, SHARE = (1, 2, 3), 6


def started(config: Config, out: Path) -> int:
    """The id of a process, and of its group, that runs a campaign.

    A copy of this one, which has everything imported, so that kills land in the run.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        api.run(config, out)
        code = 0
    finally:
        os._exit(code)


def ended(child: int) -> None:
    """Wait for a run that must come to its end."""
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError(f"a run ended with status {status}")


def killed(child: int, after_s: float) -> bool:
    """Kill a run's process group with SIGKILL after a time; whether that came before its end."""
    time.sleep(after_s)
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        if status:
            raise RuntimeError(f"a run ended with status {status}")
        return False
    os.killpg(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@dataclass
class Seen:
    """What was seen over all kills."""

    landed: int = 0
    campaigns: int = 0
    equal: list[str] = field(default_factory=list)
    unequal: list[str] = field(default_factory=list)
    repeated: int = 0
    of_answered: int = 0
    on_their_way: int = 0
    uncounted: list[str] = field(default_factory=list)


@contextmanager
def copied(out: Path) -> Iterator[SqliteStore]:
    """A copy of a run's store, so that what a kill left is not mended by looking."""
    with tempfile.TemporaryDirectory() as folder:
        if out.exists():
            shutil.copytree(out, folder, dirs_exist_ok=True)
        with SqliteStore(Path(folder) / DATABASE) as store:
            yield store


def answered(out: Path) -> set[str]:
    """The keys of the questions whose answers are in a run's record."""
    with copied(out) as store:
        calls = [e.data["completion"] for e in store.events() if e.kind == MODEL_CALL]
    return {call["id"].rpartition("-")[2] for call in calls}


def counted(out: Path) -> tuple[int, int]:
    """How many calls of a run are recorded, and how many are counted that never were."""
    with copied(out) as store:
        calls = sum(e.kind == MODEL_CALL for e in store.events())
        return calls, len(unanswered(store.meta()))


def interrupted(
    config: Config, out: Path, server: Endpoint, delays: list[float], seen: Seen
) -> Counter[str]:
    """Run a campaign that is killed after each of some times, then to its end; what the server was
    asked for it.
    """
    before, first = len(server.asked()), seen.landed
    known: set[str] = set()
    for delay_s in delays:
        mark = len(server.asked())
        if not killed(started(config, out), delay_s):
            break
        seen.landed += 1
        seen.of_answered += len(known & set(server.asked()[mark:]))
        known = answered(out)
    mark = len(server.asked())
    ended(started(config, out))
    seen.of_answered += len(known & set(server.asked()[mark:]))
    seen.campaigns += 1
    times = Counter(server.asked()[before:])
    again = times.total() - len(times)
    recorded, lost = counted(out)
    seen.repeated, seen.on_their_way = seen.repeated + again, seen.on_their_way + lost
    if recorded + lost < times.total() or lost > seen.landed - first:
        seen.uncounted.append(out.name)
    return times


def kill() -> Iterator[Row]:
    """Every agent, several times, killed at times drawn over the length of an unbroken run."""
    import openai  # noqa: F401 - before any process is copied

    rng, seen, spent = random.Random(SEED), Seen(), Seen()
    within = []
    with tempfile.TemporaryDirectory() as name, endpoint(Path(name), DELAY_S) as server:
        for agent in agents():
            config, whole = of_agent(agent, server, KNOBS), Path(name) / agent
            length_s, questions = unbroken(config, whole, server)
            first = seen.landed
            for number, kills in enumerate(cycle(KILLS)):
                if seen.landed - first >= SHARE:
                    break
                out, landed = Path(name) / f"{agent}-{number}", seen.landed
                delays = [rng.uniform(0, length_s / (1 + i)) for i in range(kills)]
                times = interrupted(config, out, server, delays, seen)
                is_equal = tables(out) == tables(whole) and set(times) == questions
                ends = seen.equal if is_equal else seen.unequal
                ends.append(f"{agent} after {seen.landed - landed}")
            few = of_agent(agent, server, KNOBS, budget={"calls": CALLS, "trials": 200})
            out = Path(name) / f"{agent}-calls"
            delays = [rng.uniform(0, length_s / 3) for _ in range(2)]
            asked = interrupted(few, out, server, delays, spent).total()
            within.append((agent, asked, sum(counted(out))))
    yield from rows(seen, spent, within)


def unbroken(config: Config, out: Path, server: Endpoint) -> tuple[float, set[str]]:
    """Run a campaign without a kill, once to warm up; how long it took, and what it asked."""
    ended(started(config, out.with_name("warm")))
    shutil.rmtree(out.with_name("warm"))
    began, mark = time.monotonic(), len(server.asked())
    ended(started(config, out))
    return time.monotonic() - began, set(server.asked()[mark:])


def rows(seen: Seen, spent: Seen, within: list[tuple[str, int, int]]) -> Iterator[Row]:
    """What was seen, against what is promised."""
    landed = f"{seen.landed} kills of {len(within)} agents in {seen.campaigns} campaigns"
    bad = f"; not {', '.join(seen.unequal)}" if seen.unequal else ""
    got = f"{landed}; {len(seen.equal)} ends equal{bad}"
    is_met = seen.landed >= 50 and not seen.unequal
    yield "kill -9 at random times: the end of the unbroken run", "50 kills, all equal", got, is_met
    total = seen.of_answered + spent.of_answered
    yield "calls repeated whose answer was recorded", "0", str(total), not total
    got = f"{seen.repeated} repeated, {seen.on_their_way} on their way at {seen.landed} kills"
    name = "calls repeated, at most those on their way"
    yield name, "at most one a kill", got, seen.repeated <= seen.on_their_way <= seen.landed
    bad_ones = [*seen.uncounted, *spent.uncounted]
    total = seen.campaigns + spent.campaigns
    got = f"{total - len(bad_ones)} of {total} campaigns" + (
        f"; not {bad_ones}" if bad_ones else ""
    )
    yield "every question that came to the server is counted as spent", "all", got, not bad_ones
    over = [agent for agent, asked, counts in within if asked > CALLS or counts > CALLS]
    most = max(asked for _, asked, _ in within)
    got = f"at most {most} in {len(within)} campaigns killed {spent.landed} times"
    name = f"questions to the server under a budget of {CALLS} calls, kills included"
    yield name, f"at most {CALLS}", got + (f"; over: {over}" if over else ""), not over
